"""Double precision for our own compiled code, without touching the user's JAX configuration."""

import functools
from collections.abc import Callable
from typing import Any

import jax


def jit64(fn: Callable[..., Any], static: tuple[str, ...] = ()) -> Callable[..., Any]:
    """Compile ``fn`` and run it in float64, whatever JAX's global setting is.

    JAX computes in float32 unless told otherwise, and a Cholesky factor of a smooth kernel does not survive that.
    The setting is entered for the duration of the call alone, so that likelihoods written in JAX keep their own.

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
        with jax.enable_x64(True):
            return compiled(*args, **kwargs)

    return call
