"""Which parameters models have in common: one space that the models' spaces are parts of.

Two models share a parameter if it has the same name and the same prior in both, so that it is the same
internal coordinate; or if a model declares it (``Model(shared={"slope": "w1"})``), in which case the priors
may also differ in place and width. A parameter that a model lacks is held at its *anchor*, the value at which
the larger model is most like the smaller: the number at which the smaller one fixes it, or else a
hyperparameter.

| symbol  | name          | shape  | meaning                                                             |
|---------|---------------|--------|---------------------------------------------------------------------|
| D       | ``names``     |        | parameters of all models of a group, each once                      |
| e_i(x)  | ``embed``     | (n, D) | points of model i in the common space, 0 for parameters it lacks    |
| a       | ``anchor``    | (D,)   | where parameters are held in models that lack them: a first guess   |
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from modelodds.errors import ModelError
from modelodds.model import Model

Array = NDArray[np.float64]

PROBES = np.array([-1.6, -0.7, 0.0, 0.4, 1.3])  # coordinates at which the maps to theta are compared
BASES = (0.0, 0.5, -0.8)  # of all other coordinates meanwhile
CLOSE = 1e-9


@dataclass(frozen=True)
class Sharing:
    """The common space of a group of models that share parameters."""

    members: tuple[int, ...]  # positions of the models in the comparison
    names: tuple[str, ...]  # (D,)
    columns: tuple[tuple[int, ...], ...]  # of the common space, for every axis of each member
    scale: Array  # (g, D) common coordinate = scale x + shift; 1 and 0 where the priors are the same
    shift: Array  # (g, D)
    anchor: Array  # (D,)
    anchored: NDArray[np.bool_]  # (D,) whether the anchor is known

    @property
    def has(self) -> tuple[tuple[bool, ...], ...]:
        """Which parameters each member has, (g, D)."""
        return tuple(tuple(c in columns for c in range(len(self.names))) for columns in self.columns)

    def embed(self, member: int, x: Array) -> Array:
        """Points ``x`` (n, d) of a member in the common space (n, D), 0 for what it lacks."""
        columns = list(self.columns[member])
        common = np.zeros((len(x), len(self.names)))
        common[:, columns] = x * self.scale[member, columns] + self.shift[member, columns]
        return common


def find_sharing(models: Sequence[Model], alone: Collection[int] = ()) -> list[Sharing]:
    """Groups of models that share parameters, two or more in each; models that share none are left out.

    So are those ``alone``: a surrogate that is a sum over exchangeable parts is no slice of another.
    """
    axes = [
        [] if i in alone else [_Axis.of(i, model, j) for j in range(model.dim)]
        for i, model in enumerate(models)
    ]
    shared = {
        frozenset((a, b)): relation
        for one, other in combinations(axes, 2)
        for a in one
        for b in other
        if (relation := a.relation(b)) is not None
    }
    parent = list(range(len(models)))

    def root(i: int) -> int:
        return i if parent[i] == i else root(parent[i])

    for pair in shared:
        a, b = sorted(axis.model for axis in pair)
        parent[root(b)] = root(a)
    groups = [[i for i in range(len(models)) if root(i) == r] for r in range(len(models))]
    return [_group(models, [axes[i] for i in g], tuple(g)) for g in groups if len(g) > 1]


@dataclass(frozen=True)
class _Axis:
    """One coordinate of one model: what it is called, and theta along it."""

    model: int
    owner: str
    name: str
    declared: bool
    theta: tuple[float, ...] | None  # at the probes; None where it depends on other coordinates, too

    @classmethod
    def of(cls, position: int, model: Model, j: int) -> "_Axis":
        free = [k for k, name in enumerate(model.prior.names) if name not in model.prior.fixed]
        name = model.prior.names[free[j]]
        lines = []
        for base in BASES:
            x = np.full((len(PROBES), model.dim), base)
            x[:, j] = PROBES
            lines.append(model.prior.to_theta(x)[:, free[j]])
        alone = all(np.allclose(line, lines[0], rtol=CLOSE, atol=CLOSE) for line in lines)
        theta = tuple(float(t) for t in lines[0]) if alone else None
        return cls(position, model.name, model.shared.get(name, name), name in model.shared, theta)

    def relation(self, other: "_Axis") -> tuple[float, float] | None:
        """(scale, shift) with other's x = scale x + shift, if the two are one parameter."""
        if self.name != other.name:
            return None
        declared = self.declared or other.declared
        if self.theta is not None and other.theta is not None:
            a, b = np.array(self.theta), np.array(other.theta)
            if np.allclose(a, b, rtol=CLOSE, atol=CLOSE):
                return 1.0, 0.0
            slopes = np.polyfit(PROBES, a, 1), np.polyfit(PROBES, b, 1)
            straight = all(
                np.allclose(np.polyval(s, PROBES), t, rtol=1e-6, atol=1e-9)
                for s, t in zip(slopes, (a, b), strict=True)
            )
            if declared and straight:
                return float(slopes[0][0] / slopes[1][0]), float((slopes[0][1] - slopes[1][1]) / slopes[1][0])
        if declared:
            raise ModelError(
                f"models {self.owner!r} and {other.owner!r} are declared to share {self.name!r}, but their "
                "priors differ in more than place and width; give it the same prior in both, or leave it out "
                "of Model(shared=...)"
            )
        return None


def _group(models: Sequence[Model], axes: list[list[_Axis]], members: tuple[int, ...]) -> Sharing:
    """The common space of these models; a parameter's coordinate is that of the first that has it."""
    firsts: list[_Axis] = []
    columns: list[tuple[int, ...]] = []
    found: dict[tuple[int, int], tuple[float, float]] = {}
    for i, own in enumerate(axes):
        row = []
        for axis in own:
            at = next((c for c, f in enumerate(firsts) if axis.relation(f) is not None), len(firsts))
            if at == len(firsts):
                firsts.append(axis)
            relation = axis.relation(firsts[at]) if firsts[at] is not axis else (1.0, 0.0)
            found[i, at] = relation or (1.0, 0.0)
            row.append(at)
        columns.append(tuple(row))
    size = len(axes), len(firsts)
    scale, shift = np.ones(size), np.zeros(size)
    for place, (a, b) in found.items():
        scale[place], shift[place] = a, b
    anchor, anchored = np.zeros(size[1]), np.zeros(size[1], dtype=bool)
    for c, axis in enumerate(firsts):
        value = _fixed_at(models[axis.model], axis, [models[i] for i in members])
        if value is not None:
            anchor[c], anchored[c] = value, True
    return Sharing(members, tuple(f.name for f in firsts), tuple(columns), scale, shift, anchor, anchored)


def _fixed_at(model: Model, axis: _Axis, others: list[Model]) -> float | None:
    """The coordinate at which another model fixes this parameter, if one does and it lies in the prior."""
    values = [other.prior.fixed[axis.name] for other in others if axis.name in other.prior.fixed]
    own = next((name for name in model.prior.names if model.shared.get(name, name) == axis.name), None)
    if not values or own is None or axis.theta is None:
        return None
    theta = model.prior.to_theta(np.zeros(model.dim))
    theta[model.prior.names.index(own)] = values[0]
    try:
        x = model.prior.to_x(theta)
    except ValueError:  # outside its support
        return None
    free = [name for name in model.prior.names if name not in model.prior.fixed]
    value = float(x[free.index(own)])
    return value if abs(value) < 7.0 else None
