"""``modelodds problems`` and ``modelodds bench``: what they print, keep and refuse."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from modelodds.baselines import METHODS
from modelodds.cli import app
from modelodds.experiments.bench import Task, errors, run, run_all, table
from modelodds.experiments.sweep import read
from modelodds.problems import FAMILIES, load
from modelodds.problems.nested import nested

TASK = Task("regression-2", 0, "monte_carlo", 40, 3)


def test_problems_lists_every_family_and_method() -> None:
    printed = CliRunner().invoke(app, ["problems"]).output
    assert all(name in printed for name in [*FAMILIES, *METHODS])
    assert "0–3, 5–6, 8–9" in printed  # the batteries whose truth is stored


def test_a_row_is_what_the_run_says() -> None:
    row, problem = run(TASK), load("regression-2", 0)
    result = METHODS["monte_carlo"](problem.models, 40, 3)
    truth = problem.log_evidence[0] - problem.log_evidence[1]
    mean, sd = result.log_bayes_factor("polynomial", "cosine")
    assert row["evaluations"] == 40
    assert row["error"] == pytest.approx(mean - truth) and row["log_odds_sd"] == pytest.approx(sd)


def test_errors_are_of_the_two_best_models() -> None:
    problem = nested(4, 0)
    result = METHODS["monte_carlo"](problem.models, 400, 0)
    first, second = np.argsort(problem.log_evidence)[::-1][:2]
    found = errors(problem, result)
    assert found["log_odds_true"] == pytest.approx(problem.log_evidence[first] - problem.log_evidence[second])
    assert found["log_odds_true"] > 0 and 0 <= found["z_error"] <= 1


def test_runs_that_are_there_are_not_repeated(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "runs.csv"
    tasks = [TASK._replace(seed=s) for s in range(3)]
    first = list(run_all(tasks[:2], out))
    stamp = out.read_text()
    again = list(run_all(tasks, out))
    assert out.read_text().startswith(stamp) and len(read(out)) == 3
    assert [row["error"] for row in again[:2]] == pytest.approx([row["error"] for row in first])


def test_the_table_counts_coverage() -> None:
    rows = [
        {"problem": "p", "method": "m", "budget": 9, "error": e, "log_odds_sd": 1.0, "truth_error": 0.0,
         "z_error": 0.1, "overhead": 0.0}
        for e in (0.5, -0.9, 1.5, -3.0)
    ]  # fmt: skip
    (row,) = table(rows).to_dict("records")
    assert (row["runs"], row["in 1 sd"], row["in 2 sd"]) == (4, 0.5, 0.75)
    assert (row["median"], row["worst"]) == (1.2, 3.0) and row["mean"] == pytest.approx(1.475)


def test_bench_prints_a_table(tmp_path: Path) -> None:
    command = (
        "bench --problem plane --problem nested-2 --method monte_carlo --budget 30 --budget 60 --seeds 2"
    )
    done = CliRunner().invoke(app, [*command.split(), "--out", str(tmp_path / "runs.csv")])
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.output.splitlines() if "monte_carlo" in line]
    assert [(line[0], line[2], line[3]) for line in lines] == [
        ("plane", "30", "2"), ("plane", "60", "2"), ("nested-2", "30", "2"), ("nested-2", "60", "2")
    ]  # fmt: skip
    seeds = {
        (row["problem"], row["data"], row["seed"]) for row in read(tmp_path / "runs.csv").to_dict("records")
    }
    assert seeds == {("plane", 0, 0), ("plane", 0, 1), ("nested-2", 0, 0), ("nested-2", 1, 1)}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("--problem", "nope"), "There is no problem 'nope'"),
        (("--method", "nope"), "There is no method 'nope'"),
        (("--seeds", "few"), "neither a number"),
        (("--data", "-1"), "0 or more"),
    ],
)
def test_bench_refuses_what_does_not_exist(change: tuple[str, str], what: str) -> None:
    options = {"--problem": "nested-2", "--method": "monte_carlo", "--budget": "20", "--seeds": "1"}
    options[change[0]] = change[1]
    done = CliRunner().invoke(app, ["bench", *(word for pair in options.items() for word in pair)])
    assert done.exit_code == 2 and what in " ".join(done.output.split())
