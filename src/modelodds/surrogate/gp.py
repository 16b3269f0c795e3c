"""Gaussian processes on a log-likelihood: conditioning one on observations gives another.

| symbol     | name             | shape  | meaning                                            |
|------------|------------------|--------|----------------------------------------------------|
| x, y       | ``x``, ``y``     | (n, d), (n,) | observations, padded to a few sizes           |
| tau^2      | ``noise``        | (n,)   | variance of each observation                       |
| m(x)       | ``mean``         | (m,)   | posterior mean of the log-likelihood               |
| C(x, x')   | ``covariance``   | (m, m')| its posterior covariance                           |
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from modelodds.precision import Array
from modelodds.surrogate.exchange import Blocks, exchangeable_correlation, exchangeable_variance
from modelodds.surrogate.kernels import correlation, squared_distance
from modelodds.surrogate.means import basis, mean_function

NUGGET = 1e-6  # variance added to every observation, in nats^2 ...
RELATIVE_NUGGET = 1e-10  # ... and as a share of the kernel's variance: what float64 needs


class Spec(NamedTuple):
    """What kind of GP it is: compile-time constants."""

    kernel: str  # a name in KERNELS, or "any": as Hyper.kernel says
    mean: str  # a name in MEANS
    blocks: Blocks = ()  # columns of x that can be exchanged for each other


class Hyper(NamedTuple):
    """Hyperparameters of the prior."""

    log_lengthscale: Array  # (d,)
    log_amplitude: Array  # ()
    mean: Array  # as means.n_hyper says
    kernel: Array | int = 0  # position in KERNELS, for a Spec of kernel "any"
    log_rho: Array | float = 0.0  # what exchangeable parts have beside their sum, for a Spec with blocks


class Data(NamedTuple):
    """Observations, padded; ``mask`` is 1 for real ones and 0 for padding."""

    x: Array  # (n, d)
    y: Array  # (n,)
    noise: Array  # (n,) variance
    mask: Array  # (n,)


class Borrowed(NamedTuple):
    """What a GP needs to know of observations that are other models' (``coupled.py``).

    An observation of another model lies ``apart`` (in squared length-scales) from this model's space, and
    varies with this model by ``factor`` of what one of its own would at the same distance.
    """

    apart: Array  # (n,) 0 for the model's own observations
    factor: Array  # (n,) 1 for the model's own
    own: Array  # (n,) 1 for the model's own, 0 for others' and for padding
    mix: Array  # (p', p) this model's basis functions in terms of all models' independent coefficients
    level: Array  # () what is added to the mean: the zero of this model from the zero common to all


class GP(NamedTuple):
    """A GP conditioned on data. ``features`` holds all that predictions need."""

    hyper: Hyper
    data: Data
    chol: Array  # (n, n) Cholesky factor of K + noise
    white: Array  # (n,) whitened residual of y, basis part taken out
    design: Array  # (n, p) whitened basis functions
    basis_chol: Array  # (p, p) lower triangular, its square 1 + design^T design; the diagonal may be negative
    beta: Array  # (p,) posterior mean of the basis coefficients
    borrowed: Borrowed | None = None  # of observations that are shared with other models


def prior_covariance(spec: Spec, hyper: Hyper, a: Array, b: Array, apart: Array | None = None) -> Array:
    """Kernel matrix of ``a`` (n, d) and ``b`` (m, d), without the basis part.

    ``apart`` (n,) are squared distances of ``a`` from the space of ``b``, if there are any.
    """
    if spec.blocks:
        scale, rho = jnp.exp(hyper.log_lengthscale), jnp.exp(hyper.log_rho)
        shape = exchangeable_correlation(spec.kernel, hyper.kernel, spec.blocks, scale, rho, a, b)
        return jnp.exp(2.0 * hyper.log_amplitude) * shape
    r2 = squared_distance(a, b, jnp.exp(hyper.log_lengthscale))
    if apart is not None:
        r2 = r2 + apart[:, None]
    return jnp.exp(2.0 * hyper.log_amplitude) * correlation(spec.kernel, hyper.kernel, r2)


def prior_variance(spec: Spec, hyper: Hyper, x: Array) -> Array:
    """The diagonal of the kernel matrix of ``x`` (m, d) with itself, (m,) or one number for all."""
    variance = jnp.exp(2.0 * hyper.log_amplitude)
    if not spec.blocks:
        return variance
    scale, rho = jnp.exp(hyper.log_lengthscale), jnp.exp(hyper.log_rho)
    return variance * exchangeable_variance(spec.kernel, hyper.kernel, spec.blocks, scale, rho, x)


def relative_nugget(hyper: Hyper) -> Array:
    """Variance that every observation is given for the arithmetic's sake."""
    return RELATIVE_NUGGET * jnp.exp(2.0 * hyper.log_amplitude)


def condition(spec: Spec, hyper: Hyper, data: Data) -> GP:
    """Posterior of the GP given ``data``."""
    mask = data.mask
    kernel = prior_covariance(spec, hyper, data.x, data.x) * mask[:, None] * mask[None, :]
    diagonal = jnp.where(mask > 0, data.noise + NUGGET + relative_nugget(hyper), 1.0)
    chol = jnp.linalg.cholesky(kernel + jnp.diag(diagonal))
    residual = (data.y - mean_function(spec.mean, hyper.mean, data.x)) * mask
    white = solve_triangular(chol, residual, lower=True)
    design = solve_triangular(
        chol, basis(spec.mean, hyper.mean, data.x, spec.blocks) * mask[:, None], lower=True
    )
    rest, basis_chol, beta = coefficients(white, design)
    return GP(hyper, data, chol, rest, design, basis_chol, beta)


def coefficients(white: Array, design: Array) -> tuple[Array, Array, Array]:
    """What the mean's basis leaves of ``white``, its coefficients' precision (Cholesky factor) and mean.

    Least squares by QR: the normal equations would square a condition number that is 1e9 for a sharp
    likelihood.
    """
    q, r = jnp.linalg.qr(jnp.concatenate([design, jnp.eye(design.shape[1])]))
    beta = solve_triangular(r, q[: len(white)].T @ white)
    return white - design @ beta, r.T, beta


def log_marginal(spec: Spec, hyper: Hyper, data: Data) -> Array:
    """Log marginal likelihood of the data (up to a constant)."""
    gp = condition(spec, hyper, data)
    return log_density(gp.white, gp.beta, gp.chol, gp.basis_chol)


def log_density(white: Array, beta: Array, chol: Array, basis_chol: Array) -> Array:
    """Log density (up to a constant) of observations, from what conditioning on them has found."""
    fit = white @ white + beta @ beta
    return -0.5 * fit - jnp.log(jnp.diagonal(chol)).sum() - jnp.log(jnp.abs(jnp.diagonal(basis_chol))).sum()


def features(spec: Spec, gp: GP, x: Array) -> tuple[Array, Array]:
    """Vectors v (n, m) and s (p, m) with C(x, x') = k(x, x') - v.v' + s.s'."""
    v = solve_triangular(gp.chol, _cross_covariance(spec, gp, x), lower=True)
    rest = _mixed_basis(spec, gp, x).T - gp.design.T @ v
    return v, solve_triangular(gp.basis_chol, rest, lower=True)


def _cross_covariance(spec: Spec, gp: GP, x: Array) -> Array:
    """Prior covariance (n, m) of the observations with ``x`` (m, d)."""
    if gp.borrowed is None:
        return prior_covariance(spec, gp.hyper, gp.data.x, x) * gp.data.mask[:, None]
    factor = gp.borrowed.factor * gp.data.mask
    return factor[:, None] * prior_covariance(spec, gp.hyper, gp.data.x, x, gp.borrowed.apart)


def _mixed_basis(spec: Spec, gp: GP, x: Array) -> Array:
    """Basis functions (m, p) at ``x`` (m, d), of independent coefficients."""
    own = basis(spec.mean, gp.hyper.mean, x, spec.blocks)
    return own if gp.borrowed is None else own @ gp.borrowed.mix


def predict(spec: Spec, gp: GP, x: Array) -> tuple[Array, Array]:
    """Posterior mean and variance at ``x`` (m, d), each of shape (m,)."""
    return moments(spec, gp, x, *features(spec, gp, x))


def moments(spec: Spec, gp: GP, x: Array, v: Array, s: Array) -> tuple[Array, Array]:
    """Posterior mean and variance at ``x`` (m, d), whose features ``v`` and ``s`` are at hand."""
    mean = mean_function(spec.mean, gp.hyper.mean, x) + _mixed_basis(spec, gp, x) @ gp.beta + v.T @ gp.white
    if gp.borrowed is not None:
        mean = mean + gp.borrowed.level
    variance = prior_variance(spec, gp.hyper, x) - (v * v).sum(0) + (s * s).sum(0)
    return mean, jnp.maximum(variance, 1e-12)


def covariance(spec: Spec, gp: GP, a: Array, b: Array) -> Array:
    """Posterior covariance of ``a`` (m, d) with ``b`` (l, d), shape (m, l)."""
    (va, sa), (vb, sb) = features(spec, gp, a), features(spec, gp, b)
    return prior_covariance(spec, gp.hyper, a, b) - va.T @ vb + sa.T @ sb
