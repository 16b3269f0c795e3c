"""Variational Bayesian Monte Carlo through PyVBMC (Acerbi 2018), with its defaults.

As its documents advise: the log joint density in the parameters' own coordinates, hard bounds where the prior
has an end, plausible bounds at the prior's 16 % and 84 % points, a start between these. A run ends by its own
rule of stability, after 50 (d + 2) calls, or with its share. The estimate is the ELBO and the claim its
standard deviation: after each iteration for the curve, and at the end of the posterior that it returns.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelodds.baselines.base import OutOfBudget
from modelodds.baselines.peers.base import KEPT_DRAWS, Found, Gate, Stage, one_by_one
from modelodds.baselines.peers.space import Space
from modelodds.errors import OptionError
from modelodds.model import Model
from modelodds.result import Result

Array = NDArray[np.float64]

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
    space, rng = Space.of(gate.prior), np.random.default_rng(seed)
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


def _vbmc() -> Any:
    try:
        from pyvbmc import VBMC
    except ImportError as error:
        raise OptionError(MISSING) from error
    return VBMC
