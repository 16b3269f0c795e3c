"""Reversible-jump Markov chain Monte Carlo (Green 1995) over any number of models.

Half of the moves are random-walk steps inside the model where the chain is, half are jumps to another model
chosen at random. A jump keeps the parameters that both models have by name (where they share none, it pairs
them in order), draws the rest from their prior, and is accepted with probability min(1, e^rho),

    rho = log[ p_j q_j(theta_j) ] - log[ p_i q_i(theta_i) ] + log[ h_i(rest_i) / h_j(rest_j) ],

with q likelihood times prior, h the prior of what is drawn or dropped, and Jacobian 1. Maps of one's own,
with their Jacobians, can be given for any pair of models.

Model probabilities. ``visits``: how often the chain was in each model. ``acceptance``: Bartolucci, Scaccia &
Mira (2006) note that a jump's acceptance probability is informative whether it is taken or not: the odds of j
over i are the ratio of the mean acceptance probabilities of the jumps from i to j and from j to i.
``recycled``, the default: that ratio is bridge sampling with a bridge function that is not the best one; with
the optimal one the same jumps, of both directions, tell more. What the visits say is weighed in: it counts
while jumps have told little. Pairs of models are put together by weighted least squares. The chain knows odds
alone: log-evidences are relative to the best model's.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtri

from modelodds.baselines.base import IGNORANCE, Estimate, History, Meter, OutOfBudget, Point, Target
from modelodds.baselines.bridge import KEPT_DRAWS, bridge
from modelodds.baselines.walk import Walk, autocorrelation_time
from modelodds.errors import OptionError
from modelodds.model import Model
from modelodds.result import Result

Array = NDArray[np.float64]
Map = Callable[[Array, np.random.Generator], tuple[Array, float]]
"""theta of one model and a generator to theta of the other and log[h_i / h_j x |Jacobian|]."""

JUMPS = 0.5  # share of the moves
BURN = 0.2  # share of the chain that is left out as burn-in
VISITS = 0.25  # how far the visits' claimed precision is believed beside that of the recycled jumps
PATIENCE = 1000  # moves per likelihood call after which a chain that makes no calls is done
ESTIMATORS = ("recycled", "acceptance", "visits")
MESSAGE = "The budget is spent. Reversible jump gives odds: log-evidences are relative to the best model's."


class Identity:
    """The jump from one model to another that keeps what they share and draws the rest from the prior.

    Where a shared parameter has another prior in the other model, the same theta lies at another v.
    """

    def __init__(self, source: Target, goal: Target) -> None:
        self.source = source
        here, there = _free(source.model), _free(goal.model)
        pairs = [(here.index(name), there.index(name)) for name in here if name in there]
        if not pairs:
            pairs = [(a, a) for a in range(min(len(here), len(there)))]
        self.kept, self.taken = [a for a, _ in pairs], [b for _, b in pairs]
        self.dropped = [a for a in range(len(here)) if a not in self.kept]
        self.drawn = [b for b in range(len(there)) if b not in self.taken]
        old, new = source.model.prior.components, goal.model.prior.components
        self.moved = [
            (a, b, source.model.parameters.index(here[a]), old[here[a]], new[there[b]])
            for a, b in pairs
            if old and new and not _same(old[here[a]], new[there[b]])
        ]

    def __call__(self, v: Array, rng: np.random.Generator) -> tuple[Array, float]:
        """Where the jump from ``v`` (d_i,) leads, (d_j,), and log[h_i / h_j x |Jacobian|] in terms of v."""
        there = np.empty(len(self.taken) + len(self.drawn))
        there[self.taken], there[self.drawn] = v[self.kept], rng.standard_normal(len(self.drawn))
        log_factor = _log_normal(v[self.dropped]) - _log_normal(there[self.drawn])
        theta = self.source.theta(v)[0] if self.moved else np.empty(0)
        for a, b, position, old, new in self.moved:
            value = theta[position]
            there[b] = ndtri(new.cdf(value)) if new.cdf(value) < 0.5 else -ndtri(new.sf(value))
            if not np.isfinite(there[b]):
                return there, -np.inf  # outside the other prior's support
            log_factor += new.logpdf(value) - _log_normal(there[[b]])
            log_factor -= old.logpdf(value) - _log_normal(v[[a]])
        return there, float(log_factor)


class Mapped:
    """The jump by a map of the user's own, in theta."""

    def __init__(self, source: Target, goal: Target, by: Map) -> None:
        self.source, self.goal, self.by = source, goal, by

    def __call__(self, v: Array, rng: np.random.Generator) -> tuple[Array, float]:
        """As for `Identity`."""
        theta, log_prior = self.source.theta(v)
        other, log_factor = self.by(theta.copy(), rng)
        density = float(self.goal.model.prior.log_density_theta(other))
        if not np.isfinite(density):
            return v, -np.inf
        there = self.goal.v(other)
        log_factor += density - float(self.goal.theta(there)[1])
        log_factor -= float(self.source.model.prior.log_density_theta(theta) - log_prior)
        return there, float(log_factor)


class ReversibleJump:
    """The chain, call by call, and what its jumps told."""

    def __init__(
        self,
        targets: list[Target],
        rng: np.random.Generator,
        maps: Mapping[tuple[str, str], Map] | None = None,
    ) -> None:
        self.targets, self.rng = targets, rng
        self.walks = [Walk(target, rng) for target in targets]
        self.log_prior = np.log([t.model.prior_probability for t in targets])
        self.visited: list[int] = []  # the model after each move
        self.jumps: dict[tuple[int, int], list[tuple[int, float]]] = defaultdict(list)  # (move, rho)
        self._ways = {
            (i, j): _way(a, b, maps or {})
            for i, a in enumerate(targets)
            for j, b in enumerate(targets)
            if i != j
        }

    def start(self) -> None:
        """Walk in the first model until the chain has somewhere to be."""
        while not self.walks[0].chain:
            self.walks[0].step()
        self.visited.append(0)

    def move(self) -> None:
        """One move: a step, or a jump."""
        here = self.visited[-1]
        jump = len(self.targets) > 1 and (self.targets[here].dim == 0 or self.rng.uniform() < JUMPS)
        if jump:
            other = int(self.rng.integers(len(self.targets) - 1))
            other += other >= here
            point, rho = self.jump(here, self.walks[here].here, other)
            self.jumps[here, other].append((len(self.visited), rho))
            # In a model without free parameters every move is a jump; elsewhere only some are.
            often = [0.0 if self.targets[m].dim == 0 else np.log(JUMPS) for m in (here, other)]
            if np.log(self.rng.uniform()) < rho + often[1] - often[0]:
                self.walks[other].enter(point)
                here = other
        else:
            self.walks[here].move()
        self.visited.append(here)

    def jump(self, i: int, here: Point, j: int) -> tuple[Point, float]:
        """A jump's end and its rho, from ``here`` in model i to model j."""
        v, log_factor = self._ways[i, j](here.v, self.rng)
        if not np.isfinite(log_factor):
            return here, -np.inf
        there = self.targets[j].at(v)
        odds = self.log_prior[j] + there.log_joint - self.log_prior[i] - here.log_joint
        return there, float(odds + log_factor)

    def estimate(self, estimator: str) -> Estimate:
        """Belief on the log-evidences, relative to the best."""
        if estimator == "visits":
            mean, cov = self._by_visits()
        else:
            mean, cov = self._by_jumps(estimator)
        mean = mean - self.log_prior
        return Estimate(mean - mean.max(), cov)

    def _by_visits(self) -> tuple[Array, Array]:
        kept = np.array(self.visited[int(BURN * len(self.visited)) :], dtype=int)
        k, n = len(self.targets), max(1, len(kept))
        share = (np.bincount(kept, minlength=k) + 0.5) / (n + 0.5 * k)
        times = [autocorrelation_time((kept == i).astype(float)) if len(kept) else 1.0 for i in range(k)]
        return np.log(share), np.diag((1.0 - share) / share * times / n)

    def _by_jumps(self, estimator: str) -> tuple[Array, Array]:
        k, first = len(self.targets), BURN * len(self.visited)
        log_share, of_share = self._by_visits()
        seen = np.bincount(self.visited, minlength=k) > 0
        precision, pull = np.zeros((k, k)), np.zeros(k)
        for i in range(k):
            for j in range(i + 1, k):
                there, back = (
                    np.array([rho for at, rho in self.jumps[pair] if at >= first])
                    for pair in ((i, j), (j, i))
                )
                if estimator == "acceptance":
                    log_odds, variance = acceptance(there, back)
                else:
                    log_odds, variance = recycled(there, back)
                    if seen[i] or seen[j]:
                        visits = log_share[j] - log_share[i], (of_share[i, i] + of_share[j, j]) / VISITS
                        log_odds, variance = weighed((log_odds, variance), visits)
                if not np.isfinite(log_odds + variance):
                    log_odds, variance = 0.0, 2.0 * IGNORANCE**2
                edge = np.zeros(k)
                edge[j], edge[i] = 1.0, -1.0
                weight = 1.0 / max(variance, 1e-12)
                precision += weight * np.outer(edge, edge)
                pull += weight * log_odds * edge
        cov = np.linalg.pinv(precision, hermitian=True)
        mean = cov @ pull
        # A common shift changes no odds: with it the beliefs are as good as independent.
        return mean, cov - (cov.sum() - np.trace(cov)) / max(1, k * (k - 1))


def acceptance(there: Array, back: Array) -> tuple[float, float]:
    """Log-odds and variance by the ratio of the mean acceptance probabilities of the two directions."""
    if len(there) < 2 or len(back) < 2:
        return np.nan, np.nan
    mean, variance = [], 0.0
    for rho in (there, back):
        alpha = np.exp(np.minimum(0.0, rho))
        mean.append(alpha.mean())
        if mean[-1] <= 0:
            return np.nan, np.nan
        variance += autocorrelation_time(alpha) * alpha.var() / mean[-1] ** 2 / len(alpha)
    return float(np.log(mean[0] / mean[1])), float(variance)


def recycled(there: Array, back: Array) -> tuple[float, float]:
    """Log-odds and variance by the optimal bridge function between the two directions.

    Where the chain has only ever been in one of the two models, its jumps are importance sampling from there;
    were their rho normal, the log of their mean would be uncertain by about half their variance.
    """
    there, back = there[np.isfinite(there)], back[np.isfinite(back)]
    if len(there) < 2 and len(back) < 2:
        return np.nan, np.nan
    if len(there) >= 2 and len(back) >= 2:
        return bridge(-back, there, independent=False)
    sign, rho = (1.0, there) if len(there) >= 2 else (-1.0, back)
    return float(sign * (logsumexp(rho) - np.log(len(rho)))), float(1.0 + (0.5 * rho.var()) ** 2)


def weighed(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Two estimates with their variances as one: weighed by precision, their disagreement is uncertainty."""
    if not np.isfinite(one[0] + one[1]):
        return other
    weight = other[1] / (one[1] + other[1])
    mean = weight * one[0] + (1 - weight) * other[0]
    variance = weight * (one[1] + (one[0] - mean) ** 2) + (1 - weight) * (other[1] + (other[0] - mean) ** 2)
    return mean, variance


def run(
    models: Iterable[Model],
    budget: int,
    rng: int | np.random.Generator = 0,
    estimator: str = "recycled",
    maps: Mapping[tuple[str, str], Map] | None = None,
) -> Result:
    """Compare ``models`` by one chain of ``budget`` likelihood calls.

    Parameters
    ----------
    models, budget, rng
        As for every baseline.
    estimator : str
        ``recycled``, ``acceptance`` or ``visits``: how odds are read off the chain.
    maps : dict, optional
        For a pair of models' names, a function that takes theta of the first and a generator, and returns
        theta of the second and the log of h_i / h_j x |Jacobian|; the way back needs its own.
    """
    if estimator not in ESTIMATORS:
        raise OptionError(f"estimator={estimator!r} is not known; choose one of {', '.join(ESTIMATORS)}.")
    start = time.perf_counter()
    meter = Meter(models, budget)
    chain = ReversibleJump(meter.targets(), np.random.default_rng(rng), maps)
    history = History(meter)
    try:
        chain.start()
        while len(chain.visited) < PATIENCE * budget:
            chain.move()
            if history.due():
                history.note(chain.estimate(estimator))
    except OutOfBudget:
        pass
    draws = {walk.target.model.name: _draws(walk) for walk in chain.walks}
    method = "reversible_jump" + ("" if estimator == "recycled" else f"_{estimator}")
    return history.result(chain.estimate(estimator), draws, method, rng, time.perf_counter() - start, MESSAGE)


def _way(source: Target, goal: Target, maps: Mapping[tuple[str, str], Map]) -> Identity | Mapped:
    by = maps.get((source.model.name, goal.model.name))
    return Identity(source, goal) if by is None else Mapped(source, goal, by)


def _free(model: Model) -> list[str]:
    return [name for name in model.parameters if name not in model.prior.fixed]


def _same(a: object, b: object) -> bool:
    """Whether two frozen distributions are one, as far as their quantiles tell."""
    at = np.linspace(0.01, 0.99, 9)
    return bool(np.allclose(a.ppf(at), b.ppf(at), rtol=1e-12, atol=0.0))  # type: ignore[attr-defined]


def _log_normal(v: Array) -> float:
    return float(-0.5 * (v @ v + len(v) * np.log(2 * np.pi)))


def _draws(walk: Walk) -> Array:
    points = walk.chain[int(BURN * len(walk.chain)) :]
    if not points:
        return np.empty((0, len(walk.target.model.parameters)))
    chosen = np.linspace(0, len(points) - 1, min(KEPT_DRAWS, len(points))).astype(int)
    return walk.target.theta(np.array([points[i].v for i in chosen]))[0]
