"""Catalogued absorbers against the one-absorber posterior, spectrum by spectrum."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from modelodds.apps.dla.likelihood import Likelihood
from modelodds.apps.dla.null import NullModel
from modelodds.apps.dla.quadrature import Grid, one_absorber
from modelodds.apps.dla.sightline import Sightline
from modelodds.apps.dla.survey import entry

OUT = Path("results/dla/catalogue.csv")
WITHIN_Z, WITHIN_N = 0.005, 0.3
ENOUGH = 0.05  # posterior probability of that box, for the posterior to contain the absorber


class Task(NamedTuple):
    """One spectrum."""

    spectrum: str


def tasks(spectra: Iterable[str]) -> list[Task]:
    """One for each spectrum."""
    return [Task(name) for name in spectra]


def work(task: Task) -> list[dict[str, Any]]:
    """The row of a spectrum: its catalogued absorber with most of the posterior, and that posterior.

    ``share`` is the posterior probability that the absorber lies within 0.005 of the catalogue's redshift and
    within 0.3 of its log N_HI. ``gain`` is the log-likelihood of the posterior's best cell over that of the
    best point of this box: large where the spectrum has a deeper trough elsewhere.
    """
    found = entry(task.spectrum)
    line = Sightline.of(found.spectrum(), NullModel.load())
    likelihood = Likelihood(line, 1)
    grid = one_absorber(likelihood)
    shares = [share(grid, z, n) for z, n in found.absorbers]
    best = int(np.argmax(shares))
    z, n = found.absorbers[best]
    low, high = line.z_range
    top = grid.theta[grid.log_mass.argmax()]
    quantiles = {
        f"{what}_{end}": round(float(value), 5)
        for column, what in enumerate(("z", "log_nhi"))
        for end, value in zip(("low", "median", "high"), grid.quantiles(column), strict=True)
    }
    row: dict[str, Any] = {
        "catalogue_z": z,
        "catalogue_log_nhi": n,
        "catalogued": len(found.absorbers),
        "inside": low <= z <= high and n >= 20.0,
        "share": float(f"{shares[best]:.4g}"),
        "gain": round(gain(likelihood, top, z, n), 2),
        "best_z": round(float(top[0]), 5),
        "best_log_nhi": round(float(top[1]), 3),
        "prior_low": round(low, 4),
        "prior_high": round(high, 4),
    }
    row |= quantiles
    return [task._asdict() | row | {"verdict": verdict(row)}]


def share(grid: Grid, z: float, log_nhi: float) -> float:
    """Posterior probability within 0.005 of ``z`` and 0.3 of ``log_nhi``."""
    near = np.abs(grid.theta - [z, log_nhi]) <= [WITHIN_Z, WITHIN_N]
    return float(grid.weight[near.all(1)].sum())


def gain(likelihood: Likelihood, top: np.ndarray, z: float, log_nhi: float) -> float:
    """Log-likelihood at ``top`` (2,) over the largest one in the catalogue's box."""
    steps = np.linspace(-1.0, 1.0, 21)
    box = np.stack(np.meshgrid(z + WITHIN_Z * steps, log_nhi + WITHIN_N * steps), axis=-1).reshape(-1, 2)
    box = box[box[:, 1] >= 20.0]
    return float(likelihood(top[None])[0] - likelihood(box).max()) if len(box) else float("nan")


def verdict(row: dict[str, Any]) -> str:
    """In words: contained or not, and what stands against it."""
    if not row["inside"]:
        return "outside the prior"
    if row["share"] >= ENOUGH:
        return "contained"
    near = abs(row["best_z"] - row["catalogue_z"]) <= WITHIN_Z
    if near:
        return f"same redshift, log N {row['best_log_nhi']:.2f}"
    return f"another trough, z {row['best_z']:.4f}, {row['gain']:.0f} nats better"
