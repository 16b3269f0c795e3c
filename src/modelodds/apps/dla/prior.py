"""Priors: of an absorber's column density, of its redshift, and of how many absorbers there are.

The column density's is that of Garnett et al. (2017): 9 parts of a density fitted to the DR9 catalogue, a
normal cut at 20, and 1 part of a uniform one from 20 to 23. The number's comes from the same catalogue: the
share M / N of its quasars below z_qso + 0.1 (30 000 km/s) that have an absorber is the probability of at
least one, its k-th power that of at least k.
"""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats
from scipy.optimize import elementwise

from modelodds.errors import OptionError
from modelodds.prior import Prior

Array = NDArray[np.float64]

LOWEST, UNIFORM_TO, HIGHEST = 20.0, 23.0, 25.0
FITTED = 0.9  # share of the fitted density
CURVATURE, SLOPE = 1.2695, 50.863  # exp(-1.2695 x^2 + 50.863 x - 509.33)
CENTRE, SPREAD = SLOPE / (2 * CURVATURE), 1 / np.sqrt(2 * CURVATURE)

# Quasars N of the BOSS DR9 catalogue (Lee et al. 2013) below z_qso + 0.1, and those M of them with an
# absorber, as counted in gp_dla_finder's dr9q_concordance table (MIT licence).
CENSUS = np.array(
    [
        (2.2, 11178, 223),
        (2.4, 26071, 944),
        (2.6, 35789, 1815),
        (2.8, 41332, 2555),
        (3.0, 45773, 3475),
        (3.2, 49126, 4315),
        (3.4, 50613, 4797),
        (3.6, 51541, 5087),
        (4.0, 52877, 5464),
        (4.5, 53205, 5580),
        (5.3, 53321, 5632),
    ]
)


def _standard(x: Any) -> Any:
    return (x - CENTRE) / SPREAD


def _uniform(x: Array) -> Array:
    return np.minimum((x - LOWEST) / (UNIFORM_TO - LOWEST), 1.0)


NORMAL_MASS = special.ndtr(_standard(HIGHEST)) - special.ndtr(_standard(LOWEST))


class _ColumnDensity(stats.rv_continuous):  # type: ignore[misc]
    """Mixture of a normal cut to [20, 25] and a uniform on [20, 23]."""

    def _pdf(self, x: Array) -> Array:
        normal = np.exp(-0.5 * _standard(x) ** 2) / np.sqrt(2 * np.pi) / SPREAD / NORMAL_MASS
        return np.asarray(FITTED * normal + (1 - FITTED) * (x <= UNIFORM_TO) / (UNIFORM_TO - LOWEST))

    def _cdf(self, x: Array) -> Array:
        normal = (special.ndtr(_standard(x)) - special.ndtr(_standard(LOWEST))) / NORMAL_MASS
        return np.asarray(FITTED * normal + (1 - FITTED) * _uniform(x))

    def _sf(self, x: Array) -> Array:
        normal = (special.ndtr(-_standard(x)) - special.ndtr(-_standard(HIGHEST))) / NORMAL_MASS
        return np.asarray(FITTED * normal + (1 - FITTED) * (1.0 - _uniform(x)))

    def _ppf(self, q: Array) -> Array:
        return self._solve(lambda x, q: self._cdf(x) - q, q)

    def _isf(self, q: Array) -> Array:
        return self._solve(lambda x, q: q - self._sf(x), q)

    @staticmethod
    def _solve(function: Any, q: Array) -> Array:
        return np.asarray(elementwise.find_root(function, (LOWEST, HIGHEST), args=(q,)).x)


COLUMN_DENSITY = _ColumnDensity(a=LOWEST, b=HIGHEST, name="column_density")()
"""Prior of log10 N_HI, a frozen scipy.stats distribution."""


def absorbers_prior(absorbers: int, z_range: tuple[float, float]) -> Prior:
    """Prior of z and log N_HI of each of ``absorbers`` independent absorbers."""
    low, high = z_range
    components: dict[str, Any] = {}
    for i in range(1, absorbers + 1):
        components |= {f"z_dla_{i}": stats.uniform(low, high - low), f"log_nhi_{i}": COLUMN_DENSITY}
    return Prior(components)


@functools.cache
def absorber_fraction(z_qso: float) -> float:
    """Share of catalogued quasars out to ``z_qso`` with an absorber; held at the catalogue's ends."""
    return float(np.interp(z_qso, CENSUS[:, 0], CENSUS[:, 2] / CENSUS[:, 1]))


def model_probabilities(z_qso: float, most: int = 2, fraction: float | None = None) -> tuple[float, ...]:
    """Prior probabilities of 0, 1, ..., ``most`` absorbers; the last is that of ``most`` or more.

    Parameters
    ----------
    z_qso
        Redshift of the quasar.
    most
        Largest number of absorbers that is considered.
    fraction
        Probability of at least one; from the catalogue if left out.
    """
    share = absorber_fraction(z_qso) if fraction is None else fraction
    if not 0 < share < 1:
        raise OptionError(f"fraction={share!r} must lie between 0 and 1.")
    at_least = share ** np.arange(most + 2)
    at_least[-1] = 0.0
    return tuple(float(p) for p in -np.diff(at_least))
