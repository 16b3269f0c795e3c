"""What one model's best points say of where another, that shares parameters with it, may be good.

A hint is the model's own best point with the parameters it shares as they are best in the other. Where the
other has exchangeable parts, any of them may be meant. Where this one has, any of them may be in the wrong
place; if one of them is there already, there is nothing to be told; but the other's summits may be its parts.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelodds.errors import PriorError
from modelodds.model import Model
from modelodds.surrogate.surrogate import Surrogate

Array = NDArray[np.float64]

SEPARATE = 2.0  # length-scales between two summits
KNOWN = 0.1  # parts of a model that are no farther apart, in standard deviations of the prior, are one


class Hints(NamedTuple):
    """Where a model may be good, and how good the one is that says so."""

    points: list[Array]  # each (d,)
    theirs: float  # the other's largest log-likelihood


NONE = Hints([], -np.inf)


@dataclass(frozen=True)
class Side:
    """A model with its observations, as hints look at it, until there are more of them."""

    model: Model
    surrogate: Surrogate

    @cached_property
    def best(self) -> dict[str, float]:
        """The parameters of the best observation."""
        x = self.surrogate.observations.best_x if self.model.dim else np.empty(0)
        return self._named(self.model.prior.to_theta(x))

    @cached_property
    def orders_of_best(self) -> list[dict[str, float]]:
        """The best parameters, with each exchangeable part in the first one's place."""
        best, parts = self.best, self.model.exchangeable
        found = [best]
        for part in parts[1:]:
            swap = dict(zip((*parts[0], *part), (*part, *parts[0]), strict=True))
            found.append({name: best[swap.get(name, name)] for name in best})
        return found

    def summits(self, most: int) -> list[dict[str, float]]:
        """The best observation, and the best of those that are some length-scales apart, ``most`` in all."""
        seen, gp = self.surrogate.observations, self.surrogate.gp
        if gp is None:
            return [self.best]
        scaled, tops = seen.x / np.exp(np.asarray(gp.hyper.log_lengthscale)), list[int]()
        for i in np.argsort(-seen.y, kind="stable"):
            if len(tops) < most and all(((scaled[i] - scaled[j]) ** 2).sum() > SEPARATE**2 for j in tops):
                tops.append(int(i))
        return [self._named(theta) for theta in self.model.prior.to_theta(seen.x[tops])]

    def at(self, theta: dict[str, float]) -> Array | None:
        """Parameters by name as x (d,), if they are possible."""
        point = np.array([theta[name] for name in self.model.prior.names])
        try:
            possible = np.isfinite(self.model.prior.log_density_theta(point))
            return self.model.prior.to_x(point) if possible else None
        except PriorError:  # a transform of the unit cube has no way back
            return None

    def _named(self, theta: Array) -> dict[str, float]:
        return dict(zip(self.model.prior.names, theta.tolist(), strict=True))


def hints(own: Side, others: Iterable[Side]) -> Hints:
    """What that of the ``others`` that shares the most parameters says; they have observations."""
    free = set(own.model.prior.names) - set(own.model.prior.fixed)
    shared = [(free & set(other.model.prior.names), other) for other in others]
    names, other = max(shared, key=lambda pair: len(pair[0]), default=(set(), own))
    if not names:
        return NONE
    best, ours, parts = own.best, own.orders_of_best, own.model.exchangeable
    told = [mine | {name: theirs[name] for name in names} for theirs in other.orders_of_best for mine in ours]
    points = [x for x in map(own.at, told) if x is not None]
    if parts:
        part = list(own.model.blocks[0])
        here = [x for x in map(own.at, ours) if x is not None]
        points = [x for x in points if all(np.abs(x - y)[part].max() > KNOWN for y in here)]
    if parts and names == set(parts[0]) and other.model.dim == len(names):
        summits = other.summits(len(parts))
        if len(summits) == len(parts):
            tops = zip(parts, summits, strict=True)
            theta = {p[i]: top[name] for p, top in tops for i, name in enumerate(parts[0])}
            together = own.at(best | theta)
            points += [together] if together is not None else []
    return Hints(points, other.surrogate.observations.best)
