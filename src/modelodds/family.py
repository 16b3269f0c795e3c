"""Models that differ in how many exchangeable parts they have, looked at as one: absorbers, planets, ...

A model with fewer parts is one with more, of which some are infinitely far away. In the covariance of
`surrogate/exchange.py` a distant part varies with no other, so that observations of all these models are
observations of one Gaussian process: what each part adds is learnt from all of them,

    log-likelihood of {u_1, u_2} = s(u_1) + s(u_2) + t(u_1, u_2),   of {u_1} = s(u_1) + const + t'(u_1).

Climbs leap by it (`climb.py`): a second absorber, missed by random points of four dimensions, is seen by
those of two. And no evaluation is spent where it says that there is nothing to be found.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from modelodds.hints import Side
from modelodds.precision import jit64
from modelodds.surrogate.exchange import FAR
from modelodds.surrogate.fit import Fit, fit
from modelodds.surrogate.gp import condition, predict
from modelodds.surrogate.observations import Observations
from modelodds.surrogate.sharing import find_sharing
from modelodds.surrogate.squash import Squash
from modelodds.surrogate.surrogate import CONTENDERS, FEW, STARTS

Array = NDArray[np.float64]

HOPELESS = 30.0  # nats below the best observation that leave a point without a share in the evidence
GROWTH = 1.1  # of the observations, after which the hyperparameters are searched again

_condition = jit64(condition, static=("spec",))
_predict = jit64(predict, static=("spec",))


class Member(NamedTuple):
    """A model in the space of the one with the most parts."""

    side: Side
    columns: list[int]  # of that space, for each of its own

    def embed(self, x: Array, d: int) -> Array:
        """Its points ``x`` (n, own d) in ``d`` dimensions, parts that it lacks far away."""
        found = np.full((len(x), d), FAR)
        found[:, self.columns] = x
        return found


class Family:
    """One model's view of all those that have its parts, more of them or fewer."""

    def __init__(self, own: Side, others: Sequence[Side]) -> None:
        sides = [own, *others]
        self.largest = max(sides, key=lambda side: len(side.surrogate.spec.blocks))
        found = [_member(self.largest, side) for side in sides]
        self.own = found[0]
        self.members = [member for member in found if member is not None]
        self._fit: Fit | None = None
        self._fitted_at = 0

    def __bool__(self) -> bool:
        return self.own is not None and len(self.members) > 1

    def plausible(self, x: Array) -> Array:
        """Probability (m,) that the log-likelihood at ``x`` (m, d) is not hopelessly below the best one."""
        mean, variance = self.predict(x)
        return np.asarray(special.ndtr((mean + HOPELESS) / np.sqrt(variance)))

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Mean and variance of the log-likelihood at ``x`` (m, d), relative to the best observation."""
        assert self.own is not None
        spec, d = self.largest.surrogate.spec, self.largest.model.dim
        together = Observations.empty(d)
        for member in self.members:
            seen = member.side.surrogate.observations
            together = together.add(member.embed(seen.x, d), seen.y, seen.noise)
        data = together.data(True, self.own.side.surrogate.observations.best, Squash.none(d))
        if self._fit is None or len(together) >= GROWTH * self._fitted_at:
            last, self._fitted_at = self._fit, len(together)
            kernels = (0,) if spec.kernel != "any" else CONTENDERS if last is None else (last.kernel,)
            starts, warm = (STARTS, None) if last is None else (0, last.vector)
            self._fit = fit(spec, data, True, warm, starts, 60, kernels)
        gp = _condition(spec=spec, hyper=self._fit.hyper(d), data=data)
        padded = np.vstack([x, np.zeros((-len(x) % FEW, x.shape[1]))])
        mean, variance = _predict(spec=spec, gp=gp, x=self.own.embed(padded, d))
        return np.asarray(mean)[: len(x)], np.asarray(variance)[: len(x)]


def _member(largest: Side, side: Side) -> Member | None:
    """``side`` in the space of ``largest``, if it has the same parameters, or lacks whole parts of them."""
    blocks = largest.surrogate.spec.blocks
    if not blocks:
        return None
    if side is largest:
        return Member(side, list(range(side.model.dim)))
    sharing = next(iter(find_sharing([largest.model, side.model])), None)
    if sharing is None or (sharing.scale != 1.0).any() or sharing.shift.any():
        return None
    theirs = {column: j for j, column in enumerate(sharing.columns[0])}
    columns = [theirs.get(column, -1) for column in sharing.columns[1]]
    lacked = set(range(largest.model.dim)) - set(columns)
    whole = {j for block in blocks if lacked.issuperset(block) for j in block}
    return Member(side, columns) if -1 not in columns and lacked == whole else None
