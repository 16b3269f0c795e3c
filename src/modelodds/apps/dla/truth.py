"""Log-evidences of the real spectra's models: ``modelodds reproduce dla-truth`` computes and stores them.

No absorber: exact. One: dense quadrature (`quadrature.py`). Two: adaptive importance sampling
(`modelodds.problems.truth`), twice with other seeds and numbers of components; the error is the larger of
their standard errors and their distance.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from modelodds.apps.dla.models import models
from modelodds.apps.dla.quadrature import one_absorber
from modelodds.apps.dla.survey import entry
from modelodds.errors import ProblemError
from modelodds.experiments.sweep import read
from modelodds.model import Model
from modelodds.problems.truth import importance

OUT = Path("results/dla/truth.csv")
COMPONENTS = (24, 16)  # of the two runs' mixtures
GOAL = 0.02  # nats; runs that do not come as close are made again with four times the nodes
ATTEMPTS = 3
SIZES = {"n_search": 2**12, "n_final": 2**13, "replicates": 6}


class Task(NamedTuple):
    """One model of one spectrum."""

    spectrum: str
    absorbers: int


def tasks(spectra: Iterable[str]) -> list[Task]:
    """All models of these spectra."""
    return [Task(name, k) for name in spectra for k in (0, 1, 2)]


def work(task: Task) -> list[dict[str, Any]]:
    """The row of one model: its log-evidence, its error in nats, and how it is known."""
    (model,) = models(entry(task.spectrum).spectrum(), absorbers=(task.absorbers,))
    found, error, origin = evidence(model, task.absorbers)
    return [
        task._asdict() | {"log_evidence": round(found, 6), "error": float(f"{error:.2g}"), "origin": origin}
    ]


def evidence(model: Model, absorbers: int) -> tuple[float, float, str]:
    """Log-evidence, its error, and how it was found."""
    if absorbers == 0:
        return float(model.log_likelihood(np.empty((1, 0)))[0]), 0.0, "exact"
    if absorbers == 1:
        grid = one_absorber(model.log_likelihood)  # type: ignore[arg-type]
        return grid.log_evidence, grid.error, "quadrature"
    sizes = dict(SIZES)
    for _ in range(ATTEMPTS):
        mean, error = _twice(model, sizes)
        if error <= GOAL:
            break
        sizes["n_search"] *= 4
    return mean, error, "importance sampling"


def _twice(model: Model, sizes: dict[str, int]) -> tuple[float, float]:
    """Mean of two runs and its error."""
    runs = [importance(model, seed, components=c, **sizes) for seed, c in enumerate(COMPONENTS)]
    distance = abs(runs[0].log_evidence - runs[1].log_evidence)
    return float(np.mean([r.log_evidence for r in runs])), max(distance, *(r.error for r in runs))


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
