"""Nested sampling through dynesty (Speagle 2020), with its defaults.

``NestedSampler`` with 500 live points, its own choice of bounds and of sampling, stopped by its own rule. The
estimate and its claim are the ``logz`` and ``logzerr`` of the results; before the run has ended, and if the
calls end first, there is none.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from modelodds.baselines.base import OutOfBudget
from modelodds.baselines.peers.base import KEPT_DRAWS, Found, Gate, Stage, one_by_one
from modelodds.errors import OptionError
from modelodds.model import Model
from modelodds.nodes import systematic
from modelodds.result import Result

MISSING = "the method 'dynesty' needs dynesty: pip install 'modelodds[bench]'"


def run(models: Iterable[Model], budget: int, rng: int | np.random.Generator = 0) -> Result:
    """Compare ``models`` by a dynesty run for each, with the same share of ``budget`` calls."""
    return one_by_one(models, budget, rng, _sample, "dynesty")


def _sample(gate: Gate, seed: int) -> Found:
    nested = _nested_sampler()
    try:
        sampler = nested(gate.at_unit, lambda u: u, gate.target.dim, rstate=np.random.default_rng(seed))
        sampler.run_nested(print_progress=False)
    except OutOfBudget:
        return gate.nothing()
    results = sampler.results
    weight = np.exp(results.logwt - np.max(results.logwt))
    chosen = systematic(weight, min(KEPT_DRAWS, len(weight)))
    stage = Stage(gate.calls, float(results.logz[-1]), float(results.logzerr[-1]))
    return Found((stage,), gate.theta(results.samples[chosen]))


def _nested_sampler() -> Any:
    try:
        from dynesty import NestedSampler
    except ImportError as error:
        raise OptionError(MISSING) from error
    return NestedSampler
