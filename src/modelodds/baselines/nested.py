"""Nested sampling, model by model, through nautilus (Lange 2023).

nautilus rather than dynesty, since all points that it ever evaluated count towards its estimate: of a few
hundred calls none is thrown away. For so few, a tenth of a model's calls are live points, its neural networks
are left out, and what it saw while exploring is kept. Its claim is one over the root of its effective sample
size; where the calls end while it is still climbing, we add what the live points leave open.

Each model gets the same share of the calls. The method needs to know that share beforehand, so the history of
a run has its end alone; a curve takes a run for each of its budgets.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelodds.baselines.base import Estimate, History, Meter, OutOfBudget, Target
from modelodds.errors import OptionError
from modelodds.model import Model
from modelodds.nodes import systematic
from modelodds.result import Result

Array = NDArray[np.float64]

LIVE = 10  # a model's calls per live point, ...
LEAST = 5  # ... but no fewer live points than this per parameter of a quadratic
ZERO = -1e300  # what a likelihood of zero is to a sampler that needs numbers
KEPT_DRAWS = 2000
MISSING = "nested sampling needs nautilus-sampler: pip install 'modelodds[bench]'"


def run(models: Iterable[Model], budget: int, rng: int | np.random.Generator = 0) -> Result:
    """Compare ``models`` by nested sampling, each getting the same share of ``budget`` calls."""
    start = time.perf_counter()
    meter = Meter(models, budget)
    k, generator = len(meter.models), np.random.default_rng(rng)
    shares = [meter.budget // k + (i < meter.budget % k) for i in range(k)]
    seeds = generator.integers(2**31, size=k)
    mean, variance, draws = np.full(k, np.nan), np.full(k, np.nan), {}
    for i, (target, share, seed) in enumerate(zip(meter.targets(), shares, seeds, strict=True)):
        mean[i], variance[i], draws[target.model.name] = _sample(target, share, int(seed))
    estimate = Estimate(mean, np.diag(variance))
    return History(meter).result(estimate, draws, "nested", rng, time.perf_counter() - start)


def _sample(target: Target, share: int, seed: int) -> tuple[float, float, Array]:
    """Log-evidence, its variance and posterior draws of theta (m, p), in ``share`` calls at most."""
    prior, none = target.model.prior, np.empty((0, len(target.model.parameters)))
    if target.dim == 0:
        only = target.at(np.empty(0)).log_likelihood if share else np.nan
        return only, 0.0, prior.to_theta(np.empty((1, 0)))
    calls, d = 0, target.dim

    def log_likelihood(u: Array) -> float:
        nonlocal calls
        if calls >= share:
            raise OutOfBudget
        x, log_weight = prior.from_unit(u[:d])
        if not np.isfinite(log_weight):
            return ZERO
        calls += 1
        value = target.meter.call(target.model, prior.to_theta(x)) + float(log_weight)
        return value if np.isfinite(value) else ZERO

    live = max(share // LIVE, LEAST * d * (d + 3) // 2)
    if share < 2 * live:
        live = max(2 * d, share // 2)
    sampler = _sampler()(
        lambda u: u,
        log_likelihood,
        n_dim=max(d, 2),  # its least: in one dimension the other is idle
        n_live=live,
        n_batch=max(share // 50, 5),
        n_networks=0,
        seed=seed,
    )
    with suppress(OutOfBudget):  # what it has by then is what it says
        sampler.run(n_like_max=share, n_eff=1e9, f_live=0.01)
    try:
        points, log_weight, values = sampler.posterior()
        log_evidence, effective = float(sampler.log_z), float(sampler.n_eff)
    except (ValueError, IndexError, TypeError):  # not a single shell is complete
        return np.nan, np.nan, none
    if not np.isfinite(log_evidence) or effective < 2 or np.max(values) <= ZERO:
        return np.nan, np.nan, none
    chosen = systematic(np.exp(log_weight - np.max(log_weight)), min(KEPT_DRAWS, len(points)))
    # What the live points hold is known as well as their likelihoods are alike; explored, there are none.
    climbing = 0.0 if sampler.explored else float(sampler.f_live) * float(np.std(np.sort(values)[-live:]))
    return log_evidence, 1.0 / effective + climbing**2, prior.to_theta(prior.from_unit(points[chosen, :d])[0])


def _sampler() -> Any:
    try:
        from nautilus import Sampler
    except ImportError as error:
        raise OptionError(MISSING) from error
    return Sampler
