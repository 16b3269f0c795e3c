"""The report of a run that still goes on, served to this machine's browser alone.

The page asks for the state every two seconds, naming the version it knows; it is answered 304 until the file
has changed. Only requests addressed to this machine by name are answered, so that no page from elsewhere can
read the results through a name of its own that it points here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from urllib.parse import parse_qs, urlsplit

from modelodds.errors import ModelOddsError
from modelodds.report.data import page_data
from modelodds.report.loading import load
from modelodds.report.page import page
from modelodds.report.words import closing, opening
from modelodds.result import Result

HOST = "127.0.0.1"
NAMES = {"127.0.0.1", "localhost", "[::1]"}


class Watched:
    """A file and the result last read from it."""

    def __init__(self, path: Path, read: Callable[[Path], Result] = load) -> None:
        self.path, self._read = path, read
        self._lock = Lock()
        self._stamp = ""
        self._result = read(path)

    def look(self) -> tuple[str, Result]:
        """Version and result; read anew only when the file, or a database's log beside it, has changed."""
        with self._lock:
            beside = (self.path, self.path.with_name(self.path.name + "-wal"))
            found = [file.stat() for file in beside if file.exists()]
            stamp = "/".join(f"{stat.st_mtime_ns}.{stat.st_size}" for stat in found)
            if stamp != self._stamp:
                self._result, self._stamp = self._read(self.path), stamp
            return self._stamp, self._result


def server(watched: Watched, port: int = 0) -> ThreadingHTTPServer:
    """A server of the live page, on a free port if none is given; call ``serve_forever`` on it."""

    class Handler(BaseHTTPRequestHandler):
        """Answers with the page and with its state."""

        def do_GET(self) -> None:
            """The page at ``/``, its state at ``/state``."""
            if self.headers.get("Host", "").rsplit(":", 1)[0] not in NAMES:
                self._answer(403, "text/plain", "This page is for the machine it is served from.")
                return
            url = urlsplit(self.path)
            try:
                version, result = watched.look()
                if url.path == "/":
                    self._answer(200, "text/html", page(result, live=True))
                elif url.path == "/state":
                    known = parse_qs(url.query).get("known", [""])[0]
                    self._state(known, version, result)
                elif url.path == "/favicon.ico":
                    self._answer(204, "image/x-icon", "")
                else:
                    self._answer(404, "text/plain", "There is nothing here; the report is at /.")
            except (ModelOddsError, OSError) as error:
                self._answer(503, "text/plain", str(error))

        def _state(self, known: str, version: str, result: Result) -> None:
            if known == version:
                self._answer(304, "application/json", "")
                return
            words = {"opening": opening(result), "closing": closing(result)}
            state = {"version": version, "data": page_data(result), **words}
            self._answer(200, "application/json", json.dumps(state, allow_nan=False))

        def _answer(self, status: int, kind: str, text: str) -> None:
            body = text.encode()
            with suppress(ConnectionError):  # the reader has gone
                self.send_response(status)
                self.send_header("Content-Type", f"{kind}; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "no-store")
                self.send_header("X-Content-Type-Options", "nosniff")
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return ThreadingHTTPServer((HOST, port), Handler)
