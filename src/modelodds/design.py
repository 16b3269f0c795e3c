"""The initial design: how many evaluations of each model come before the acquisition's, and where."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from modelodds.errors import BudgetError
from modelodds.method import Method
from modelodds.model import Model

Array = NDArray[np.float64]

DESIGN_SHARE = 0.5  # at most this share of a known budget goes to the initial design


def thrift(models: tuple[Model, ...], method: Method) -> list[float]:
    """How freely each model is evaluated where the acquisition does not say: 1 for the cheapest."""
    if method.costs != "given":
        return [1.0] * len(models)
    cheapest = min(m.cost for m in models)
    return [float(np.sqrt(cheapest / m.cost)) for m in models]


def design_sizes(models: tuple[Model, ...], method: Method, budget: int | None) -> list[int]:
    """Initial evaluations of each model, cut down where the budget is known and small."""
    least = [m.dim + 2 if m.dim else 1 for m in models]
    # Of a dear model only a simplex, the rest is chosen with care.
    wanted = [
        max(m.dim + 1, round(share * method.initial_points(m.dim))) if m.dim else 1
        for share, m in zip(thrift(models, method), models, strict=True)
    ]
    if budget is None or sum(wanted) <= DESIGN_SHARE * budget:
        return wanted
    if budget < sum(least):
        raise BudgetError(
            f"budget={budget} is too small: these {len(models)} models need at least {sum(least)} "
            "evaluations (two more than its free parameters for each). Raise the budget or leave models out."
        )
    share = DESIGN_SHARE * budget / sum(wanted)
    return [max(low, int(share * n)) for low, n in zip(least, wanted, strict=True)]


def design(model: Model, n: int, quasi: bool, seed: int) -> list[Array]:
    """``n`` points x (d,) of the prior: low-discrepancy ones, or plain draws."""
    if model.dim == 0:
        return [np.empty(0)]
    rng = np.random.default_rng(seed)
    sobol = qmc.Sobol(model.dim, rng=rng)
    size = max(1, (n - 1).bit_length())
    inside = np.empty((0, model.dim))
    while len(inside) < n:  # a joint prior's reference may reach beyond its support
        u = sobol.random_base2(size) if quasi else rng.uniform(size=(2**size, model.dim))
        x, _ = model.prior.from_unit(u)
        inside = np.vstack([inside, x[np.isfinite(model.prior.log_density(x))]])
        size += 1 if quasi and len(u) < sobol.num_generated else 0
    return list(inside[:n])
