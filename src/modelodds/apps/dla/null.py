"""The null model: a Gaussian process of a quasar's spectrum without absorber (Ho et al. 2021).

In the quasar's rest frame the emission is N(mu, M M^T), and the forest of weak absorption adds a variance of
its own at every pixel. Both are dimmed by the forest's mean transmission, which grows with redshift:

    tau(lambda; tau_0, beta) = sum_i tau_0 (f_i lambda_i) / (f_1 lambda_1) (1 + z_i)^beta,   z_i <= z_qso,

over 31 Lyman lines, with 1 + z_i = lambda / lambda_i.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from modelodds.apps.dla.lines import STRENGTHS, WAVELENGTHS
from modelodds.errors import SpectrumError

Array = NDArray[np.float64]

VARIABLE = "MODELODDS_DATA"  # the folder that holds dla/
MEAN_FLUX = (0.00554, 3.182)  # tau_0 and beta of the mean transmission (Kamble et al. 2020)
FIRST, LAST = 911.75, 1215.75  # Å, rest frame: the part of a spectrum that is modelled


@dataclass(frozen=True, eq=False)
class NullModel:
    """A learned null model on a grid of ``g`` rest wavelengths, its covariance of rank ``r``.

    Parameters
    ----------
    rest : (g,)
        Wavelengths in Å.
    mu : (g,)
        Mean of the normalised flux.
    m : (g, r)
        Factor of its covariance.
    log_omega : (g,)
        Log standard deviation of the forest's own variation.
    c_0, tau_0, beta : float
        Its growth with redshift: omega is multiplied by 1 - exp(-tau(tau_0, beta)) + c_0.
    window : tuple of float
        Rest wavelengths, in Å, between which the median flux is 1.
    """

    rest: Array
    mu: Array
    m: Array
    log_omega: Array
    c_0: float
    tau_0: float
    beta: float
    window: tuple[float, float] = (1425.0, 1475.0)

    @classmethod
    def read(cls, path: str | Path) -> "NullModel":
        """Read a model in MATLAB's v7.3 format, as ``gp_dr12_trained`` has them."""
        try:
            import h5py
        except ImportError as error:
            raise SpectrumError("Reading a null model needs h5py: pip install 'modelodds[dla]'.") from error
        try:
            with h5py.File(path) as file:
                found = {name: np.array(file[name]) for name in FIELDS}
        except (OSError, KeyError) as error:
            raise SpectrumError(f"{path} is not a null model: {error}.") from error
        return cls._of(found | {"M": found["M"].T})

    @classmethod
    def installed(cls) -> "NullModel":
        """The same model out of the package ``gp_dla_finder``."""
        try:
            import gp_dla_finder
        except ImportError as error:
            raise SpectrumError(
                f"No null model is at hand: set {VARIABLE} to the folder that holds dla/null_model.mat, or "
                "pip install gp_dla_finder, which brings one."
            ) from error
        folder = Path(gp_dla_finder.__file__).parent / "data" / "models"
        with np.load(folder / "eboss_dr16q_minus_dr12q.npz") as file:
            return cls._of({name: np.array(file[name]) for name in FIELDS})

    @classmethod
    def load(cls) -> "NullModel":
        """The model of the data folder, or that of ``gp_dla_finder`` where there is none."""
        folder = data_folder()
        return cls.installed() if folder is None else cls.read(folder / "null_model.mat")

    @classmethod
    def _of(cls, found: dict[str, Array]) -> "NullModel":
        rest, mu, log_omega = (np.ravel(found[n]).astype(float) for n in FIELDS[:3])
        c_0, tau_0, beta = (float(np.exp(found[n].item())) for n in FIELDS[4:])
        return cls(rest, mu, np.asarray(found["M"], dtype=float), log_omega, c_0, tau_0, beta)

    @classmethod
    def synthetic(cls, rank: int = 6) -> "NullModel":
        """A made-up model, about as bright and as variable as the learned one: for tests and examples."""
        rest = np.arange(880.0, 1421.0, 0.5)
        lines = sum(
            height * np.exp(-0.5 * ((rest - centre) / width) ** 2)
            for height, centre, width in ((2.0, 1216.0, 14.0), (0.7, 1243.0, 16.0), (0.5, 1033.0, 12.0))
        )
        mu = 1.2 * (rest / 1450.0) ** -1.2 + lines
        phase = np.pi * (rest - rest[0]) / (rest[-1] - rest[0])
        shapes = [0.35 / (1 + k) * np.cos(k * phase) for k in range(rank)]
        return cls(rest, mu, np.stack(shapes, 1), np.full(len(rest), np.log(0.45)), 0.15, 1.2e-4, 5.15)

    def at(self, wavelength: Array, z_qso: float) -> tuple[Array, Array, Array]:
        """Mean (n,), factor (n, r) and forest's variance (n,) at observed ``wavelength`` (n,)."""
        rest = wavelength / (1.0 + z_qso)
        mu, log_omega = (np.interp(rest, self.rest, values) for values in (self.mu, self.log_omega))
        m = np.stack([np.interp(rest, self.rest, column) for column in self.m.T], axis=1)
        dimming = np.exp(-optical_depth(wavelength, z_qso, *MEAN_FLUX))
        growth = 1.0 - np.exp(-optical_depth(wavelength, z_qso, self.tau_0, self.beta)) + self.c_0
        return dimming * mu, dimming[:, None] * m, (np.exp(log_omega) * dimming * growth) ** 2


FIELDS = ("rest_wavelengths", "mu", "log_omega", "M", "log_c_0", "log_tau_0", "log_beta")


def optical_depth(wavelength: Array, z_qso: float, tau_0: float, beta: float) -> Array:
    """Effective optical depth of the forest at observed ``wavelength`` (n,), all 31 Lyman lines together."""
    one_plus_z = wavelength / WAVELENGTHS[:, None]
    strength = STRENGTHS * WAVELENGTHS / (STRENGTHS[0] * WAVELENGTHS[0])
    terms = tau_0 * strength[:, None] * one_plus_z**beta
    return np.asarray(np.where(one_plus_z - 1.0 <= z_qso, terms, 0.0).sum(0))


def data_folder() -> Path | None:
    """Where real spectra and their null model are: ``$MODELODDS_DATA/dla``, or ``../shared/dla``."""
    named = os.environ.get(VARIABLE)
    if named:
        folder = Path(named) / "dla"
        if not folder.is_dir():
            raise SpectrumError(f"{VARIABLE} is {named}, but there is no folder {folder}.")
        return folder
    beside = Path(__file__).resolve().parents[5] / "shared" / "dla"
    return beside if beside.is_dir() else None
