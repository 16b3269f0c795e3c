"""What the Monte Carlo baselines share: a meter on the likelihoods, one space to walk in, one kind of result.

All of them work in coordinates v of R^d whose reference density is standard normal (for a prior of
independent parameters that is the prior itself), so that none needs to know about bounds. No baseline looks
at its budget except to stop: what it says after n calls of a long run is what a run of n calls would have
said, bit for bit. So one run gives the whole curve of error against evaluations.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from modelodds import odds
from modelodds._version import __version__
from modelodds.errors import BudgetError
from modelodds.evaluate import evaluate
from modelodds.model import Model, check_models
from modelodds.result import Result

Array = NDArray[np.float64]

IGNORANCE = 1000.0  # nats: standard deviation of a log-evidence of which nothing is known
RECORDS = 50  # about this many estimates are noted along a run


class OutOfBudget(Exception):
    """The budget is spent: raised instead of the call that would exceed it."""


class Point(NamedTuple):
    """A place in one model's space, and how probable it is there."""

    v: Array  # (d,)
    log_prior: float  # log prior density of v
    log_likelihood: float

    @property
    def log_joint(self) -> float:
        """Log of prior times likelihood, as a density of v."""
        return self.log_prior + self.log_likelihood


class Target:
    """One model over v, every call of its likelihood counted."""

    def __init__(self, model: Model, meter: "Meter") -> None:
        self.model, self.meter, self.dim = model, meter, model.dim
        self._only: Point | None = None  # where there is nothing to vary, one call says it all

    def theta(self, v: Array) -> tuple[Array, Array]:
        """Parameters (..., p) at ``v`` (..., d), and the log prior density of ``v`` (...)."""
        x, log_weight = self.model.prior.from_unit(ndtr(v))
        normal = -0.5 * (v * v + np.log(2 * np.pi)).sum(-1)
        return self.model.prior.to_theta(x), np.asarray(normal + log_weight)

    def v(self, theta: Array) -> Array:
        """Coordinates (d,) of the parameters ``theta`` (p,); for priors of independent parameters."""
        x, bounds = self.model.prior.to_x(theta), self.model.prior.bounds
        box = np.isfinite(bounds[1])
        share = (x - bounds[0]) / np.where(box, bounds[1] - bounds[0], 1.0)
        return np.where(box, ndtri(np.where(box, share, 0.5)), x)

    def at(self, v: Array) -> Point:
        """Evaluate the likelihood at ``v`` (d,); outside the prior's support nothing is called."""
        if self._only is not None:
            return self._only
        theta, log_prior = self.theta(v)
        if not np.isfinite(log_prior):
            return Point(v, -np.inf, -np.inf)
        point = Point(v, float(log_prior), self.meter.call(self.model, theta))
        if self.dim == 0:
            self._only = point
        return point

    @property
    def settled(self) -> bool:
        """Whether the evidence is known exactly: a model without free parameters, evaluated."""
        return self._only is not None

    def draw(self, rng: np.random.Generator) -> Array:
        """A point (d,) of the reference density."""
        return rng.standard_normal(self.dim)


class Meter:
    """Makes every likelihood call of a run: counts it, keeps it, and refuses the one past the budget.

    A failed call counts, and stands for a likelihood of zero: the walkers go around it.
    """

    def __init__(self, models: Iterable[Model], budget: int) -> None:
        self.models = check_models(models)
        if isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 1:
            raise BudgetError(f"budget must be a whole number of evaluations, 1 or more, not {budget!r}.")
        self.budget = int(budget)
        self.rows: list[dict[str, Any]] = []

    @property
    def spent(self) -> int:
        """Calls made so far."""
        return len(self.rows)

    def targets(self) -> list[Target]:
        """The models as the baselines walk in them."""
        return [Target(model, self) for model in self.models]

    def call(self, model: Model, theta: Array) -> float:
        """Log-likelihood at ``theta`` (p,); -inf where it failed."""
        if self.spent >= self.budget:
            raise OutOfBudget
        outcome = evaluate(model, theta)
        self.rows.append(
            {"id": self.spent, "model": model.name}
            | dict(zip(model.prior.names, np.asarray(theta).tolist(), strict=True))
            | {
                "log_likelihood": outcome.value,
                "standard_error": outcome.standard_error,
                "status": outcome.status,
                "reason": outcome.reason,
                "seconds": outcome.seconds,
            }
        )
        return outcome.value if outcome.status == "ok" else -np.inf

    def evaluations(self) -> pd.DataFrame:
        """All calls as a table."""
        parameters = dict.fromkeys(name for m in self.models for name in m.prior.names)
        end = ["log_likelihood", "standard_error", "status", "reason", "seconds"]
        return pd.DataFrame(self.rows, columns=["id", "model", *parameters, *end])


class Estimate(NamedTuple):
    """Belief on the log-evidences; NaN where there is none yet."""

    mean: Array  # (k,)
    cov: Array  # (k, k)

    def filled(self) -> "Estimate":
        """The same with ignorance said in numbers: anything goes, to a thousand nats."""
        sd, mean = np.sqrt(np.diag(self.cov)), self.mean.copy()
        unknown = np.isnan(mean) | ~np.isfinite(sd) | np.isneginf(mean)
        known = mean[~unknown]
        mean[unknown] = known.mean() if len(known) else 0.0
        cov = np.where(np.logical_or.outer(unknown, unknown), 0.0, self.cov)
        cov[unknown, unknown] = IGNORANCE**2
        return Estimate(mean, cov)


class History:
    """The estimate as it grew."""

    def __init__(self, meter: Meter) -> None:
        self.meter, self.rows = meter, list[dict[str, float]]()
        self.log_prior = np.log([m.prior_probability for m in meter.models])

    def due(self) -> bool:
        """Whether the next estimate should be noted: RECORDS of them, evenly spread."""
        every = max(1, self.meter.budget // RECORDS)
        return self.meter.spent >= (self.rows[-1]["n_evaluations"] + every if self.rows else every)

    def note(self, estimate: Estimate) -> None:
        """Keep the estimate after the calls made so far."""
        mean, cov = estimate.filled()
        sd = np.sqrt(np.diag(cov))
        z = odds.moments(mean, sd, self.log_prior)[0]
        row: dict[str, float] = {"n_evaluations": self.meter.spent}
        for i, model in enumerate(self.meter.models):
            row[f"log_evidence[{model.name}]"] = float(mean[i])
            row[f"log_evidence_sd[{model.name}]"] = float(sd[i])
            row[f"probability[{model.name}]"] = float(z[i])
            for j in np.flatnonzero(cov[i, :i]):  # a jump between two models tells of both
                row[f"log_evidence_cov[{self.meter.models[j].name}, {model.name}]"] = float(cov[i, j])
        self.rows.append(row)

    def result(
        self,
        estimate: Estimate,
        draws: dict[str, Array],
        method: str,
        rng: int | np.random.Generator,
        overhead: float,
        message: str = "The budget is spent.",
    ) -> Result:
        """What the run found; ``draws`` are each model's posterior draws of theta, (m, p)."""
        if not self.rows or self.rows[-1]["n_evaluations"] < self.meter.spent:
            self.note(estimate)
        mean, cov = estimate.filled()
        return Result.build(
            names=[m.name for m in self.meter.models],
            prior_probabilities=np.exp(self.log_prior),
            log_evidence_mean=mean,
            log_evidence_cov=cov,
            draws=draws,
            parameters={m.name: m.prior.names for m in self.meter.models},
            evaluations=self.meter.evaluations(),
            history=pd.DataFrame(self.rows),
            status="budget",
            message=message,
            method=method,
            version=__version__,
            seed=int(rng) if isinstance(rng, int | np.integer) else None,
            overhead_seconds=overhead - sum(row["seconds"] for row in self.meter.rows),
        )


class Sampler(Protocol):
    """One model's evidence, call by call."""

    target: Target
    calls: int

    def step(self) -> None:
        """Make one call."""

    def estimate(self) -> tuple[float, float]:
        """Log-evidence and its variance; NaN before there is one."""
        ...

    def draws(self) -> Array:
        """Posterior draws of theta, (m, p)."""
        ...


def in_turn(
    models: Iterable[Model],
    budget: int,
    rng: int | np.random.Generator,
    sampler: Callable[[Target, np.random.Generator], Sampler],
    method: str,
) -> Result:
    """Each model by a ``sampler`` of its own, all getting the same share of ``budget`` calls."""
    start = time.perf_counter()
    meter = Meter(models, budget)
    children = np.random.default_rng(rng).spawn(len(meter.models))
    samplers = [sampler(target, child) for target, child in zip(meter.targets(), children, strict=True)]
    history = History(meter)

    def estimate() -> Estimate:
        mean, variance = np.array([s.estimate() for s in samplers]).T
        return Estimate(mean, np.diag(variance))

    try:
        while active := [s for s in samplers if not s.target.settled]:
            min(active, key=lambda s: s.calls).step()
            if history.due():
                history.note(estimate())
    except OutOfBudget:
        pass
    draws = {s.target.model.name: s.draws() for s in samplers}
    return history.result(estimate(), draws, method, rng, time.perf_counter() - start)
