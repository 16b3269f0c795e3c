"""Runs from the command line: studies, ledgers, status, resume; what they print and their exit codes."""

import csv
import io
import json
import sys
from pathlib import Path

import pytest

from modelodds.journal import Journal
from test_cli import invoke

STUDY = f"""\
budget = 10
ledger = "run.db"

[[models]]
name = "one"
command = ["{sys.executable}", "-c", "print(-1.5)"]
prior.x = 1.0

[[models]]
name = "two"
command = ["{sys.executable}", "-c", "import json, sys; print(-json.load(sys.stdin)['x'])"]
prior.x = 2.5
"""
MODELS = """
from modelodds import Model

offset = 1.5

def one(theta):
    return theta[0] - offset

models = [Model("one", one, {"x": 0.0}), Model("two", lambda theta: -2.5, {"x": 0.0})]
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def test_a_study_without_python(study: Path) -> None:
    code, output = invoke("run", study, "--quiet")
    assert code == 0 and "one is favoured 2.72 : 1 over two" in " ".join(output.split())
    ledger = study.parent / "run.db"
    code, output = invoke("status", ledger)
    assert code == 0 and "2 of 10 evaluations" in output and "every evidence is known exactly" in output
    code, output = invoke("status", ledger, "--json")
    said = json.loads(output)
    assert said["status"] == "settled" and said["done"] == {"one": 1, "two": 1}
    assert said["log_evidence"] == {"one": -1.5, "two": -2.5}
    code, output = invoke("evaluations", ledger, "--csv")
    rows = list(csv.DictReader(io.StringIO(output)))
    assert [(r["model"], r["x"], r["log_likelihood"]) for r in rows] == [
        ("one", "1.0", "-1.5"),
        ("two", "2.5", "-2.5"),
    ]
    rows = json.loads(invoke("evaluations", ledger, "--json")[1])
    assert rows[1]["log_likelihood"] == -2.5 and rows[1]["status"] == "ok"
    assert "log_likelihood" in invoke("evaluations", ledger)[1]
    code, output = invoke("resume", ledger, "--quiet")
    assert code == 0 and "one is favoured" in output
    assert len(json.loads(invoke("evaluations", ledger, "--json")[1])) == 2  # nothing was made again


LEVELS = """
from scipy import stats
from modelodds import Model

def model(name, at):
    return Model(name, lambda theta: stats.norm.logpdf(theta[0], at), {"x": stats.norm()})

models = [model("near", 0.0), model("far", 4.0)]
"""


def test_rules_end_a_run_and_others_have_it_go_on(tmp_path: Path) -> None:
    file, ledger = tmp_path / "models.py", tmp_path / "run.db"
    file.write_text(LEVELS)
    code, output = invoke("run", file, "--budget", 40, "--stop", "Budget(13)", "--ledger", ledger, "--quiet")
    assert code == 0 and "13 evaluations were made" in " ".join(output.split())
    assert "13 evaluations were made" in " ".join(invoke("resume", ledger, "--quiet")[1].split())
    code, output = invoke("resume", ledger, "--stop", "Budget(15) | WallTime(3600)", "--quiet")
    assert code == 0 and "15 evaluations were made" in " ".join(output.split())
    code, output = invoke("run", file, "--budget", 40, "--stop", "Budget")
    assert code == 2 and "'Budget' is no stopping rule" in output


def test_a_study_may_say_when_to_stop(study: Path) -> None:
    study.write_text(STUDY.replace("budget = 10", 'budget = 10\nstop = "Budget(1)"'))
    assert "1 evaluations were made" in " ".join(invoke("run", study, "--quiet")[1].split())
    study.write_text(STUDY.replace("budget = 10", 'budget = 10\nstop = "Budget(1"'))
    code, output = invoke("run", study)
    assert code == 2 and "study.toml, line 2: 'Budget(1' is no stopping rule" in output


def test_a_bad_study_names_the_line(study: Path) -> None:
    study.write_text(STUDY.replace("prior.x = 2.5", "prior.x = 'much'"))
    code, output = invoke("run", study)
    assert code == 2 and "study.toml, line 12: x must be a number, which fixes it, or" in output


def test_workers_run_what_is_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "models.py"
    file.write_text(MODELS)
    ledger, new = tmp_path / "run.db", tmp_path / "new.db"
    code, output = invoke("run", file, "--budget", 6, "--workers", 2, "--ledger", ledger, "--quiet")
    assert code == 0, output
    rows = json.loads(invoke("evaluations", ledger, "--json")[1])
    assert sorted(r["log_likelihood"] for r in rows) == [-2.5, -1.5]
    code, output = invoke("run", file, "--budget", 6, "--ledger", new, "--reuse", ledger, "--quiet")
    assert code == 0 and "2 more reused" in invoke("status", new)[1]


def test_exit_codes(tmp_path: Path, study: Path) -> None:
    file, ledger = tmp_path / "models.py", tmp_path / "run.db"
    file.write_text(MODELS)
    code, output = invoke("run", file)
    assert code == 2 and "Give --budget" in output
    with Journal(ledger):
        code, output = invoke("run", study, "--quiet")
    assert code == 3 and "is being written by this very process" in output
    assert invoke("status", ledger)[0] == 2  # it holds no run yet
    code, output = invoke("status", tmp_path / "none.db")
    assert code == 2 and "there is no ledger" in output
    assert invoke("run", study, "--quiet")[0] == 0
    code, output = invoke("run", file, "--budget", 6, "--ledger", ledger, "--quiet")
    assert code == 2 and "model 'one': the prior of 'x' was fixed at 1, now fixed at 0" in output
    code, output = invoke("run", file, "--budget", 6, "--reuse", ledger)
    assert code == 2 and "--reuse needs a --ledger" in output
    study.write_text(STUDY.replace("print(-1.5)", "1 / 0").replace("run.db", "fails.db"))
    code, output = invoke("run", study, "--max-failures", 0, "--quiet")
    assert code == 1 and "too many evaluations failed" in " ".join(output.split())
    code, output = invoke("status", tmp_path / "fails.db")
    assert code == 0 and "1 failed" in output and "failed" in output.splitlines()[-3].split()
    assert all(len(line) <= 80 for line in output.splitlines()[1:])


def test_a_run_begun_from_python_is_resumed_there(tmp_path: Path) -> None:
    from modelodds import Model, compare

    ledger = tmp_path / "run.db"
    compare([Model("one", lambda theta: 0.0, {"x": 1.0})], budget=3, ledger=ledger, progress=False)
    code, output = invoke("resume", ledger)
    assert code == 2 and "was begun from Python; run that script again" in output


def test_salvage(study: Path) -> None:
    ledger, new = study.parent / "run.db", study.parent / "new.db"
    assert invoke("run", study, "--quiet")[0] == 0
    whole = ledger.read_bytes()
    ledger.write_bytes(whole[: len(whole) - 100])
    code, output = invoke("status", ledger)
    assert code == 2 and f"modelodds salvage {ledger} NEW.db" in output
    code, output = invoke("salvage", ledger, new)
    assert code == 0 and "evaluations of" in output and "are intact" in output
    assert invoke("status", new)[0] == 0
    assert invoke("salvage", ledger, new)[0] == 2  # nothing is overwritten
