"""All that is known of one model: its surrogate, its nodes, its evidence, and where to evaluate it next."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from modelodds.acquisition import ACQUISITIONS, View
from modelodds.climb import Climb, Known
from modelodds.evidence import Evidence, belief, log_likelihood_at, picked
from modelodds.family import Family
from modelodds.follow import REPLICATES, Followers, Seen
from modelodds.hints import Side, hints
from modelodds.method import Method
from modelodds.model import Model
from modelodds.nodes import Nodes, systematic
from modelodds.propose import Proposal, evidence_variance, propose
from modelodds.support import Support, Works
from modelodds.surrogate.gp import GP
from modelodds.surrogate.squash import Squash
from modelodds.surrogate.surrogate import Surrogate

Array = NDArray[np.float64]

CANDIDATES = (384, 128)  # drawn by mass, and by the prior
REACH = 7.0  # a search goes no further out than this in standard normal coordinates
LATELY = 0.7  # an estimate's recent movement is that since this share of the session's evaluations, ...
MOVED = 0.5  # ... and its variance is at least this share of the mean square of that
SLACK = 0.3  # nats by which hope may have more mass than the estimate without further doubt; ...
DOUBT = 2.0  # ... the rest, times this, is a standard deviation
TRIES = 3  # of a model without free parameters that fails


UNKNOWN = Evidence(np.nan, np.inf)


class Report(NamedTuple):
    """What is told of a model in the end."""

    evidence: Evidence
    draws: Array  # (m, p) posterior draws of its parameters
    log_likelihood: Array  # (m,) of each, as the surrogate has it


class Learner:
    """One model's part of a session.

    ``thrift`` is 1 for the cheapest model of the session, and less for those whose evaluations are dear.
    """

    def __init__(self, model: Model, method: Method, rng: np.random.Generator, thrift: float = 1.0) -> None:
        self.model, self.method, self.rng = model, method, rng
        self.surrogate = Surrogate(model.dim, method, model.blocks if method.exchange else ())
        self.support = Support(model.dim)
        self.out: dict[int, Array] = {}  # points asked for, by the query's id
        self.works = Works(model.dim)  # where evaluations do not fail
        self.barren: list[Array] = []  # points that gave the surrogate nothing: failures, zero likelihoods
        self.evidence = UNKNOWN
        if model.dim:
            self.followers = Followers(model.prior, method, self.surrogate, self.support, rng)
        self._scale, self._found = self.surrogate.squash, UNKNOWN
        self._base = UNKNOWN  # as last found by its nodes
        self._track: dict[int, float] = {}  # the evidence's mean, by the session's evaluations
        self._told = self._stale = True
        self._side: Side | None = None  # as of the last observation
        self._proposal: Proposal | None = None
        self._plausible: Array | None = None  # (m,) of each node, by its family
        self._all_in: float | None = None  # the evidence's variance if nothing were out
        self.family: Family | None = None  # of models with the same exchangeable parts, if there are any
        self.climb = Climb(model.prior.limits(REACH), rng, bool(self.surrogate.spec.blocks), thrift)

    # ------------------------------------------------------------------ what comes in

    def ask(self, query: int, x: Array) -> None:
        """Note that ``x`` (d,) is out for evaluation."""
        self.out[query] = x
        self._proposal = None

    def tell(self, query: int, y: float, noise: float) -> None:
        """Take in the log-likelihood of a point that was out, and its variance."""
        x, positive = self.out.pop(query), y > -np.inf
        if query in self.climb.out:
            self.climb.told(query, y, noise)
        self.climb.heard(y, noise)
        self.support.tell(x, positive)
        self.works.tell(x, True)
        if positive:
            self.surrogate.tell(x, y, noise)
            self._side = None
        else:
            self.barren.append(x)
        self._told, self._stale, self._proposal, self._all_in = True, True, None, None

    def fail(self, query: int) -> None:
        """Note that a point gave nothing; the search goes around it."""
        self.works.tell(self.out[query], False)
        self.barren.append(self.out.pop(query))
        self._proposal = self._all_in = None
        if query in self.climb.out:
            self.climb.told(query, -np.inf)

    @property
    def known(self) -> bool:
        """Whether there is an observation to build on: a finite one, unless there is nothing to fit."""
        return len(self.surrogate.observations) > 0 or (self.model.dim == 0 and self.support.bounded)

    @property
    def settled(self) -> bool:
        """Whether the evidence is known exactly: a model without free parameters, evaluated."""
        return self.model.dim == 0 and self.known

    @property
    def given_up(self) -> bool:
        """Whether there is no point in asking for more: without free parameters, every try is the same."""
        return self.model.dim == 0 and not self.known and (len(self.out) > 0 or len(self.barren) >= TRIES)

    # ------------------------------------------------------------------ belief

    def learn(self) -> None:
        """Bring the surrogate up to date."""
        if self._told and self.known and self.model.dim:
            self.surrogate.update()
            self._told = False

    def refresh(self) -> None:
        """Note that the surrogate is another: nodes and evidence are brought up to date when next needed."""
        self._stale, self._proposal, self._all_in, self._plausible = True, None, None, None

    def nudge(self, change: float, factor: float) -> None:
        """Move the evidence by ``change`` nats from where it was last found, its variance by ``factor``."""
        mean, variance, fixed = self._base
        self._found = Evidence(mean + change, variance * factor, fixed)
        self._proposal, self._all_in = None, None

    def update(self, now: int) -> None:
        """Bring surrogate, nodes and evidence up to date; the session has ``now`` evaluations."""
        if not self.known:
            return
        if self.model.dim == 0:
            self.evidence = self._point_evidence()
            return
        if self._stale:
            self.learn()
            self.followers.follow()
            self._plausible = None
            more, quadrature = self.followers.quadrature()
            seen = self.seen
            found = self._evidence(seen.nodes, seen.mean, seen.variance)
            self._found = self._base = Evidence(found.mean + more, found.variance, quadrature)
            if self.surrogate.squash == Squash.exact() != self._scale:
                self._track.clear()  # a quadratic that has passed its test starts anew
            self._scale, self._stale = self.surrogate.squash, False
        mean, variance, nodes = self._found
        self._track[now] = mean
        believed = self._believed(variance) + self._unexplored() + nodes
        self.evidence = Evidence(mean, believed, believed - variance)

    def _believed(self, variance: float) -> float:
        """The evidence's ``variance``, or what its recent movement says if that is more."""
        if not self.method.calibrated:
            return variance
        now = max(self._track)
        steps = [mean - self._track[now] for n, mean in self._track.items() if n >= LATELY * now]
        return max(variance, MOVED * float(np.mean(np.square(steps))))

    def _unexplored(self) -> float:
        """Variance for what may lie where the surrogate has hardly looked.

        Peaks that nobody has met are in no expansion around what is known. But where hope, the expected
        likelihood that the search goes after, has much more mass than the estimate, it is not done.
        """
        if not self.method.calibrated:
            return 0.0
        hope, estimate = (float(special.logsumexp(m)) for m in (self.seen.log_mass, self.seen.log_estimate))
        return (DOUBT * max(0.0, hope - estimate - SLACK)) ** 2 if np.isfinite(estimate) else 0.0

    def _point_evidence(self) -> Evidence:
        """Without free parameters the evidence is the likelihood; repeated noisy values are averaged."""
        seen = self.surrogate.observations
        if self.support.bounded:
            return Evidence(-np.inf, 0.0)
        precision = 1.0 / np.maximum(seen.noise, 1e-12)
        mean = float(precision @ seen.y / precision.sum())
        return Evidence(mean, 0.0 if not seen.noise.any() else float(1.0 / precision.sum()))

    def _evidence(self, nodes: Nodes, mean: Array, variance: Array) -> Evidence:
        """The evidence from the surrogate's ``mean`` and ``variance`` at ``nodes`` and the support's."""
        inside = replace(nodes, log_weight=nodes.log_weight + self.support.log_probability(nodes.x))
        surrogate = self.surrogate
        found = belief(
            self.method.estimate,
            surrogate.spec,
            surrogate.gp,
            inside,
            mean,
            variance,
            surrogate.inflation,
            surrogate.squash,
        )
        spread = found.variance
        if self.support.bounded:
            log_mass = inside.log_weight + log_likelihood_at("mean", mean, variance, surrogate.squash)
            spread += self.support.variance(nodes.x, np.exp(log_mass - log_mass.max()))
        return Evidence(self.surrogate.offset + found.mean, spread)

    # ------------------------------------------------------------------ search

    def propose(self, rule: str) -> Proposal:
        """Best point under the acquisition called ``rule``; remembered until something changes."""
        if self._proposal is None:
            found = self.search(rule, self.view())
            if self.support.bounded and ACQUISITIONS[rule].is_share:
                found = self._or_boundary(found)
            self._proposal = found
            if self._all_in is None:
                self._all_in = self._variance_now(rule) if self.out else found.variance
        return self._proposal

    def _variance_now(self, rule: str) -> float:
        """The evidence's variance, as a proposal has it, by what is in alone."""
        found = evidence_variance(rule, self.surrogate.spec, self.view(self._search_gp(with_out=False)))
        if self.support.bounded and ACQUISITIONS[rule].is_share:
            found += self.support.propose(self.seen.nodes.x, self.seen.mass, []).variance
        return found

    @property
    def remaining(self) -> float:
        """Share of the evidence's variance that will be left when what is out has come back."""
        if not self.out or self._proposal is None or self._all_in is None:
            return 1.0
        return min(1.0, self._proposal.variance / self._all_in)

    def search(self, rule: str, view: View) -> Proposal:
        """Best point under the acquisition called ``rule``, the model being as ``view`` has it."""
        bounds = np.clip(self.model.prior.bounds, -REACH, REACH)
        found = propose(rule, self.surrogate.spec, view, self._candidates(), bounds)
        if not (self._inside(found.x[None]) & self.works.promising(found.x[None])).all():
            found = found._replace(x=found.candidate)  # the refinement left a joint prior, or what works
        return found

    def _or_boundary(self, inside: Proposal) -> Proposal:
        """The proposal, or a look at the support's boundary: whichever takes away more variance."""
        found = self.support.propose(self.seen.nodes.x, self.seen.mass, list(self.out.values()))
        total = inside.variance + found.variance
        best = max(inside, found, key=lambda p: p.score * p.variance)
        return best._replace(score=best.score * best.variance / total, variance=total)

    def view(self, gp: GP | None = None) -> View:
        """What an acquisition is shown of the model, its GP being ``gp`` if that is given."""
        seen, squash = self.seen, self.surrogate.squash
        stretch = 1.0 / squash.slope(-squash.log_likelihood(seen.mean))
        wanted = self._wanted()
        index, weight = picked(wanted / wanted.sum(), np.sqrt(seen.variance) * stretch)
        box = np.isfinite(self.model.prior.bounds[0]).astype(float)
        noise = np.asarray(np.median(self.surrogate.observations.noise))
        followed = squash.followed if self.method.shaped_noise else np.inf
        return View(
            gp or self._search_gp(),
            seen.nodes.x[index],
            weight * stretch[index],
            noise,
            np.array(followed),
            box,
        )

    def _wanted(self) -> Array:
        """Each node's mass, but less where all models with such parts say that there is little."""
        mass = self.seen.mass
        if not self.family or not self.method.climb:
            return mass
        if self._plausible is None:
            self._plausible = self.family.plausible(self.seen.nodes.x)
        wanted = mass * self._plausible
        return wanted if wanted.sum() > 0.0 else mass

    def _search_gp(self, with_out: bool = True) -> GP:
        avoided = [*self.out.values(), *self.barren] if with_out else self.barren
        return self.surrogate.with_pending(np.array(avoided)) if avoided else self.surrogate.gp

    def _candidates(self) -> Array:
        nodes = self.seen.nodes
        by_mass = nodes.x[systematic(self._wanted(), CANDIDATES[0])]
        by_prior = nodes.inside[self.rng.integers(len(nodes.inside), size=CANDIDATES[1])]
        found = np.concatenate([by_mass, by_prior])
        promising = np.flatnonzero(self.works.promising(found))
        if 0 < len(promising) < len(found):
            found = found[np.resize(promising, len(found))]  # as many: it is compiled for so many
        return found

    # ------------------------------------------------------------------ uphill

    def uphill(self, query: int, others: Iterable["Learner"] = ()) -> Array | None:
        """A step uphill, if one is due; it will be asked for as number ``query``."""
        exact = self.surrogate.squash == Squash.exact()  # it knows its top
        if not self.method.climb or self.surrogate.gp is None:
            return None
        if self.climb.due(query) and exact:
            self.climb.rest(query)
        elif self.climb.due(query):
            return self.climb.step(query, self._known(others))
        elif self.climb.resting and not exact:
            return self.climb.tip(self._known(others))
        return None

    def _known(self, others: Iterable["Learner"]) -> Known:
        sides = [other.side for other in others if other is not self and other.known]
        straight = self.family.predict if self.family else self.surrogate.straight
        everywhere, told = self.seen.nodes.inside, hints(self.side, sides)
        return Known(self.surrogate, self.barren, self._climbable, everywhere, told, straight)

    def _climbable(self, x: Array) -> NDArray[np.bool_]:
        return self._inside(x) & self.works.promising(x, room=1.0)

    @property
    def side(self) -> Side:
        """What hints look at."""
        if self._side is None:
            self._side = Side(self.model, self.surrogate)
        return self._side

    def _inside(self, x: Array) -> NDArray[np.bool_]:
        return np.isfinite(self.model.prior.log_density(x))

    @property
    def climbing(self) -> bool:
        """Whether a climb has not come to its end."""
        return self.method.climb and self.model.dim > 0 and self.climb.going_on

    # ------------------------------------------------------------------ report

    @property
    def seen(self) -> Seen:
        """The nodes as they are, and what the surrogate says of them."""
        return self.followers.seen

    def evidence_at(self, nodes: Nodes) -> Evidence:
        """Belief on the log-evidence by way of ``nodes``, whose prior need not be the model's own."""
        return self._evidence(nodes, *self.surrogate.predict(nodes.x))

    def report(self, draws: int, seed: int) -> "Report":
        """Evidence and posterior draws from independent sets of nodes, their error included.

        The evidence of a method that is not calibrated is what it believes on the nodes it has searched.
        """
        if self.model.dim == 0 or self.surrogate.gp is None:
            theta = self.model.prior.to_theta(np.zeros((draws, self.model.dim)))
            return Report(self.evidence, theta, np.full(draws, self.evidence.mean))
        rng = np.random.default_rng(seed)
        found, xs, log_weights, log_likelihoods = [], [], [], []
        for _ in range(REPLICATES):
            nodes = self.seen.nodes.like(rng)
            mean, variance = self.surrogate.predict(nodes.x)
            found.append(self._evidence(nodes, mean, variance))
            xs.append(nodes.x)
            log_likelihood = log_likelihood_at("mean", mean, variance, self.surrogate.squash)
            log_likelihoods.append(self.surrogate.offset + log_likelihood)
            log_weights.append(nodes.log_weight + log_likelihood + self.support.log_probability(nodes.x))
        log_weight = np.concatenate(log_weights)
        index = systematic(np.exp(log_weight - log_weight.max()), draws)
        theta = self.model.prior.to_theta(np.concatenate(xs)[index])
        evidence = self._together(found) if self.method.calibrated else self.evidence
        return Report(evidence, theta, np.concatenate(log_likelihoods)[index])

    def _together(self, found: list[Evidence]) -> Evidence:
        """The evidence by several sets of nodes: the mean of their integrals, with its error."""
        means, variance = np.array([e.mean for e in found]), float(np.mean([e.variance for e in found]))
        spread = self._believed(variance) + self._unexplored() + float(means.var(ddof=1)) / REPLICATES
        return Evidence(float(special.logsumexp(means)) - np.log(REPLICATES), spread, spread - variance)
