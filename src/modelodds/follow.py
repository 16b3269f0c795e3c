"""Nodes that follow a model's likelihood: moved to where its mass is, sought again when they have lost it.

Half of the nodes that leave the prior go where the likelihood may be large (hope, which the search looks at),
half to where the evidence is as far as one knows (the estimate, which is reported). Hope alone will not do:
where most of a prior is unknown by hundreds of nats, a narrow peak that is known gets next to none of it.

Nodes cannot follow to a peak that none of them has met. Where the best observation, found by a climb, lies
well above all that they see, some are sent there.

What the evidence is by way of them depends on where they happen to lie: other sets like them say how much.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from modelodds.evidence import log_integral, log_likelihood_at
from modelodds.method import Method
from modelodds.nodes import Mixture, Nodes, effective_size, seeded
from modelodds.prior import Prior
from modelodds.support import Support
from modelodds.surrogate.exchange import in_order
from modelodds.surrogate.surrogate import Surrogate

Array = NDArray[np.float64]

COMPONENTS = 6  # of each mixture that the nodes follow
ENOUGH = 0.4  # effective share of the nodes above which they are left where they are; ...
LEAST, KEPT = 0.1, 0.8  # ... or, above the first of these, this share of what their last move reached
ROUNDS = 4  # at most this many moves of the nodes per observation
FOUND, FEW = 1.0, 5.0  # nats of the estimate that better nodes may not have lost; more, if few told of them
MISSED, PER_PARAMETER = 3.0, 0.5  # nats above all that nodes see, and more per parameter: a peak is missed
STEPS = np.geomspace(1e-4, 1.0, 25)  # along each axis, to see how wide it is: ...
FALLEN = 0.5  # ... as far as the estimate falls by so many nats
LOST = 0.02  # effective share of the nodes below which the mass is lost, and is come by step by step, ...
STAGES, STEADY = 20, 0.1  # ... at most so many, each with this effective share; ...
SOUGHT = 1.1  # ... and if in vain, again when the observations have grown by this factor
REPLICATES = 4  # independent sets of nodes behind a reported evidence, and behind the nodes' error
COARSE = 0.004  # nats of difference between such sets, above which all of them are used
RECKONED = 1.4  # the nodes' error is reckoned again when they move, or observations grow by this factor; ...
OFTEN = 1.04  # ... by this one, where all sets are used


class Seen(NamedTuple):
    """Nodes, and what the surrogate says of them."""

    nodes: Nodes
    mean: Array  # (S,) of the log-likelihood, relative to the best observation
    variance: Array  # (S,)
    log_mass: Array  # (S,) log of weight times the integrand that guides the search
    log_estimate: Array  # (S,) log of weight times the integrand that the evidence is read from
    parts: tuple[Mixture, ...] = ()  # the mixtures of which the nodes are: towards hope and estimate

    @property
    def mass(self) -> Array:
        """Weight times the search's integrand, the largest being one, (S,)."""
        return np.asarray(np.exp(self.log_mass - self.log_mass.max()))

    @property
    def targets(self) -> tuple[Array, ...]:
        """What nodes are to follow: logs of masses (S,), each normalised."""
        return tuple(m - special.logsumexp(m) for m in (self.log_mass, self.log_estimate))

    @property
    def effective(self) -> float:
        """Effective number of nodes for both together."""
        return effective_size(np.logaddexp(*self.targets))


class Followers:
    """One model's nodes."""

    seen: Seen  # once there is a surrogate

    def __init__(
        self, prior: Prior, method: Method, surrogate: Surrogate, support: Support, rng: np.random.Generator
    ) -> None:
        self.prior, self.method, self.rng = prior, method, rng
        self.surrogate, self.support = surrogate, support
        self._nodes = self._fresh(rng)
        self._parts: tuple[Mixture, ...] = ()
        self._others = [
            self._fresh(np.random.default_rng(int(s)))
            for s in rng.integers(2**63, size=REPLICATES - 1 if method.calibrated else 0)
        ]
        self._reached = 0.0  # effective nodes after their last move
        self._sought_at = 0  # observations when lost mass was last sought
        self._copied: Nodes | None = None  # the nodes whose error was reckoned last, ...
        self._copies: list[Nodes] = []  # ... others like them, ...
        self._reckoned_at, self._share = 0, (0.0, 0.0)  # ... at how many observations, and what it was

    def _fresh(self, rng: np.random.Generator) -> Nodes:
        return Nodes.from_prior(self.prior, self.method.n_nodes, rng, self.surrogate.spec.blocks)

    def follow(self) -> None:
        """Let the nodes follow the mass until enough of them count, or as many as when they last moved."""
        self.seen = self._look(self._nodes, self._parts)
        if self.method.nodes != "adaptive":
            return
        if self.method.climb and self._misses_best():
            self._send_to_best()
        elif self.seen.effective > self._content():
            return
        for attempt in range(ROUNDS):
            self._take_if_better(self._moved(self.seen, self.seen.targets, afresh=attempt == 1))
            if self.seen.effective > ENOUGH * self.method.n_nodes:
                break
        n = len(self.surrogate.observations)
        if self.seen.effective < LOST * self.method.n_nodes and n >= SOUGHT * self._sought_at:
            self._sought_at = n
            self._anneal()
        self._nodes, self._parts, self._reached = self.seen.nodes, self.seen.parts, self.seen.effective

    def quadrature(self) -> tuple[float, float]:
        """What other sets of nodes add to the log-evidence's mean, and the variance that comes of nodes.

        Where the sets differ by little, this one goes on alone; else the evidence is that of all of them.
        """
        n = len(self.surrogate.observations)
        if not self._others:
            return 0.0, 0.0
        if self._copied is not self._nodes:
            mixture = self._nodes.mixture
            self._copies = [o if mixture is None else o.with_mixture(mixture) for o in self._others]
        elif n < (OFTEN if self._share[0] else RECKONED) * self._reckoned_at:
            return self._share
        self._copied, self._reckoned_at = self._nodes, n
        found = [self._log_integral(self._nodes, self.seen.mean, self.seen.variance)]
        found += [self._log_integral(nodes, *self.surrogate.predict(nodes.x)) for nodes in self._copies]
        self._share = 0.0, float(np.var(found, ddof=1))
        if self._share[1] > COARSE**2:
            together = float(special.logsumexp(found)) - np.log(len(found))  # integrals, not logs
            self._share = together - found[0], self._share[1] / len(found)
        return self._share

    def _log_integral(self, nodes: Nodes, mean: Array, variance: Array) -> float:
        inside = replace(nodes, log_weight=nodes.log_weight + self.support.log_probability(nodes.x))
        return log_integral(self.method.estimate, inside, mean, variance, self.surrogate.squash)

    def _look(self, nodes: Nodes, parts: tuple[Mixture, ...] = ()) -> Seen:
        mean, variance = self.surrogate.predict(nodes.x)
        base = nodes.log_weight + self.support.log_probability(nodes.x)
        hope, estimate = (
            base + log_likelihood_at(kind, mean, variance, self.surrogate.squash)
            for kind in (self.method.weights, self.method.estimate)
        )
        return Seen(nodes, mean, variance, hope, estimate, parts)

    def _estimate(self, mean: Array, variance: Array) -> Array:
        return log_likelihood_at(self.method.estimate, mean, variance, self.surrogate.squash)

    def _misses_best(self) -> bool:
        """Whether the surrogate puts the best observation far above all nodes."""
        top = self._estimate(*self.surrogate.predict(self.surrogate.observations.best_x[None]))[0]
        met = self._estimate(self.seen.mean, self.seen.variance)[np.isfinite(self.seen.log_estimate)]
        return bool(top - met.max(initial=-np.inf) > MISSED + PER_PARAMETER * self.prior.dim)

    def _send_to_best(self) -> None:
        """Have the nodes that follow the estimate look around the best observation."""
        d = self.prior.dim
        best = in_order(self.surrogate.spec.blocks, self.surrogate.observations.best_x[None])
        along = (STEPS[:, None, None, None] * np.array([-1.0, 1.0])[:, None, None] * np.eye(d)) + best
        at = self._estimate(*self.surrogate.predict(np.concatenate([best, along.reshape(-1, d)])))
        fallen = (at[0] - at[1:].reshape(len(STEPS), 2, d) > FALLEN).any(1)
        width = np.where(fallen.any(0), STEPS[fallen.argmax(0)], STEPS[-1])
        peak = Mixture(np.ones(1), best, np.diag(width)[None])
        parts = (self.seen.parts[0] if self.seen.parts else peak, peak)
        self._take_if_better(self._look(self.seen.nodes.with_mixture(Mixture.of(parts)), parts))

    def _moved(self, seen: Seen, targets: tuple[Array, ...], afresh: bool = False) -> Seen:
        """The nodes after a step towards ``targets``: logs of masses (S,), a mixture of its own for each."""
        nodes, parts = seen.nodes, []
        x = nodes.in_order
        for i, target in enumerate(targets):
            weight = np.exp(target - target.max())
            afresh |= not seen.parts
            start = seeded(x, weight, COMPONENTS, self.rng) if afresh else seen.parts[i]
            parts.append(start.refitted(x, weight))
        return self._look(nodes.with_mixture(Mixture.of(parts)), tuple(parts))

    def _take_if_better(self, found: Seen) -> None:
        """Take the nodes found if more of them count, and never those that have lost what was known."""
        more = float(special.logsumexp(found.log_estimate) - special.logsumexp(self.seen.log_estimate))
        unsure = FOUND + FEW / np.sqrt(max(self.seen.effective, 1.0))
        if more > unsure or (more > -unsure and found.effective >= self.seen.effective):
            self.seen = found

    def _content(self) -> float:
        """Effective nodes that are left where they are."""
        enough, least = ENOUGH * self.method.n_nodes, LEAST * self.method.n_nodes
        return min(enough, max(least, KEPT * self._reached))

    def _anneal(self) -> None:
        """Come by mass that the nodes have lost: likelihoods to a power, which grows as the nodes follow."""
        found = self._look(self._fresh(self.rng))
        for _ in range(STAGES):
            base = found.nodes.log_weight + self.support.log_probability(found.nodes.x)
            masses, size = (found.log_mass, found.log_estimate), STEADY * self.method.n_nodes
            power = min(_power(base, mass, size) for mass in masses)
            found = self._moved(found, tuple(_tempered(base, mass, power) for mass in masses))
            if power == 1.0:
                break
        self._take_if_better(found)


def _tempered(base: Array, log_mass: Array, power: float) -> Array:
    """Log of mass whose likelihood is taken to a power: of weights ``base`` alone at 0, ``log_mass`` at 1."""
    inside = np.isfinite(base) & np.isfinite(log_mass)
    gain = np.where(inside, log_mass, 0.0) - np.where(inside, base, 0.0)
    return np.where(inside, base, -np.inf) + power * gain


def _power(base: Array, log_mass: Array, size: float) -> float:
    """Largest power of the likelihood, up to 1, at which so many nodes are effective."""
    low, high = 0.0, 1.0
    if effective_size(log_mass) >= size:
        return 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        enough = effective_size(_tempered(base, log_mass, middle)) >= size
        low, high = (middle, high) if enough else (low, middle)
    return low
