"""What the report's plots show, in plain lists and numbers: no drawing, no HTML."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modelodds.diagnostics import calibration, to_prior_odds
from modelodds.diagnostics.sensitivity import PRIOR_ODDS
from modelodds.diagnostics.surrogates import LEVELS
from modelodds.plots import cumulative_evaluations, log_odds_against_best, probability_trace
from modelodds.plots.surrogate import seen_points
from modelodds.result import Result

MOST_DRAWS = 600  # posterior draws of each model in the page
MOST_STEPS = 300  # points of a line
DIGITS = 6  # significant ones


def page_data(result: Result) -> dict[str, Any]:
    """All that is drawn, ready for JSON: NaN is None."""
    odds = log_odds_against_best(result)
    return {
        "names": result.names,
        "trace": _trace(result),
        "counts": _counts(result),
        "odds": {
            "names": list(odds.index),
            "mean": plain(odds["mean"].to_numpy()),
            "sd": plain(odds["sd"].to_numpy()),
        },
        "prior_odds": {
            "factor": plain(PRIOR_ODDS),
            "probability": [plain(to_prior_odds(result, name)) for name in result.names],
        },
        "levels": plain(LEVELS),
        "models": {name: _model(result, name) for name in result.names},
    }


def _trace(result: Result) -> dict[str, Any]:
    trace = probability_trace(result)
    low, high = np.clip(trace.mean - 2 * trace.sd, 0, 1), np.clip(trace.mean + 2 * trace.sd, 0, 1)
    return {
        "n": plain(trace.n_evaluations),
        "mean": [plain(column) for column in trace.mean.T],
        "low": [plain(column) for column in low.T],
        "high": [plain(column) for column in high.T],
    }


def _counts(result: Result) -> dict[str, Any]:
    counts = cumulative_evaluations(result)
    rows = np.unique(np.linspace(0, len(counts) - 1, MOST_STEPS).round().astype(int))
    return {"n": plain(rows), "each": [plain(column) for column in counts[rows].T]}


def _model(result: Result, name: str) -> dict[str, Any]:
    points = seen_points(result, name)
    kept = result.diagnostics.get(name, {})
    parameters = list(result.parameters[name])
    draws = result.draws.get(name, np.empty((0, len(parameters))))
    rows = np.linspace(0, len(draws) - 1, min(len(draws), MOST_DRAWS)).astype(int)
    # While a run goes on there are no draws yet: the evaluated points stand alone.
    spread = draws if len(draws) else points[parameters].to_numpy(dtype=float)
    varying = [j for j in range(len(parameters)) if len(spread) and np.ptp(spread[:, j]) > 0]
    return {
        "parameters": [parameters[j] for j in varying],
        "draws": [plain(draws[rows, j]) for j in varying],
        "points": [plain(points[parameters[j]].to_numpy(dtype=float)) for j in varying],
        "below": plain(points["below"].to_numpy(dtype=float)),
        "id": plain(points["id"].to_numpy(dtype=float)),
        "slices": [
            {"parameter": label} | {key: plain(line[key]) for key in ("value", "mean", "sd", "score")}
            for label, line in kept.get("slices", {}).items()
        ],
        "left_out": _left_out(kept) if kept else None,
        "calibration": plain(calibration(kept)) if kept else None,
    }


def _left_out(kept: dict[str, Any]) -> dict[str, Any]:
    near = kept["observed"] >= -kept["followed"]
    sd = np.sqrt(kept["inflation"]) * kept["left_out_sd"]
    return {
        "observed": plain(kept["observed"][near]),
        "mean": plain(kept["left_out_mean"][near]),
        "sd": plain(sd[near]),
    }


def plain(values: ArrayLike) -> list[float | None]:
    """Numbers to six digits; None for what is not one."""
    return [
        float(f"{x:.{DIGITS}g}") if np.isfinite(x) else None for x in np.asarray(values, dtype=float).ravel()
    ]
