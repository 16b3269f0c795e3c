"""Programs as likelihoods, and studies in TOML: what they are given, what they may say, how they fail."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modelodds import Command, Model
from modelodds.adapters.command import read_output
from modelodds.errors import CommandError, OptionError, StudyError
from modelodds.evaluate import evaluate
from modelodds.study import load_study

PYTHON = sys.executable
ECHO = "import json, sys; p = json.load(sys.stdin); print(p['a'] + 10 * p['b'])"


def program(text: str, *arguments: str) -> Command:
    return Command([PYTHON, "-c", text, *arguments], ["a", "b"])


def test_parameters_come_as_json_and_as_arguments() -> None:
    third = 1 / 3  # not a bit is lost on the way
    assert program(ECHO)([third, 2.0]) == third + 20.0
    text = "import sys; print(float(sys.argv[1]) + 10 * float(sys.argv[2][2:]))"
    assert program(text, "{a}", "b={b}")([third, 2.0]) == third + 20.0
    assert program("import sys; print(-1.0, sys.argv[1] == '{print}')", "{print}")


@pytest.mark.parametrize(
    ("output", "value"),
    [
        ("-3.5", -3.5),
        ("chatter\n-3.5\n\n", -3.5),
        ("-3.5 0.25", (-3.5, 0.25)),
        ("-3.5, 0.25", (-3.5, 0.25)),
        ("-inf", -np.inf),
        ('{"log_likelihood": -3.5}', -3.5),
        ('{"log_likelihood": -3.5, "standard_error": 0.25}', (-3.5, 0.25)),
    ],
)
def test_what_a_program_may_print(output: str, value: Any) -> None:
    assert read_output(output) == value


@pytest.mark.parametrize("output", ["", "\n\n", "done", "1 2 3", "{}", "[1]", '{"log_likelihood"', "-3.5 ok"])
def test_what_it_may_not(output: str) -> None:
    with pytest.raises(CommandError, match=r"printed nothing|its last line is"):
        read_output(output)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import sys; sys.exit('no licence')", "ended with exit code 1: no licence"),
        ("import os; os.kill(os.getpid(), 9)", "was killed by signal 9"),
        ("1 / 0", "ended with exit code 1: ZeroDivisionError: division by zero"),
        ("print('nan')", "the log-likelihood is nan"),
        ("print('hello')", "its last line is 'hello'"),
        ("import sys; sys.stdin.close(); print('x' * 9)", "its last line is 'xxxxxxxxx'"),
    ],
)
def test_failures_have_their_reason(text: str, reason: str) -> None:
    model = Model("m", program(text), {"a": 0.0, "b": 0.0})
    outcome = evaluate(model, [0.0, 0.0])
    assert outcome.status == "failed" and reason in outcome.reason


def test_no_such_program() -> None:
    outcome = evaluate(Model("m", Command(["./no-such-thing"], []), {}), [])
    assert "./no-such-thing cannot be run" in outcome.reason
    for bad in ("./simulate", [], [""], [3]):
        with pytest.raises(OptionError, match="arguments must"):
            Command(bad, [])  # type: ignore[arg-type]


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_timeout_ends_the_program_and_what_it_started(tmp_path: Path) -> None:
    notes = tmp_path / "pid"
    text = f"sleep 60 & echo $! > {notes}; wait"
    start = time.monotonic()
    outcome = evaluate(Model("m", Command(["sh", "-c", text], []), {}), [], timeout=0.5)
    assert outcome.reason == "stopped: it took longer than 0.5 seconds" and time.monotonic() - start < 20
    pid = int(notes.read_text())
    for _ in range(50):
        if not os.path.exists(f"/proc/{pid}") or "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2]:
            return
        time.sleep(0.1)
    pytest.fail("the program's child is still running")


# ---------------------------------------------------------------------- studies

STUDY = """\
budget = 40
seed = 3
workers = 2
timeout = 60.0
ledger = "run.db"

[[models]]
name = "line"
command = ["./line", "{slope}"]
prior_probability = 2.0
[models.prior]
slope = { distribution = "norm", loc = 0, scale = 2 }
offset = 1.5

[[models]]
name = "curve"
command = ["./curve"]
prior.bend = { distribution = "uniform", low = -1, high = 3 }
prior.rate = { distribution = "gamma", a = 2.0 }
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_study(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, STUDY))
    assert (study.budget, study.seed, study.workers, study.batch) == (40, 3, 2, 1)
    assert study.failures.timeout == 60.0 and study.ledger == tmp_path / "run.db"
    line, curve = study.models
    assert line.name == "line" and line.prior_probability == 2.0 and line.prior.fixed == {"offset": 1.5}
    assert line.prior.components["slope"].std() == 2.0
    assert curve.prior.components["bend"].support() == (-1.0, 3.0)
    assert curve.log_likelihood.names == ("bend", "rate")
    assert curve.log_likelihood.folder == str(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("budget = 40", "budget = 0", "line 1: budget must be a whole number, 1 or more, not 0."),
        ("budget = 40", "budget = 1.5", "line 1: budget must be a whole number"),
        ("seed = 3", "sed = 3", "line 2: 'sed' is not known here; did you mean 'seed'?"),
        ("seed = 3", "seed = true", "line 2: seed must be a whole number"),
        ("timeout = 60.0", "timeout = inf", "line 4: timeout must be a finite number, not inf"),
        ("timeout = 60.0", "timeout = -1", "line 4: timeout must be above 0"),
        ('ledger = "run.db"', "ledger = 3", "line 5: ledger must be given, as text in quotes, not 3."),
        ('name = "line"', "", "line 7: name must be given"),
        ('name = "curve"', 'name = "line"', "line 7: two models are called 'line'"),
        ('["./line", "{slope}"]', '"./line"', "line 9: command must be a list of strings"),
        ('["./curve"]', "[]", "line 17: command must be a list"),
        ("prior_probability = 2.0", "prior_probability = 0", "line 10: prior_probability must be above 0"),
        ('"norm"', '"norml"', "line 12: scipy.stats has no continuous distribution 'norml'; did you mean"),
        ('"norm"', '"poisson"', "line 12: scipy.stats has no continuous distribution 'poisson'"),
        ("scale = 2", "sd = 2", "line 12: 'sd' is not known here; norm takes loc, scale"),
        ("scale = 2", "scale = -2", "line 12: the prior of 'slope' is improper"),
        ("scale = 2", 'scale = "2"', "line 12: scale must be a number, not '2'"),
        ("offset = 1.5", "offset = nan", "line 11: 'offset' is fixed at nan"),
        ("offset = 1.5", "offset = [0, 1]", "line 13: offset must be a number, which fixes it, or a dist"),
        ("a = 2.0", "loc = 2.0", "line 19: gamma needs a as well"),
        ("high = 3", "high = -1", "line 18: the prior of 'bend'"),
        ("[models.prior]", "[models.prio]", "line 11: 'prio' is not known here; did you mean 'prior'?"),
        ("[models.prior]", "[models.prior", "is not TOML: "),
    ],
)
def test_errors_name_the_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in STUDY
    path = write(tmp_path, STUDY.replace(old, new, 1))
    with pytest.raises(StudyError) as error:
        load_study(path)
    assert says in str(error.value) and str(path) in str(error.value)


def test_files_that_are_no_studies(tmp_path: Path) -> None:
    for text, says in [("", "there must be models"), ("models = 3", "line 1: there must be models")]:
        with pytest.raises(StudyError, match=says):
            load_study(write(tmp_path, text))
    with pytest.raises(StudyError, match="there is no file"):
        load_study(tmp_path / "none.toml")
    with pytest.raises(StudyError, match="cannot be read"):
        load_study(tmp_path)
    (tmp_path / "study.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(StudyError, match="UTF-8"):
        load_study(tmp_path / "study.toml")
