"""The likelihood of k absorbers, many points at once.

With A the absorbers' joint transmission, y ~ N(A mu, A M M^T A + D), D = diag(A^2 omega^2 + sigma^2). By
Woodbury, with B = I + M^T A D^-1 A M and b = M^T A D^-1 (y - A mu),

    -2 log p(y) = n log 2 pi + log|B| + sum log D + (y - A mu)^T D^-1 (y - A mu) - b^T B^-1 b.

B is linear in the weights A^2 / D, one per pixel, and its r (r + 1) / 2 coefficients there depend on no
parameter: for a whole block of points it is a single matrix product.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from modelodds.apps.dla.sightline import Sightline
from modelodds.apps.dla.voigt import profiles, transmission
from modelodds.errors import ModelError
from modelodds.precision import jit64

BLOCKS = (64, 8, 1)  # points per call of the compiled program: a few sizes, so that it compiles a few times


class Pixels(NamedTuple):
    """A sightline as the compiled program takes it; n pixels, rank r."""

    wavelength: Any  # (n + 6,)
    flux: Any  # (n,)
    noise: Any  # (n,)
    mu: Any  # (n,)
    m: Any  # (n, r)
    products: Any  # (n, r (r + 1) / 2): M_i M_j at each pixel, i <= j
    omega2: Any  # (n,)
    count: Any  # () pixels that count
    table: Any  # Voigt profiles


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Log-likelihood of ``absorbers`` absorbers on a sightline; theta is z, log N_HI of each in turn."""

    sightline: Sightline
    absorbers: int

    def __call__(self, theta: ArrayLike) -> NDArray[np.float64]:
        """Log-likelihoods (n,) at ``theta`` (n, 2 k)."""
        points = self._points(theta)
        return self._in_blocks(points, lambda block: np.asarray(_log_likelihood(self._pixels, block)))

    def gradient(self, theta: ArrayLike) -> NDArray[np.float64]:
        """Derivatives (n, 2 k) of the log-likelihoods at ``theta`` (n, 2 k)."""
        points = self._points(theta)
        return self._in_blocks(points, lambda block: np.asarray(_gradient(self._pixels, block)))

    def transmission(self, theta: ArrayLike) -> NDArray[np.float64]:
        """Joint transmission of the absorbers, (n, pixels), at ``theta`` (n, 2 k)."""
        points = self._points(theta)
        return self._in_blocks(points, lambda block: np.asarray(_transmission(self._pixels, block)))

    def _points(self, theta: ArrayLike) -> NDArray[np.float64]:
        points = np.asarray(theta, dtype=float)
        if points.ndim != 2 or points.shape[1] != 2 * self.absorbers:
            raise ModelError(f"theta must have shape (n, {2 * self.absorbers}), not {points.shape}.")
        return points

    def _in_blocks(self, points: NDArray[np.float64], call: Any) -> NDArray[np.float64]:
        size = next((s for s in BLOCKS if len(points) >= s), 1)
        short = -len(points) % size
        full = np.concatenate([points, np.repeat(points[-1:], short, axis=0)])
        found = [call(block) for block in full.reshape(len(full) // size, size, points.shape[1])]
        return np.concatenate(found)[: len(points)]

    @cached_property
    def _pixels(self) -> Pixels:
        s = self.sightline
        first, second = np.triu_indices(s.m.shape[1])
        products = s.m[:, first] * s.m[:, second]
        seen, null = (s.wavelength, s.flux, s.noise), (s.mu, s.m, products, s.omega2)
        own = (*seen, *null, np.float64(s.n_pixels), profiles())
        with jax.enable_x64(True):  # copied to the device once, not at every call
            return Pixels(*(jnp.asarray(part) for part in own))

    def __getstate__(self) -> dict[str, Any]:
        return {"sightline": self.sightline, "absorbers": self.absorbers}


def joint_transmission(pixels: Pixels, theta: Any) -> Any:
    """Product of the absorbers' transmissions, (b, n), for a block of points ``theta`` (b, 2 k)."""
    total = jnp.ones((theta.shape[0], pixels.flux.shape[0]))
    for i in range(0, theta.shape[1], 2):
        total = total * transmission(pixels.wavelength, theta[:, i], theta[:, i + 1], pixels.table)
    return total


def log_likelihood(pixels: Pixels, theta: Any) -> Any:
    """Log-likelihoods (b,) of a block of points ``theta`` (b, 2 k)."""
    a = joint_transmission(pixels, theta)
    d = a * a * pixels.omega2 + pixels.noise
    weight = a / d
    residual = pixels.flux - a * pixels.mu
    rank = pixels.m.shape[1]
    first, second = np.triu_indices(rank)
    place = np.zeros((rank, rank), dtype=int)
    place[first, second] = place[second, first] = np.arange(len(first))
    inner = (weight * a) @ pixels.products
    chol = jnp.linalg.cholesky(jnp.eye(rank) + inner[:, place])
    b = (weight * residual) @ pixels.m
    solved = jax.scipy.linalg.solve_triangular(chol, b[..., None], lower=True)[..., 0]
    log_det = 2.0 * jnp.log(jnp.diagonal(chol, axis1=1, axis2=2)).sum(1) + jnp.log(d).sum(1)
    square = (residual * residual / d).sum(1) - (solved * solved).sum(1)
    return -0.5 * (pixels.count * np.log(2.0 * np.pi) + log_det + square)


_log_likelihood = jit64(log_likelihood)
_transmission = jit64(joint_transmission)
_gradient = jit64(jax.grad(lambda pixels, theta: log_likelihood(pixels, theta).sum(), argnums=1))
