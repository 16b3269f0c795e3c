"""Log: what a session was told, evaluation by evaluation, in the order in which it was told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from modelodds.evaluate import Outcome
from modelodds.model import Model

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

SHORTEST = 1e-3  # seconds: what an evaluation takes at least, our own computing included
ENDS = ("log_likelihood", "standard_error", "status", "reason", "seconds")


class Log:
    """The evaluations of ``models`` so far."""

    def __init__(self, models: tuple[Model, ...]) -> None:
        self.models = models
        self._rows: list[dict[str, Any]] = []

    def note(self, id: int, model: Model, theta: Array, outcome: Outcome, seconds: float) -> None:
        """Write down what came of evaluating ``model`` at ``theta`` (p,)."""
        told = (outcome.value, outcome.standard_error, outcome.status, outcome.reason, seconds)
        self._rows.append(
            {"id": id, "model": model.name}
            | dict(zip(model.prior.names, theta.tolist(), strict=True))
            | dict(zip(ENDS, told, strict=True))
        )

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def n_failures(self) -> int:
        """Evaluations that gave no value."""
        return sum(row["status"] == "failed" for row in self._rows)

    def counts(self) -> dict[str, int]:
        """Evaluations of each model."""
        counts = dict.fromkeys((m.name for m in self.models), 0)
        for row in self._rows:
            counts[row["model"]] += 1
        return counts

    def seconds(self) -> Array:
        """What an evaluation of each model takes, (k,); the others' mean where that is not known, or 1."""
        seconds: dict[str, list[float]] = {m.name: [] for m in self.models}
        for row in self._rows:
            if np.isfinite(row["seconds"]):
                seconds[row["model"]].append(max(row["seconds"], SHORTEST))
        known = np.array([np.mean(s) if s else np.nan for s in seconds.values()])
        return np.where(np.isnan(known), np.nanmean(known) if np.isfinite(known).any() else 1.0, known)

    def table(self) -> pd.DataFrame:
        """One row per evaluation, as :attr:`Result.evaluations` has them."""
        import pandas as pd

        parameters = dict.fromkeys(name for m in self.models for name in m.prior.names)
        return pd.DataFrame(self._rows, columns=["id", "model", *parameters, *ENDS])
