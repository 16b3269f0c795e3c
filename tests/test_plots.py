"""The figure of a result: what it shows, and that it draws."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from scipy import stats

from example_models import bell, gaussian, null
from example_result import example_result
from modelodds import Model, Result, compare, plots
from modelodds.errors import ResultError
from modelodds.plots.theme import theme


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


@pytest.fixture(scope="module")
def compared() -> Result:
    """Models of one, two and no parameters."""
    models = [
        gaussian("a"),
        Model("flat", bell(0.2, 0.6), {"u": stats.norm(), "v": stats.uniform(-2, 4), "w": 0.0}),
        null("none", -3.0),
    ]
    return compare(models, budget=36, progress=False)


@pytest.mark.parametrize("dark", [False, True])
def test_every_picture_draws_on_light_and_dark(tmp_path: Path, compared: Result, dark: bool) -> None:
    figures = {
        "evidences": plots.evidences_figure(compared, dark=dark),
        "a": plots.surrogate_figure(compared, "a", dark=dark),
        "flat": plots.surrogate_figure(compared, "flat", dark=dark),
        "corner": plots.corner_figure(compared, "flat", dark=dark),
        "left_out": plots.left_out_figure(compared, dark=dark),
        "calibration": plots.calibration_figure(compared, dark=dark),
        "sensitivity": plots.sensitivity_figure(compared, dark=dark),
    }
    paper = to_rgb(theme(dark).paper)
    for name, figure in figures.items():
        figure.savefig(tmp_path / f"{name}.png")
        image = imread(tmp_path / f"{name}.png")[..., :3]
        np.testing.assert_allclose(image[2, 2], paper, atol=0.01)
        assert image.std() > 0.02, name


def test_contrast_is_enough_on_either_page() -> None:
    def luminance(colour: str) -> float:
        rgb = np.array(to_rgb(colour))
        linear = np.where(rgb <= 0.03928, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    for dark in (False, True):
        colours = theme(dark)
        for colour, least in [(colours.ink, 7.0), *((c, 2.0) for c in colours.palette)]:
            pair = sorted([luminance(colour), luminance(colours.paper)])
            assert (pair[1] + 0.05) / (pair[0] + 0.05) >= least, (dark, colour)


def test_pictures_of_results_without_surrogates(tmp_path: Path, compared: Result) -> None:
    assert plots.corner_figure(compared, "none") is None
    bare = example_result()
    for figure in (
        plots.left_out_figure(bare),
        plots.calibration_figure(bare),
        plots.sensitivity_figure(bare),
    ):
        figure.savefig(tmp_path / "bare.png")
    with pytest.raises(ResultError, match="Nothing is kept of a surrogate of 'Bath'"):
        plots.surrogate_figure(bare, "Bath")
    with pytest.raises(ResultError, match="no model named 'Bth'"):
        plots.surrogate_figure(bare, "Bth")


def test_evidence_densities_follow_the_belief() -> None:
    data = plots.evidence_densities(example_result((-10.0, -12.0, -400.0), sd=0.3))
    assert data.names == ["Bath", "York"]  # the third is beyond the picture
    np.testing.assert_allclose(data.log_evidence.mean(axis=1), [0.0, -2.0], atol=1e-12)
    step = data.log_odds[1] - data.log_odds[0]
    assert data.log_odds_density.sum() * step == pytest.approx(1.0, abs=1e-3)
    z = example_result((-10.0, -12.0, -400.0), sd=0.3).probabilities["Bath"]
    assert data.probability.mean() == pytest.approx(z, abs=1e-3)


def test_corner_points_are_the_parameters_that_vary(compared: Result) -> None:
    draws, points = plots.corner_points(compared, "flat")
    assert list(draws) == ["u", "v"] and len(points) == compared.n_evaluations["flat"]
    assert points["below"].max() == 0.0
