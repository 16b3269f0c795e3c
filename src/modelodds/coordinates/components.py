"""Priors made of independent scipy.stats components."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import ndtr, ndtri
from scipy.stats.distributions import rv_frozen

from modelodds.coordinates.base import Array, ProductCoordinates
from modelodds.errors import PriorError

LARGEST = np.finfo(float).max


@dataclass(frozen=True, eq=False)
class ComponentCoordinates(ProductCoordinates):
    """One frozen scipy.stats distribution per axis."""

    components: tuple[Any, ...]

    @classmethod
    def build(cls, components: Mapping[str, Any]) -> "ComponentCoordinates":
        """Check the components and choose the kind of each axis."""
        for name, component in components.items():
            _check_component(name, component)
        box = np.array([_is_box(component) for component in components.values()], dtype=bool)
        return cls(tuple(components), box, tuple(components.values()))

    def to_theta(self, x: Array) -> Array:
        theta, tail = np.empty_like(x), self.to_tail(x)
        for j, component in enumerate(self.components):
            theta[:, j] = _quantile(component, x[:, j] < 0, tail[:, j])
        return np.clip(theta, *self._ends)

    @cached_property
    def _ends(self) -> Array:
        """Lower and upper end of every support, shape (2, d), finite; SciPy takes its time to tell."""
        ends = [component.support() for component in self.components]
        return np.clip(np.reshape(np.array(ends, dtype=float), (-1, 2)).T, -LARGEST, LARGEST)

    def to_x(self, theta: Array) -> Array:
        self._check_support(theta)
        side, tail = np.empty_like(theta), np.empty_like(theta)
        for j, component in enumerate(self.components):
            below, above = component.cdf(theta[:, j]), component.sf(theta[:, j])
            side[:, j] = np.where(below < above, -1.0, 1.0)
            tail[:, j] = np.minimum(below, above)
        return side * self.from_tail(tail)

    def log_density_theta(self, theta: Array) -> Array:
        logs = [component.logpdf(theta[:, j]) for j, component in enumerate(self.components)]
        return np.sum(logs, axis=0) if logs else np.zeros(len(theta))

    def _check_support(self, theta: Array) -> None:
        for name, component, column in zip(self.names, self.components, theta.T, strict=True):
            lower, upper = component.support()
            outside = column[~((column >= lower) & (column <= upper))]
            if outside.size:
                raise PriorError(
                    f"{name!r} = {outside[0]:g} lies outside its prior's support [{lower:g}, {upper:g}]; "
                    "move the point inside, or widen the prior"
                )


def _quantile(component: Any, low: NDArray[np.bool_], tail: Array) -> Array:
    """Point (n,) with probability ``tail`` (n,) below it where ``low`` (n,), above it elsewhere.

    Going in from the nearer end keeps the upper tail, where 1 - u would round to 1. Overflow gives an
    infinite point; an end of the support is the right one then.
    """
    theta, high = np.empty_like(tail), ~low
    with np.errstate(over="ignore"):
        if low.any():  # a call of SciPy costs as much for no points as for one
            theta[low] = component.ppf(tail[low])
        if high.any():
            theta[high] = component.isf(tail[high])
    return theta


def _is_box(component: Any) -> bool:
    """Whether a parameter is bounded and closer to linear in u than in Phi^{-1}(u)."""
    u = np.linspace(0.005, 0.995, 199)
    theta = component.ppf(u)
    bounded = np.all(np.isfinite(component.support()))
    return bool(bounded and np.corrcoef(theta, u)[0, 1] > np.corrcoef(theta, ndtri(u))[0, 1])


def _check_component(name: str, component: Any) -> None:
    if not (isinstance(component, rv_frozen) and isinstance(component.dist, stats.rv_continuous)):
        raise PriorError(f"the prior of {name!r} {_why_unusable(component)}")
    call = f"stats.{component.dist.name}"
    with np.errstate(all="ignore"):
        shape = np.shape(component.ppf(0.5))
        if shape != ():
            raise PriorError(
                f"the prior of {name!r} has parameters of shape {shape}: give {call} single numbers, "
                "one named component per parameter"
            )
        lower, median, upper = component.ppf([0.25, 0.5, 0.75])
        ends = np.clip(component.support(), -LARGEST, LARGEST)
        tails = np.clip(_quantile(component, np.array([True, False]), np.full(2, ndtr(-8.0))), *ends)
    if not np.isfinite([lower, median, upper, *tails]).all():
        raise PriorError(
            f"the prior of {name!r} is improper or its parameters are out of range: {call} has no finite "
            "quantiles; give it finite parameters and a positive scale"
        )
    if lower == upper:
        raise PriorError(
            f"the prior of {name!r} puts all its mass on {median:g}; to fix the parameter, give the number "
            "in place of the distribution"
        )


def _why_unusable(component: Any) -> str:
    """The second half of an error message: what is wrong with ``component`` and what to write instead."""
    dist = getattr(component, "dist", component)
    if isinstance(dist, stats.rv_discrete):
        return (
            f"is discrete (stats.{dist.name}); only continuous components work: make each value its own model"
        )
    if isinstance(component, stats.rv_continuous):
        return f"has no parameters yet; call the distribution, as in stats.{component.name}(...)"
    if isinstance(component, (bool, np.bool_)):
        return (
            f"is {component}; give a number to fix the parameter, or a distribution such as stats.norm(0, 1)"
        )
    if isinstance(component, (tuple, list)) and len(component) == 2:
        low, high = component
        return (
            f"is the pair {component}; for a uniform between them write stats.uniform({low}, {high} - {low})"
        )
    if hasattr(component, "rvs") and not hasattr(component, "ppf"):
        return (
            "is multivariate; give one component per parameter, or use Prior.from_density for a joint prior"
        )
    return (
        f"is a {type(component).__name__}; give a frozen scipy.stats distribution such as stats.norm(0, 1), "
        "or a number to fix the parameter"
    )
