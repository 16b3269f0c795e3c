"""Tempered sequential Monte Carlo, in its waste-free form (Dau & Chopin 2022).

Particles start from the reference density N(v; 0, 1) and climb a ladder of temperatures b from 0 to 1, each
rung's density proportional to N(v) f(v)^b with f = likelihood x prior / N. A rung:

    b    so that the weights f^(b - previous b) leave half the particles effective, by bisection;
    Z    is multiplied by the mean of these weights;
    M    particles are resampled, and each walks P - 1 Metropolis steps of the particles' own covariance;
         all M x P states are the next rung's particles, none is wasted.

The variance of log Z is, summed over the rungs, that of the mean weight between the M chains. As the budget
may end at any time, ladder follows ladder, each of half as many particles again; the evidence is the mean of
theirs, weighted by their particles, and where they differ by more than they claim, the difference counts.

By hand, because no library serves here: ``particles`` (0.4) needs numpy below 2, ``blackjax`` likelihoods
written in JAX, ``pocomc`` torch, and ``pymc`` models of its own.
"""

from collections.abc import Generator, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from modelodds.baselines.base import Target, in_turn
from modelodds.baselines.monte_carlo import log_normal
from modelodds.baselines.walk import shrunk_covariance
from modelodds.model import Model
from modelodds.nodes import effective_size, systematic
from modelodds.result import Result

Array = NDArray[np.float64]

FIRST = 10  # particles per dimension, and as many more, of the first ladder
GROWTH = 1.5  # from ladder to ladder
EFFECTIVE = 0.5  # share of the particles that a new temperature leaves effective
ACCEPTED = 0.3  # share of accepted steps that suits a random walk
HASTE = 2.0  # how fast the step's log follows it, from rung to rung
KEPT_DRAWS = 2000


class Ladder(NamedTuple):
    """What one climb to temperature one gave."""

    size: int
    log_evidence: float
    variance: float  # of log_evidence
    v: Array  # (n, d) particles
    weight: Array  # (n,) their posterior weights


class Climber:
    """Ladders of one model, climbed one after the other, call by call."""

    def __init__(self, target: Target, rng: np.random.Generator) -> None:
        self.target, self.rng, self.calls = target, rng, 0
        self.ladders: list[Ladder] = []
        self._steps = self._go()

    def step(self) -> None:
        """Until the next call of the likelihood has been made."""
        next(self._steps)
        self.calls += 1

    def _go(self) -> Generator[None, None, None]:
        if self.target.dim == 0:
            yield from self._log_f(np.empty(0))
        size = float(FIRST * (self.target.dim + 1))
        while True:
            chains = int(np.ceil(np.sqrt(size)))
            self.ladders.append((yield from self._climb(chains, int(np.ceil(size / chains)))))
            size *= GROWTH

    def _log_f(self, v: Array) -> Generator[None, None, float]:
        before = self.target.meter.spent
        point = self.target.at(v)
        if self.target.meter.spent > before:
            yield
        return point.log_joint - log_normal(v)

    def _start(self, chains: int, size: int) -> Generator[None, None, tuple[Array, Array]]:
        """Draws of the reference density: ``size``, or more until ``chains`` of them have a likelihood."""
        v, log_f, alive = list[Array](), list[float](), 0
        while len(v) < size or alive < chains:
            v.append(self.target.draw(self.rng))
            log_f.append((yield from self._log_f(v[-1])))
            alive += bool(np.isfinite(log_f[-1]))
        return np.array(v), np.array(log_f)

    def _climb(self, chains: int, length: int) -> Generator[None, None, Ladder]:
        """A ladder of ``chains`` x ``length`` particles."""
        v, log_f = yield from self._start(chains, chains * length)
        b, log_evidence, variance, independent = 0.0, 0.0, 0.0, len(v)
        log_scale = np.log(2.38 / np.sqrt(self.target.dim))
        while True:
            rise = next_rise(log_f, 1.0 - b)
            log_weight = rise * log_f
            weight = np.exp(log_weight - log_weight.max())
            b, log_evidence = b + rise, log_evidence + log_weight.max() + np.log(weight.mean())
            of_chains = weight.reshape(-1, independent).mean(0)
            variance += float(of_chains.var(ddof=1) / independent / weight.mean() ** 2)
            if b >= 1.0:
                return Ladder(chains * length, float(log_evidence), variance, v, weight)
            chol = np.linalg.cholesky(shrunk_covariance(v[systematic(weight, len(v))]))
            start, independent = systematic(weight, chains), chains
            v, log_f, accepted = yield from self._walk(
                v[start], log_f[start], np.exp(log_scale) * chol, b, length
            )
            log_scale += HASTE * (accepted - ACCEPTED)

    def _walk(
        self, v: Array, log_f: Array, chol: Array, b: float, length: int
    ) -> Generator[None, None, tuple[Array, Array, float]]:
        """All states (length x chains, d) of chains that start at ``v`` (chains, d); the share accepted."""
        states, values, moves = [v], [log_f], 0
        for _ in range(length - 1):
            v, log_f = v.copy(), log_f.copy()
            for i in range(len(v)):
                there = v[i] + chol @ self.rng.standard_normal(v.shape[1])
                threshold = np.log(self.rng.uniform())
                new = yield from self._log_f(there)
                gain = b * (new - log_f[i]) + log_normal(there) - log_normal(v[i])
                if threshold < gain:
                    v[i], log_f[i], moves = there, new, moves + 1
            states.append(v)
            values.append(log_f)
        return np.concatenate(states), np.concatenate(values), moves / max(1, (length - 1) * len(v))

    def estimate(self) -> tuple[float, float]:
        """Log-evidence and its variance; NaN before there is one."""
        if self.target.settled:
            return self.target.at(np.empty(0)).log_likelihood, 0.0
        return pooled(self.ladders)

    def draws(self) -> Array:
        """Posterior draws of theta, (m, p)."""
        if self.target.settled:
            return self.target.theta(np.empty((1, 0)))[0]
        if not self.ladders:
            return np.empty((0, len(self.target.model.parameters)))
        last = self.ladders[-1]
        return self.target.theta(last.v[systematic(last.weight, KEPT_DRAWS)])[0]


def next_rise(log_f: Array, most: float) -> float:
    """How far the temperature may rise, ``most`` at most, so that enough particles stay effective."""
    log_f = log_f[np.isfinite(log_f)]
    wanted = EFFECTIVE * len(log_f)
    if effective_size(most * log_f) >= wanted:
        return most
    return float(
        optimize.brentq(
            lambda rise: effective_size(rise * log_f) - wanted, 0.0, most, xtol=1e-300, maxiter=2000
        )
    )


def pooled(ladders: list[Ladder]) -> tuple[float, float]:
    """Log of the ladders' mean evidence, each as weighty as it is large, and the variance of it."""
    if not ladders:
        return np.nan, np.nan
    log_evidence, variance, size = np.array([(x.log_evidence, x.variance, x.size) for x in ladders]).T
    mean = float(special.logsumexp(log_evidence, b=size / size.sum()))
    claimed = float(special.softmax(log_evidence + np.log(size)) ** 2 @ variance)
    spread = float(size @ (log_evidence - mean) ** 2 / size.sum()) / max(1, len(ladders) - 1)
    return mean, max(claimed, spread)


def run(models: Iterable[Model], budget: int, rng: int | np.random.Generator = 0) -> Result:
    """Compare ``models`` by tempered sequential Monte Carlo, each with the same share of ``budget`` calls."""
    return in_turn(models, budget, rng, Climber, "annealed")
