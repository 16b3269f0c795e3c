"""Beliefs on posterior model probabilities from log-evidences that correlate.

The probabilities do not change when one and the same number is added to every log-evidence, known or not. So
two beliefs with the same variances of differences, V_ij = S_ii + S_jj - 2 S_ij, are one belief on z; and if
there are d_i >= 0 with V_ij = d_i + d_j, then independent log-evidences of variances d_i are such a one, for
which ``odds.py`` has exact sums. For two models there always are; for more it takes luck, and draws do
otherwise.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from modelodds import odds

Array = NDArray[np.float64]

DRAWS = 2**13
SAME = 1e-9  # relative: variances of differences that are one


def independent_sd(cov: ArrayLike) -> Array | None:
    """Standard deviations (k,) of independent log-evidences that say the same of z; None if there are none.

    Parameters
    ----------
    cov : array, shape (k, k)
        Covariance of the log-evidences.
    """
    cov = np.asarray(cov, dtype=float)
    own, k = cov.diagonal(), len(cov)
    if _diagonal(cov):
        return np.asarray(np.sqrt(own))
    if k == 2:
        return np.array([np.sqrt(max(own.sum() - 2.0 * cov[0, 1], 0.0)), 0.0])
    pairs = [(i, j) for i in range(k) for j in range(i)]
    between = np.array([own[i] + own[j] - 2.0 * cov[i, j] for i, j in pairs])
    design = np.array([np.eye(k)[i] + np.eye(k)[j] for i, j in pairs])
    found = np.linalg.lstsq(design, between)[0]
    if found.min() < 0.0 or np.abs(design @ found - between).max() > SAME * between.max():
        return None
    return np.asarray(np.sqrt(found))


def _diagonal(cov: Array) -> bool:
    return not (cov - np.diag(cov.diagonal())).any()


def draws(mean: ArrayLike, cov: ArrayLike, n: int = DRAWS) -> Array:
    """Low-discrepancy draws (n, k) of Gaussian log-evidences, always the same ones."""
    mean, cov = np.asarray(mean, dtype=float), np.asarray(cov, dtype=float)
    if _diagonal(cov):
        return odds.draws(mean, np.sqrt(cov.diagonal()), n)
    value, vector = np.linalg.eigh(cov)
    root = vector * np.sqrt(np.maximum(value, 0.0))
    return np.asarray(mean + odds.draws(np.zeros(len(mean)), np.ones(len(mean)), n) @ root.T)


def moments(mean: ArrayLike, cov: ArrayLike, log_prior: ArrayLike) -> tuple[Array, Array]:
    """Mean (k,) and covariance (k, k) of z for Gaussian log-evidences of covariance ``cov`` (k, k)."""
    sd = independent_sd(cov)
    if sd is not None:
        return odds.moments(mean, sd, log_prior)
    z = special.softmax(draws(mean, cov) + np.asarray(log_prior, dtype=float), axis=1)
    return z.mean(axis=0), np.asarray(np.cov(z.T, bias=True))


def best_probability(location: ArrayLike, cov: ArrayLike, best: int) -> float:
    """Probability that model ``best`` has the largest of correlated Gaussian log-evidences."""
    sd = independent_sd(cov)
    if sd is not None:
        return odds.best_probability(location, sd, best)
    return float((draws(location, cov).argmax(axis=1) == best).mean())
