"""How many absorbers a spectrum has: one row of a catalogue, and what it rests on.

``decide`` compares 0, 1, ..., k absorbers with the prior probabilities of Garnett et al. (2017). A likelihood
takes a tenth of a millisecond here, so evidences come from some hundred thousand of them: quadrature for one
absorber, importance sampling for more. With a ``budget`` they come from `modelodds.compare` in that many, as
they would have to if a likelihood took a minute.
"""

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelodds import odds
from modelodds.apps.dla.likelihood import Likelihood
from modelodds.apps.dla.models import model_name, models
from modelodds.apps.dla.null import NullModel
from modelodds.apps.dla.quadrature import one_absorber
from modelodds.apps.dla.sampling import DRAWS, Sampled, sampled
from modelodds.apps.dla.sightline import Sightline
from modelodds.apps.dla.spectrum import Spectrum
from modelodds.baselines.ours import run as run_ours
from modelodds.errors import ModelOddsError
from modelodds.model import Model
from modelodds.nodes import systematic

Array = NDArray[np.float64]

LEVELS = (0.025, 0.5, 0.975)


@dataclass(frozen=True)
class Settings:
    """How spectra are looked at.

    Parameters
    ----------
    most : int
        Largest number of absorbers considered.
    budget : int, optional
        Likelihood evaluations per spectrum, of all models together, chosen one by one; if left out, as many
        as quadrature and importance sampling take.
    fraction : float, optional
        Prior probability of at least one absorber; the catalogue's, by the quasar's redshift, if left out.
    seed : int
        Same seed, same answer.
    """

    most: int = 2
    budget: int | None = None
    fraction: float | None = None
    seed: int = 0


class Decision(NamedTuple):
    """Probabilities of 0, 1, ..., k absorbers, and where they are."""

    sightline: Sightline
    probability: Array  # (k + 1,)
    probability_sd: Array  # (k + 1,)
    log_evidence: Array  # (k + 1,)
    log_evidence_sd: Array  # (k + 1,)
    draws: tuple[Array, ...]  # posterior draws (m, 2 j) of the model with j absorbers, in the order of z
    evaluations: int

    @property
    def best(self) -> int:
        """The most probable number of absorbers."""
        return int(self.probability.argmax())

    def absorbers(self, count: int | None = None) -> Array:
        """Low, middle and high values of z and log N_HI of each absorber, (j, 2, 3): 95 % intervals."""
        draws = self.draws[self.best if count is None else count]
        if draws.shape[1] == 0:
            return np.empty((0, 2, 3))
        return np.moveaxis(np.quantile(draws, LEVELS, axis=0), 0, -1).reshape(-1, 2, 3)


def decide(spectrum: Spectrum, null: NullModel, settings: Settings = Settings()) -> Decision:
    """Compare 0, 1, ..., ``settings.most`` absorbers in ``spectrum``."""
    line = Sightline.of(spectrum, null)
    candidates = models(
        line, absorbers=range(settings.most + 1), catalogue_prior=True, fraction=settings.fraction
    )
    if settings.budget is None:
        return _integrated(line, candidates, settings.seed)
    return _compared(line, candidates, settings.budget, settings.seed)


def _compared(line: Sightline, candidates: list[Model], budget: int, seed: int) -> Decision:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = run_ours(candidates, budget, seed, stop=None)
    draws = tuple(_in_order(result.draws[m.name]) for m in candidates)
    sd = [np.sqrt(np.diag(c)) for c in (result.probabilities_cov, result.log_evidence_cov)]
    return Decision(
        line,
        result.probabilities_mean,
        sd[0],
        result.log_evidence_mean,
        sd[1],
        draws,
        len(result.evaluations),
    )


def _integrated(line: Sightline, candidates: list[Model], seed: int) -> Decision:
    none, one, *more = candidates
    likelihood: Likelihood = one.log_likelihood  # type: ignore[assignment]
    grid = one_absorber(likelihood)
    found = [
        Sampled(float(none.log_likelihood(np.empty((1, 0)))[0]), 0.0, np.empty((1, 0)), 1),
        Sampled(grid.log_evidence, grid.error, grid.theta[systematic(grid.weight, DRAWS)], grid.evaluations),
        *(sampled(model, grid, line.z_range, seed) for model in more),
    ]
    mean, sd = np.array([f.log_evidence for f in found]), np.array([f.error for f in found])
    z, cov = odds.moments(mean, sd, np.log([m.prior_probability for m in candidates]))
    draws = tuple(_in_order(f.draws) for f in found)
    return Decision(line, z, np.sqrt(np.diag(cov)), mean, sd, draws, sum(f.evaluations for f in found))


def _in_order(draws: Array) -> Array:
    """Draws (m, 2 j) with the absorbers of each in the order of their redshifts."""
    pairs = draws.reshape(len(draws), draws.shape[1] // 2, 2)
    order = np.argsort(pairs[:, :, 0], axis=1)
    return np.take_along_axis(pairs, order[:, :, None], axis=1).reshape(draws.shape)


# ---------------------------------------------------------------------- rows of a catalogue


class Task(NamedTuple):
    """One file."""

    file: str


def columns(most: int) -> list[str]:
    """Columns of a catalogue; the last, the code that made a row, is the sweep's."""
    head = ["file", "name", "status", "reason", "z_qso", "n_pixels", "n_absorbers"]
    counts = [c for k in range(most + 1) for c in (f"p_{k}", f"p_{k}_sd", f"log_evidence_{k}")]
    found = [
        f"{what}_{i}{end}"
        for i in range(1, most + 1)
        for what in ("z_dla", "log_nhi")
        for end in ("", "_low", "_high")
    ]
    return [*head, *counts, *found, "evaluations", "seconds", "code"]


def row(file: str, decision: Decision, seconds: float) -> dict[str, Any]:
    """A decision as a row; absorbers are those of the most probable model."""
    line, most = decision.sightline, len(decision.probability) - 1
    cells: dict[str, Any] = dict.fromkeys(columns(most), np.nan)
    cells |= {"file": file, "name": line.name, "status": "ok", "reason": "", "z_qso": line.z_qso}
    cells |= {"n_pixels": line.n_pixels, "n_absorbers": decision.best}
    cells |= {"evaluations": decision.evaluations, "seconds": round(seconds, 2)}
    for k in range(most + 1):
        cells[f"p_{k}"] = float(f"{decision.probability[k]:.6g}")
        cells[f"p_{k}_sd"] = float(f"{decision.probability_sd[k]:.3g}")
        cells[f"log_evidence_{k}"] = round(float(decision.log_evidence[k]), 4)
    for i, absorber in enumerate(decision.absorbers(), start=1):
        for what, (low, middle, high) in zip(("z_dla", "log_nhi"), absorber, strict=True):
            for end, value in (("", middle), ("_low", low), ("_high", high)):
                cells[f"{what}_{i}{end}"] = round(float(value), 6)
    return cells


def failed(file: str, reason: str, most: int) -> dict[str, Any]:
    """The row of a file that could not be used."""
    cells: dict[str, Any] = dict.fromkeys(columns(most), np.nan)
    return cells | {"file": file, "name": Path(file).name, "status": "failed", "reason": reason}


@dataclass(frozen=True)
class Work:
    """Looks at one file: `decide`, its row, and its figure if there is a folder for it."""

    settings: Settings
    redshifts: dict[str, float]  # by file name; the file's own otherwise
    figures: Path | None = None

    def __call__(self, task: Task) -> list[dict[str, Any]]:
        """The row of one file, whatever becomes of it."""
        start, path = time.perf_counter(), Path(task.file)
        try:
            spectrum = Spectrum.read(path, self.redshifts.get(path.name))
            decision = decide(spectrum, NullModel.load(), self.settings)
        except ModelOddsError as error:
            return [failed(task.file, str(error), self.settings.most)]
        if self.figures is not None:
            from modelodds.apps.dla.plots import decision_figure

            decision_figure(decision).savefig(self.figures / f"{decision.sightline.name}.png", dpi=120)
        return [row(task.file, decision, time.perf_counter() - start)]


def in_words(cells: dict[str, Any]) -> str:
    """The absorbers of a row, for people."""
    if cells["status"] != "ok":
        return str(cells["reason"])
    parts = []
    for i in range(1, int(cells["n_absorbers"]) + 1):
        z, n = (cells[f"{what}_{i}"] for what in ("z_dla", "log_nhi"))
        dz, dn = (
            0.5 * (cells[f"{what}_{i}_high"] - cells[f"{what}_{i}_low"]) for what in ("z_dla", "log_nhi")
        )
        parts.append(f"z {z:.4f} ± {dz:.4f}, log N {n:.2f} ± {dn:.2f}")
    return "; ".join(parts) or model_name(0)
