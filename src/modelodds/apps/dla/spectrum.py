"""Spectrum: what a spectrograph saw of one quasar, and its files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelodds.errors import SpectrumError

Array = NDArray[np.float64]

BRIGHT_SKY = 1 << 23  # of and_mask
TABLE = ("flux", "loglam", "ivar", "and_mask")


@dataclass(frozen=True, eq=False)
class Spectrum:
    """One quasar's spectrum, as observed.

    Parameters
    ----------
    wavelength : (m,)
        Observed, in Å, evenly spaced in its logarithm.
    flux, ivar : (m,)
        Flux in any unit, and the inverse of its variance; 0 where there is no measurement.
    z_qso : float
        Redshift of the quasar.
    name : str
        What to call it.
    """

    wavelength: Array
    flux: Array
    ivar: Array
    z_qso: float
    name: str = "spectrum"

    def __post_init__(self) -> None:
        shapes = {np.shape(a) for a in (self.wavelength, self.flux, self.ivar)}
        if len(shapes) != 1 or len(next(iter(shapes))) != 1 or next(iter(shapes))[0] < 2:
            raise SpectrumError(f"{self.name}: wavelength, flux and ivar need one length, not {shapes}.")
        if not np.isfinite(self.z_qso) or self.z_qso <= 0:
            raise SpectrumError(f"{self.name}: the quasar's redshift is {self.z_qso}; give it as z_qso=...")
        if not (np.diff(self.wavelength) > 0).all():
            raise SpectrumError(f"{self.name}: wavelengths must rise.")

    @property
    def rest(self) -> Array:
        """Wavelengths in the quasar's rest frame, (m,), in Å."""
        return np.asarray(self.wavelength / (1.0 + self.z_qso))

    @classmethod
    def read(cls, path: str | Path, z_qso: float | None = None) -> "Spectrum":
        """Read an SDSS file ``spec-PLATE-MJD-FIBER.fits``.

        Pixels of the bright sky, and those that are not finite, get an inverse variance of 0.

        Parameters
        ----------
        path
            The file.
        z_qso
            Redshift of the quasar; the pipeline's, from the file, if left out.
        """
        path = Path(path)
        table, pipeline = _read(path)
        flux, loglam, ivar = (np.asarray(table[name], dtype=float) for name in TABLE[:3])
        bad = (np.asarray(table["and_mask"], dtype=int) & BRIGHT_SKY) != 0
        bad |= ~(np.isfinite(flux) & np.isfinite(ivar) & (ivar > 0))
        redshift = pipeline if z_qso is None else float(z_qso)
        return cls(10.0**loglam, np.where(bad, 0.0, flux), np.where(bad, 0.0, ivar), redshift, name_of(path))

    def write(self, path: str | Path) -> None:
        """Write it the way SDSS does."""
        from astropy.io import fits

        pixels = [
            fits.Column("flux", "D", array=self.flux),
            fits.Column("loglam", "D", array=np.log10(self.wavelength)),
            fits.Column("ivar", "D", array=self.ivar),
            fits.Column("and_mask", "J", array=np.zeros(len(self.flux), dtype=np.int32)),
        ]
        about = [fits.Column("Z", "D", array=np.array([self.z_qso]))]
        units = [fits.PrimaryHDU(), *map(fits.BinTableHDU.from_columns, (pixels, about))]
        fits.HDUList(units).writeto(path, overwrite=True)


def name_of(path: str | Path) -> str:
    """PLATE-MJD-FIBER of an SDSS file, or the file's own name."""
    return Path(path).name.removesuffix(".gz").removesuffix(".fits").removeprefix("spec-")


def _read(path: Path) -> tuple[dict[str, Any], float]:
    """Columns of the pixels' table, and the pipeline's redshift (NaN where there is none)."""
    try:
        from astropy.io import fits
    except ImportError as error:
        raise SpectrumError("Reading spectra needs astropy: pip install 'modelodds[dla]'.") from error
    if not path.exists():
        raise SpectrumError(f"There is no file {path}.")
    try:
        with fits.open(path, memmap=False) as file:
            pixels = file[1].data
            table = {name: np.array(pixels[name]) for name in TABLE}
            about = file[2].data if len(file) > 2 else pixels
            redshift = float(about["Z"][0]) if "Z" in about.names else float("nan")
    except Exception as error:  # astropy raises whatever its parts raise
        raise SpectrumError(f"{path} is not an SDSS spectrum: {_reason(error)}.") from error
    return table, redshift


def _reason(error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return text.split(". ")[0].rstrip(".").strip("'\"")
