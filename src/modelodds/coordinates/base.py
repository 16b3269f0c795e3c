"""What every coordinate map offers, and the axes that product priors are made of.

An axis is a coordinate x with mean 0 and variance 1 under the prior, made from the prior's cdf u = F(theta):

======== ========================= ==================================
kind     x                         density of x
======== ========================= ==================================
normal   Phi^{-1}(u)               standard normal
box      sqrt(12) (u - 1/2)        uniform on [-sqrt 3, sqrt 3]
======== ========================= ==================================
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Array = NDArray[np.float64]

HALF_WIDTH = 3.0**0.5
"""Half the width of the uniform density of variance 1."""

EDGE = 2.0**-51
"""Uniforms are kept in [EDGE, 1 - EDGE], about 8 standard deviations either way.

Nearer to one, (1 + u)/2 rounds to one, and the quantiles of half-normal distributions are infinite.
"""

SMALLEST_TAIL = 1e-300
"""Tail probabilities are kept above this, so that normal coordinates stay finite (|x| < 38)."""


class Coordinates(Protocol):
    """Map between the free parameters theta and the internal coordinates x of n points, both (n, d)."""

    @property
    def bounds(self) -> Array:
        """Lower and upper limits of x, shape (2, d)."""

    def to_theta(self, x: Array) -> Array:
        """Parameters (n, d) at the internal coordinates ``x`` (n, d)."""

    def to_x(self, theta: Array) -> Array:
        """Internal coordinates (n, d) of the parameters ``theta`` (n, d)."""

    def from_unit(self, u: Array) -> Array:
        """Points x (n, d) that follow the reference density, from uniforms ``u`` (n, d)."""

    def log_reference(self, x: Array) -> Array:
        """Log-density (n,) of the points that `from_unit` gives, at ``x`` (n, d)."""

    def log_density(self, x: Array) -> Array:
        """Normalised prior density of ``x`` (n, d), as logarithms (n,)."""

    def log_density_theta(self, theta: Array) -> Array:
        """Normalised prior density of ``theta`` (n, d), as logarithms (n,)."""


@dataclass(frozen=True, eq=False)
class ProductCoordinates(ABC):
    """Independent axes; the children differ in how an axis turns into a parameter.

    Parameters
    ----------
    names
        The d free parameters.
    box
        Which axes are of the "box" kind, shape (d,); the others are "normal".
    """

    names: tuple[str, ...]
    box: NDArray[np.bool_]

    @property
    def bounds(self) -> Array:
        upper = np.where(self.box, HALF_WIDTH, np.inf)
        return np.stack([-upper, upper])

    @abstractmethod
    def to_theta(self, x: Array) -> Array: ...

    @abstractmethod
    def to_x(self, theta: Array) -> Array: ...

    @abstractmethod
    def log_density_theta(self, theta: Array) -> Array: ...

    def from_unit(self, u: Array) -> Array:
        return np.asarray(np.where(self.box, HALF_WIDTH * (2 * u - 1), ndtri(np.clip(u, EDGE, 1 - EDGE))))

    def log_reference(self, x: Array) -> Array:
        return self.log_density(x)  # the points are draws from the prior itself

    def log_density(self, x: Array) -> Array:
        normal = -0.5 * (x**2 + np.log(2 * np.pi))
        uniform = np.where(np.abs(x) <= HALF_WIDTH, -np.log(2 * HALF_WIDTH), -np.inf)
        return np.asarray(np.where(self.box, uniform, normal).sum(axis=-1))

    def to_unit(self, x: Array) -> Array:
        """Uniforms u (n, d) of the points ``x`` (n, d); beyond the ends of an axis they stay at the end."""
        box = np.clip(0.5 + x / (2 * HALF_WIDTH), 0.0, 1.0)
        return np.asarray(np.where(self.box, box, np.clip(ndtr(x), EDGE, 1 - EDGE)))

    def to_tail(self, x: Array) -> Array:
        """Prior probability (n, d), at most 1/2, of lying beyond than ``x`` (n, d) on the same side of 0."""
        box = np.clip(0.5 - np.abs(x) / (2 * HALF_WIDTH), 0.0, 0.5)
        return np.asarray(np.where(self.box, box, np.maximum(ndtr(-np.abs(x)), SMALLEST_TAIL)))

    def from_tail(self, tail: Array) -> Array:
        """The distance (n, d) of x from 0 beyond which a probability ``tail`` (n, d) lies."""
        normal = -ndtri(np.maximum(tail, SMALLEST_TAIL))
        return np.asarray(np.where(self.box, HALF_WIDTH * (1 - 2 * tail), normal))
