"""Many runs at once on one device: each in a thread of its own, all of their compiled calls batched.

A run is Python between calls of a few pure functions: Cholesky factors, predictions at thousands of nodes,
objectives with their gradients. Every one of these goes through `precision.jit64`, and there each thread
hands its call over and waits. When all threads wait, calls of the same function with the same shapes are
stacked, the function is mapped over the stack (``jax.vmap``), and everybody gets a share of the answer. So
the algorithm is the very one of a run on its own, whatever the surrogate is, and its answers differ by the
rounding of batched linear algebra alone.

Runs drift apart, so groups that are small beside the largest wait for company. On a CPU there is nothing to
gain: a core that does the work one by one is as fast. On a GPU a hundred small matrices take hardly longer
than one; what is left is the Python in between, on one core, which ``fleet.py`` shares out among some.
"""

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from math import ceil, prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from modelodds.precision import gate

SIZES = (1 / 16, 1 / 4, 1)  # of a batch, as shares of the width: each is a program to compile
COMPANY = 0.1  # groups at least this large beside the largest are answered with it
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

    key: tuple[Callable[..., Any], tuple[tuple[str, Any], ...], "Layout"]  # calls of the same are batched
    buffers: dict[str, np.ndarray]  # with the arguments that the layout describes
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
            for group, sent in [(group, _attempt(group, self._size(group))) for group in groups]:
                _deliver(group, sent)
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
            groups: dict[Any, list[Call]] = defaultdict(list)
            for call in self._waiting:
                groups[call.key].append(call)
            largest = max(map(len, groups.values()), default=0)
            ready = [group for group in groups.values() if len(group) >= COMPANY * largest]
            self._waiting = [c for g in groups.values() if len(g) < COMPANY * largest for c in g]
            self._busy = sum(map(len, ready))
        return ready


# ---------------------------------------------------------------------- one batch


@dataclass(frozen=True)
class Layout:
    """How the arrays of a pytree lie in flat buffers, one for each type of number.

    A call has a dozen arrays, and sending a number to a device takes as long as sending thousands.
    """

    tree: Any
    arrays: tuple[tuple[tuple[int, ...], str], ...]  # shape and type of each leaf

    @classmethod
    def of(cls, value: Any) -> "Layout":
        """The layout of what ``value``, a pytree of arrays or of their descriptions, consists of."""
        leaves, tree = jax.tree.flatten(value)
        return cls(tree, tuple((tuple(leaf.shape), np.dtype(leaf.dtype).str) for leaf in leaves))

    def pack(self, leaves: Iterable[Any], numpy: Any = np) -> dict[str, Any]:
        """The buffers that hold ``leaves``."""
        parts: dict[str, list[Any]] = {}
        for leaf, (_, kind) in zip(leaves, self.arrays, strict=True):
            parts.setdefault(kind, []).append(leaf.ravel())
        return {kind: numpy.concatenate(part) for kind, part in parts.items()}

    def unpack(self, buffers: dict[str, Any]) -> list[Any]:
        """The leaves in ``buffers``, whose last axis is that of `pack`."""
        begin, leaves = dict.fromkeys(buffers, 0), []
        for shape, kind in self.arrays:
            end = begin[kind] + prod(shape)
            part = buffers[kind][..., begin[kind] : end]
            leaves.append(part.reshape(part.shape[:-1] + shape))
            begin[kind] = end
        return leaves


def as_call(
    fn: Callable[..., Any], static: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Call:
    """A call of ``fn`` as it is grouped: by function, compile-time constants, structure and shapes."""
    if any(name not in kwargs for name in static):  # a constant may have come by position
        args, kwargs = (), dict(zip(signature(fn).parameters, args, strict=False)) | kwargs
    fixed = tuple((name, kwargs[name]) for name in static if name in kwargs)
    leaves, tree = jax.tree.flatten((args, {k: v for k, v in kwargs.items() if k not in static}))
    arrays = [np.asarray(leaf) for leaf in leaves]
    layout = Layout.of(jax.tree.unflatten(tree, arrays))
    return Call((fn, fixed, layout), layout.pack(arrays))


class Sent(NamedTuple):
    """What a device is at work on: answers in one buffer for each type, and their layout."""

    buffers: dict[str, jax.Array]
    layout: Layout

    def fetch(self) -> Any:
        """The answers, each array with an axis for the calls in front; waits for the device."""
        leaves = self.layout.unpack({kind: np.asarray(buffer) for kind, buffer in self.buffers.items()})
        return jax.tree.unflatten(self.layout.tree, leaves)


def send(group: list[Call], size: int = 0) -> Sent:
    """Begin one call of the mapped function for all of ``group``, ``size`` at least.

    The last call fills it up, so that few sizes have to be compiled.
    """
    rows = [*group, *[group[-1]] * (size - len(group))]
    stacked = {kind: np.stack([call.buffers[kind] for call in rows]) for kind in group[0].buffers}
    with jax.enable_x64(True):
        mapped, layout = _mapped(*group[0].key)
        return Sent(mapped(stacked), layout)


def batched(group: list[Call], size: int = 0) -> Any:
    """The answers to all of ``group`` from one call, filled up to ``size``: arrays with an axis in front."""
    return send(group, size).fetch()


@cache
def _mapped(
    fn: Callable[..., Any], static: tuple[tuple[str, Any], ...], layout: Layout
) -> tuple[Callable[..., Any], Layout]:
    """``fn`` with its ``static`` arguments fixed, from buffers to buffers, over an axis in front of all.

    With the layout of what comes out.
    """

    def plain(leaves: list[Any]) -> Any:
        args, kwargs = jax.tree.unflatten(layout.tree, leaves)
        return fn(*args, **kwargs, **dict(static))

    out = Layout.of(
        jax.eval_shape(
            plain,
            [jax.ShapeDtypeStruct(*array) for array in layout.arrays],  # type: ignore[no-untyped-call]
        )
    )

    def one(buffers: dict[str, jax.Array]) -> dict[str, jax.Array]:
        return out.pack(jax.tree.leaves(plain(layout.unpack(buffers))), jnp)

    one.__name__ = getattr(fn, "__name__", "one")  # what JAX_LOG_COMPILES=1 calls it
    return jax.jit(jax.vmap(one), compiler_options=IN_HASTE if jax.default_backend() == "gpu" else None), out


def _attempt(group: list[Call], size: int) -> Sent | Exception:
    try:
        return send(group, size)
    except Exception as error:
        return error


def _deliver(group: list[Call], sent: Sent | Exception) -> None:
    try:
        if isinstance(sent, Exception):
            raise sent
        leaves, tree = jax.tree.flatten(sent.fetch())
    except Exception as error:
        for call in group:
            call.answer.set_exception(error)
        return
    for i, call in enumerate(group):
        call.answer.set_result(jax.tree.unflatten(tree, [leaf[i] for leaf in leaves]))
