"""Beliefs on posterior model probabilities and log-odds, from Gaussian beliefs on the log-evidences.

With a_i the evidence of model i times its prior probability, A = Σ_j a_j and z_i = a_i / A, the identities
1/A = ∫ e^{-rA} dr and 1/A² = ∫ r e^{-rA} dr turn the moments of z into one-dimensional integrals of products,
because the a_j are independent. In t = log r, and with

    φ_j(t) = E[e^{-r a_j}],    g_j(t) = E[r a_j e^{-r a_j}],    h_j(t) = E[(r a_j)² e^{-r a_j}],

    E[z_i]     = ∫ (g_i/φ_i) Π dt
    E[z_i²]    = ∫ (h_i/φ_i) Π dt                 where Π(t) = Π_j φ_j(t)
    E[z_i z_j] = ∫ (g_i/φ_i) (g_j/φ_j) Π dt

Every integrand is smooth and dies out at both ends, so the trapezoid rule is accurate to rounding: its error
is the integrand's Fourier transform at 2π/step, about e^{-π²/step}.

| symbol | name in code | shape | meaning |
|---|---|---|---|
| log a_i | `location`, `scale` | (k,) | mean and standard deviation of its Gaussian belief |
| z | `probabilities` | (k,) | posterior model probabilities |
| λ_ab | `log_odds` | – | log a_a − log a_b |
"""

from functools import cache
from math import fsum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

Array = NDArray[np.float64]

STEP = 0.25  # in nats, for every lattice: e^{-π²/step} is 7e-18
REACH = 10.0  # standard deviations followed to each side: what lies beyond weighs 1e-23
NARROW = 0.5  # below this many nats a lattice of STEP would not resolve the Gaussian
WIDEST = 1e3  # wider beliefs are shrunk to this many nats; see `moments`


def moments(mean: ArrayLike, sd: ArrayLike, log_prior: ArrayLike) -> tuple[Array, Array]:
    """Mean and covariance of the posterior model probabilities.

    Deterministic, and permuting the models permutes the answer bit for bit. Beliefs wider than 1000 nats are
    shrunk to that width, means along with them: which model comes out largest is all that matters there.
    Accurate to about 1e-13 of each probability (of its square, for the covariance); a probability below 1e-19
    may be any number below that.

    Parameters
    ----------
    mean, sd : array, shape (k,)
        Independent Gaussian beliefs on the log-evidences. A mean of -inf is an evidence of zero.
    log_prior : array, shape (k,)
        Log prior probabilities of the models, up to a common constant.

    Returns
    -------
    mean : array, shape (k,)
        E[z]; sums to one.
    cov : array, shape (k, k)
        Cov(z); every row sums to zero.
    """
    location = np.asarray(mean, dtype=float) + np.asarray(log_prior, dtype=float)
    location, scale = location - location.max(), np.asarray(sd, dtype=float)
    if not scale.any():
        a = np.exp(location)
        return a / fsum(a), np.zeros((location.size, location.size))  # fsum: the same in any order
    shrink = WIDEST / max(WIDEST, scale.max())
    beliefs = np.column_stack([location, scale]) * shrink
    # Equal beliefs are handled once, in sorted order, so that rounding cannot tell one order from another.
    distinct, which, counts = np.unique(beliefs, axis=0, return_inverse=True, return_counts=True)
    which = which.ravel()
    z, variance, shared = _distinct_moments(distinct, counts)
    cov = shared[np.ix_(which, which)]
    np.fill_diagonal(cov, np.maximum(variance[which], 0.0))
    return z[which], cov


def log_odds(mean: ArrayLike, cov: ArrayLike, log_prior: ArrayLike, a: int, b: int) -> tuple[float, float]:
    """Mean and standard deviation of the log posterior odds of model `a` over model `b`.

    Parameters
    ----------
    mean : array, shape (k,)
        Means of the log-evidences.
    cov : array, shape (k, k)
        Covariance of the log-evidences.
    log_prior : array, shape (k,)
        Log prior probabilities of the models; zeros give the log Bayes factor.
    a, b : int
        Positions of the two models.
    """
    if a == b:
        return 0.0, 0.0
    location, cov = (
        np.asarray(mean, dtype=float) + np.asarray(log_prior, dtype=float),
        np.asarray(cov, dtype=float),
    )
    variance = cov[a, a] + cov[b, b] - 2.0 * cov[a, b]
    return float(location[a] - location[b]), float(np.sqrt(max(variance, 0.0)))


def best_probability(location: ArrayLike, sd: ArrayLike, best: int) -> float:
    """Probability that model ``best`` has the largest of independent Gaussian log-evidences.

    P = ∫ N(x; m_b, s_b) Π_j Φ((x - m_j) / s_j) dx, by the trapezoid rule on points dense around every mean.

    Parameters
    ----------
    location, sd : array, shape (k,)
        Means, prior probabilities included, and standard deviations; 0 for an evidence known exactly.
    best : int
        Position of the model.
    """
    mean: Array = np.asarray(location, dtype=float)
    scale: Array = np.maximum(np.asarray(sd, dtype=float), 1e-9)  # a step is a steep slope
    if np.isneginf(mean[best]):
        return 0.0
    x = np.unique((mean[:, None] + scale[:, None] * np.linspace(-8.0, 8.0, 401))[np.isfinite(mean)])
    t = (x[:, None] - mean) / scale
    below = ndtr(np.delete(t, best, axis=1)).prod(axis=1)
    return float(np.trapezoid(below, ndtr(t[:, best])))


def draws(mean: ArrayLike, sd: ArrayLike, n: int) -> Array:
    """Low-discrepancy draws of independent Gaussian log-evidences, always the same ones; their softmax is z.

    Parameters
    ----------
    mean, sd : array, shape (k,)
        Beliefs on the log-evidences; with the log prior probabilities added to ``mean``, the softmax is
        posterior.
    n : int
        Number of draws; a power of two is best.

    Returns
    -------
    array, shape (n, k)
    """
    location = np.asarray(mean, dtype=float)
    return location + np.asarray(sd, dtype=float) * _normal_lattice(location.size, n)


@cache
def _normal_lattice(k: int, n: int) -> Array:
    """Scrambled Sobol points (n, k) with standard normal coordinates."""
    sobol = qmc.Sobol(k, scramble=True, rng=np.random.default_rng(0))
    uniform = sobol.random_base2(max(n - 1, 0).bit_length())[:n]
    return np.asarray(ndtri(np.clip(uniform, 1e-10, 1.0 - 1e-10)))


def _distinct_moments(beliefs: Array, counts: NDArray[np.int_]) -> tuple[Array, Array, Array]:
    """Moments of z for u distinct beliefs (u, 2), belief i held by `counts[i]` models.

    Returns E[z] (u,), Var(z) (u,) and the covariances between *different* models (u, u).
    """
    t = _lattice(beliefs, int(counts.sum()))
    transforms = np.array([_laplace(t, location, scale) for location, scale in beliefs])  # (u, 3, T)
    weight = np.prod(transforms[:, 0] ** counts[:, None], axis=0)
    transforms, weight = transforms[:, :, weight > 0], weight[weight > 0]
    first, second = transforms[:, 1] / transforms[:, 0], transforms[:, 2] / transforms[:, 0]
    weight /= (counts @ first) @ weight  # what the step would do, but for rounding
    z = first @ weight
    z /= counts @ z
    half = first * np.sqrt(weight)
    return z, *_rows_to_zero(z, second @ weight - z**2, half @ half.T - np.outer(z, z), counts)


def _rows_to_zero(z: Array, variance: Array, shared: Array, counts: NDArray[np.int_]) -> tuple[Array, Array]:
    """Project the covariance C of all models onto (I − z1ᵀ) C (I − 1zᵀ): no change, but for rounding errors.

    Those of E[z_i²] − E[z_i]² would otherwise drown the variance of a z_i close to one.
    """
    others = counts - np.eye(len(counts))  # how many different models each belief meets
    rows = (shared * others).sum(axis=1) + variance
    cross = np.outer(z, rows)
    change = (counts @ rows) * np.outer(z, z) - (cross + cross.T)
    return variance + change.diagonal(), shared + change


def _lattice(beliefs: Array, k: int) -> Array:
    """Lattice of t (T,) on which some g_i Π_{j≠i} φ_j is not negligible: t is log Exp(1) − log A."""
    location, scale = beliefs.T
    lower = -np.max(location + REACH * scale) - np.log(k) - 40.0  # e^{-40}: log Exp(1) from below
    upper = -np.max(location - REACH * scale) + 4.0  # exp(-e^4): and from above
    return np.arange(lower, upper + STEP, STEP)


def _laplace(t: Array, location: float, scale: float) -> tuple[Array, Array, Array]:
    """φ(t), g(t) and h(t), each (T,), of one log-normal evidence."""
    return _laplace_narrow(t, location, scale) if scale < NARROW else _laplace_wide(t, location, scale)


def _laplace_narrow(t: Array, location: float, scale: float) -> tuple[Array, Array, Array]:
    """Trapezoid rule over the standard normal variable."""
    normal = np.arange(-REACH, REACH + 0.5, 0.5)
    weight = np.exp(-0.5 * normal**2)
    weight /= weight.sum()
    ra = np.exp((t + location)[:, None] + scale * normal)
    decay = np.exp(-ra)
    return decay @ weight, (ra * decay) @ weight, (ra**2 * decay) @ weight


def _laplace_wide(t: Array, location: float, scale: float) -> tuple[Array, Array, Array]:
    """Trapezoid rule over x = log r a, on a lattice in step with that of t, so that it is a correlation.

    As a density in x the belief is N(t + location, scale²); e^{-r a} = ∫_x e^{y − e^y} dy gives φ by parts:
    φ = ∫ e^{x − e^x} Φ((x − t − location)/scale) dx.
    """
    x = np.arange(-45.0, 4.0 + STEP, STEP)
    gap = x[0] - t[-1] - location + STEP * np.arange(x.size + t.size - 1)  # every x − t − location
    density = np.exp(-0.5 * (gap / scale) ** 2) / (scale * np.sqrt(2.0 * np.pi))
    once, twice = STEP * np.exp(x - np.exp(x)), STEP * np.exp(2.0 * x - np.exp(x))
    pairs = [(ndtr(gap / scale), once), (density, once), (density, twice)]
    phi, g, h = (np.correlate(along, weight, "valid")[::-1] for along, weight in pairs)
    return phi, g, h
