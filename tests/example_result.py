"""A plausible result to test with, made without running anything."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modelodds import odds
from modelodds.result import Result

Array = NDArray[np.float64]


def example_evaluations(names: list[str], n: int, failures: int = 0) -> pd.DataFrame:
    """Evaluations of the models in a fixed pseudo-random order, the first `failures` of them failed."""
    rng = np.random.default_rng(0)
    status = ["failed"] * failures + ["ok"] * (n - failures)
    return pd.DataFrame(
        {
            "id": np.arange(n),
            "model": pd.Series(rng.choice(names, n) if n else [], dtype="str"),
            "slope": rng.normal(size=n),
            "noise": np.where(rng.random(n) < 0.5, np.nan, 1 / 3),
            "log_likelihood": np.where(np.arange(n) < failures, np.nan, -rng.exponential(10.0, n)),
            "standard_error": np.zeros(n),
            "status": pd.Series(status, dtype="str"),
            "reason": pd.Series(
                ["ZeroDivisionError: division by zero" if s == "failed" else "" for s in status], dtype="str"
            ),
            "seconds": rng.exponential(0.1, n),
        }
    )


def example_history(names: list[str], mean: Array, sd: Array, n: int) -> pd.DataFrame:
    """A belief that closes in on `mean` and `sd` as evaluations come in."""
    rng = np.random.default_rng(1)
    rows = []
    for i in range(4, n + 1, 2):
        wide = sd * (np.sqrt(n / i) + 20 * (i < n) * np.exp(-i / 8))
        location = mean + wide * rng.normal(size=len(names)) * (i < n) * 0.6
        z, _ = odds.moments(location, wide, np.zeros(len(names)))
        row: dict[str, float] = {"n_evaluations": i}
        for j, name in enumerate(names):
            row |= {
                f"log_evidence[{name}]": location[j],
                f"log_evidence_sd[{name}]": wide[j],
                f"probability[{name}]": z[j],
            }
        rows.append(row)
    return pd.DataFrame(rows, columns=None if rows else ["n_evaluations"])


def example_result(
    mean: Any = (-10.0, -12.0), sd: Any = 0.1, n: int = 50, failures: int = 0, **changes: Any
) -> Result:
    """k models named after towns, with the given beliefs on their log-evidences."""
    towns = ["Bath", "York", "Ely", "Wells", "Truro", "Derby", "Leeds", "Ripon"]
    names = towns[: len(mean)]
    mean, sd = np.asarray(mean, dtype=float), np.broadcast_to(np.asarray(sd, dtype=float), len(mean))
    rng = np.random.default_rng(2)
    parameters = {name: ("slope", "noise") if i % 2 else ("slope",) for i, name in enumerate(names)}
    draws = {name: rng.normal(i, 1.0, (256, len(p))) for i, (name, p) in enumerate(parameters.items())}
    given: dict[str, Any] = {
        "names": names,
        "prior_probabilities": np.ones(len(names)),
        "log_evidence_mean": mean,
        "log_evidence_cov": np.diag(sd**2),
        "draws": draws,
        "parameters": parameters,
        "evaluations": example_evaluations(names, n, failures),
        "history": example_history(names, mean, sd, n),
        "status": "budget",
        "message": "The budget of 50 evaluations is spent.",
        "method": "default",
        "seed": 7,
        "version": "0.0.0",
    }
    return Result.build(**(given | changes))
