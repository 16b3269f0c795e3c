"""Many runs at once on one device: each in a thread of its own, all of their compiled calls batched.

A run is Python between calls of a few pure functions: Cholesky factors, predictions at thousands of nodes,
objectives with their gradients. Every one of these goes through `precision.jit64`, and there each thread
hands its call over and waits. When all threads wait, calls of the same function with the same shapes are
stacked, the function is mapped over the stack (``jax.vmap``), and everybody gets a share of the answer. So
the algorithm is the very one of a run on its own, whatever the surrogate is, and its answers differ by the
rounding of batched linear algebra alone.

Runs drift apart, so only groups that are large beside the largest are answered at once; the others wait for
company. On a CPU there is nothing to gain: a core that does the work one by one is as fast. On a GPU a
hundred small matrices take hardly longer than one; what is left is the Python in between, on one core.
"""

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from math import ceil
from typing import Any

import jax
import numpy as np

from modelodds.precision import gate

SIZES = (1 / 16, 1 / 4, 1)  # of a batch, as shares of the width: each is a program to compile
COMPANY = 0.25  # groups at least this large beside the largest are answered with it
IN_HASTE = {
    "xla_backend_optimization_level": 1,
    "xla_llvm_disable_expensive_passes": True,
    "xla_gpu_autotune_level": 0,
}
"""How a GPU's programs are compiled. XLA left to itself took 130 s for one of them on an H200, and longer for
others; so it takes about a second each, and they run as fast."""


@dataclass(frozen=True)
class Call:
    """A compiled call that a thread waits for."""

    key: Hashable  # calls with the same one can be batched
    fn: Callable[..., Any]
    static: tuple[tuple[str, Any], ...]
    leaves: tuple[np.ndarray, ...]  # of the other arguments
    tree: Any
    answer: "Future[Any]" = field(default_factory=Future)


@dataclass
class Tally:
    """What has been done: calls of the threads, the batches they were done in, and the time these took."""

    calls: int = 0
    batches: int = 0
    seconds: float = 0.0


class LockstepExecutor(Executor):
    """An executor of ``width`` threads whose `jit64` calls are done together."""

    def __init__(self, width: int) -> None:
        self.width, self.tally = width, Tally()
        self._queue: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._waiting: list[Call] = []
        self._alive = self._busy = 0  # threads, and those of them that do not wait
        self._ended = False
        self._change = threading.Condition()
        self._leader = threading.Thread(target=self._lead, daemon=True)
        self._leader.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Have ``fn(*args, **kwargs)`` done."""
        future: Future[Any] = Future()
        with self._change:
            if self._ended:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._queue.append((future, lambda: fn(*args, **kwargs)))
            if self._alive < self.width:
                self._alive += 1
                self._busy += 1
                threading.Thread(target=self._work, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; wait for what there is, unless told otherwise."""
        with self._change:
            self._ended = True
            while cancel_futures and self._queue:
                self._queue.popleft()[0].cancel()
            self._change.notify_all()
        if wait:
            self._leader.join()

    # ------------------------------------------------------------------ the threads that run

    def _work(self) -> None:
        gate.set(self._call)  # a new thread has a context of its own
        while (task := self._next()) is not None:
            future, work = task
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)

    def _next(self) -> tuple["Future[Any]", Callable[[], Any]] | None:
        with self._change:
            if self._queue:
                return self._queue.popleft()
            self._alive -= 1
            self._busy -= 1
            self._change.notify_all()
            return None

    def _call(
        self, fn: Callable[..., Any], static: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        call = as_call(fn, static, args, kwargs)
        with self._change:
            self._waiting.append(call)
            self._busy -= 1
            self._change.notify_all()
        return call.answer.result()

    # ------------------------------------------------------------------ the thread that answers

    def _lead(self) -> None:
        while groups := self._ready():
            start = time.perf_counter()
            # All are sent off before any answer is fetched: the device works while the host stacks the next.
            for group, answer in [(group, _attempt(group, self._size(group))) for group in groups]:
                _deliver(group, answer)
            self.tally.calls += sum(map(len, groups))
            self.tally.batches += len(groups)
            self.tally.seconds += time.perf_counter() - start

    def _size(self, group: list[Call]) -> int:
        """The smallest of a few sizes that holds the group."""
        return next(size for share in SIZES if (size := ceil(share * self.width)) >= len(group))

    def _ready(self) -> list[list[Call]]:
        """The groups to answer, once no thread is busy; empty when all is done."""
        with self._change:
            self._change.wait_for(lambda: self._busy == 0 and (self._waiting or self._ended))
            groups: dict[Hashable, list[Call]] = defaultdict(list)
            for call in self._waiting:
                groups[call.key].append(call)
            largest = max(map(len, groups.values()), default=0)
            ready = [group for group in groups.values() if len(group) >= COMPANY * largest]
            self._waiting = [c for g in groups.values() if len(g) < COMPANY * largest for c in g]
            self._busy = sum(map(len, ready))
        return ready


# ---------------------------------------------------------------------- one batch


def as_call(
    fn: Callable[..., Any], static: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Call:
    """A call of ``fn`` as it is grouped: by function, compile-time constants, structure and shapes."""
    if any(name not in kwargs for name in static):  # a constant may have come by position
        args, kwargs = (), dict(zip(signature(fn).parameters, args, strict=False)) | kwargs
    fixed = tuple((name, kwargs[name]) for name in static if name in kwargs)
    leaves, tree = jax.tree.flatten((args, {k: v for k, v in kwargs.items() if k not in static}))
    arrays = tuple(np.asarray(leaf) for leaf in leaves)
    key = fn, fixed, tree, tuple((a.shape, a.dtype.str) for a in arrays)
    return Call(key, fn, fixed, arrays, tree)


def batched(group: list[Call], size: int = 0) -> Any:
    """One call of the mapped function for all of ``group``; results have a leading axis of ``size`` at least.

    The last call fills it up, so that few sizes have to be compiled.
    """
    first = group[0]
    rows = [*group, *[group[-1]] * (size - len(group))]
    stacked = [np.stack([call.leaves[i] for call in rows]) for i in range(len(first.leaves))]
    with jax.enable_x64(True):
        return _mapped(first.fn, first.static, first.tree)(stacked)


@cache
def _mapped(fn: Callable[..., Any], static: tuple[tuple[str, Any], ...], tree: Any) -> Callable[..., Any]:
    """``fn`` with its ``static`` arguments fixed, over a leading axis of the leaves of all others."""

    def one(leaves: list[jax.Array]) -> Any:
        args, kwargs = jax.tree.unflatten(tree, leaves)
        return fn(*args, **kwargs, **dict(static))

    one.__name__ = getattr(fn, "__name__", "one")  # what JAX_LOG_COMPILES=1 calls it
    return jax.jit(jax.vmap(one), compiler_options=IN_HASTE if jax.default_backend() == "gpu" else None)


def _attempt(group: list[Call], size: int) -> Any:
    try:
        return batched(group, size)
    except Exception as error:
        return error


def _deliver(group: list[Call], answer: Any) -> None:
    if isinstance(answer, Exception):
        for call in group:
            call.answer.set_exception(answer)
        return
    leaves, tree = jax.tree.flatten(answer)
    arrays = [np.asarray(leaf) for leaf in leaves]
    for i, call in enumerate(group):
        call.answer.set_result(jax.tree.unflatten(tree, [array[i] for array in arrays]))
