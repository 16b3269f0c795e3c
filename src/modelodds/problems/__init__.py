"""Benchmark problems with known answers, one file each.

``load("tails-6", seed=3)`` gives one; ``FAMILIES`` has them all by name.
"""

from modelodds.errors import ProblemError
from modelodds.problems import battery as _battery
from modelodds.problems import epidemic as _epidemic
from modelodds.problems import links as _links
from modelodds.problems import lumpy as _lumpy
from modelodds.problems import nested as _nested
from modelodds.problems import nile as _nile
from modelodds.problems import plane as _plane
from modelodds.problems import planets as _planets
from modelodds.problems import regression as _regression
from modelodds.problems import ring as _ring
from modelodds.problems import rosenbrock as _rosenbrock
from modelodds.problems import synthetic as _synthetic
from modelodds.problems import tails as _tails
from modelodds.problems.base import Family, Problem

FAMILIES: dict[str, Family] = {
    module.FAMILY.name: module.FAMILY
    for module in (
        _regression,
        _plane,
        _rosenbrock,
        _ring,
        _tails,
        _lumpy,
        _nested,
        _synthetic,
        _links,
        _nile,
        _epidemic,
        _battery,
        _planets,
    )
}


def find(name: str) -> tuple[Family, int]:
    """The family and size that a name such as ``tails-6`` stands for."""
    stem, _, size = name.partition("-")
    if stem not in FAMILIES or not (size.isdigit() or not size):
        raise ProblemError(f"There is no problem {name!r}; the families are {', '.join(FAMILIES)}.")
    return FAMILIES[stem], int(size or 0)


def load(name: str, seed: int = 0) -> Problem:
    """The problem called ``name``, such as ``tails-6`` or ``nile``, with the data of ``seed``."""
    family, size = find(name)
    return family.load(size, seed)


__all__ = ["FAMILIES", "Family", "Problem", "find", "load"]
