"""Models whose evidences are known in closed form, for the tests to compare."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from modelodds import Model

Array = NDArray[np.float64]

N = stats.norm
CENTRES = {"a": (0.3, 0.5), "b": (-1.0, 0.7), "c": (0.8, 0.4)}  # where the likelihood sits, and its width


def bell(y: float, width: float) -> Callable[[Array], float]:
    """Log-likelihood N(y; theta, width), summed over the parameters."""
    return lambda theta: float(N.logpdf(theta, y, width).sum())


def gaussian(name: str, shift: float = 0.0, probability: float = 1.0) -> Model:
    """One of the models of ``CENTRES``, one parameter of standard normal prior."""
    log_likelihood = bell(*CENTRES[name])
    return Model(name, lambda theta: log_likelihood(theta) + shift, {"x": N()}, probability)


def log_evidence(name: str) -> float:
    """What the evidence of ``gaussian(name)`` is."""
    y, width = CENTRES[name]
    return float(N.logpdf(y, 0.0, np.hypot(1.0, width)))


def gap(a: str, b: str) -> float:
    """Log Bayes factor of two of them."""
    return log_evidence(a) - log_evidence(b)


def null(name: str, value: Any) -> Model:
    """A model without free parameters."""
    return Model(name, lambda theta: value, {"x": 0.0})


def half(theta: Array) -> float:
    """A Gaussian cut in half: zero likelihood for a < 0, half of the prior."""
    a, b = theta
    return float(N.logpdf(a, 0.3, 0.3) + N.logpdf(b, 0.0, 0.5)) if a >= 0 else -np.inf


def half_log_evidence() -> float:
    """Product of two Gaussians, times what the posterior of a has above zero."""
    variance = 1.0 / (1.0 + 1.0 / 0.09)
    whole = N.logpdf(0.3, 0.0, np.hypot(1.0, 0.3)) + N.logpdf(0.0, 0.0, np.hypot(1.0, 0.5))
    return float(whole + N.logsf(0.0, variance * 0.3 / 0.09, np.sqrt(variance)))
