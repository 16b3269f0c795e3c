"""An append-only journal in one SQLite file: one writer at a time, any number of readers meanwhile.

Whatever happens in a run is one row, and a row is on the disk before anything else happens. Rows are numbered
without gaps, and each carries a seal: a digest of its own content and of the seal before it. So a file that
was cut short, damaged or edited is noticed, and what comes before the damage can still be told from the rest.
Values are numbers, text and JSON: ``sqlite3 run.db "select * from evaluations"`` shows them.
"""

import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from modelodds.errors import LedgerError
from modelodds.lock import Lock

APPLICATION = 0x6D6F6464  # "modd", in the file's header
FORMAT = 1


@dataclass(frozen=True)
class Entry:
    """One row of the journal; what does not apply to its kind is None.

    Kinds: ``run`` (the models and settings), ``open`` and ``close`` (a process began and ended with it),
    ``reuse`` (an evaluation of another run), ``ask``, ``retry`` (an attempt that failed and is made again),
    ``outcome``, ``tell`` (the session took the outcome in), ``belief`` (where the comparison stood),
    ``adopt`` (the session was made anew from all outcomes so far).
    """

    kind: str
    query: int | None = None
    model: str | None = None
    theta: str | None = None  # JSON, by parameter
    log_likelihood: float | None = None
    standard_error: float | None = None
    status: str | None = None
    reason: str | None = None
    seconds: float | None = None
    started: str | None = None
    ended: str | None = None
    host: str | None = None
    detail: str | None = None  # JSON
    at: str = ""

    @property
    def details(self) -> dict[str, Any]:
        """What ``detail`` holds."""
        found: dict[str, Any] = json.loads(self.detail or "{}")
        return found


COLUMNS = [field.name for field in fields(Entry)]
TYPES = {"query": "INTEGER", "log_likelihood": "REAL", "standard_error": "REAL", "seconds": "REAL"}
SCHEMA = f"""
CREATE TABLE journal (n INTEGER PRIMARY KEY, {", ".join(f"{c} {TYPES.get(c, 'TEXT')}" for c in COLUMNS)},
    seal TEXT NOT NULL);
CREATE TABLE results (n INTEGER PRIMARY KEY, result TEXT NOT NULL, seal TEXT NOT NULL);
CREATE TRIGGER journal_is_kept BEFORE DELETE ON journal BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER journal_is_fixed BEFORE UPDATE ON journal BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE VIEW evaluations AS SELECT o.query AS id, a.model, a.theta, o.log_likelihood, o.standard_error,
    o.status, o.reason, o.seconds, o.started, o.ended, o.host, o.kind = 'retry' AS retried
    FROM journal o JOIN journal a ON a.query = o.query AND a.kind IN ('ask', 'reuse')
    WHERE o.kind IN ('outcome', 'retry', 'reuse') ORDER BY o.n;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
"""


@dataclass(frozen=True)
class Contents:
    """What a file holds: rows up to the first damage, and what the damage is."""

    entries: list[Entry]
    seal: str = ""  # of the last row
    result: str | None = None  # the last full result, as JSON ...
    result_at: int = 0  # ... and how many rows there were then
    damage: str | None = None


def now() -> str:
    """The time, as the journal writes it."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def read(path: str | os.PathLike[str]) -> Contents:
    """All rows of a sound journal; of any other file, a LedgerError that says what is wrong with it."""
    contents = inspect(path)
    if contents.damage is not None:
        done = sum(e.kind == "outcome" for e in contents.entries)
        raise LedgerError(
            f"{path} is damaged: {contents.damage}. Nothing in it was changed; {done} of its evaluations are "
            f"intact. Copy them to a new ledger with: modelodds salvage {path} NEW.db"
        )
    return contents


def inspect(path: str | os.PathLike[str]) -> Contents:
    """Rows of a journal up to the first damage, if there is any."""
    if Path(path).is_dir():
        raise LedgerError(f"{path} is a folder; name a file in it, such as {Path(path) / 'run.db'}.")
    if not Path(path).is_file():
        raise LedgerError(f"there is no ledger {path}.")
    try:
        with contextlib.closing(_reader(Path(path))) as connection:
            return _inspect(connection, path)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if "not a database" in str(error):
            raise LedgerError(f"{path} is not a ledger: it is no SQLite file, and was left alone.") from None
        if "unable to open" in str(error) or "locked" in str(error):
            raise LedgerError(f"{path} cannot be read: {error}.") from None
        return Contents([], damage=str(error))


def _reader(path: Path) -> sqlite3.Connection:
    address = path.resolve().as_uri()
    try:
        connection = sqlite3.connect(f"{address}?mode=ro", uri=True, timeout=10.0)
        connection.execute("SELECT 1 FROM sqlite_master")
    except sqlite3.OperationalError:  # a folder that cannot be written, where no index of the log can be made
        connection = sqlite3.connect(f"{address}?mode=ro&immutable=1", uri=True)
    return connection


def _inspect(connection: sqlite3.Connection, path: str | os.PathLike[str]) -> Contents:
    connection.execute("BEGIN")  # one moment, however long the reading takes
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if not tables:
        return Contents([])
    (application,), (version,) = (
        connection.execute(f"PRAGMA {p}").fetchone() for p in ("application_id", "user_version")
    )
    if application != APPLICATION or "journal" not in tables:
        raise LedgerError(f"{path} is an SQLite file of something else, and was left alone.")
    if version != FORMAT:
        raise LedgerError(
            f"{path} has format {version}, this modelodds reads {FORMAT}; use the modelodds it is from."
        )
    contents = _rows(connection)
    if contents.damage is None:
        try:
            found = [row[0] for row in connection.execute("PRAGMA integrity_check(1)")]
        except sqlite3.DatabaseError as error:
            found = [str(error)]
        if found != ["ok"]:
            return replace(contents, damage=" ".join(found[0].split()))
    return _with_result(connection, contents)


def _rows(connection: sqlite3.Connection) -> Contents:
    entries: list[Entry] = []
    seal, damage = "", None
    try:
        for n, *values, found in connection.execute(
            f"SELECT n, {', '.join(COLUMNS)}, seal FROM journal ORDER BY n"
        ):
            entry = Entry(*values)
            if n != len(entries) + 1 or found != _seal(seal, entry):
                damage = f"row {len(entries) + 1} of its journal is missing or was changed"
                break
            entries.append(entry)
            seal = found
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        damage = str(error)
    return Contents(entries, seal, damage=damage)


def _with_result(connection: sqlite3.Connection, contents: Contents) -> Contents:
    try:
        row = connection.execute("SELECT n, result, seal FROM results ORDER BY n DESC LIMIT 1").fetchone()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return replace(contents, damage=contents.damage or str(error))
    if row is None:
        return contents
    if not isinstance(row[1], str) or row[2] != _digest(row[1]):
        return replace(contents, damage=contents.damage or "its last result was changed")
    return replace(contents, result=row[1], result_at=row[0])


def _seal(before: str, entry: Entry) -> str:
    values = json.dumps(astuple(entry), default=repr)  # repr: of bytes, where a file is damaged
    return _digest(before + values)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


# ---------------------------------------------------------------------- writing


class Journal:
    """A journal open for writing: ``append`` puts rows on the disk before it returns.

    Parameters
    ----------
    path
        The file; it is made if there is none. Another writer's is refused with LedgerInUse, at once.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if "\0" in str(path):
            raise LedgerError(f"{str(path)!r} cannot be the name of a file.")
        if not self.path.parent.is_dir():
            raise LedgerError(f"{self.path} needs the folder {self.path.parent}; make it first.")
        self._lock = Lock(self.path)
        try:
            self.contents = inspect_or_new(self.path)
            self._seal, self._n = self.contents.seal, len(self.contents.entries)
            self._connection = sqlite3.connect(self.path, timeout=30.0, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
        except BaseException as error:
            self._lock.release()
            if isinstance(error, sqlite3.Error):
                raise LedgerError(f"{self.path} cannot be written: {error}.") from None
            raise
        self._later: list[Entry] = []
        self._written = False

    def append(self, *entries: Entry) -> None:
        """Write rows, those put off first, all or none of them."""
        self._catch_up()
        rows: list[tuple[Any, ...]] = []
        seal = self._seal
        for entry in (*self._later, *entries):
            entry = _storable(entry)
            seal = _seal(seal, entry)
            rows.append((self._n + len(rows) + 1, *astuple(entry), seal))
        marks = ", ".join("?" * (len(COLUMNS) + 2))
        with self._transaction():
            if self._n == 0:
                for statement in _statements():
                    self._connection.execute(statement)
            self._connection.executemany(f"INSERT INTO journal VALUES ({marks})", rows)
            self._written = True
        self._n, self._seal, self._later = self._n + len(rows), seal, []

    def _catch_up(self) -> None:
        """Notice rows whose writing was interrupted (Ctrl-C) just after it was done."""
        if not self._n and not self._written:
            return
        last = self._connection.execute("SELECT n, seal FROM journal ORDER BY n DESC LIMIT 1").fetchone()
        if last is not None and last[0] != self._n:
            (self._n, self._seal), self._later = last, []

    def later(self, *entries: Entry) -> None:
        """Rows to be written with the next ones: what could be found out again if they were lost."""
        self._later += [replace(entry, at=entry.at or now()) for entry in entries]

    def keep_result(self, result: str) -> None:
        """Keep a full result, as of the rows so far."""
        with self._transaction():
            self._connection.execute(
                "INSERT OR REPLACE INTO results VALUES (?, ?, ?)", (self._n, result, _digest(result))
            )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file and let the next writer in."""
        try:
            if self._later:
                self.append()
        finally:
            self._connection.close()
            self._lock.release()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def inspect_or_new(path: Path) -> Contents:
    """Contents of a sound journal, or of none where there is no file, or an empty one."""
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        return Contents([])
    return read(path)


def _statements() -> Iterator[str]:
    """The schema, statement by statement; triggers have a semicolon inside."""
    part = ""
    for line in SCHEMA.strip().splitlines():
        part += line + "\n"
        if sqlite3.complete_statement(part):
            yield part
            part = ""


def _storable(entry: Entry) -> Entry:
    """The entry as SQLite gives it back: floats for numbers, no NaN, no negative zero."""
    changes: dict[str, Any] = {"at": entry.at or now()}
    for name in ("log_likelihood", "standard_error", "seconds"):
        value = getattr(entry, name)
        if value is not None:
            changes[name] = None if value != value else float(value) + 0.0
    for name in ("reason", "host"):
        value = getattr(entry, name)
        if value is not None:  # SQLite's text has neither null characters nor lone surrogates
            changes[name] = value.replace("\0", "␀").encode("utf-8", "replace").decode()
    return replace(entry, **changes)


def salvage(path: str | os.PathLike[str], into: str | os.PathLike[str]) -> int:
    """Copy what is intact of a journal into a new one; how many evaluations that are.

    Of a file that was cut short, the part that is missing is taken as zeros, on a copy: the rest can then be
    read.
    """
    if Path(into).exists():
        raise LedgerError(f"{into} exists already; name a file that does not.")
    contents = inspect(path)
    if not contents.entries and contents.damage is not None:
        with tempfile.TemporaryDirectory() as folder:
            contents = inspect(_lengthened(Path(path), Path(folder) / "copy.db"))
    if not contents.entries:
        raise LedgerError(f"nothing in {path} is intact; {into} was not made.")
    with Journal(into) as journal:
        journal.append(*contents.entries)
        if contents.result is not None and contents.result_at == len(contents.entries):
            journal.keep_result(contents.result)
    return sum(entry.kind == "outcome" for entry in contents.entries)


def _lengthened(path: Path, copy: Path) -> Path:
    shutil.copy(path, copy)
    with copy.open("r+b") as file:
        header = file.read(32)
        size = int.from_bytes(header[16:18], "big") * int.from_bytes(header[28:32], "big")
        if copy.stat().st_size < size <= 2**34:
            file.truncate(size)
    return copy
