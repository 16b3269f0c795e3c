"""Priors given as a transform of the unit cube, as dynesty, UltraNest and nautilus have it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from modelodds.coordinates.base import EDGE, HALF_WIDTH, Array, ProductCoordinates
from modelodds.errors import PriorError

PROBES = np.array([0.05, 0.275, 0.5, 0.725, 0.95])
"""Values of one uniform at which a transform is probed, evenly spaced: second differences show a bend."""

BISECTIONS = 60
"""Halvings of an axis of length 17: down to the last bit."""


@dataclass(frozen=True, eq=False)
class TransformCoordinates(ProductCoordinates):
    """Axes mapped to u in the unit cube, then through the user's transform.

    ``direction`` (d,) is +1 or -1 where theta_j rises or falls with u_j, if each theta_j depends on it
    alone; None for any other transform, which has no inverse here.
    """

    prior_transform: Callable[[Array], Any]
    direction: Array | None

    @classmethod
    def build(cls, prior_transform: Callable[[Array], Any], names: tuple[str, ...]) -> "TransformCoordinates":
        """Probe the transform: is it well-formed, along which axes is it straight, can it be inverted."""
        if not callable(prior_transform):
            raise PriorError(f"prior_transform must be a function, not a {type(prior_transform).__name__}")
        base = np.random.default_rng(0).uniform(0.2, 0.8, size=(3, len(names)))
        if not np.array_equal(_call(prior_transform, names, base[0]), _call(prior_transform, names, base[0])):
            raise PriorError(
                "prior_transform gave two answers at one point; it must depend on u alone, without randomness"
            )
        for edge in (EDGE, 1 - EDGE):
            _call(prior_transform, names, np.full(len(names), edge))
        responses = np.stack([_respond(prior_transform, names, base, j) for j in range(len(names))])
        box = np.array([_is_affine(response) for response in responses])
        return cls(names, box, prior_transform, _direction(responses))

    def to_theta(self, x: Array) -> Array:
        theta = [_call(self.prior_transform, self.names, u) for u in self.to_unit(x)]
        return np.reshape(theta, x.shape)

    def to_x(self, theta: Array) -> Array:
        if self.direction is None:
            raise PriorError(
                "this prior_transform has no inverse: some parameter depends on several uniforms, or not on "
                "its own; use Prior.from_density, or one component per parameter, to map theta back"
            )
        end = np.where(self.box, HALF_WIDTH, -ndtri(EDGE))
        self._check_range(theta, self.to_theta(np.stack([-end, end])))
        low, high = np.broadcast_to(-end, theta.shape), np.broadcast_to(end, theta.shape)
        for _ in range(BISECTIONS):  # theta_j depends on x_j alone, so all the axes are halved at once
            middle = (low + high) / 2
            below = self.direction * (self.to_theta(middle) - theta) < 0
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray((low + high) / 2)

    def log_density_theta(self, theta: Array) -> Array:
        raise PriorError(
            "a prior_transform does not give the density of theta; use Prior.from_density if it is needed"
        )

    def _check_range(self, theta: Array, ends: Array) -> None:
        lower, upper = ends.min(axis=0), ends.max(axis=0)
        for i, j in np.argwhere(~((theta >= lower) & (theta <= upper))):
            raise PriorError(
                f"{self.names[j]!r} = {theta[i, j]:g} is not reached by prior_transform, which goes from "
                f"{lower[j]:g} to {upper[j]:g}; move the point inside, or widen the prior"
            )


def _call(prior_transform: Callable[[Array], Any], names: tuple[str, ...], u: Array) -> Array:
    """The transform (d,) of one point ``u`` (d,), checked."""
    try:
        # A copy, as transforms in the wild write their answer into their argument and return it.
        theta = np.array(prior_transform(u.copy()), dtype=float)
    except Exception as error:
        raise PriorError(
            f"prior_transform failed at u = {u}: {type(error).__name__}: {error}; it is called with one "
            f"point of the unit cube, a 1-d array of length {len(names)}, for which it has to return the "
            "parameters in order"
        ) from error
    if theta.shape != u.shape:
        raise PriorError(
            f"prior_transform returned shape {theta.shape}, expected {u.shape}: one parameter for each of "
            f"the names {', '.join(names)}"
        )
    if not np.isfinite(theta).all():
        j = int(np.argmin(np.isfinite(theta)))
        raise PriorError(
            f"prior_transform returned {theta[j]} for {names[j]!r} at u = {u}; it must be finite in the cube"
        )
    return theta


def _respond(prior_transform: Callable[[Array], Any], names: tuple[str, ...], base: Array, j: int) -> Array:
    """Parameters (3, 5, d) as u_j runs through the probes around each base point (3, d)."""
    u = np.repeat(base[:, None, :], len(PROBES), axis=1)
    u[:, :, j] = PROBES
    return np.array([[_call(prior_transform, names, point) for point in line] for line in u])


def _is_affine(response: Array) -> bool:
    """Whether every parameter is a straight line in the uniform that was moved; ``response`` is (3, 5, d)."""
    bend = np.abs(np.diff(response, n=2, axis=1)).max(axis=1)
    return bool(np.all(bend <= 1e-9 * np.ptp(response, axis=1) + _rounding(response)))


def _direction(responses: Array) -> Array | None:
    """Sign (d,) of d theta_j / d u_j when each theta_j is monotone in u_j and depends on nothing else.

    ``responses`` (d, 3, 5, d) has the uniform that was moved first and the parameter that answers last.
    """
    d = len(responses)
    moves = np.any([np.ptp(r, axis=1) > _rounding(r) for r in responses], axis=1)
    if not np.array_equal(moves, np.eye(d, dtype=bool)):
        return None
    slopes = np.stack([np.sign(np.diff(responses[j, :, :, j], axis=1)).ravel() for j in range(d)])
    return slopes[:, 0] if np.all(slopes == slopes[:, :1]) else None


def _rounding(response: Array) -> Array:
    """Size (3, d) below which differences along the probes of ``response`` (3, 5, d) are rounding."""
    return np.asarray(1e-13 * np.abs(response).max(axis=1))
