"""Joint priors known by their density and by draws."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.linalg import solve_triangular

from modelodds.coordinates.base import EDGE, Array
from modelodds.errors import PriorError

DRAWS = 4096
"""Draws that whiten the coordinates, and points of the check that the density integrates to 1."""

REFERENCE = stats.t(5)
"""Density of each coordinate of the points that stand in for draws: wider tails than most whitened priors."""

LogDensity = Callable[[Array], Any]
LARGEST = np.finfo(float).max
Sample = Callable[[int, np.random.Generator], Any]


@dataclass(frozen=True, eq=False)
class DensityCoordinates:
    """Coordinates x = L^{-1} (theta - mean), with ``mean`` (d,) and L = ``factor`` (d, d) from draws."""

    names: tuple[str, ...]
    log_prior: LogDensity
    mean: Array
    factor: Array

    @classmethod
    def build(cls, log_density: LogDensity, sample: Sample, names: tuple[str, ...]) -> "DensityCoordinates":
        """Whiten the draws, and check the density on them and its integral."""
        for label, function in (("log_density", log_density), ("sample", sample)):
            if not callable(function):
                raise PriorError(f"{label} must be a function, not a {type(function).__name__}")
        draws = _draw(sample, names)
        coordinates = cls(names, log_density, draws.mean(axis=0), _cholesky(draws, names))
        coordinates._check_draws(draws)
        coordinates._check_integral()
        return coordinates

    @property
    def bounds(self) -> Array:
        return np.array([[-np.inf], [np.inf]]) * np.ones(len(self.mean))

    def to_theta(self, x: Array) -> Array:
        return np.asarray(self.mean + x @ self.factor.T)

    def to_x(self, theta: Array) -> Array:
        return np.asarray(solve_triangular(self.factor, (theta - self.mean).T, lower=True).T)

    def from_unit(self, u: Array) -> Array:
        return np.asarray(REFERENCE.ppf(np.clip(u, EDGE, 1 - EDGE)))

    def log_reference(self, x: Array) -> Array:
        return np.asarray(REFERENCE.logpdf(x).sum(axis=-1))

    def log_density(self, x: Array) -> Array:
        return np.asarray(self.log_density_theta(self.to_theta(x)) + np.log(np.diag(self.factor)).sum())

    def log_density_theta(self, theta: Array) -> Array:
        return np.array([_call(self.log_prior, point) for point in theta], dtype=float)

    def _check_draws(self, draws: Array) -> None:
        outside = np.isneginf(self.log_density_theta(draws))
        if outside.any():
            raise PriorError(
                f"log_density is -inf at {outside.sum()} of {DRAWS} draws from sample, first at theta = "
                f"{draws[outside][0]}; the two must describe one prior"
            )

    def _check_integral(self) -> None:
        """Refuse a density whose integral, by importance sampling, is not 1 within its error."""
        x = self.from_unit(stats.qmc.Sobol(len(self.mean), rng=np.random.default_rng(0)).random(DRAWS))
        log_weights = self.log_density(x) - self.log_reference(x)
        largest = max(float(log_weights.max()), -LARGEST)
        weights = np.exp(log_weights - largest)
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # a density that is off by more than a double can hold
            integral = weights.mean() * np.exp(largest)
            standard_error = weights.std() * np.exp(largest) / np.sqrt(DRAWS)
        if not abs(integral - 1) <= max(5 * standard_error, 0.05) or not np.isfinite(integral):
            log_integral = largest + np.log(weights.mean()) if integral > 0 else 0.0
            remedy = f"subtract {log_integral:.4g} from it" if integral > 0 else "it and sample must agree"
            raise PriorError(
                f"exp(log_density) integrates to {integral:.4g} +- {standard_error:.1g}, not to 1; {remedy}, "
                "as evidences need a normalised prior"
            )


def _draw(sample: Sample, names: tuple[str, ...]) -> Array:
    """Draws (DRAWS, d) from the prior, checked."""
    expected = (DRAWS, len(names))
    try:
        draws = np.array(sample(DRAWS, np.random.default_rng(0)), dtype=float)
    except Exception as error:
        raise PriorError(
            f"sample failed: {type(error).__name__}: {error}; it is called as sample(n, rng), with rng a "
            f"numpy.random.Generator, and must return an array of shape (n, {len(names)})"
        ) from error
    if draws.shape != expected:
        raise PriorError(
            f"sample({DRAWS}, rng) returned shape {draws.shape}, expected {expected}: one row per draw"
        )
    if not np.isfinite(draws).all():
        raise PriorError("sample returned draws that are not finite; drop them or correct the sampler")
    return draws


def _cholesky(draws: Array, names: tuple[str, ...]) -> Array:
    """Lower Cholesky factor (d, d) of the covariance of ``draws`` (n, d)."""
    constant = np.ptp(draws, axis=0) == 0
    if constant.any():
        raise PriorError(
            f"{names[int(np.argmax(constant))]!r} is the same in every draw; leave it out of the prior"
        )
    scale = draws.std(axis=0)
    correlation = np.cov((draws - draws.mean(axis=0)) / scale, rowvar=False, ddof=0).reshape(
        len(names), len(names)
    )
    if np.linalg.eigvalsh(correlation)[0] < 1e-10:
        raise PriorError(
            "the covariance of the draws is degenerate: some parameter is a linear function of the others "
            "(as when all the parts of a whole are listed); leave it out and compute it in the likelihood"
        )
    return np.asarray(scale[:, None] * np.linalg.cholesky(correlation))


def _call(log_density: LogDensity, theta: Array) -> float:
    """The log-density of one point ``theta`` (d,), checked: a number below +inf, -inf outside the support."""
    try:
        with np.errstate(divide="ignore", invalid="ignore"):
            value = float(np.asarray(log_density(theta.copy())).item())
    except Exception as error:
        raise PriorError(
            f"log_density failed at theta = {theta}: {type(error).__name__}: {error}; it is called with one "
            f"point, a 1-d array of length {len(theta)}, and must return one number"
        ) from error
    if np.isnan(value) or value == np.inf:
        raise PriorError(
            f"log_density is {value} at theta = {theta}; it must be finite, or -inf outside the support"
        )
    return value
