"""One writer: a lock beside a file, given back however its process ends."""

import os
import socket
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from modelodds.errors import LedgerError, LedgerInUse

PATIENCE = 0.3  # seconds for which a reader's look at the lock may be in the way

_held: set[Path] = set()  # by this process: the system's locks do not keep a process from itself
_guard = threading.Lock()


class Lock:
    """The right to write a journal: held until released, or until the process ends however it ends.

    It is on a file beside the journal, whose text says who holds it. The lock belongs to the process, so
    workers forked from it do not keep it when it is killed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        with _guard:
            if self.path in _held:
                raise LedgerInUse(
                    f"{path} is being written by this very process; give each run its own ledger."
                )
            self._file = self._open(path)
            _held.add(self.path)

    def _open(self, path: Path) -> IO[str]:
        beside = lock_file(self.path)
        try:
            file = beside.open("a+", encoding="utf-8")
        except OSError as error:
            raise LedgerError(f"{beside} cannot be written: {error.strerror}.") from None
        deadline = time.monotonic() + PATIENCE
        while not _try_lock(file, shared=False):
            if time.monotonic() > deadline:
                file.seek(0)
                holder = file.read().strip() or "another process"
                file.close()
                raise LedgerInUse(
                    f"{path} is being written by {holder}. Wait for it, or give this run another ledger; "
                    f"modelodds status {path} reads it meanwhile."
                )
            time.sleep(0.02)
        file.seek(0)
        file.truncate()
        since = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        file.write(f"process {os.getpid()} on {socket.gethostname()}, since {since}\n")
        file.flush()
        return file

    def release(self) -> None:
        """Let the next writer in."""
        with _guard:
            self._file.seek(0)
            self._file.truncate()
            self._file.close()  # which unlocks
            _held.discard(self.path)


def lock_file(path: Path) -> Path:
    """The file beside a journal that its writer locks."""
    return path.with_name(path.name + "-lock")


def writer(path: str | os.PathLike[str]) -> str | None:
    """Who is writing the journal now, in words; None if nobody is."""
    full = Path(path).resolve()
    if full in _held:
        return "this process"
    try:
        with lock_file(full).open("r", encoding="utf-8") as file:
            return None if _try_lock(file, shared=True) else file.read().strip() or "another process"
    except OSError:
        return None


def _try_lock(file: IO[str], shared: bool) -> bool:
    """Whether a lock could be had, at once; closing the file gives it back."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            file.seek(2**30)  # beyond the text, which others read
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.lockf(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
