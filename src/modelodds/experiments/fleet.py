"""Several processes that share one accelerator, each with a `LockstepExecutor` of its own.

In one process the Python between batched calls shares a core, and an accelerator waits for it most of the
time. With a few processes it waits less, and batches are smaller.
"""

import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from functools import partial
from itertools import count, cycle
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from modelodds.experiments.lockstep import LockstepExecutor
from modelodds.experiments.sweep import environment

SHARED = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # or the first process takes nearly all of its memory


class Fleet(Executor):
    """An executor of ``processes`` times ``width`` runs at once."""

    def __init__(self, processes: int, width: int) -> None:
        with environment(SHARED):
            self._members = [Member(width) for _ in range(processes)]
        self._next = cycle(self._members)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Have ``fn(*args, **kwargs)`` done, in the next process."""
        return next(self._next).submit(partial(fn, *args, **kwargs))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; wait for what there is, or stop the processes at once."""
        for member in self._members:
            member.end(at_once=cancel_futures)
        if wait:
            for member in self._members:
                member.process.join()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait for what there is, unless something went wrong: after Ctrl-C nobody wants to wait."""
        self.shutdown(cancel_futures=kind is not None)


class Member:
    """One process, seen from ours."""

    def __init__(self, width: int) -> None:
        context = get_context("spawn")
        self._connection, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, width), daemon=True)
        self.process.start()
        other.close()  # so that we hear when the process has died
        self._pending: dict[int, Future[Any]] = {}
        self._numbers, self._lock = count(), threading.Lock()
        threading.Thread(target=self._listen, daemon=True).start()

    def submit(self, work: Callable[[], Any]) -> "Future[Any]":
        """Have ``work`` done there."""
        future: Future[Any] = Future()
        with self._lock:
            number = next(self._numbers)
            self._pending[number] = future
            try:
                self._connection.send((number, work))
            except OSError:
                self._give_up()
        return future

    def end(self, at_once: bool) -> None:
        """Tell the process that nothing more will come."""
        if at_once:
            self.process.kill()
            return
        with self._lock, suppress(OSError):  # it may have died
            self._connection.send(None)

    def _listen(self) -> None:
        try:
            while True:
                number, error, answer = self._connection.recv()
                future = self._pending.pop(number)
                if future.set_running_or_notify_cancel():
                    future.set_result(answer) if error is None else future.set_exception(error)
        except (EOFError, OSError):
            with self._lock:
                self._give_up()

    def _give_up(self) -> None:
        while self._pending:
            _, future = self._pending.popitem()
            if future.set_running_or_notify_cancel():
                future.set_exception(BrokenExecutor("a process of the fleet has died"))


def serve(connection: Connection, width: int) -> None:
    """What a process of the fleet does: runs in lockstep, as they are sent."""
    lock = threading.Lock()

    def answer(number: int, future: "Future[Any]") -> None:
        error = future.exception()
        with lock:
            try:
                connection.send((number, error, None if error else future.result()))
            except Exception as unsent:  # what cannot be pickled
                connection.send((number, RuntimeError(f"no answer can be sent: {error or unsent!r}"), None))

    with LockstepExecutor(width) as executor:
        while (task := connection.recv()) is not None:
            number, work = task
            executor.submit(work).add_done_callback(partial(answer, number))
