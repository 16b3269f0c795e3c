"""Who runs the evaluations: this process, or whatever has ``submit``: threads, processes, Dask, MPI.

`Workers` are processes of our own that can be stopped one by one. The pools at the end are what a run sees:
``submit`` a query, ``wait`` for what has come back, ``free`` places left.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modelodds import worker
from modelodds.errors import ModelError, OptionError
from modelodds.evaluate import Outcome, call, describe_error, evaluate, too_long
from modelodds.interrupts import CtrlC, uninterrupted

if TYPE_CHECKING:  # so that a worker that imports this module waits for no heavy import
    from modelodds.model import Model
    from modelodds.session import Query

GRACE = 2.0  # seconds beyond its timeout for a worker to come back by itself
LOOK = 0.2  # seconds between two looks at the clock


class Workers(Executor):
    """Worker processes that survive their tasks: one that dies, or is stopped, is replaced.

    Processes are started afresh (spawned), so that JAX and other threaded libraries are safe in them.
    Functions travel by cloudpickle: lambdas and functions of a notebook or a script will do.

    Parameters
    ----------
    n
        How many; as many as there are processors by default.

    Examples
    --------
    >>> with Workers(8) as workers:  # doctest: +SKIP
    ...     compare(models, executor=workers)
    """

    def __init__(self, n: int | None = None) -> None:
        import multiprocessing

        from pebble import ProcessPool

        n = (os.cpu_count() or 1) if n is None else n
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise OptionError(f"the number of workers must be a whole number, 1 or more, not {n!r}.")
        self.n = n
        context = multiprocessing.get_context("spawn")
        self.abandoned = False  # whether a run ended with evaluations out, which nobody waits for
        self._pool: Any = ProcessPool(max_workers=n, context=context, initializer=worker.settle)

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run ``fn(*args, **kwargs)`` in a worker."""
        return self.submit_for(None, fn, *args, **kwargs)

    def submit_for(self, seconds: float | None, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """The same, its worker killed after so many seconds."""
        import cloudpickle

        task = cloudpickle.dumps((fn, args, kwargs))
        with uninterrupted():  # the pool starts its workers now or later, from threads it starts now
            future: Future[Any] = self._pool.schedule(worker.run, args=(task,), timeout=seconds)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers, after what they are at unless ``cancel_futures``."""
        try:
            if cancel_futures or not wait:
                self._pool.stop()
            else:
                self._pool.close()
            self._pool.join()
        except BaseException:  # a second Ctrl-C: nobody is waited for, and nobody is left behind
            for process in list(self._pool._pool_manager.worker_manager.workers.values()):
                process.kill()
            raise

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.shutdown(cancel_futures=error is not None or self.abandoned)


def n_workers(executor: Any) -> int | None:
    """How many evaluations an executor runs at once; None if it does not say."""
    if isinstance(executor, Workers):
        return executor.n
    for name in ("_max_workers", "num_workers"):  # concurrent.futures, mpi4py
        found = getattr(executor, name, None)
        if isinstance(found, int) and found > 0:
            return found
    if _is_dask(executor):
        return int(sum(executor.nthreads().values()))
    return None


def _is_dask(executor: Any) -> bool:
    return hasattr(executor, "nthreads") and hasattr(executor, "scheduler_info")


class Broken(Exception):
    """An executor that runs nothing any more."""


# ---------------------------------------------------------------------- pools


class Pool(ABC):
    """Evaluations that are out."""

    def __init__(self, models: tuple[Model, ...], batch: int, timeout: float | None) -> None:
        self.models = {m.name: m for m in models}
        self.batch, self.timeout = batch, timeout
        self._ctrl_c = CtrlC()

    @property
    @abstractmethod
    def n_out(self) -> int:
        """How many are out."""

    @property
    @abstractmethod
    def free(self) -> int:
        """How many more can be taken."""

    @abstractmethod
    def submit(self, query: Query) -> None:
        """Have a query evaluated."""

    @abstractmethod
    def wait(self) -> Iterator[tuple[Query, Outcome]]:
        """What has come back: at least one, if any is out."""

    def abandon(self) -> None:
        """Give up what is out."""
        self._ctrl_c.close()


class Here(Pool):
    """One after the other, in this process."""

    def __init__(self, models: tuple[Model, ...], batch: int, timeout: float | None) -> None:
        super().__init__(models, batch, timeout)
        self._queries: list[Query] = []

    @property
    def n_out(self) -> int:
        """How many are out."""
        return len(self._queries)

    @property
    def free(self) -> int:
        """How many more can be taken."""
        return self.batch - len(self._queries)

    def submit(self, query: Query) -> None:
        """Have a query evaluated."""
        self._queries.append(query)

    def wait(self) -> Iterator[tuple[Query, Outcome]]:
        """Evaluate the next."""
        self._ctrl_c.check()
        query = self._queries[0]
        outcome = evaluate(self.models[query.model], query.theta, self.timeout)
        self._queries.pop(0)
        yield query, outcome


@dataclass(frozen=True)
class Task:
    """A query and the future of its outcome."""

    query: Query
    future: Any
    submitted: float


class There(Pool):
    """By an executor; what comes back first is told first."""

    def __init__(self, models: tuple[Model, ...], batch: int, timeout: float | None, executor: Any) -> None:
        super().__init__(models, batch, timeout)
        self._executor = executor
        self._tasks: dict[int, Task] = {}
        self._stuck: dict[int, Any] = {}  # past their time, but their thread cannot be stopped
        self._done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._started: dict[int, float] = {}

    @property
    def n_out(self) -> int:
        """How many are out."""
        return len(self._tasks)

    @property
    def free(self) -> int:
        """How many more can be taken, those counted whose thread goes on past its time."""
        self._stuck = {id: future for id, future in self._stuck.items() if not future.done()}
        workers = n_workers(self._executor)
        if workers is not None and len(self._stuck) >= workers > 0:
            raise Broken("all its workers are past their time, and threads cannot be stopped")
        return max(self.batch, workers or 1) - len(self._tasks) - len(self._stuck)

    def submit(self, query: Query) -> None:
        """Have a query evaluated."""
        future = self._send(self.models[query.model], query)
        self._tasks[query.id] = Task(query, future, time.monotonic())
        future.add_done_callback(lambda done, id=query.id: self._done.put((id, done)))

    def _send(self, model: Model, query: Query) -> Any:
        arguments = (model.log_likelihood, model.vectorized, query.theta, self.timeout)
        limit = None if self.timeout is None else self.timeout + GRACE
        try:
            if isinstance(self._executor, Workers):
                return self._executor.submit_for(limit, call, *arguments)
            if _is_dask(self._executor):  # pure: the same point twice would be answered from memory
                return self._executor.submit(call, *arguments, pure=False)
            return self._executor.submit(call, *arguments)
        except (BrokenExecutor, RuntimeError) as error:
            raise self._broken(error) from error
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise ModelError(
                f"the log_likelihood of model {model.name!r} cannot be sent to a worker: {error}. "
                "Open files, locks and the like inside the function, or use threads"
            ) from None

    def _broken(self, error: BaseException) -> Broken:
        if isinstance(self._executor, Workers):
            hint = "a script that uses Workers needs the line if __name__ == '__main__': before it does"
        else:
            hint = "modelodds.executors.Workers replaces workers that die"
        return Broken(f"{describe_error(error)}; {hint}")

    def wait(self) -> Iterator[tuple[Query, Outcome]]:
        """What has come back, in the order asked."""
        found: list[tuple[Query, Outcome]] = []
        while not found and self._tasks:
            self._ctrl_c.check()
            with contextlib.suppress(queue.Empty):
                found += self._take(*self._done.get(timeout=LOOK))
                while True:
                    found += self._take(*self._done.get_nowait())
            found += self._overdue()
            if not found and self._stuck:
                _ = self.free  # if no worker is left, what is out will never come back
        yield from sorted(found, key=lambda pair: pair[0].id)

    def _take(self, id: int, future: Any) -> list[tuple[Query, Outcome]]:
        task = self._tasks.get(id)
        if task is None or task.future is not future:  # given up, or an earlier attempt
            return []
        outcome = self._outcome(task)
        del self._tasks[id]
        self._started.pop(id, None)
        return [(task.query, outcome)]

    def _outcome(self, task: Task) -> Outcome:
        seconds = time.monotonic() - task.submitted
        try:
            outcome = task.future.result()
        except BrokenExecutor as error:
            raise self._broken(error) from error
        except TimeoutError:
            return Outcome("failed", reason=too_long(self.timeout), seconds=seconds)
        except CancelledError:
            return Outcome("failed", reason="the executor cancelled it", seconds=seconds)
        except Exception as error:  # the worker died, or the model could not be sent to it
            return Outcome("failed", reason=_worker_error(error), seconds=seconds)
        if not isinstance(outcome, Outcome):
            reason = f"the executor returned a {type(outcome).__name__}, not what the evaluation gave"
            return Outcome("failed", reason=reason, seconds=seconds)
        return outcome

    def _overdue(self) -> list[tuple[Query, Outcome]]:
        """Those whose time is up although their workers have not come back."""
        if self.timeout is None or isinstance(self._executor, Workers):
            return []
        found, dask = [], _is_dask(self._executor)
        at_work = _at_work(self._executor) if dask else frozenset()
        for id, task in list(self._tasks.items()):
            running = getattr(task.future, "running", lambda: True)
            if task.future.key in at_work if dask else running():
                self._started.setdefault(id, time.monotonic())
            elif dask:  # it waits, perhaps again, after its worker was lost
                self._started.pop(id, None)
            since = time.monotonic() - self._started.get(id, time.monotonic())
            if since > self.timeout + GRACE:
                del self._tasks[id], self._started[id]
                if dask:
                    _restart_worker(self._executor, task.future)
                elif not task.future.cancel():
                    self._stuck[id] = task.future
                found.append((task.query, Outcome("failed", reason=too_long(self.timeout), seconds=since)))
        return found

    def abandon(self) -> None:
        """Give up what is out; workers that can be stopped are."""
        super().abandon()
        if self._tasks and isinstance(self._executor, Workers):
            self._executor.abandoned = True
        for task in self._tasks.values():
            with contextlib.suppress(Exception):
                task.future.cancel()
        self._tasks.clear()


def _at_work(client: Any) -> frozenset[str]:
    """Keys of what Dask's workers are at: the first that each was given, as many as it has threads."""
    with contextlib.suppress(Exception):
        threads = client.nthreads()
        given = client.processing()
        return frozenset(
            key for worker, keys in given.items() for key in list(keys)[: threads.get(worker, 0)]
        )
    return frozenset()


def _restart_worker(client: Any, future: Any) -> None:
    """Kill the Dask worker that is at a future, whose nanny starts another.

    Not ``client.restart_workers``: it waits four seconds for a busy worker to end by itself, and its own
    start of another can collide with the one that the nanny makes when a worker ends.
    """
    with contextlib.suppress(Exception):
        busy = [address for address, keys in client.processing().items() if future.key in keys]
        future.cancel()
        if busy:
            client.run(_kill_worker, workers=busy, nanny=True)


def _kill_worker(dask_worker: Any) -> None:
    """End the process that a nanny, which runs this, looks after."""
    import psutil  # comes with Dask's distributed

    psutil.Process(dask_worker.process.pid).kill()


def _worker_error(error: Exception) -> str:
    code = getattr(error, "exitcode", None)
    if type(error).__name__ == "ProcessExpired" and code is not None:
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        return f"its worker process died ({how})"
    return describe_error(error)


def pool(models: tuple[Model, ...], batch: int, timeout: float | None, executor: Any) -> Pool:
    """The pool of an executor; of None, this process."""
    return Here(models, batch, timeout) if executor is None else There(models, batch, timeout, executor)
