"""What a worker process runs; imports next to nothing, so that one starts fast."""

import signal
from typing import Any


def settle() -> None:
    """Ctrl-C is the parent's affair, and an end that comes from there goes through ``finally``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def leave(number: int, frame: Any) -> None:
        raise SystemExit(1)

    signal.signal(signal.SIGTERM, leave)


def run(task: bytes) -> Any:
    """What a function gives that was sent here together with its arguments."""
    import pickle

    fn, args, kwargs = pickle.loads(task)
    return fn(*args, **kwargs)
