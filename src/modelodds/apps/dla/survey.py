"""The real spectra of the experiment, as the data folder lists them."""

import csv
from pathlib import Path
from typing import NamedTuple

from modelodds.apps.dla.null import VARIABLE, data_folder
from modelodds.apps.dla.spectrum import Spectrum, name_of
from modelodds.errors import SpectrumError


class Entry(NamedTuple):
    """A spectrum and what catalogues say of it."""

    path: Path
    z_qso: float
    absorbers: tuple[tuple[float, float], ...]  # z and log N_HI

    @property
    def name(self) -> str:
        """PLATE-MJD-FIBER."""
        return name_of(self.path)

    def spectrum(self) -> Spectrum:
        """The spectrum, at the catalogue's redshift."""
        return Spectrum.read(self.path, self.z_qso)


def entries() -> list[Entry]:
    """All spectra of the data folder's ``spectra.csv``."""
    folder = data_folder()
    if folder is None:
        raise SpectrumError(f"The real spectra are not at hand: set {VARIABLE} to the folder with dla/.")
    with (folder / "spectra.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        Entry(folder / "spectra" / r["file"], float(r["z_qso"]), _absorbers(r["catalogue_dlas"]))
        for r in rows
    ]


def entry(name: str) -> Entry:
    """The spectrum called ``name``."""
    known = {e.name: e for e in entries()}
    if name not in known:
        raise SpectrumError(f"There is no spectrum {name!r} in spectra.csv; there are {', '.join(known)}.")
    return known[name]


def _absorbers(text: str) -> tuple[tuple[float, float], ...]:
    pairs = [part.split(":") for part in text.split(";") if part.strip()]
    return tuple((float(z), float(n)) for z, n in pairs)
