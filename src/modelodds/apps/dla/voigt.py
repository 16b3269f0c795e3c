"""Transmission of one absorber: the Voigt profiles of three Lyman lines, broadened by the instrument.

Temperature and damping are fixed, so a line's profile is one function of velocity v alone. With
q = (v / sigma)^2 it is tabulated as Voigt(v) (1 + q), a function that is smooth and of moderate range in
s = log(1 + q) from the core to the farthest wing, as the cubic pieces of a spline: a look-up costs a
logarithm and a division, is exact to about 1e-10 of the profile, and has a derivative.
"""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy import interpolate, special

from modelodds.apps.dla.lines import AREA, INSTRUMENT, LIGHT, LORENTZ, REACH, SIGMA, WAVELENGTHS
from modelodds.precision import Array

KNOTS = 14_000
FARTHEST = np.log1p((2.0 * LIGHT / SIGMA) ** 2)  # s beyond any wavelength of a quasar's forest


@functools.cache
def profiles() -> NDArray[np.float64]:
    """Coefficients of the cubic pieces, shape (3, KNOTS, 4), constant term first, in cm^2."""
    s = np.linspace(0.0, FARTHEST, KNOTS + 1)
    q = np.expm1(s)
    found = []
    for area, lorentz in zip(AREA, LORENTZ, strict=True):
        values = area * special.voigt_profile(SIGMA * np.sqrt(q), SIGMA, lorentz) * (1.0 + q)
        pieces = interpolate.CubicSpline(s, values).c
        found.append((pieces * (s[1] - s[0]) ** np.arange(3, -1, -1)[:, None])[::-1].T)
    return np.array(found)


def cross_section(rest: Array, table: Array) -> Any:
    """Cross-section, in cm^2, at wavelengths ``rest`` (...) in the absorber's frame."""
    total = 0.0
    for line, pieces in zip(WAVELENGTHS[:3], table, strict=True):
        q = ((rest / line - 1.0) * (LIGHT / SIGMA)) ** 2
        at = jnp.log1p(q) * (KNOTS / FARTHEST)
        index = jnp.clip(at.astype(jnp.int32), 0, KNOTS - 1)
        part, t = jnp.asarray(pieces)[index], at - index
        cubic = part[..., 0] + t * (part[..., 1] + t * (part[..., 2] + t * part[..., 3]))
        total = total + cubic / (1.0 + q)
    return total


def transmission(wavelength: Array, z: Array, log_nhi: Array, table: Array) -> Any:
    """Share of the light that an absorber at ``z`` lets through, (..., n).

    Parameters
    ----------
    wavelength : (n + 6,)
        Observed, three pixels more on either side than asked for.
    z, log_nhi : (...)
        Redshift, and log10 of the column density in 1/cm^2.
    table : (3, KNOTS, 4)
        `profiles()`.
    """
    rest = wavelength / (1.0 + z[..., None])
    raw = jnp.exp(-(10.0 ** log_nhi[..., None]) * cross_section(rest, table))
    n = wavelength.shape[-1] - 2 * REACH
    return sum(share * raw[..., i : i + n] for i, share in enumerate(INSTRUMENT))
