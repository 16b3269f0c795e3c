"""Conjugate linear regression: polynomials against cosines. Exact evidences."""

import numpy as np
from scipy import stats

from modelodds.model import Model
from modelodds.prior import Prior
from modelodds.problems.base import Family, Problem

N_DATA = 30
NOISE = 0.3


def regression(d: int, seed: int) -> Problem:
    """Two designs of ``d`` coefficients with standard normal priors; the polynomial made the data."""
    rng = np.random.default_rng([1, d, seed])
    t = np.linspace(-1.0, 1.0, N_DATA)
    designs = {
        "polynomial": np.stack([t**j for j in range(d)], axis=1),
        "cosine": np.stack([np.cos(2.0 * j * t) for j in range(d)], axis=1),
    }
    y = designs["polynomial"] @ rng.normal(size=d) + NOISE * rng.normal(size=N_DATA)
    models = tuple(_model(name, design, y) for name, design in designs.items())
    return Problem(f"regression-{d}-{seed}", models, tuple(_log_evidence(f, y) for f in designs.values()))


def _model(name: str, design: np.ndarray, y: np.ndarray) -> Model:
    def log_likelihood(theta: np.ndarray) -> float:
        return float(stats.norm.logpdf(y - design @ theta, 0.0, NOISE).sum())

    return Model(name, log_likelihood, Prior({f"w{j}": stats.norm() for j in range(design.shape[1])}))


def _log_evidence(design: np.ndarray, y: np.ndarray) -> float:
    covariance = design @ design.T + NOISE**2 * np.eye(len(y))
    return float(stats.multivariate_normal.logpdf(y, np.zeros(len(y)), covariance))


FAMILY = Family(
    "regression",
    "conjugate linear regression: polynomials against cosines",
    regression,
    sizes=(1, 2, 3, 4, 5, 6, 8, 10),
)
