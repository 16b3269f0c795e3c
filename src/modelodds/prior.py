"""Prior: named parameters and their distribution, with the map to the internal coordinates x.

Notation: theta (p,) are all the parameters in the user's coordinates, fixed ones included; x (d,) are the
free ones in internal coordinates, where each has mean 0 and variance 1 under the prior.
"""

from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from modelodds.coordinates.base import Array, Coordinates
from modelodds.coordinates.components import ComponentCoordinates
from modelodds.coordinates.density import DensityCoordinates
from modelodds.coordinates.transform import TransformCoordinates
from modelodds.coordinates.widened import WidenedCoordinates
from modelodds.errors import PriorError

END = 2.0  # standard deviations from the centre beyond which a parameter with a hard end is at it, ...
SMALL = 0.1  # ... but for this share of what it changes over one standard deviation either way, ...
HARD = 3.0  # ... which is one where the density falls by less than this factor over as many more


class Prior:
    """Prior distribution of a model's parameters.

    Parameters
    ----------
    components
        From the name of each parameter, in the order of theta, to its frozen ``scipy.stats`` distribution; a
        number fixes the parameter. An empty dictionary is a model with nothing to fit.

    Attributes
    ----------
    names : tuple of str
        The p parameters in the order of theta, fixed ones included.
    fixed : dict of str to float
        The parameters held at a number.

    Examples
    --------
    >>> from scipy import stats
    >>> prior = Prior({"slope": stats.norm(0, 1), "noise": stats.halfnorm(scale=2), "offset": 0.0})
    >>> prior
    Prior(slope, noise, offset=0)
    >>> prior.to_theta([0.0, 0.0]).round(3).tolist()
    [0.0, 1.349, 0.0]
    """

    names: tuple[str, ...]
    fixed: dict[str, float]
    _coordinates: Coordinates

    def __init__(self, components: Mapping[str, Any]) -> None:
        if not isinstance(components, Mapping):
            raise PriorError(
                "Prior takes a dictionary from names to distributions, such as {'slope': stats.norm(0, 1)}, "
                f"not a {type(components).__name__}; a function goes to Prior.from_transform"
            )
        self.names = _check_names(components)
        self.fixed = {name: _finite(name, value) for name, value in components.items() if _is_number(value)}
        free = {name: value for name, value in components.items() if name not in self.fixed}
        self._coordinates = ComponentCoordinates.build(free)

    @classmethod
    def from_transform(cls, prior_transform: Callable[[Array], Any], names: Iterable[str]) -> "Prior":
        """Prior of theta = prior_transform(u) with u uniform on the unit cube.

        Parameters
        ----------
        prior_transform
            Takes u, shape (d,), and returns theta, shape (d,). It may write into its argument.
        names
            The d parameters, in the order of theta.
        """
        names = _check_names(names, at_least=1)
        return cls._from_coordinates(names, TransformCoordinates.build(prior_transform, names))

    @classmethod
    def from_density(
        cls,
        log_density: Callable[[Array], Any],
        sample: Callable[[int, np.random.Generator], Any],
        names: Iterable[str],
    ) -> "Prior":
        """Joint prior known by its density and by draws.

        Parameters
        ----------
        log_density
            Takes theta, shape (d,), and returns the natural log of its normalised density; -inf outside the
            support.
        sample
            ``sample(n, rng)`` returns n draws, shape (n, d). They set the scale of the internal coordinates.
        names
            The d parameters, in the order of theta.
        """
        names = _check_names(names, at_least=1)
        return cls._from_coordinates(names, DensityCoordinates.build(log_density, sample, names))

    @classmethod
    def _from_coordinates(cls, names: tuple[str, ...], coordinates: Coordinates) -> "Prior":
        prior = cls.__new__(cls)
        prior.names, prior.fixed, prior._coordinates = names, {}, coordinates
        return prior

    def widened(self, factor: float) -> "Prior":
        """The same prior over the same x, ``factor`` times as wide about its centre there.

        A normal's standard deviation and a uniform's width are multiplied; of any other distribution, those
        of the normal or uniform coordinate it is mapped to.
        """
        prior = self._from_coordinates(self.names, WidenedCoordinates(self._coordinates, factor))
        prior.fixed = self.fixed
        return prior

    @property
    def dim(self) -> int:
        """Number d of free parameters."""
        return len(self.names) - len(self.fixed)

    @property
    def components(self) -> dict[str, Any]:
        """The free parameters' distributions by name; empty for a prior that is not made of components."""
        coordinates = self._coordinates
        if not isinstance(coordinates, ComponentCoordinates):
            return {}
        return dict(zip(coordinates.names, coordinates.components, strict=True))

    @property
    def bounds(self) -> Array:
        """Lower and upper limits of x, shape (2, d); infinite where x is normal."""
        return self._coordinates.bounds

    def limits(self, reach: float) -> Array:
        """Limits of x within which there is something to look for, shape (2, d).

        These are the bounds, at most ``reach`` from the centre, and nearer where a parameter has a hard end,
        one at which its density does not vanish: in a normal coordinate that is infinitely far away, and
        beyond two standard deviations next to nothing changes.
        """
        limits = np.clip(self.bounds, -reach, reach)
        for j, side in np.ndindex(self.dim, 2):
            if np.isinf(self.bounds[side, j]) and self._ends_hard(j, 2.0 * side - 1.0):
                limits[side, j] = (2.0 * side - 1.0) * END
        return limits

    def _ends_hard(self, j: int, sign: float) -> bool:
        """Whether what moves along axis ``j`` is as good as at its end at END, and its density no smaller."""
        axis = sign * np.eye(self.dim)[j]
        at = np.array([1.0, 2.0])[:, None] * END + np.array([-0.05, 0.05])
        theta, middle = self.to_theta(at[..., None] * axis), self.to_theta(axis) - self.to_theta(-axis)
        moves = middle != 0
        near, far = (np.abs(theta[:, 1] - theta[:, 0]) / np.diff(ndtr(at), axis=1))[:, moves]
        rest = np.abs(theta[1, 1] - theta[0, 1])[moves]
        return bool(near.size and (rest < SMALL * np.abs(middle[moves])).all() and (far < HARD * near).all())

    def to_theta(self, x: ArrayLike) -> Array:
        """Parameters theta, shape (..., p), at internal coordinates ``x``, shape (..., d)."""
        rows, batch = _as_rows(x, self.dim, "x")
        theta = np.empty((len(rows), len(self.names)))
        theta[:, self._is_free] = self._coordinates.to_theta(rows)
        theta[:, ~self._is_free] = list(self.fixed.values())
        return theta.reshape(*batch, len(self.names))

    def to_x(self, theta: ArrayLike) -> Array:
        """Internal coordinates x, shape (..., d), of parameters ``theta``, shape (..., p)."""
        rows, batch = _as_rows(theta, len(self.names), "theta")
        for (name, value), column in zip(self.fixed.items(), rows[:, ~self._is_free].T, strict=True):
            if np.any(column != value):
                raise PriorError(
                    f"{name!r} is fixed at {value:g}, but theta has {column[column != value][0]:g} there"
                )
        return self._coordinates.to_x(rows[:, self._is_free]).reshape(*batch, self.dim)

    def from_unit(self, u: ArrayLike) -> tuple[Array, Array]:
        """Turn points ``u``, shape (..., d), spread evenly over the unit cube into points of the prior.

        Returns
        -------
        x : (..., d)
            Internal coordinates.
        log_weight : (...)
            Log of prior density over reference density; 0 where the points are draws from the prior itself.
        """
        rows, batch = _as_rows(u, self.dim, "u")
        x = self._coordinates.from_unit(rows)
        log_weight = self._coordinates.log_density(x) - self._coordinates.log_reference(x)
        return x.reshape(*batch, self.dim), log_weight.reshape(batch)

    def log_reference(self, x: ArrayLike) -> Array:
        """Log of the density that the points of `from_unit` follow, at ``x``, shape (..., d) to (...)."""
        rows, batch = _as_rows(x, self.dim, "x")
        return self._coordinates.log_reference(rows).reshape(batch)

    def log_density(self, x: ArrayLike) -> Array:
        """Log of the normalised prior density of ``x``, shape (..., d) to (...); -inf outside the support."""
        rows, batch = _as_rows(x, self.dim, "x")
        return self._coordinates.log_density(rows).reshape(batch)

    def log_density_theta(self, theta: ArrayLike) -> Array:
        """Log of the prior density of the free parameters in ``theta``, shape (..., p) to (...)."""
        rows, batch = _as_rows(theta, len(self.names), "theta")
        return self._coordinates.log_density_theta(rows[:, self._is_free]).reshape(batch)

    @property
    def _is_free(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return np.array([name not in self.fixed for name in self.names], dtype=bool)

    def __repr__(self) -> str:
        parts = (f"{name}={self.fixed[name]:g}" if name in self.fixed else name for name in self.names)
        return f"Prior({', '.join(parts)})"


def _check_names(names: Iterable[Any], at_least: int = 0) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise PriorError(f"names must be a list of strings such as ['slope', 'noise'], not {names!r}")
    checked = tuple(names)
    if len(checked) < at_least:
        raise PriorError("names is empty; give one name per parameter")
    for name in checked:
        if not isinstance(name, str) or not name.strip():
            raise PriorError(f"parameter names must be non-empty strings, not {name!r}")
        if checked.count(name) > 1:
            raise PriorError(f"the name {name!r} is given twice; parameter names must differ")
    return checked


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _finite(name: str, value: Any) -> float:
    if not np.isfinite(value):
        raise PriorError(f"{name!r} is fixed at {value}; a fixed parameter needs a finite number")
    return float(value)


def _as_rows(points: ArrayLike, width: int, label: str) -> tuple[Array, tuple[int, ...]]:
    """``points`` (..., width) as rows (n, width), and the shape (...) that was flattened."""
    array = np.asarray(points, dtype=float)
    if array.ndim == 0 or array.shape[-1] != width:
        raise PriorError(f"{label} has shape {array.shape}; its last axis must have length {width}")
    batch = array.shape[:-1]
    return array.reshape(int(np.prod(batch)), width), batch
