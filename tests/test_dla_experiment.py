"""The experiment on quasar spectra: rows of a run, statistics, figure, the command that resumes."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

from example_dla import write_survey
from modelodds.apps import dla
from modelodds.apps.dla import truth
from modelodds.apps.dla.null import VARIABLE
from modelodds.baselines import METHODS as BASELINES
from modelodds.cli import app
from modelodds.errors import OptionError
from modelodds.experiments import dla as experiment
from modelodds.method import resolve_method
from modelodds.problems import load

SPECTRA = ("a", "b", "c", "d")


def made_up(seed: int = 0) -> pd.DataFrame:
    """Curves of two methods on four spectra, the errors of ``bridge`` about ten times ``default``'s."""
    rng, rows = np.random.default_rng(seed), []
    for s, spectrum in enumerate(SPECTRA):
        for repeat in range(3):
            for method, size in (("default", 0.1), ("bridge", 1.0)):
                for n in (40, 80, 120, 150):
                    found = 2.0 - s + 0.4 + size * rng.normal() * 150 / n
                    rows.append((spectrum, repeat, method, n, found, 2.4 - s))
    columns = ["spectrum", "repeat", "method", "n_evaluations", "log_odds", "log_odds_true"]
    return pd.DataFrame(rows, columns=columns)


def test_tests_are_paired_over_spectra_and_over_runs() -> None:
    runs = made_up()
    table = experiment.summary(runs).set_index("method")
    end = runs[runs.n_evaluations == 150]
    error = (end.log_odds - end.log_odds_true).abs()
    wide = end.assign(error=error).pivot(index=["spectrum", "repeat"], columns="method", values="error")
    means = wide.groupby(level="spectrum").mean()
    for column, part in (("t, default", means), ("t runs, default", wide)):
        expected = stats.ttest_rel(part["default"], part["bridge"], alternative="less").pvalue
        assert table.loc["bridge", column] == pytest.approx(expected)
    assert np.isnan(table.loc["default", "t, default"])
    assert table.loc["bridge", "mean"] == pytest.approx(wide.bridge.mean())
    assert table.loc["bridge", "s.e."] == pytest.approx(means.bridge.std(ddof=1) / 2)


def test_what_is_not_told_counts_as_knowing_nothing() -> None:
    runs = made_up()
    silent = runs.assign(log_odds=runs.log_odds.where(runs.method != "bridge"))
    table = experiment.summary(silent).set_index("method")
    truths = np.abs([2.4 - s for s in range(len(SPECTRA))])
    assert table.loc["bridge", "mean"] == pytest.approx(truths.mean())
    assert table.loc["bridge", "told"] == 0.0 and table.loc["bridge", "right at 150"] == 0.0
    assert table.loc["default", "told"] == 1.0


def test_the_favoured_model_is_that_of_the_last_estimate_in_time() -> None:
    runs = made_up()
    table = experiment.summary(runs).set_index("method")
    here = runs[(runs.method == "bridge") & (runs.n_evaluations == 80)]
    right = (np.sign(here.log_odds) == np.sign(here.log_odds_true)).mean()
    assert table.loc["bridge", "right at 100"] == pytest.approx(right)


def test_a_runs_rows_end_with_its_result() -> None:
    result = BASELINES["monte_carlo"](load("regression-2").models, 200, 0)
    rows = experiment.rows(result, 1.5)
    assert rows[-1]["n_evaluations"] == 200 and rows[-1]["log_odds_true"] == 1.5
    expected = result.log_bayes_factor(*result.names)[0]
    assert rows[-1]["log_odds"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_surrogates_begin_with_25_random_points_of_each_model(preset: str) -> None:
    method = resolve_method(preset, **experiment.START)
    assert [method.initial_points(d) for d in (2, 4)] == [25, 25] and method.design == "random"


def test_methods_are_checked() -> None:
    assert len(experiment.METHOD_NAMES) == 7
    with pytest.raises(OptionError, match="There is no method 'nested' here"):
        experiment.check_method("nested")


def test_a_figure_is_drawn(tmp_path: Path) -> None:
    experiment.figure(made_up()).savefig(tmp_path / "f.png")
    assert (tmp_path / "f.png").stat().st_size > 10_000
    curves = experiment.mean_curves(made_up())
    assert curves.n_evaluations.min() == 50 and set(curves.method) == {"default", "bridge"}


def test_the_command_runs_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    null = dla.NullModel.synthetic()
    spectrum = dla.simulate(null, 2.2, [(2.05, 20.9)], snr=6.0, seed=4)
    write_survey(tmp_path / "data" / "dla", null, [(spectrum, [(2.05, 20.9)])])
    monkeypatch.setenv(VARIABLE, str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    words = ["reproduce", "dla", "--repeats", "1", "--jobs", "0"]
    words += ["--method", "bridge_told", "--method", "reversible_jump"]
    monkeypatch.setattr(experiment, "BUDGET", 56)
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2 and "modelodds reproduce dla-truth --spectrum 1-1-0" in done.output
    truth.OUT.parent.mkdir(parents=True)
    header = "spectrum,absorbers,log_evidence,error,origin\n"
    truth.OUT.write_text(header + "1-1-0,1,-300.0,0.001,quadrature\n1-1-0,2,-302.0,0.001,x\n")
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    runs = pd.read_csv(experiment.OUT)
    columns = ["spectrum", "repeat", "method", "n_evaluations", "log_odds", "log_odds_true"]
    assert list(runs.columns) == [*columns, "seconds", "code"] and set(runs.log_odds_true) == {2.0}
    assert runs.groupby("method").n_evaluations.max().tolist() == [56, 56]
    before = experiment.OUT.read_bytes()
    again = CliRunner().invoke(app, words)
    assert again.exit_code == 0 and experiment.OUT.read_bytes() == before
    assert (tmp_path / "results/dla/figure3.svg").exists() and "figure3.png" in again.output
