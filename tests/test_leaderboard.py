"""The leaderboard's and the synthetic experiment's runs and tables, and the commands that make them."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

from modelodds.baselines import METHODS
from modelodds.cli import app
from modelodds.experiments import leaderboard as board
from modelodds.experiments import leaderboard_page, leaderboard_plots, synthetic
from modelodds.experiments.curves import settled_at
from modelodds.experiments.sweep import read
from modelodds.problems import find, load
from modelodds.problems.truth import known_seeds

COLUMNS = ["d", "dataset", "method", "n_evaluations", "z1", "log_odds", "z1_true", "log_odds_true"]


def run(seed: int, errors: list[float], sd: float = 1.0, **other: Any) -> list[dict[str, Any]]:
    """A run whose error after 10, 20, ... evaluations is as given; the truth is 2 nats."""
    n = 10 * np.arange(1, len(errors) + 1)
    row = {"problem": "p", "data": 0, "method": "m", "seed": seed, "log_odds_sd": sd, "log_odds_true": 2.0,
           "truth_error": 0.0, "z_error": 0.1 * seed, "overhead": 0.5 * seed,
           "needed": settled_at(n, np.array(errors), board.WITHIN)} | other  # fmt: skip
    return [row | {"n_evaluations": 10 * (i + 1), "log_odds": 2.0 + e} for i, e in enumerate(errors)]


def frame(*runs: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame([row for rows in runs for row in rows])


# ---------------------------------------------------------------------- tasks


def test_data_have_stored_truths_and_change_with_the_seed_where_they_can() -> None:
    for problem in board.SUITE:
        family, _ = find(problem)
        data = [board.data_of(problem, seed) for seed in range(120)]
        if family.candidates is not None:
            assert set(data) <= set(known_seeds(problem)), problem
        assert (len(set(data)) > 1) == family.seeded, problem
    assert [board.data_of("nested-3", seed) for seed in (0, 7, 200)] == [0, 7, 200]  # a formula for each
    assert [board.data_of("synthetic-2", seed) for seed in (0, 7, 122)] == [0, 7, 7]
    assert board.data_of("nile", 9) == 0


def test_tasks_are_all_pairs_once() -> None:
    found = board.tasks(["nile", "nested-3"], ["a", "b"], range(3))
    assert len(found) == len(set(found)) == 12
    assert {(t.problem, t.data, t.seed) for t in found} == {
        ("nile", 0, 0), ("nile", 0, 1), ("nile", 0, 2), ("nested-3", 0, 0), ("nested-3", 1, 1),
        ("nested-3", 2, 2),
    }  # fmt: skip


def test_surrogates_get_a_budget_by_dimension_and_samplers_a_large_one() -> None:
    assert {board.budget("tails-4", 0, m) for m in ("default", "default_independent")} == {2 * 15 * 6}
    assert board.budget("nested-3", 0, "paper") == 15 * (3 + 4 + 5)
    assert board.budget("nile", 0, "paper") == 15 * (4 + 6 + 8)
    assert board.budget("lumpy-8", 0, "paper") == 2 * 20 * 10
    assert board.budget("nile", 0, "pyvbmc") == 50 * (4 + 6 + 8)
    assert board.budget("tails-4", 0, "bridge") == board.SAMPLERS


def test_a_runs_rows_are_its_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "SAMPLERS", 200)
    rows = pd.DataFrame(board.work(board.Task("nested-2", 3, "monte_carlo", 5)))
    problem = load("nested-2", 3)
    result = METHODS["monte_carlo"](problem.models, 200, 5)
    first, second = sorted(result.names, key=lambda name: -problem.log_evidence[result.names.index(name)])
    assert rows.log_odds.iloc[-1] == pytest.approx(result.log_odds(first, second)[0])
    assert rows.log_odds_true.iloc[0] == pytest.approx(abs(np.subtract(*problem.log_evidence)))
    assert rows.n_evaluations.iloc[-1] == 200
    every = result.history.n_evaluations.to_numpy()
    odds = (result.history[f"log_evidence[{first}]"] - result.history[f"log_evidence[{second}]"]).to_numpy()
    assert len(every) > len(rows)  # what was needed is counted before the curve is thinned
    assert rows.needed.iloc[0] == settled_at(every, odds - rows.log_odds_true.iloc[0], board.WITHIN)
    assert set(rows[["problem", "data", "method", "seed"]].itertuples(index=False, name=None)) == {
        ("nested-2", 3, "monte_carlo", 5)
    }


# ---------------------------------------------------------------------- tables


def test_standings_count_what_each_run_needed() -> None:
    rows = frame(
        run(0, [0.5, 0.05, 0.05, 0.02]),  # needs 20
        run(1, [0.5, 0.05, -0.3, 0.08], sd=0.1),  # needs 40
        run(2, [0.01, 0.01, 0.01, -0.01], sd=0.001),  # needs 10
    )
    (row,) = board.standings(rows.sample(frac=1, random_state=0)).to_dict("records")
    assert (row["problem"], row["method"], row["runs"], row["budget"]) == ("p", "m", 3, 40)
    assert (row["needed"], row["needed (worst)"]) == (20, 40)
    assert row["worst at twice"] == pytest.approx(0.08)  # after 40
    assert row["median"] == pytest.approx(0.02) and row["worst"] == pytest.approx(0.08)
    assert row["in 50 %"] == pytest.approx(1 / 3)  # off by 0.02, 0.8 and 10 standard deviations
    assert row["in 80 %"] == row["in 95 %"] == pytest.approx(2 / 3)
    assert row["overhead"] == pytest.approx(0.5) and row["z error"] == pytest.approx(0.1)


def test_standings_of_runs_that_never_get_there() -> None:
    rows = frame(run(0, [0.05, 0.5]), run(1, [0.05, 0.5]), run(0, [0.05, 0.0], method="other"))
    first, second = board.standings(rows).to_dict("records")
    assert first["needed"] == first["needed (worst)"] == np.inf and np.isnan(first["worst at twice"])
    assert (second["method"], second["needed"], second["worst at twice"]) == ("other", 10, 0.0)


def test_even_odds_of_a_run_that_says_nothing_are_no_answer() -> None:
    """A sampler under way has log-odds of zero, which may happen to be right."""
    late, never = run(0, [0.05, 0.05, 0.01]), run(0, [0.05, 0.05, 0.05], method="never")
    for row in [*late[:2], *never]:
        row["log_odds_sd"] = 2.0**0.5 * 1000.0
    first, second = board.standings(frame(late, never)).to_dict("records")
    assert (first["needed"], second["needed"]) == (30, np.inf)
    assert board.answered(frame(late)).needed.tolist() == [30.0] * 3


def test_the_truths_own_error_excuses_a_run() -> None:
    rows = board.errors(frame(run(0, [3.0], sd=1.0), run(1, [3.0], sd=3.0, truth_error=np.sqrt(8.0))))
    np.testing.assert_allclose(rows.error, 3.0)
    np.testing.assert_allclose(rows.off, [3.0, 3.0 / 5.0])


def test_worst_at_takes_the_last_row_so_far_or_the_first_there_is() -> None:
    runs = [board.errors(frame(rows)) for rows in (run(0, [1.0, 0.2, 0.4]), run(1, [0.5, -0.3]))]
    assert board.worst_at(runs, 10) == pytest.approx(1.0)
    assert board.worst_at(runs, 29) == pytest.approx(0.3)
    assert board.worst_at(runs, 1000) == pytest.approx(0.4)  # each at its end
    assert board.worst_at(runs, 1) == pytest.approx(1.0)  # nothing is known before the first row
    assert np.isnan(board.worst_at(runs, np.inf))


def test_coverage_of_right_claims_is_its_level() -> None:
    off = pd.Series(np.abs(stats.norm.ppf((np.arange(2000) + 0.5) / 2000)))
    assert board.coverage(off) == pytest.approx({"in 50 %": 0.5, "in 80 %": 0.8, "in 95 %": 0.95}, abs=1e-3)
    assert board.coverage(pd.Series([0.5, 1.0, 1.5, 3.0])) == {
        "in 50 %": 0.25,
        "in 80 %": 0.5,
        "in 95 %": 0.75,
    }


def test_calibration_looks_at_shares_of_each_runs_own_budget() -> None:
    rows = frame(
        run(0, [9.0, 9.0, 0.0, 9.0]),  # at a half of it, still outside
        run(1, [9.0, 0.0]),  # outside, inside
        run(0, [0.0, 0.0], problem="q"),
        run(0, [9.0], method="other"),
    )
    found = board.calibration(rows, (0.5, 0.75, 1.0))
    assert list(found.columns) == ["method", "share", "runs", "in 50 %", "in 80 %", "in 95 %"]
    ours = found[found.method == "m"]
    assert list(ours.runs) == [3, 3, 3] and list(ours.share) == [0.5, 0.75, 1.0]
    np.testing.assert_allclose(ours["in 95 %"], [1 / 3, 2 / 3, 2 / 3])
    assert list(found[found.method == "other"]["in 95 %"]) == [0.0, 0.0, 0.0]


def test_who_says_nothing_makes_no_claim() -> None:
    silent = [
        row | ({"log_odds_sd": 1000.1} if row["n_evaluations"] < 20 else {}) for row in run(0, [1.0, 9.0])
    ]
    found = board.calibration(frame(silent), (0.5, 1.0))
    assert list(found.share) == [1.0] and list(found["in 95 %"]) == [0.0]
    assert leaderboard_plots.covered(frame(silent), 0.5) == {}
    assert leaderboard_plots.covered(frame(silent), 1.0, least=2) == {}


# ---------------------------------------------------------------------- the synthetic experiment


def test_synthetic_rows_have_their_columns_and_can_be_repeated() -> None:
    task = synthetic.Task(2, 5, "monte_carlo")
    rows = synthetic.work(task)
    assert all(list(row) == COLUMNS for row in rows)
    assert synthetic.work(task) == rows  # to the last bit
    assert rows != synthetic.work(task._replace(dataset=6))
    assert all(row["n_evaluations"] % 2 == 0 for row in rows) and rows[-1]["n_evaluations"] == 100
    problem = load("synthetic-2", 5)
    result = METHODS["monte_carlo"](problem.models, 100, 5)
    truth = problem.log_evidence[0] - problem.log_evidence[1]
    last = rows[-1]
    assert last["z1"] == pytest.approx(result.probabilities["squared_exponential"], rel=1e-6)
    assert last["log_odds"] == pytest.approx(result.log_odds(*result.names)[0], rel=1e-6)
    assert last["log_odds_true"] == pytest.approx(truth, rel=1e-6)
    assert last["z1_true"] == pytest.approx(1 / (1 + np.exp(-truth)), rel=1e-6)


def test_synthetic_tasks_go_dataset_by_dataset() -> None:
    found = synthetic.tasks(iter([1, 2]), range(2), iter(["a", "b"]))
    assert [tuple(t) for t in found[:4]] == [(1, 0, "a"), (1, 0, "b"), (2, 0, "a"), (2, 0, "b")]
    assert len(found) == 8 and {t.dataset for t in found[4:]} == {1}


def made_up() -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Twelve datasets in two dimensions, the true z_1 being 0.5; earlier rows are worse."""
    rng = np.random.default_rng(0)
    errors = {m: np.abs(rng.normal(scale=s, size=12)) for m, s in {"default": 0.1, "bridge": 0.2}.items()}
    rows = [
        {"d": 2, "dataset": i, "method": m, "n_evaluations": n, "z1": 0.5 * (1 + e * extra), "log_odds": 0.0,
         "z1_true": 0.5, "log_odds_true": 0.0}
        for m, error in errors.items() for i, e in enumerate(error) for n, extra in ((100, 1.0), (50, 3.0))
    ]  # fmt: skip
    return pd.DataFrame(rows), errors


def test_the_summary_is_of_fractional_errors_at_the_full_budget() -> None:
    rows, errors = made_up()
    table = synthetic.summary(rows).set_index("method")
    for method, error in errors.items():
        assert table.loc[method, "n"] == 12 and table.loc[method, "d"] == 2
        assert table.loc[method, "mean"] == pytest.approx(error.mean())
        assert table.loc[method, "median"] == pytest.approx(np.median(error))
        assert table.loc[method, "s.e."] == pytest.approx(stats.sem(error))


def test_the_summarys_p_values_are_scipys() -> None:
    rows, errors = made_up()
    table = synthetic.summary(rows).set_index("method")
    ours, theirs = errors["default"], errors["bridge"]
    t = stats.ttest_rel(ours, theirs, alternative="less").pvalue
    wilcoxon = stats.wilcoxon(ours, theirs, alternative="less").pvalue
    assert 1e-6 < t < 0.5 and table.loc["bridge", "t, default"] == pytest.approx(t)
    assert table.loc["bridge", "Wilcoxon, default"] == pytest.approx(wilcoxon)
    assert table.loc["default", ["t, default", "Wilcoxon, default"]].isna().all()  # not against itself
    assert table[["t, paper", "Wilcoxon, paper"]].isna().all(axis=None)  # there is no such run


def test_tests_are_paired_by_dataset_and_need_three_of_them() -> None:
    rows, errors = made_up()
    fewer = rows[(rows.method == "default") | (rows.dataset < 5)]
    table = synthetic.summary(fewer).set_index("method")
    t = stats.ttest_rel(errors["default"][:5], errors["bridge"][:5], alternative="less").pvalue
    assert table.loc["bridge", "t, default"] == pytest.approx(t) and table.loc["bridge", "n"] == 5
    two = synthetic.summary(rows[(rows.method == "default") | (rows.dataset < 2)]).set_index("method")
    assert np.isnan(two.loc["bridge", "t, default"])


# ---------------------------------------------------------------------- commands


def invoke(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


def test_leaderboard_runs_what_is_missing_and_prints_two_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "SAMPLERS", 150)
    out = tmp_path / "curves.csv.gz"
    words = ["leaderboard", "--problem", "plane", "--problem", "nested-3", "--method", "monte_carlo",
             "--jobs", "0", "--out", str(out)]  # fmt: skip
    done = invoke(*words, "--seeds", "2")
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.output.splitlines() if "monte_carlo" in line]
    assert [line[:4] for line in lines[:2]] == [
        ["plane", "monte_carlo", "2", "150"], ["nested-3", "monte_carlo", "2", "150"],
    ]  # fmt: skip
    assert [line[:3] for line in lines[2:]] == [["monte_carlo", share, "4"] for share in ("0.25", "0.5", "1")]
    rows, stamp = read(out), out.read_bytes()
    assert set(rows.problem) == {"plane", "nested-3"} and set(rows.seed) == {0, 1}
    assert invoke(*words, "--seeds", "2").output.splitlines()[-12:] == done.output.splitlines()[-12:]
    assert out.read_bytes() == stamp  # nothing was missing
    assert invoke(*words, "--seeds", "1:3").exit_code == 0 and set(read(out).seed) == {0, 1, 2}
    shown = invoke("leaderboard", "--table", "--problem", "plane", "--out", str(out)).output
    assert "plane" in shown and "nested-3" not in shown


def test_reproduce_synthetic_runs_and_prints_its_table(tmp_path: Path) -> None:
    out = tmp_path / "curves.csv.gz"
    words = ["reproduce", "synthetic", "--dimension", "1", "--datasets", "2", "--method", "monte_carlo",
             "--jobs", "0", "--out", str(out)]  # fmt: skip
    done = invoke(*words)
    assert done.exit_code == 0, done.output
    (line,) = [line.split() for line in done.output.splitlines() if "1  monte_carlo" in line]
    assert line[:3] == ["1", "monte_carlo", "2"]
    assert list(read(out).columns) == [*COLUMNS, "seconds", "code"] and set(read(out).dataset) == {0, 1}
    mean = synthetic.final_errors(read(out)).monte_carlo.mean()
    assert line[3] == f"{mean:.3g}"
    again = invoke("reproduce", "synthetic", "--table", "--out", str(out))
    assert again.exit_code == 0 and " ".join(line) in " ".join(again.output.split())


@pytest.mark.parametrize("command", [["leaderboard"], ["reproduce", "synthetic"]], ids=" ".join)
def test_commands_refuse_methods_that_do_not_exist(command: list[str], tmp_path: Path) -> None:
    done = invoke(*command, "--method", "nope", "--out", str(tmp_path / "x.csv.gz"))
    assert done.exit_code == 2 and "There is no method 'nope'" in " ".join(done.output.split())
    assert not list(tmp_path.iterdir())


def test_leaderboard_refuses_problems_that_do_not_exist(tmp_path: Path) -> None:
    done = invoke("leaderboard", "--problem", "nope", "--out", str(tmp_path / "x.csv.gz"))
    assert done.exit_code == 2 and "There is no problem 'nope'" in " ".join(done.output.split())


@pytest.mark.parametrize("command", [["leaderboard"], ["reproduce", "synthetic"]], ids=" ".join)
def test_a_table_of_nothing_is_refused_in_words(command: list[str], tmp_path: Path) -> None:
    done = invoke(*command, "--table", "--out", str(tmp_path / "x.csv.gz"))
    assert done.exception is None or isinstance(done.exception, SystemExit)


def test_figures_and_markdown_of_the_leaderboard(tmp_path: Path) -> None:
    out = tmp_path / "curves.csv.gz"
    words = ["leaderboard", "--problem", "plane", "--method", "monte_carlo", "--seeds", "2", "--jobs", "0"]
    done = invoke(*words, "--out", str(out), "--markdown", "--figures", str(tmp_path / "figures"))
    assert done.exit_code == 0, done.output
    assert "| plane | monte_carlo | 2 |" in done.output
    names = {f"leaderboard-{n}.{e}" for n in ("needed", "calibration") for e in ("png", "svg")}
    assert {p.name for p in (tmp_path / "figures").iterdir()} == names


def test_coverage_is_drawn_as_it_is() -> None:
    """Errors of one claimed standard deviation are inside intervals of 68 % and more, and no others."""
    held = leaderboard_plots.covered(frame(run(0, [1.0]), run(1, [-1.0])))["m"]
    assert set(held[leaderboard_plots.LEVELS < 0.68]) == {0.0} and set(
        held[leaderboard_plots.LEVELS > 0.69]
    ) == {1.0}


# ---------------------------------------------------------------------- the page


def of(problem: str, method: str, needed: list[float]) -> pd.DataFrame:
    """Runs on ``problem`` that got to the answer after so many evaluations."""
    runs = [run(i, [0.5, 0.01], problem=problem, method=method, needed=n) for i, n in enumerate(needed)]
    return frame(*runs).assign(code="0.1+abc")


def test_ours_is_held_against_the_best_peer_of_each_problem() -> None:
    rows = pd.concat(
        [
            of("tails-2", "default", [10.0, 20.0, 30.0]),
            of("tails-2", "pyvbmc", [40.0]),
            of("tails-2", "dynesty", [8000.0]),
            of("tails-2", "paper", [5.0]),  # no peer
            of("tails-10", "default", [400.0]),
            of("tails-10", "pyvbmc", [200.0]),
            of("plane", "default", [50.0]),
            of("plane", "pyvbmc", [np.inf]),
            of("nile", "default", [np.inf]),
            of("nile", "pyvbmc", [np.inf]),
        ]
    )
    table = board.standings(rows)
    found = leaderboard_page.ratios(rows).set_index("problem")
    assert found.loc["tails-2", ["default", "best peer", "its", "ratio"]].tolist() == [20, "pyvbmc", 40, 0.5]
    assert found.loc["tails-10", ["d", "ratio"]].tolist() == [10, 2.0]
    assert found.loc["plane", ["best peer", "ratio"]].tolist() == ["none", 0.0]
    assert np.isnan(found.ratio["nile"])  # nobody gets there
    needed = leaderboard_page.needed(table).set_index("problem")
    assert needed.loc["tails-2", ["default", "dynesty", "paper"]].tolist() == ["20 (3)", "8000 (1)", "5 (1)"]
    assert needed.loc["nile", ["default", "dynesty"]].tolist() == ["∞ (1)", "–"]
    medians = leaderboard_page.medians(table).set_index("method")
    assert medians.loc["default", "median, d ≤ 6"] == 50 and medians.loc["default", "median, all"] == 225
    assert medians.loc["pyvbmc", "reached, all"] == "2 of 4"


def test_a_peer_is_held_against_on_the_data_that_it_has_had() -> None:
    harder = of("synthetic-2", "default", [900.0, 900.0, 900.0]).assign(data=7)
    alone = of("plane", "default", [50.0])
    rows = pd.concat(
        [of("synthetic-2", "default", [20.0]), harder, of("synthetic-2", "pyvbmc", [40.0]), alone]
    )
    found = leaderboard_page.ratios(rows)
    assert found[["problem", "default", "its", "ratio"]].to_numpy().tolist() == [["synthetic-2", 20, 40, 0.5]]


def test_the_page_says_where_the_worst_run_is_far_off() -> None:
    rows = pd.concat([of("tails-2", "default", [10.0, 20.0]), of("nile", "default", [np.inf, np.inf])])
    table = board.standings(rows)
    says = leaderboard_page._worst(table)
    assert "Of 2 problems the median run gets there on 1" in says and "over 1 on" not in says
    assert says.endswith("It does not get there on `nile`, where the worst run ends 0.01 nats off.")
    far = table.assign(**{"worst at twice": [2.5, np.nan]})
    assert "off by 2.5 nats (over 1 on `tails-2`)" in leaderboard_page._worst(far)
    assert leaderboard_page._worst(table[:1]).endswith("nats.")
    peer = board.standings(pd.concat([rows, of("nile", "pyvbmc", [np.inf])]))
    assert leaderboard_page._worst(peer).endswith("0.01 nats off; of its peers none does.")
    peer = board.standings(pd.concat([rows, of("nile", "dynesty", [6e4]), of("tails-2", "bridge", [90.0])]))
    assert leaderboard_page._worst(peer).endswith("`dynesty` on `nile` after 60000 evaluations does.")


def test_coverage_is_told_apart_by_dimension() -> None:
    rows = pd.concat(
        [frame(run(0, [1.0], problem="tails-2")), frame(run(0, [3.0], problem="tails-10"))]
    ).assign(method="default")
    found = leaderboard_page.by_dimension(rows)
    last = found[found.share == 1.0].set_index("problems")["in 95 %"]
    assert last.to_dict() == {"d ≤ 6": 1.0, "d > 6": 0.0}


def test_the_page_is_written_with_its_figures(tmp_path: Path) -> None:
    out = tmp_path / "runs.csv.gz"
    rows = pd.concat([of("tails-2", "default", [10.0, 20.0]), of("tails-2", "pyvbmc", [40.0, 60.0])])
    rows.to_csv(out, index=False)
    page = tmp_path / "docs" / "leaderboard.md"
    done = invoke("leaderboard", "--table", "--out", str(out), "--page", str(page))
    assert done.exit_code == 0, done.output
    text = page.read_text(encoding="utf-8")
    assert (
        "0.3 times as many in the median problem with d ≤ 6" in text and "Made by modelodds 0.1+abc." in text
    )
    assert all((page.parent / name).exists() for name in re.findall(r"\]\((img/[^)]+)\)", text))
