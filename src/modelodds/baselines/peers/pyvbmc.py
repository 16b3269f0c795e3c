"""Variational Bayesian Monte Carlo through PyVBMC (Acerbi 2018), with its defaults.

As its documents advise: the log joint density in the parameters' own coordinates, hard bounds where the prior
has an end, plausible bounds at the prior's 16 % and 84 % points, a start between these. A run ends by its own
rule of stability, after 50 (d + 2) calls, or with its share. The estimate is the ELBO and the claim its
standard deviation: after each iteration for the curve, and at the end of the posterior that it returns.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelodds.baselines.base import OutOfBudget
from modelodds.baselines.peers.base import KEPT_DRAWS, Found, Gate, Stage, one_by_one, with_fixed
from modelodds.errors import OptionError, PriorError
from modelodds.model import Model
from modelodds.nodes import systematic
from modelodds.prior import Prior
from modelodds.result import Result

Array = NDArray[np.float64]

PLAUSIBLE = (0.16, 0.84)
TAIL = 1e-9
DRAWS = 4096  # from which the quantiles of a joint prior are read
STEP = 5  # calls of an iteration after the first
DROP = 1e3  # nats below the lowest value so far: a likelihood of zero, to a process that needs numbers
MISSING = "the method 'pyvbmc' needs pyvbmc: pip install 'modelodds[bench]'"


def run(models: Iterable[Model], budget: int, rng: int | np.random.Generator = 0) -> Result:
    """Compare ``models`` by a PyVBMC run for each, with the same share of ``budget`` calls."""
    return one_by_one(models, budget, rng, _sample, "pyvbmc")


def _sample(gate: Gate, seed: int) -> Found:
    vbmc_class, d = _vbmc(), gate.target.dim
    first = max(d, 10)  # its initial design
    if gate.share < first:
        return gate.nothing()
    space, rng = _space(gate.prior), np.random.default_rng(seed)
    most = min(50 * (d + 2), first + STEP * ((gate.share - first) // STEP))
    lowest = 0.0

    def log_joint(point: Array) -> float:
        nonlocal lowest
        point = np.ravel(point)
        value = gate.at(space.theta(point[None, :])[0]) + space.log_prior(point)
        if not np.isfinite(value):
            return lowest - DROP
        lowest = min(lowest, value)
        return value

    vbmc = vbmc_class(
        log_joint,
        rng.uniform(*space.plausible),
        *space.hard,
        *space.plausible,
        options={"max_fun_evals": most, "display": "off", "show_tips": False},
        seed=rng,
    )
    try:
        posterior, results = vbmc.optimize()
    except OutOfBudget:
        return Found(_stages(vbmc), gate.nothing().draws)
    end = Stage(gate.calls, float(results["elbo"]), float(results["elbo_sd"]))
    return Found((*_stages(vbmc), end), space.theta(posterior.sample(KEPT_DRAWS)[0]))


def _stages(vbmc: Any) -> tuple[Stage, ...]:
    rows = (vbmc.iteration_history[key] for key in ("func_count", "elbo", "elbo_sd"))
    return tuple(Stage(int(n), float(mean), float(sd)) for n, mean, sd in zip(*rows, strict=True))


@dataclass(frozen=True)
class Space:
    """Where PyVBMC works: theta, or the internal x of a prior that has no density of theta."""

    prior: Prior
    natural: bool
    hard: Array  # (2, d)
    plausible: Array  # (2, d)

    def theta(self, points: Array) -> Array:
        """Parameters (m, p) at ``points`` (m, d)."""
        return with_fixed(self.prior, points) if self.natural else self.prior.to_theta(points)

    def log_prior(self, point: Array) -> float:
        """Log prior density of ``point`` (d,)."""
        if self.natural:
            return float(self.prior.log_density_theta(self.theta(point[None, :]))[0])
        return float(self.prior.log_density(point))


def _space(prior: Prior) -> Space:
    if prior.components:
        marginals = prior.components.values()
        hard = np.array([_ends(marginal) for marginal in marginals]).T
        plausible = np.array([marginal.ppf(PLAUSIBLE) for marginal in marginals]).T
        return Space(prior, True, hard, plausible)
    draws = _prior_draws(prior)
    theta = prior.to_theta(draws)
    try:
        prior.log_density_theta(theta[:1])
    except PriorError:  # a transform of the unit cube
        return Space(prior, False, prior.bounds, np.quantile(draws, PLAUSIBLE, axis=0))
    return Space(prior, True, prior.bounds, np.quantile(theta, PLAUSIBLE, axis=0))


def _ends(marginal: Any) -> Array:
    """Hard bounds of a parameter: both or none, as PyVBMC wants; a half-open support ends in its far tail."""
    ends = np.array(marginal.support(), dtype=float)
    if np.isinf(ends).all():
        return ends
    return np.where(np.isinf(ends), marginal.ppf([TAIL, 1.0 - TAIL]), ends)


def _prior_draws(prior: Prior) -> Array:
    """Internal coordinates (DRAWS, d) of points of the prior."""
    x, log_weight = prior.from_unit(np.random.default_rng(0).random((DRAWS, prior.dim)))
    return np.asarray(x[systematic(np.exp(log_weight - log_weight.max()), DRAWS)])


def _vbmc() -> Any:
    try:
        from pyvbmc import VBMC
    except ImportError as error:
        raise OptionError(MISSING) from error
    return VBMC
