"""The paper's synthetic task (Chai et al. 2019, section 6.1): telling a Gaussian process's covariance.

There are 5d observations of a zero-mean Gaussian process over d inputs, with squared-exponential covariance.
Two models are compared, that covariance and Matérn's with ν = 5/2; the parameters of each are its d
length-scales, one per input, and all else is held at its true value. What the paper leaves open is set here:

- inputs: independent and uniform on the unit cube;
- output variance: 1;
- noise: independent and normal, with standard deviation 0.05, part of both models;
- prior, the same in both models: independent normal on each log length-scale, with median 0.5 √d for the
  length-scale (distances in the cube grow as √d) and standard deviation 1 for its logarithm;
- true length-scales: drawn from that prior, anew for every dataset, as are inputs, process and noise;
- dataset ``seed`` in dimension d: NumPy's ``default_rng([3, d, seed])``, in the order inputs, length-scales,
  observations.

With noise of 0.1 or more the five observations of d = 1 hardly tell the models apart; with less of it the
log-likelihood of long length-scales falls as the inverse square. The true evidences of seeds 0 to 99, and of
200 to 229, on which nothing was ever tried, are stored; ``python -m modelodds.problems synthetic-3 --seeds
0:100`` computes those of d = 3.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from modelodds.model import Model
from modelodds.prior import Prior
from modelodds.problems.base import Family, Problem
from modelodds.problems.truth import stored

Array = NDArray[np.float64]

NOISE = 0.05
SPREAD = 1.0  # of a log length-scale
CHUNK = 512  # points whose covariance matrices are held at once


def squared_exponential(squared: Array) -> Array:
    """Correlation at ``squared`` scaled distances."""
    return np.asarray(np.exp(-0.5 * squared))


def matern52(squared: Array) -> Array:
    """Correlation at ``squared`` scaled distances."""
    r = np.sqrt(5.0 * squared)
    return np.asarray((1.0 + r + r**2 / 3.0) * np.exp(-r))


def median_log_lengthscale(d: int) -> float:
    """Centre of the prior of every log length-scale."""
    return float(np.log(0.5 * np.sqrt(d)))


def dataset(d: int, seed: int) -> tuple[Array, Array]:
    """Inputs (5d, d) and observations (5d,)."""
    rng = np.random.default_rng([3, d, seed])
    inputs = rng.uniform(size=(5 * d, d))
    log_lengthscale = rng.normal(median_log_lengthscale(d), SPREAD, size=d)
    scaled = inputs / np.exp(log_lengthscale)
    squared = ((scaled[:, None] - scaled[None]) ** 2).sum(2)
    covariance = squared_exponential(squared) + NOISE**2 * np.eye(5 * d)
    return inputs, np.linalg.cholesky(covariance) @ rng.normal(size=5 * d)


def candidates(d: int, seed: int) -> tuple[Model, ...]:
    """The two models of one dataset; the first made it."""
    inputs, y = dataset(d, seed)
    centre = median_log_lengthscale(d)
    prior = Prior({f"log_lengthscale_{j + 1}": stats.norm(centre, SPREAD) for j in range(d)})
    return tuple(
        Model(f.__name__, _log_likelihood(f, inputs, y), prior, vectorized=True)
        for f in (squared_exponential, matern52)
    )


def synthetic(d: int, seed: int) -> Problem:
    """Squared exponential against Matérn in ``d`` dimensions."""
    name, models = f"synthetic-{d}", candidates(d, seed)
    log_evidence, error = stored(name, seed, models)
    return Problem(f"{name}-{seed}", models, log_evidence, error, "importance sampling")


def _log_likelihood(correlation: Callable[[Array], Array], inputs: Array, y: Array) -> Callable[..., Array]:
    n = len(y)
    row, column = np.tril_indices(n, -1)
    pairs = (inputs[row] - inputs[column]).T ** 2  # (d, pairs)
    # Cholesky's factor of [[K, y], [y', c]] has L^-1 y as its last row: one factorisation gives the
    # determinant and the quadratic form. This c keeps the matrix positive definite, as K >= NOISE**2.
    corner = y @ y / NOISE**2 + 1.0

    def chunk(log_lengthscale: Array) -> Array:
        # Past +-50 a correlation is 0 or 1 to rounding; without the limit exp would overflow.
        squared = np.exp(-2.0 * np.clip(log_lengthscale, -50.0, 50.0)) @ pairs
        bordered = np.zeros((len(log_lengthscale), n + 1, n + 1))
        bordered[:, row, column] = correlation(squared)
        bordered[:, range(n), range(n)] = 1.0 + NOISE**2
        bordered[:, n, :n] = y
        bordered[:, n, n] = corner
        factor = np.linalg.cholesky(bordered)  # reads the lower triangle alone
        log_det = np.log(factor[:, range(n), range(n)]).sum(1)
        return np.asarray(-0.5 * (factor[:, n, :n] ** 2).sum(1) - log_det - 0.5 * n * np.log(2.0 * np.pi))

    def log_likelihood(theta: Array) -> Array:
        return np.concatenate([chunk(theta[i : i + CHUNK]) for i in range(0, len(theta), CHUNK)])

    return log_likelihood


FAMILY = Family(
    "synthetic",
    "squared-exponential against Matérn covariance of a Gaussian process (the paper's task)",
    synthetic,
    sizes=(1, 2, 3, 4, 5),
    candidates=candidates,
)
