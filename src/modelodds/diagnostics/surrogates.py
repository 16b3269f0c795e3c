"""How well each model's surrogate predicts: leave-one-out coverage, calibration, what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

if TYPE_CHECKING:
    import pandas as pd

    from modelodds.result import Result

Array = NDArray[np.float64]

LEVELS = np.linspace(0.05, 0.95, 19)


class Coverage(NamedTuple):
    """How often an observation lies where the others predict it."""

    points: int  # that the surrogate is asked to follow
    one_sd: float  # share of them within one predicted standard deviation; 0.68 expected
    two_sd: float  # and within two; 0.95 expected


def coverage(kept: dict[str, Any]) -> Coverage:
    """Leave-one-out coverage of one model from what is kept of its surrogate."""
    z = np.abs(left_out_errors(kept))
    if len(z) == 0:
        return Coverage(0, np.nan, np.nan)
    return Coverage(len(z), float((z < 1.0).mean()), float((z < 2.0).mean()))


def left_out_errors(kept: dict[str, Any]) -> Array:
    """Errors of the leave-one-out predictions, in their standard deviations, where they matter, (n,).

    Those are the observations no further below the best than the surrogate is asked to follow.
    """
    near = kept["observed"] >= -kept["followed"]
    sd = np.sqrt(kept["inflation"]) * kept["left_out_sd"]
    return np.asarray(((kept["observed"] - kept["left_out_mean"]) / sd)[near])


def typical_error(kept: dict[str, Any]) -> float:
    """Root mean square error of the leave-one-out predictions where they matter, in nats; NaN for none."""
    near = kept["observed"] >= -kept["followed"]
    errors = (kept["observed"] - kept["left_out_mean"])[near]
    return float(np.sqrt(np.mean(errors**2))) if len(errors) else np.nan


def calibration(kept: dict[str, Any], levels: Array = LEVELS) -> Array:
    """Share of observations inside the central interval of each level, as predicted before they were made."""
    record = np.asarray(kept["record"]) / kept["inflation"]
    if len(record) == 0:
        return np.full(len(levels), np.nan)
    half_width = stats.norm.ppf(0.5 + levels / 2.0)
    return np.asarray((np.sqrt(record)[:, None] <= half_width).mean(0))


def surrogates_table(result: Result) -> pd.DataFrame:
    """One row per model that has a surrogate: coverage, nodes, unexplored share, what is at bounds."""
    import pandas as pd

    rows = {}
    for name, kept in result.diagnostics.items():
        points, one, two = coverage(kept)
        rows[name] = {
            "points": points,
            "within_1_sd": one,
            "within_2_sd": two,
            "typical_error": typical_error(kept),
            "effective_nodes": kept["effective_nodes"],
            "nodes": kept["nodes"],
            "unexplored": kept["unexplored"],
            "inflation": kept["inflation"],
            "kernel": kept["kernel"],
            "at_bounds": ", ".join(kept["at_bounds"]),
        }
    return pd.DataFrame.from_dict(rows, orient="index")
