"""The figure of a result: what it shows, and that it draws."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from example_result import example_result
from modelodds import plots


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"mean": [-3.0]},
        {"mean": np.linspace(-10, -60, 8), "failures": 4},
        {"mean": (0.0, -np.inf), "n": 0},
        {"n": 0, "history": pd.DataFrame()},
    ],
)
def test_draws_and_saves(tmp_path: Path, changes: dict[str, Any]) -> None:
    figure = plots.probabilities_figure(example_result(**changes))
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_the_trace_ends_at_the_result() -> None:
    r = example_result()
    trace = plots.probability_trace(r)
    assert trace.n_evaluations[-1] == 50
    np.testing.assert_allclose(trace.mean[-1], r.probabilities_mean, rtol=1e-12)
    np.testing.assert_allclose(trace.sd[-1], list(r.probability_sd.values()), rtol=1e-9)


def test_a_long_history_is_thinned_with_both_ends_kept() -> None:
    trace = plots.probability_trace(example_result(n=1000))
    assert len(trace.n_evaluations) == plots.MOST_BANDS
    assert (trace.n_evaluations[0], trace.n_evaluations[-1]) == (4, 1000)


def test_rows_without_a_belief_leave_a_gap() -> None:
    r = example_result()
    r.history.loc[0, "log_evidence_sd[York]"] = np.inf
    trace = plots.probability_trace(r)
    assert np.isnan(trace.mean[0]).all() and np.isfinite(trace.mean[1:]).all()


def test_cumulative_evaluations_end_at_the_counts() -> None:
    r = example_result(mean=(0.0, 1.0, 2.0))
    counts = plots.cumulative_evaluations(r)
    assert counts.shape == (51, 3)
    np.testing.assert_array_equal(counts[-1], list(r.n_evaluations.values()))
    np.testing.assert_array_equal(counts.sum(axis=1), np.arange(51))


def test_log_odds_are_against_the_best_and_include_the_prior() -> None:
    table = plots.log_odds_against_best(example_result(prior_probabilities=[1, 3]))
    assert list(table.index) == ["Bath", "York"]
    assert tuple(table.loc["York"]) == pytest.approx((-2.0 + np.log(3.0), np.sqrt(0.02)))


def test_no_two_models_look_alike() -> None:
    assert len({tuple(plots.style(i).items()) for i in range(24)}) == 24


def test_matplotlib_is_loaded_only_to_draw() -> None:
    code = "import sys, modelodds.plots; raise SystemExit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
