"""A prior made wider or narrower, in the coordinates of the prior it came from."""

from dataclasses import dataclass

import numpy as np

from modelodds.coordinates.base import Array, Coordinates


@dataclass(frozen=True, eq=False)
class WidenedCoordinates:
    """The coordinates ``base``, with the prior of x ``factor`` times as wide about its centre.

    Points x mean what they meant to ``base``, so a surrogate over them can be used with either prior.
    """

    base: Coordinates
    factor: float

    @property
    def bounds(self) -> Array:
        return self.base.bounds * self.factor

    def to_theta(self, x: Array) -> Array:
        return self.base.to_theta(x)

    def to_x(self, theta: Array) -> Array:
        return self.base.to_x(theta)

    def from_unit(self, u: Array) -> Array:
        return self.base.from_unit(u) * self.factor

    def log_reference(self, x: Array) -> Array:
        return np.asarray(self.base.log_reference(x / self.factor) - x.shape[-1] * np.log(self.factor))

    def log_density(self, x: Array) -> Array:
        return np.asarray(self.base.log_density(x / self.factor) - x.shape[-1] * np.log(self.factor))

    def log_density_theta(self, theta: Array) -> Array:
        jacobian = self.base.log_density_theta(theta) - self.base.log_density(self.base.to_x(theta))
        return self.log_density(self.base.to_x(theta)) + jacobian
