"""Where a likelihood is not zero: a belief on the support, from which points gave -inf and which did not.

A smooth surrogate cannot follow a cliff, so likelihoods of zero are kept from it. Points are labelled +1
(positive likelihood) and -1 (zero), a Gaussian process f of fixed scale is conditioned on the labels, and a
point counts with probability p(x) = P(f(x) > 0) = Phi(m / sqrt v). Whether it is inside is a coin of variance
p (1 - p), two points' coins correlated as f is there, r(x, x'). So the boundary's share of the variance of
log a, and what a look at x takes of it, are

    sum_st u_s r(x_s, x_t) u_t,     4 p (1 - p) (sum_s r(x, x_s) u_s)^2,      u_s = w_s sqrt(p (1 - p)) / p,

with w_s the share of node s in the evidence; the factor 4 p (1 - p) keeps from looking where the label is
known.
"""

from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.spatial import distance

from modelodds.nodes import systematic
from modelodds.precision import jit64
from modelodds.propose import Proposal
from modelodds.surrogate.gp import GP, Hyper, Spec, condition, covariance, predict
from modelodds.surrogate.leave_one_out import leave_one_out
from modelodds.surrogate.observations import Observations

Array = NDArray[np.float64]

SPEC = Spec("matern32", "constant")
LABEL_NOISE = 0.05  # variance of a label: close labels of opposite sign need not be threaded
CHANCE = 0.5  # the same of evaluations that fail or do not, which may be by chance
NEARER = 16.0  # times as much room to the next failure as to the next success, if a point is to be asked for
SUMMED = 512  # nodes and candidates that double sums run over

_condition = jit64(condition, static=("spec",))
_predict = jit64(predict, static=("spec",))
_covariance = jit64(covariance, static=("spec",))


class Support:
    """Belief on where one model's likelihood is positive."""

    noise = LABEL_NOISE

    def __init__(self, d: int) -> None:
        self._labels = Observations.empty(d)
        self._gp: GP | None = None

    def tell(self, x: Array, positive: bool) -> None:
        """Whether the likelihood is positive at ``x`` (d,)."""
        self._labels = self._labels.add(x, 1.0 if positive else -1.0, self.noise)
        self._gp = None

    @property
    def bounded(self) -> bool:
        """Whether a likelihood of zero was seen at all; if not, the support is taken to be everything."""
        return bool((self._labels.y < 0).any())

    @property
    def _usual(self) -> float:
        """The label to be expected where nothing is known."""
        return 0.0

    def log_probability(self, x: Array) -> Array:
        """Logarithm of p at ``x`` (m, d), shape (m,)."""
        if not self.bounded:
            return np.zeros(len(x))
        mean, variance = _predict(spec=SPEC, gp=self._conditioned, x=x)
        return np.asarray(special.log_ndtr(np.asarray(mean) / np.sqrt(np.asarray(variance))))

    @property
    def _conditioned(self) -> GP:
        if self._gp is None:
            d = self._labels.x.shape[1]
            hyper = Hyper(np.full(d, 0.5 * np.log(d)), np.array(0.0), np.full(1, self._usual))
            data = self._labels.data(shaped_noise=False, best=0.0)
            self._gp = cast(GP, _condition(spec=SPEC, hyper=hyper, data=data))
        return self._gp

    def variance(self, x: Array, mass: Array) -> float:
        """The boundary's share of the log-evidence's variance.

        Parameters
        ----------
        x, mass : array (S, d), (S,)
            Nodes and their unnormalised share in the evidence.
        """
        nodes, doubt = self._doubtful(x, mass)
        return float(doubt**2 * self._correlation(nodes, nodes).mean())

    def propose(self, x: Array, mass: Array, pending: list[Array]) -> Proposal:
        """Where a look at the boundary tells most about the evidence, what is pending being as expected."""
        if pending:
            points = np.array(pending)
            expected = np.where(self.log_probability(points) > np.log(0.5), 1.0, -1.0)
            looked = Support(x.shape[1])
            looked._labels = self._labels.add(points, expected, self.noise)
            change = looked.log_probability(x) - self.log_probability(x)  # the mass has the probability in it
            return looked.propose(x, mass * np.exp(np.minimum(change, 50.0)), [])
        nodes, doubt = self._doubtful(x, mass)
        correlation = self._correlation(nodes, nodes)
        p = np.exp(self.log_probability(nodes))
        gain = 4.0 * p * (1.0 - p) * (doubt * correlation.mean(1)) ** 2
        best, variance = int(np.argmax(gain)), float(doubt**2 * correlation.mean())
        return Proposal(nodes[best], float(gain[best] / variance), variance, nodes[best])

    def _doubtful(self, x: Array, mass: Array) -> tuple[Array, float]:
        """Nodes drawn in proportion to u, and the sum of u."""
        p = np.clip(np.exp(self.log_probability(x)), 1e-12, 1.0)
        u = mass / mass.sum() * np.sqrt(np.maximum(1.0 - p, 1e-12) / p)
        return x[systematic(u, SUMMED)], float(u.sum())

    def _correlation(self, a: Array, b: Array) -> Array:
        gp = self._conditioned
        cov = np.asarray(_covariance(spec=SPEC, gp=gp, a=a, b=b))
        sd = [np.sqrt(np.asarray(_predict(spec=SPEC, gp=gp, x=points)[1])) for points in (a, b)]
        return np.asarray(np.clip(cov / np.outer(*sd), -1.0, 1.0))


class Works(Support):
    """Belief on where one model's evaluations do not fail; failures by chance say nothing of a place."""

    noise = CHANCE

    @property
    def _usual(self) -> float:
        return max(0.0, float(self._labels.y.mean()))

    def promising(self, x: Array, room: float = NEARER) -> NDArray[np.bool_]:
        """Which of points ``x`` (m, d) may be asked for, (m,): those near to one that has worked.

        The ball that reaches to the next failure must have ``room`` times the volume of that which reaches
        to the next success. Where more is to be learnt beyond an edge than before it, nothing weaker keeps
        a search from trying the edge without end.
        """
        worked = self._labels.y > 0
        if worked.all() or not worked.any() or not self._local:
            return np.ones(len(x), dtype=bool)
        success, failure = (distance.cdist(x, self._labels.x[which]).min(1) for which in (worked, ~worked))
        return np.asarray(success * room ** (1.0 / x.shape[1]) < failure)

    @property
    def _local(self) -> bool:
        """Whether each label is better foretold by its neighbours' than by how many have failed in all."""
        left = leave_one_out(self._conditioned)
        good = left.observed > 0
        usual = (good.sum() + 1.0) / (len(good) + 2.0)
        by_place = special.log_ndtr(np.where(good, 1.0, -1.0) * left.mean / left.sd)
        return bool(by_place.sum() > np.log(np.where(good, usual, 1.0 - usual)).sum())
