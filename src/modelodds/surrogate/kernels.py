"""Stationary covariance functions with one length-scale per dimension.

Written by hand: tinygp's conditioning at 4096 nodes took 4.2 times as long, its likelihood and gradient 1.3
times (n = 128, d = 3, two cores; ``python benchmarks/peer_gp.py`` prints both).
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax

from modelodds.precision import Array

TINY = 1e-30  # keeps the gradient of a square root finite at zero distance


def squared_distance(a: Array, b: Array, lengthscale: Array) -> Array:
    """Scaled squared distances, shape (n, m), of points ``a`` (n, d) and ``b`` (m, d)."""
    a, b = a / lengthscale, b / lengthscale
    cross = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2.0 * a @ b.T
    return jnp.maximum(cross, TINY)


def squared_exponential(r2: Array) -> Array:
    """Correlation at squared distance ``r2``: infinitely smooth."""
    return jnp.exp(-0.5 * r2)


def matern52(r2: Array) -> Array:
    """Correlation at squared distance ``r2``: twice differentiable."""
    r = jnp.sqrt(5.0 * r2)
    return (1.0 + r + r * r / 3.0) * jnp.exp(-r)


def matern32(r2: Array) -> Array:
    """Correlation at squared distance ``r2``: once differentiable (the paper's choice)."""
    r = jnp.sqrt(3.0 * r2)
    return (1.0 + r) * jnp.exp(-r)


KERNELS: dict[str, Callable[[Array], Array]] = {
    "matern32": matern32,
    "matern52": matern52,
    "squared_exponential": squared_exponential,
}


def correlation(kernel: str, index: Array | int, r2: Array) -> Array:
    """Correlation at squared distances ``r2``.

    ``kernel`` names one of ``KERNELS``; or it is ``"any"`` and ``index`` says which one at run time, so that
    a choice made by the data compiles nothing anew.
    """
    if kernel == "any":
        chosen: Array = lax.switch(index, list(KERNELS.values()), r2)
        return chosen
    return KERNELS[kernel](r2)
