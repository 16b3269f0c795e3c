"""Sightline: a spectrum cut, normalised and set beside the null model, ready for the likelihood.

Masked pixels stay in their place, since broadening runs over neighbours, but carry no weight: there mean,
covariance and flux are 0 and the noise variance is 1. Pixels are filled up to a multiple of ``BLOCK`` in the
same manner, so that spectra of about the same length share one compiled program.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelodds.apps.dla.lines import LIGHT, LYMAN_ALPHA, LYMAN_LIMIT, PIXEL, REACH
from modelodds.apps.dla.null import FIRST, LAST, NullModel
from modelodds.apps.dla.spectrum import Spectrum
from modelodds.errors import SpectrumError

Array = NDArray[np.float64]

BLOCK = 128
MARGIN = 3000.0e5 / LIGHT  # redshift, of 3000 km/s: absorbers stay this far from the range's ends
FEWEST = 100  # pixels


@dataclass(frozen=True, eq=False)
class Sightline:
    """Pixels of the Lyman-α forest: n of them with padding, r the rank of the null model.

    Attributes
    ----------
    wavelength : (n + 6,)
        Observed, in Å, three pixels more on either side.
    flux, noise : (n,)
        Normalised flux and its variance.
    mu, m, omega2 : (n,), (n, r), (n,)
        Mean, factor and forest variance of the null model.
    kept : (n,) of bool
        Pixels that count.
    z_range : tuple of float
        Redshifts between which an absorber can lie.
    z_qso, scale : float
        Redshift of the quasar, and the flux that is 1 here.
    name : str
        The spectrum's.
    """

    wavelength: Array
    flux: Array
    noise: Array
    mu: Array
    m: Array
    omega2: Array
    kept: NDArray[np.bool_]
    z_range: tuple[float, float]
    z_qso: float
    scale: float
    name: str

    @classmethod
    def of(cls, spectrum: Spectrum, null: NullModel) -> "Sightline":
        """Cut out rest 911.75 to 1215.75 Å, normalise, and interpolate the null model to the pixels."""
        scale = _scale(spectrum, null)
        inside = (spectrum.rest >= FIRST) & (spectrum.rest <= LAST)
        wavelength, good = spectrum.wavelength[inside], spectrum.ivar[inside] > 0
        if good.sum() < FEWEST:
            raise SpectrumError(
                f"{spectrum.name}: only {good.sum()} good pixels of the Lyman-α forest (rest {FIRST} to "
                f"{LAST} Å at z_qso = {spectrum.z_qso:.4g}); {FEWEST} are needed. Is the redshift right?"
            )
        mu, m, omega2 = null.at(wavelength, spectrum.z_qso)
        with np.errstate(divide="ignore"):
            noise = 1.0 / (spectrum.ivar[inside] * scale**2)
        n = -(-len(wavelength) // BLOCK) * BLOCK
        fill = n - len(wavelength)
        before = wavelength[0] * 10.0 ** (PIXEL * np.arange(-REACH, 0))
        after = wavelength[-1] * 10.0 ** (PIXEL * np.arange(1, REACH + fill + 1))

        def padded(values: Array, blank: float) -> Array:
            values = np.where(good if values.ndim == 1 else good[:, None], values, blank)
            return np.pad(values, [(0, fill)] + [(0, 0)] * (values.ndim - 1), constant_values=blank)

        return cls(
            np.concatenate([before, wavelength, after]),
            padded(spectrum.flux[inside] / scale, 0.0),
            padded(noise, 1.0),
            padded(mu, 0.0),
            padded(m, 0.0),
            padded(omega2, 0.0),
            np.pad(good, (0, fill)),
            _z_range(wavelength[good], spectrum),
            spectrum.z_qso,
            scale,
            spectrum.name,
        )

    @property
    def n_pixels(self) -> int:
        """Number of pixels that count."""
        return int(self.kept.sum())


def _scale(spectrum: Spectrum, null: NullModel) -> float:
    low, high = null.window
    inside = (spectrum.rest >= low) & (spectrum.rest <= high) & (spectrum.ivar > 0)
    scale = float(np.median(spectrum.flux[inside])) if inside.any() else float("nan")
    if not scale > 0:
        raise SpectrumError(
            f"{spectrum.name}: the flux cannot be normalised: its median over rest {low:g} to {high:g} Å is "
            f"{scale:g} ({inside.sum()} good pixels)."
        )
    return scale


def _z_range(wavelength: Array, spectrum: Spectrum) -> tuple[float, float]:
    limit = LYMAN_LIMIT * (1.0 + spectrum.z_qso) / LYMAN_ALPHA - 1.0 + MARGIN
    low = max(wavelength[0] / LYMAN_ALPHA - 1.0, limit)
    high = min(wavelength[-1] / LYMAN_ALPHA - 1.0, spectrum.z_qso) - MARGIN
    if not high > low:
        raise SpectrumError(
            f"{spectrum.name}: no redshift is left for an absorber between {low:.4f} and {high:.4f}."
        )
    return float(low), float(high)
