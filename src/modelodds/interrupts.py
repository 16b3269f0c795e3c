"""Ctrl-C: heard although Python may lose it, and kept from workers."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class CtrlC:
    """Remembers a Ctrl-C from when it is made until it is closed.

    Python turns Ctrl-C into a `KeyboardInterrupt` wherever the program happens to be, and drops it where no
    exception can be raised: in a destructor, or a callback of the garbage collector such as JAX has. A run
    that does not hear it goes on for hours. Handlers of the user's own are left as they are.
    """

    def __init__(self) -> None:
        self.heard = False
        main = threading.current_thread() is threading.main_thread()
        self._open = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._open:
            signal.signal(signal.SIGINT, self._hear)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.heard = True
        signal.default_int_handler(number, frame)

    def check(self) -> None:
        """Raise the `KeyboardInterrupt` that may have been lost."""
        if self.heard:
            raise KeyboardInterrupt

    def close(self) -> None:
        """Give Ctrl-C back to Python."""
        if self._open:
            self._open = False
            signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Threads and processes that are started meanwhile never see a Ctrl-C, not even while they start."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
