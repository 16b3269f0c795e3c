"""Spectra drawn from the null model, with absorbers and noise of one's choice."""

from collections.abc import Iterable

import jax
import numpy as np

from modelodds.apps.dla.lines import PIXEL, REACH
from modelodds.apps.dla.null import FIRST, LAST, NullModel
from modelodds.apps.dla.spectrum import Spectrum
from modelodds.apps.dla.voigt import profiles, transmission

BLUE, RED = 3600.0, 10_300.0  # Å, the range of BOSS


def simulate(
    null: NullModel,
    z_qso: float,
    absorbers: Iterable[tuple[float, float]] = (),
    snr: float = 5.0,
    seed: int | np.random.Generator = 0,
    masked: float = 0.01,
) -> Spectrum:
    """Draw a quasar's spectrum.

    Parameters
    ----------
    null
        What a quasar without absorber looks like.
    z_qso
        Its redshift.
    absorbers
        Redshift and log10 column density of each.
    snr
        Signal-to-noise ratio per pixel where the flux is 1, at rest 1425 to 1475 Å.
    seed
        The same seed gives the same spectrum.
    masked
        Share of pixels without a measurement.
    """
    rng = np.random.default_rng(seed)
    steps = np.arange(round(np.log10(BLUE) / PIXEL), round(np.log10(RED) / PIXEL))
    wavelength = 10.0 ** (PIXEL * steps)
    rest = wavelength / (1.0 + z_qso)
    forest = (rest >= FIRST) & (rest <= LAST)
    mu, m, omega2 = null.at(wavelength[forest], z_qso)
    emission = mu + m @ rng.standard_normal(m.shape[1])
    emission += np.sqrt(omega2) * rng.standard_normal(len(mu))
    flux = np.ones(len(wavelength))
    flux[forest] = emission
    padded = 10.0 ** (PIXEL * np.arange(steps[0] - REACH, steps[-1] + REACH + 1))
    with jax.enable_x64(True):
        for z, log_nhi in absorbers:
            flux *= np.asarray(transmission(padded, np.asarray(z), np.asarray(log_nhi), profiles()))
    flux += rng.standard_normal(len(flux)) / snr
    ivar = np.where(rng.uniform(size=len(flux)) < masked, 0.0, snr**2)
    return Spectrum(wavelength, flux, ivar, z_qso, "simulated")
