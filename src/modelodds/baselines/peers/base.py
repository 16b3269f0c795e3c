"""What the peers share: an equal split of the calls, one run per model, the curve that the runs give."""

import contextlib
import io
import time
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelodds.baselines.base import RECORDS, Estimate, History, Meter, OutOfBudget, Target
from modelodds.model import Model
from modelodds.prior import Prior
from modelodds.result import Result

Array = NDArray[np.float64]

KEPT_DRAWS = 2000
MESSAGE = "Each model's run has ended, by its own rule or with its share of the budget."


class Stage(NamedTuple):
    """What a run says of its model's log-evidence after so many calls."""

    calls: int
    log_evidence: float
    sd: float


class Found(NamedTuple):
    """A run's stages, the last being its result (none: it says nothing), and draws of theta (m, p)."""

    stages: tuple[Stage, ...]
    draws: Array


class Gate:
    """One model's likelihood, which refuses the call past the model's share."""

    def __init__(self, target: Target, share: int) -> None:
        self.target, self.share, self.calls = target, share, 0
        self.prior = target.model.prior

    def at(self, theta: Array) -> float:
        """Log-likelihood at ``theta`` (p,); -inf where it failed."""
        if self.calls >= self.share:
            raise OutOfBudget
        self.calls += 1
        return self.target.meter.call(self.target.model, theta)

    def at_unit(self, u: Array) -> float:
        """Log-likelihood at ``u`` (d,) of the unit cube, times prior over reference density if it has one."""
        x, log_weight = self.prior.from_unit(u)
        return self.at(self.prior.to_theta(x)) + float(log_weight) if np.isfinite(log_weight) else -np.inf

    def theta(self, u: Array) -> Array:
        """Parameters (..., p) at ``u`` (..., d)."""
        return self.prior.to_theta(self.prior.from_unit(u)[0])

    def nothing(self) -> Found:
        """What a run that has not come to its end says."""
        return Found((), np.empty((0, len(self.target.model.parameters))))


Sample = Callable[[Gate, int], Found]  # of one model, with a seed


def one_by_one(
    models: Iterable[Model], budget: int, rng: int | np.random.Generator, sample: Sample, method: str
) -> Result:
    """Each model by a run of its own, all of them getting the same share of ``budget`` calls."""
    start = time.perf_counter()
    meter = Meter(models, budget)
    seeds = np.random.default_rng(rng).integers(2**31, size=len(meter.models))
    found: list[Found] = []
    for target, share, seed in zip(meter.targets(), shares(meter, meter.budget), seeds, strict=True):
        gate = Gate(target, share)
        if target.dim == 0:
            found.append(_exact(gate))
        else:
            with quiet():
                found.append(sample(gate, int(seed)))
    history = History(meter)
    _note(history, found)
    draws = {model.name: f.draws for model, f in zip(meter.models, found, strict=True)}
    last = [f.stages[-1] if f.stages else None for f in found]
    return history.result(_estimate(last), draws, method, rng, time.perf_counter() - start, MESSAGE)


def shares(meter: Meter, total: int) -> list[int]:
    """Of ``total`` calls, one for each model without free parameters, and the same for all the others."""
    settled = [model.dim == 0 for model in meter.models]
    ones = min(total, sum(settled))
    each, left = divmod(total - ones, max(1, len(settled) - sum(settled)))
    parts = []
    for one in settled:
        parts.append(min(ones, 1) if one else each + (left > 0))
        ones, left = (ones - parts[-1], left) if one else (ones, left - 1)
    return parts


def _exact(gate: Gate) -> Found:
    if gate.share == 0:
        return gate.nothing()
    theta = gate.prior.to_theta(np.empty((1, 0)))
    return Found((Stage(1, gate.at(theta[0]), 0.0),), theta)


def _note(history: History, found: list[Found]) -> None:
    """The curve: a row wherever a share of the calls, ever more of them, has got some run to a next stage."""
    meter = history.meter
    spent = [sum(row["model"] == model.name for row in meter.rows) for model in meter.models]
    totals = np.unique([_total(meter, i, stage.calls) for i, f in enumerate(found) for stage in f.stages])
    for j in np.unique(np.linspace(0, len(totals) - 1, min(RECORDS, len(totals))).astype(int)):
        parts = [min(pair) for pair in zip(shares(meter, int(totals[j])), spent, strict=True)]
        said = [_by(f, calls) for f, calls in zip(found, parts, strict=True)]
        history.note(_estimate(said))
        history.rows[-1]["n_evaluations"] = sum(parts)


def _total(meter: Meter, i: int, calls: int) -> int:
    """The smallest total of which model ``i`` gets as many as ``calls``."""
    return bisect_left(range(meter.budget), calls, key=lambda total: shares(meter, total)[i])


def _by(found: Found, calls: int) -> Stage | None:
    """The last of the stages that took no more than ``calls``."""
    return next((stage for stage in reversed(found.stages) if stage.calls <= calls), None)


def _estimate(said: list[Stage | None]) -> Estimate:
    mean = np.array([np.nan if stage is None else stage.log_evidence for stage in said])
    sd = np.array([np.nan if stage is None else stage.sd for stage in said])
    return Estimate(mean, np.diag(sd**2))


def with_fixed(prior: Prior, free: Array) -> Array:
    """Parameters theta (m, p) from the free ones (m, d): the fixed ones stand at their numbers."""
    theta = np.empty((len(free), len(prior.names)))
    columns = iter(free.T)
    for j, name in enumerate(prior.names):
        theta[:, j] = prior.fixed[name] if name in prior.fixed else next(columns)
    return theta


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing printed, and no warnings: a peer's own reports are no part of ours."""
    silence = io.StringIO()
    with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
