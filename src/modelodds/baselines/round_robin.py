"""Round-robin Bayesian quadrature: models in turn, uncertainty sampling within each (Gunter et al. 2014).

With the paper preset's surrogate it is the paper's own baseline; with our default's it tells what the
acquisition gains from what the surrogate gains.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from modelodds.comparison import compare
from modelodds.method import resolve_method
from modelodds.model import Model
from modelodds.result import Result
from modelodds.stopping import Never


def run(
    models: Iterable[Model], budget: int, rng: int | np.random.Generator = 0, method: str = "paper"
) -> Result:
    """Compare ``models``, as many evaluations for each, with the surrogate of preset ``method``."""
    rule = "uncertainty" if method == "paper" else "uncertainty_capped"
    turns = resolve_method(method, acquisition=rule, allocation="in_turn")
    result = compare(models, budget=budget, stop=Never(), method=turns, rng=rng, progress=False)
    return replace(result, method="round_robin" if method == "paper" else f"round_robin_{method}")
