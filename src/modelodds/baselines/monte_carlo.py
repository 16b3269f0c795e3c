"""Simple Monte Carlo: the evidence is the mean of the likelihood over the prior.

Points are drawn from the prior (or from the reference density that stands in for it, and weighted), at random
or from a scrambled Sobol sequence. The variance of the log of their mean is its relative variance; with
Sobol points the same formula is used, which overstates it.

That formula cannot exceed one, and says so little when a few draws carry the mean: the likelihood then still
rises towards a peak that no draw has found. How steeply it rises is the slope s of its log against the log of
the prior mass above it, which Hill's (1975) estimator reads off the largest weights. Where that slope exceeds
one, a Gaussian peak of d dimensions would add

    (d / 2) (s - 1 - log s)

to the log-evidence (its mass sits where the slope is one). This shortfall joins the standard deviation.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.stats import qmc

from modelodds.baselines.base import Target, in_turn
from modelodds.model import Model
from modelodds.nodes import systematic
from modelodds.result import Result

Array = NDArray[np.float64]

BLOCK = 64  # points of the Sobol sequence taken at a time; whatever the budget, the sequence is the same
FEWEST = 3  # draws of a likelihood above zero, before anything is claimed
CARRIED = 0.1  # relative variances beyond this are not believed: fewer than ten draws carry the mean
TOP = 10  # largest weights that tell the slope
KEPT_DRAWS = 2000


class Sample:
    """Draws from one model's prior, and the log-evidence they give."""

    def __init__(self, target: Target, rng: np.random.Generator, quasi: bool) -> None:
        self.target, self.calls = target, 0
        self.points: list[Array] = []
        self.log_weights: list[float] = []
        self._places = _sobol(target.dim, rng) if quasi and target.dim else _random(target.dim, rng)

    def step(self) -> None:
        """Make one call; draws outside the prior's support need none, and join when the next is made."""
        before, drawn = self.target.meter.spent, list[tuple[Array, float]]()
        while self.target.meter.spent == before:
            point = self.target.at(next(self._places))
            drawn.append((point.v, point.log_joint - log_normal(point.v)))
        for v, log_weight in drawn:
            self.points.append(v)
            self.log_weights.append(log_weight)
        self.calls += 1

    def estimate(self) -> tuple[float, float]:
        """Log-evidence and its variance; NaN before there is one."""
        if self.target.settled:
            return self.log_weights[0], 0.0
        return log_mean(np.array(self.log_weights), self.target.dim)

    def draws(self) -> Array:
        """Posterior draws of theta, (m, p)."""
        log_weight = np.array(self.log_weights)
        if not np.isfinite(log_weight).any():
            return np.empty((0, len(self.target.model.parameters)))
        chosen = systematic(np.exp(log_weight - log_weight.max()), KEPT_DRAWS)
        return self.target.theta(np.array(self.points)[chosen])[0]


def _random(dim: int, rng: np.random.Generator) -> Iterator[Array]:
    while True:
        yield rng.standard_normal(dim)


def _sobol(dim: int, rng: np.random.Generator) -> Iterator[Array]:
    sequence = qmc.Sobol(dim, scramble=True, rng=rng)
    while True:
        yield from special.ndtri(np.clip(sequence.random(BLOCK), 1e-12, 1 - 1e-12))


def log_normal(v: Array) -> float:
    """Log of the reference density at ``v`` (d,)."""
    return float(-0.5 * (v * v + np.log(2 * np.pi)).sum())


def log_mean(log_weight: Array, dim: int) -> tuple[float, float]:
    """Log of the mean weight, and the variance of it.

    Parameters
    ----------
    log_weight : array, shape (n,)
        Of independent draws; -inf where the likelihood is zero.
    dim : int
        Dimension of the space they are drawn in.
    """
    if np.isfinite(log_weight).sum() < FEWEST:
        return np.nan, np.nan
    highest = log_weight.max()
    weight = np.exp(log_weight - highest)
    variance = float(weight.var(ddof=1) / weight.mean() ** 2 / len(weight))
    if variance > CARRIED:
        variance += shortfall(log_weight, dim) ** 2
    return float(highest + np.log(weight.mean())), variance


def shortfall(log_weight: Array, dim: int) -> float:
    """What the log of the mean weight would lack, if the weights rose to a Gaussian peak beyond the largest.

    Parameters
    ----------
    log_weight : array, shape (n,)
        Of independent draws, two of them finite.
    dim : int
        Dimension of the space they are drawn in.
    """
    largest = np.sort(log_weight[np.isfinite(log_weight)])[::-1][: TOP + 1]
    slope = max(1.0, float(largest[:-1].mean() - largest[-1]))
    return 0.5 * dim * (slope - 1.0 - float(np.log(slope)))


def run(
    models: Iterable[Model], budget: int, rng: int | np.random.Generator = 0, quasi: bool = False
) -> Result:
    """Compare ``models`` by draws from their priors, each getting the same share of ``budget`` calls.

    Parameters
    ----------
    models
        The candidates.
    budget
        Likelihood calls to make, of all models together.
    rng
        A seed, or a generator.
    quasi
        Whether the draws are scrambled Sobol points.
    """
    name = "quasi_monte_carlo" if quasi else "monte_carlo"
    return in_turn(models, budget, rng, lambda target, child: Sample(target, child, quasi), name)
