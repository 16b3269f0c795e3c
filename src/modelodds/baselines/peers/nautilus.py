"""Nested sampling through nautilus (Lange 2023), with its defaults.

``run()`` as its first page has it: 2000 live points, four neural networks, ten thousand effective points, and
what it saw while exploring kept. Its claim is one over the root of its effective sample size. Before the run
has ended, and if the calls end first, there is no estimate. For nautilus with few calls there is ``nested``.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelodds.baselines.base import OutOfBudget
from modelodds.baselines.peers.base import KEPT_DRAWS, Found, Gate, Stage, one_by_one
from modelodds.errors import OptionError
from modelodds.model import Model
from modelodds.nodes import systematic
from modelodds.result import Result

Array = NDArray[np.float64]

ZERO = -1e300  # what a likelihood of zero is to a sampler that needs numbers
MISSING = "the method 'nautilus' needs nautilus-sampler and scikit-learn: pip install 'modelodds[bench]'"


def run(models: Iterable[Model], budget: int, rng: int | np.random.Generator = 0) -> Result:
    """Compare ``models`` by a nautilus run for each, with the same share of ``budget`` calls."""
    return one_by_one(models, budget, rng, _sample, "nautilus")


def _sample(gate: Gate, seed: int) -> Found:
    d = gate.target.dim

    def log_likelihood(u: Array) -> float:
        return max(gate.at_unit(u[:d]), ZERO)

    sampler = _sampler()(
        lambda u: u,
        log_likelihood,
        n_dim=max(d, 2),  # its least: in one dimension the other is idle
        seed=seed,
    )
    try:
        sampler.run()
    except OutOfBudget:
        return gate.nothing()
    points, log_weight, _ = sampler.posterior()
    chosen = systematic(np.exp(log_weight - np.max(log_weight)), min(KEPT_DRAWS, len(points)))
    stage = Stage(gate.calls, float(sampler.log_z), 1.0 / np.sqrt(sampler.n_eff))
    return Found((stage,), gate.theta(points[chosen, :d]))


def _sampler() -> Any:
    try:
        from nautilus import Sampler
    except ImportError as error:
        raise OptionError(MISSING) from error
    return Sampler
