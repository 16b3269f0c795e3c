"""All that is known of one model: its surrogate, its nodes, its evidence, and where to evaluate it next."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from modelodds.acquisition import ACQUISITIONS, View
from modelodds.climb import Climb, Known
from modelodds.errors import PriorError
from modelodds.evidence import Evidence, belief, log_likelihood_at, picked
from modelodds.follow import REPLICATES, Followers, Seen
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
TRIES = 3  # of a model without free parameters that fails
SEPARATE = 2.0  # length-scales between two summits
KNOWN = 0.1  # parts of a model that are no farther apart, in standard deviations of the prior, are one


UNKNOWN = Evidence(np.nan, np.inf)


class Report(NamedTuple):
    """What is told of a model in the end."""

    evidence: Evidence
    draws: Array  # (m, p) posterior draws of its parameters
    log_likelihood: Array  # (m,) of each, as the surrogate has it


class Learner:
    """One model's part of a session."""

    def __init__(self, model: Model, method: Method, rng: np.random.Generator) -> None:
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
        self._proposal: Proposal | None = None
        self._all_in: float | None = None  # the evidence's variance if nothing were out
        self.climb = Climb(model.prior.limits(REACH), rng)

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
        self._stale, self._proposal, self._all_in = True, None, None

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
            more, quadrature = self.followers.quadrature()
            seen = self.seen
            found = self._evidence(seen.nodes, seen.mean, seen.variance)
            self._found = self._base = Evidence(found.mean + more, found.variance, quadrature)
            if self.surrogate.squash == Squash.exact() != self._scale:
                self._track.clear()  # a quadratic that has passed its test starts anew
            self._scale, self._stale = self.surrogate.squash, False
        mean, variance, nodes = self._found
        self._track[now] = mean
        believed = self._believed(variance) + nodes
        self.evidence = Evidence(mean, believed, believed - variance)

    def _believed(self, variance: float) -> float:
        """The evidence's ``variance``, or what its recent movement says if that is more."""
        if not self.method.calibrated:
            return variance
        now = max(self._track)
        steps = [mean - self._track[now] for n, mean in self._track.items() if n >= LATELY * now]
        return max(variance, MOVED * float(np.mean(np.square(steps))))

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
        index, weight = picked(seen.mass / seen.mass.sum(), np.sqrt(seen.variance) * stretch)
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

    def _search_gp(self, with_out: bool = True) -> GP:
        avoided = [*self.out.values(), *self.barren] if with_out else self.barren
        return self.surrogate.with_pending(np.array(avoided)) if avoided else self.surrogate.gp

    def _candidates(self) -> Array:
        nodes = self.seen.nodes
        by_mass = nodes.x[systematic(self.seen.mass, CANDIDATES[0])]
        by_prior = nodes.inside[self.rng.integers(len(nodes.inside), size=CANDIDATES[1])]
        found = np.concatenate([by_mass, by_prior])
        promising = np.flatnonzero(self.works.promising(found))
        if 0 < len(promising) < len(found):
            found = found[np.resize(promising, len(found))]  # as many: it is compiled for so many
        return found

    # ------------------------------------------------------------------ uphill

    def uphill(self, query: int, others: Iterable["Learner"] = ()) -> Array | None:
        """A step uphill, if one is due; it will be asked for as number ``query``."""
        if not self.method.climb or self.surrogate.gp is None or not self.climb.due(query):
            return None
        if self.surrogate.squash == Squash.exact():  # it knows its top
            self.climb.rest(query)
            return None
        everywhere, hints = self.seen.nodes.inside, self._hints(others)
        return self.climb.step(query, Known(self.surrogate, self.barren, self._climbable, everywhere, hints))

    def _climbable(self, x: Array) -> NDArray[np.bool_]:
        return self._inside(x) & self.works.promising(x, room=1.0)

    def _hints(self, others: Iterable["Learner"]) -> list[Array]:
        """The best point, with the parameters it shares with another model as they are best there, each (d,).

        Where the other has exchangeable parts, any of them may be meant. Where this one has, and one of them
        is there already, there is nothing to be told; but the other's summits may be its parts.
        """
        free = set(self.model.prior.names) - set(self.model.prior.fixed)
        shared = [(free & set(o.model.prior.names), o) for o in others if o is not self and o.known]
        names, other = max(shared, key=lambda pair: len(pair[0]), default=(set(), self))
        if not names:
            return []
        told = [self.best | {name: theirs[name] for name in names} for theirs in other._orders_of_best()]
        found = [x for x in map(self._at, told) if x is not None]
        parts = self.model.exchangeable
        if parts:
            part = list(self.model.blocks[0])
            here = [x for x in map(self._at, self._orders_of_best()) if x is not None]
            found = [x for x in found if all(np.abs(x - y)[part].max() > KNOWN for y in here)]
        if parts and names == set(parts[0]) and other.model.dim == len(names):
            summits = other.summits(len(parts))
            if len(summits) == len(parts):
                tops = zip(parts, summits, strict=True)
                theta = {p[i]: top[name] for p, top in tops for i, name in enumerate(parts[0])}
                together = self._at(self.best | theta)
                found += [together] if together is not None else []
        return found

    def _at(self, theta: dict[str, float]) -> Array | None:
        """Parameters by name as x (d,), if they are possible."""
        point = np.array([theta[name] for name in self.model.prior.names])
        try:
            possible = np.isfinite(self.model.prior.log_density_theta(point))
            return self.model.prior.to_x(point) if possible else None
        except PriorError:  # a transform of the unit cube has no way back
            return None

    def _orders_of_best(self) -> list[dict[str, float]]:
        """The best parameters, with each exchangeable part in the first one's place."""
        best, parts = self.best, self.model.exchangeable
        found = [best]
        for part in parts[1:]:
            swap = dict(zip((*parts[0], *part), (*part, *parts[0]), strict=True))
            found.append({name: best[swap.get(name, name)] for name in best})
        return found

    @property
    def best(self) -> dict[str, float]:
        """The parameters of the best observation."""
        seen = self.surrogate.observations
        theta = self.model.prior.to_theta(seen.x[int(np.argmax(seen.y))] if self.model.dim else np.empty(0))
        return dict(zip(self.model.prior.names, theta.tolist(), strict=True))

    def summits(self, most: int) -> list[dict[str, float]]:
        """The best observation, and the best of those that are some length-scales apart, ``most`` in all."""
        seen, gp = self.surrogate.observations, self.surrogate.gp
        if gp is None:
            return [self.best]
        scaled, tops = seen.x / np.exp(np.asarray(gp.hyper.log_lengthscale)), list[int]()
        for i in np.argsort(-seen.y, kind="stable"):
            if len(tops) < most and all(((scaled[i] - scaled[j]) ** 2).sum() > SEPARATE**2 for j in tops):
                tops.append(int(i))
        names = self.model.prior.names
        return [
            dict(zip(names, theta.tolist(), strict=True)) for theta in self.model.prior.to_theta(seen.x[tops])
        ]

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
        """Evidence and posterior draws from independent sets of nodes, their error included."""
        if self.model.dim == 0 or self.surrogate.gp is None:
            theta = self.model.prior.to_theta(np.zeros((draws, self.model.dim)))
            return Report(self.evidence, theta, np.full(draws, self.evidence.mean))
        rng = np.random.default_rng(seed)
        found, xs, log_weights, log_likelihoods = [], [], [], []
        for _ in range(REPLICATES):
            nodes = Nodes.from_prior(self.model.prior, self.method.n_nodes, rng)
            if self.seen.nodes.mixture is not None:
                nodes = nodes.with_mixture(self.seen.nodes.mixture)
            mean, variance = self.surrogate.predict(nodes.x)
            found.append(self._evidence(nodes, mean, variance))
            xs.append(nodes.x)
            log_likelihood = log_likelihood_at("mean", mean, variance, self.surrogate.squash)
            log_likelihoods.append(self.surrogate.offset + log_likelihood)
            log_weights.append(nodes.log_weight + log_likelihood + self.support.log_probability(nodes.x))
        means = np.array([e.mean for e in found])
        spread = self._believed(float(np.mean([e.variance for e in found])))
        spread += means.var(ddof=1) / REPLICATES
        log_weight = np.concatenate(log_weights)
        index = systematic(np.exp(log_weight - log_weight.max()), draws)
        theta = self.model.prior.to_theta(np.concatenate(xs)[index])
        together = float(means.mean())
        if self.method.estimate != "moment":  # of integrals, not of their logs
            together = float(special.logsumexp(means)) - np.log(REPLICATES)
        evidence = Evidence(together, float(spread))
        return Report(evidence, theta, np.concatenate(log_likelihoods)[index])
