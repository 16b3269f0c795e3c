"""Nested conjugate regressions: polynomials of degree 0 to k - 1. Exact evidences.

A coefficient has the same name in every model that has it. The data come from the polynomial of degree
k // 2, so that some models are too simple and, from k = 3 on, some more complex than need be.
"""

import numpy as np
from scipy import stats

from modelodds.model import Model
from modelodds.prior import Prior
from modelodds.problems.base import Family, Problem

N_DATA = 30
NOISE = 0.3
COEFFICIENT = stats.norm()


def nested(k: int, seed: int) -> Problem:
    """``k`` polynomials whose coefficients have standard normal priors."""
    rng = np.random.default_rng([5, k, seed])
    powers = np.linspace(-1.0, 1.0, N_DATA)[:, None] ** np.arange(k)
    terms = k // 2 + 1
    y = powers[:, :terms] @ rng.normal(size=terms) + NOISE * rng.normal(size=N_DATA)
    designs = [powers[:, : degree + 1] for degree in range(k)]
    models = tuple(_model(f"degree_{degree}", design, y) for degree, design in enumerate(designs))
    return Problem(f"nested-{k}-{seed}", models, tuple(_log_evidence(design, y) for design in designs))


def _model(name: str, design: np.ndarray, y: np.ndarray) -> Model:
    def log_likelihood(theta: np.ndarray) -> np.ndarray:
        return np.asarray(stats.norm.logpdf(theta @ design.T, y, NOISE).sum(1))

    prior = Prior({f"w{j}": COEFFICIENT for j in range(design.shape[1])})
    return Model(name, log_likelihood, prior, vectorized=True)


def _log_evidence(design: np.ndarray, y: np.ndarray) -> float:
    covariance = design @ design.T + NOISE**2 * np.eye(len(y))
    return float(stats.multivariate_normal.logpdf(y, np.zeros(len(y)), covariance))


FAMILY = Family(
    "nested",
    "conjugate regressions on polynomials of degree 0, 1, ...",
    nested,
    sizes=tuple(range(2, 9)),
    sizes_are="models",
)
