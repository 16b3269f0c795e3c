"""Our own methods in the baselines' form, so that a benchmark can treat all alike."""

from collections.abc import Iterable

import numpy as np

from modelodds.comparison import compare
from modelodds.method import Method
from modelodds.model import Model
from modelodds.result import Result
from modelodds.stopping import Never, Rule

NEVER = Never()


def run(
    models: Iterable[Model],
    budget: int,
    rng: int | np.random.Generator = 0,
    method: str | Method = "default",
    stop: Rule | None = NEVER,
) -> Result:
    """Compare ``models`` in ``budget`` evaluations; `modelodds.compare` without the progress display."""
    return compare(models, budget=budget, stop=stop, method=method, rng=rng, progress=False)
