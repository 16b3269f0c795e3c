"""Absorbers' likelihood as one would write it down: plain NumPy, dense covariances, no shortcuts."""

from pathlib import Path

import numpy as np
from scipy import constants, special

from modelodds.apps.dla import NullModel, Spectrum

LINES = [(1215.6701, 0.4164, 6.265e8), (1025.7223, 0.07912, 1.897e8), (972.5368, 0.029, 8.127e7)]
KERNEL = [0.00217461, 0.04116231, 0.24030936, 0.43270744, 0.24030936, 0.04116231, 0.00217461]
SERIES = """1215.6701 1025.7223 972.5368 949.7431 937.8035 930.7483 926.2257 923.1504 920.9631 919.3514
918.1294 917.1806 916.429 915.824 915.329 914.919 914.576 914.286 914.039 913.826 913.641 913.480
913.339 913.215
913.104 913.006 912.918 912.839 912.768 912.703 912.645"""
STRENGTH = """.4164 .07912 .029 .01394 .007799 .004814 .003183 .002216 .001605 .0012 .000921 .0007226 .000577
.000469 .000386 .000321 .00027 .00023 .000197 .00017 .000148 .000129 .000114 .000101 .000089 .00008 .000071
.000064 .000058 .000053 .000048"""


def depth(wavelength: np.ndarray, z_qso: float, tau: float, beta: float) -> np.ndarray:
    total = np.zeros(len(wavelength))
    for line, f in zip(map(float, SERIES.split()), map(float, STRENGTH.split()), strict=True):
        for i, w in enumerate(wavelength):
            if w / line - 1 <= z_qso:
                total[i] += tau * f * line / (0.4164 * 1215.6701) * (w / line) ** beta
    return total


def absorption(wavelength: np.ndarray, z: float, log_nhi: float) -> np.ndarray:
    """Broadened transmission at evenly spaced ``wavelength`` (n,)."""
    step = 1e-4
    low = wavelength[0] * 10 ** (-step * np.array([3.0, 2.0, 1.0]))
    high = wavelength[-1] * 10 ** (step * np.array([1.0, 2.0, 3.0]))
    w = np.concatenate([low, wavelength, high])
    tau, c = np.zeros(len(w)), 2.99792458e10
    charge = constants.e * constants.c * 10  # statcoulombs
    for line, f, damping in LINES:
        velocity = c * (w / (line * (1 + z)) - 1)
        lorentz = damping * line * 1e-8 / (4 * np.pi)
        area = np.pi * charge**2 * f * line * 1e-8 / (constants.m_e * 1e3 * c)
        tau += 10**log_nhi * area * special.voigt_profile(velocity, 9.0854e5, lorentz)
    raw = np.exp(-tau)
    return np.array([np.dot(KERNEL, raw[i : i + 7]) for i in range(len(wavelength))])


def reference(spectrum: Spectrum, null: NullModel, absorbers: list[tuple[float, float]]) -> float:
    """Log-likelihood by the dense covariance."""
    rest, good = spectrum.wavelength / (1 + spectrum.z_qso), spectrum.ivar > 0
    window = (rest >= 1425) & (rest <= 1475) & good
    scale = np.median(spectrum.flux[window])
    inside = (rest >= 911.75) & (rest <= 1215.75)
    a = np.ones(inside.sum())
    for z, log_nhi in absorbers:
        a = a * absorption(spectrum.wavelength[inside], z, log_nhi)
    a = a[good[inside]]
    pixel = inside & good
    w = spectrum.wavelength[pixel]
    dim = np.exp(-depth(w, spectrum.z_qso, 0.00554, 3.182))
    grow = 1 - np.exp(-depth(w, spectrum.z_qso, null.tau_0, null.beta)) + null.c_0
    mu = np.interp(rest[pixel], null.rest, null.mu) * dim * a
    m = np.array([np.interp(rest[pixel], null.rest, c) for c in null.m.T]).T * (dim * a)[:, None]
    omega = np.exp(np.interp(rest[pixel], null.rest, null.log_omega)) * dim * grow * a
    cov = m @ m.T + np.diag(omega**2 + 1 / (spectrum.ivar[pixel] * scale**2))
    r = spectrum.flux[pixel] / scale - mu
    sign, log_det = np.linalg.slogdet(cov)
    assert sign == 1
    return float(-0.5 * (len(r) * np.log(2 * np.pi) + log_det + r @ np.linalg.solve(cov, r)))


def write_survey(
    folder: Path, null: NullModel, spectra: list[tuple[Spectrum, list[tuple[float, float]]]]
) -> None:
    """A data folder as the real one is: null model, spectra 1-1-0, 1-1-1, ... and their catalogue."""
    import h5py

    (folder / "spectra").mkdir(parents=True)
    with h5py.File(folder / "null_model.mat", "w") as file:
        file["rest_wavelengths"], file["mu"] = null.rest[:, None], null.mu[:, None]
        file["log_omega"], file["M"] = null.log_omega[:, None], null.m.T
        for name in ("c_0", "tau_0", "beta"):
            file[f"log_{name}"] = np.log([[getattr(null, name)]])
    lines = ["file,z_qso,catalogue_dlas"]
    for i, (spectrum, absorbers) in enumerate(spectra):
        spectrum.write(folder / "spectra" / f"spec-1-1-{i}.fits")
        listed = ";".join(f"{z}:{n}" for z, n in absorbers)
        lines.append(f"spec-1-1-{i}.fits,{spectrum.z_qso},{listed}")
    (folder / "spectra.csv").write_text("\n".join(lines) + "\n")
