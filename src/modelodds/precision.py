"""How our own numerics run: in double precision, on one BLAS thread, without touching the user's settings."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Array = jax.Array | NDArray[np.float64]
"""What compiled functions work on: NumPy's arrays come in, JAX's are inside and come out."""


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

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if (elsewhere := gate.get()) is not None:
            return elsewhere(fn, static, args, kwargs)
        with jax.enable_x64(True):
            return compiled(*args, **kwargs)

    return call


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Context in which BLAS and LAPACK, JAX's on the CPU included, keep to one thread.

    Matrices here are small, and on a busy machine several threads mostly wait for each other.
    """
    limits: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limits
