"""Log-evidences of the real spectra's models: ``modelodds reproduce dla-truth`` computes and stores them.

No absorber: exact. One: dense quadrature (`quadrature.py`). Two: importance sampling (`sampling.py`), twice;
the error is the larger of their standard error and half their distance.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from modelodds.apps.dla.models import models
from modelodds.apps.dla.null import NullModel
from modelodds.apps.dla.quadrature import one_absorber
from modelodds.apps.dla.sampling import sampled
from modelodds.apps.dla.sightline import Sightline
from modelodds.apps.dla.survey import entry
from modelodds.errors import ProblemError
from modelodds.experiments.sweep import read

OUT = Path("results/dla/truth.csv")
GOAL = 0.03  # nats; importance sampling that does not come as close is made again with four times the points


class Task(NamedTuple):
    """One model of one spectrum."""

    spectrum: str
    absorbers: int


def tasks(spectra: Iterable[str]) -> list[Task]:
    """All models of these spectra."""
    return [Task(name, k) for name in spectra for k in (0, 1, 2)]


def work(task: Task) -> list[dict[str, Any]]:
    """The row of one model: its log-evidence, its error in nats, and how it is known."""
    line = Sightline.of(entry(task.spectrum).spectrum(), NullModel.load())
    found, error, origin = evidence(line, task.absorbers)
    return [
        task._asdict() | {"log_evidence": round(found, 6), "error": float(f"{error:.2g}"), "origin": origin}
    ]


def evidence(line: Sightline, absorbers: int, seed: int = 0) -> tuple[float, float, str]:
    """Log-evidence, its error, and how it was found."""
    none, one, many = models(line, absorbers=(0, 1, max(absorbers, 2)))
    if absorbers == 0:
        return float(none.log_likelihood(np.empty((1, 0)))[0]), 0.0, "exact"
    grid = one_absorber(one.log_likelihood)  # type: ignore[arg-type]
    if absorbers == 1:
        return grid.log_evidence, grid.error, "quadrature"
    for times in (1, 4, 16):
        found = sampled(many, grid, line.z_range, seed, times)
        if found.error <= GOAL:
            break
    return found.log_evidence, found.error, "importance sampling"


def stored(
    spectrum: str, absorbers: Iterable[int], path: Path | None = None
) -> tuple[tuple[float, ...], float]:
    """Log-evidences of a spectrum's models and the largest of their errors, from the file."""
    path, counts = path or OUT, list(absorbers)
    rows = read(path)
    rows = rows[rows.spectrum == spectrum] if len(rows) else rows
    missing = [k for k in counts if not len(rows) or k not in set(rows.absorbers)]
    if missing:
        raise ProblemError(
            f"{path} has no ground truth of {spectrum} with {missing} absorbers; compute it with "
            f"modelodds reproduce dla-truth --spectrum {spectrum}"
        )
    found = rows.set_index("absorbers").loc[counts]
    return tuple(float(v) for v in found.log_evidence), float(found.error.max())
