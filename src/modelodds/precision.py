"""How our own numerics run: in double precision, on one BLAS thread, without touching the user's settings.

Compiled programs are kept as long as the process lives, and each takes some of the memory mappings that the
system allows a process. `make_room` gives ours back before a process that compares many models has none left.
"""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Array = jax.Array | NDArray[np.float64]
"""What compiled functions work on: NumPy's arrays come in, JAX's are inside and come out."""


MAPPINGS = Path("/proc/self/maps")  # where Linux lists them, one a line
MOST_MAPPINGS = 30_000  # it allows 65 530 by default; a comparison adds a few thousand

_compiled: list[Any] = []  # all that jit64 has made

Gate = Callable[[Callable[..., Any], tuple[str, ...], tuple[Any, ...], dict[str, Any]], Any]

gate: ContextVar[Gate | None] = ContextVar("gate", default=None)
"""Who runs our compiled functions in this thread instead; ``experiments/lockstep.py`` batches them."""


def jit64(fn: Callable[..., Any], static: tuple[str, ...] = ()) -> Callable[..., Any]:
    """Compile ``fn`` and run it in float64, whatever JAX's global setting is.

    JAX computes in float32 unless told otherwise, and a Cholesky factor of a smooth kernel does not survive
    that. The setting is entered for the duration of the call alone, so that likelihoods written in JAX keep
    their own.

    Parameters
    ----------
    fn : callable
        A pure function of arrays and pytrees.
    static : tuple of str
        Names of arguments that are compile-time constants.
    """
    compiled = jax.jit(fn, static_argnames=static)
    _compiled.append(compiled)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if (elsewhere := gate.get()) is not None:
            return elsewhere(fn, static, args, kwargs)
        with jax.enable_x64(True):
            return compiled(*args, **kwargs)

    return call


def make_room() -> bool:
    """Forget our compiled programs if the process has many memory mappings; whether they were forgotten.

    Without this the compiler dies, and the process with it, after some 25 comparisons of models of different
    dimensions.
    """
    if not MAPPINGS.exists():
        return False
    with MAPPINGS.open("rb") as lines:
        if sum(1 for _ in lines) < MOST_MAPPINGS:
            return False
    for compiled in _compiled:
        compiled.clear_cache()
    return True


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Context in which BLAS and LAPACK, JAX's on the CPU included, keep to one thread.

    Matrices here are small, and on a busy machine several threads mostly wait for each other.
    """
    limits: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limits
