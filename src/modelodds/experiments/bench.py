"""Any method on any problem: one row per run, and the table that sums them up.

Errors are of the log-odds of the two truly most probable models, in nats, and of the posterior model
probabilities (the largest of them). Where the truth itself is only known to some error, that is part of the
row, too.
"""

import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from modelodds.baselines import METHODS
from modelodds.errors import OptionError
from modelodds.experiments.curves import Pair, log_joint
from modelodds.experiments.sweep import sweep
from modelodds.problems import load
from modelodds.problems.base import Problem
from modelodds.result import Result


class Task(NamedTuple):
    """One run: ``data`` is the problem's seed, ``seed`` the method's."""

    problem: str
    data: int
    method: str
    budget: int
    seed: int


def run(task: Task) -> dict[str, object]:
    """The row of one run."""
    check_method(task.method)
    problem = load(task.problem, task.data)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = METHODS[task.method](problem.models, task.budget, task.seed)
    seconds = time.perf_counter() - start
    return task._asdict() | errors(problem, result) | {"seconds": seconds}


def check_method(name: str) -> None:
    """Complain about a method that does not exist."""
    if name not in METHODS:
        raise OptionError(f"There is no method {name!r}; the methods are {', '.join(METHODS)}.")


def errors(problem: Problem, result: Result) -> dict[str, float]:
    """How far ``result`` is from the truth, and how far it says it may be."""
    pair = Pair.of(problem)
    found, sd = result.log_odds(pair.first, pair.second)
    z = np.array(list(result.probabilities.values()))
    return {
        "evaluations": len(result.evaluations),
        "log_odds": found,
        "log_odds_sd": sd,
        "log_odds_true": pair.log_odds,
        "truth_error": problem.error,
        "error": found - pair.log_odds,
        "z_error": float(np.abs(z - special.softmax(log_joint(problem))).max()),
        "overhead": result.overhead_seconds / max(1, len(result.evaluations)),
    }


def run_all(tasks: Iterable[Task], out: Path | None = None, jobs: int = 1) -> Iterator[dict[str, object]]:
    """Rows as they come; those that ``out`` has already are given first, and new ones are appended to it."""
    for rows in sweep(tasks, _rows, out, jobs if jobs > 1 else 0):
        yield from rows


def _rows(task: Task) -> list[dict[str, object]]:
    return [run(task)]


def table(rows: Iterable[dict[str, object]]) -> pd.DataFrame:
    """Median, mean and worst error, coverage and overhead, by problem, method and budget."""
    frame = pd.DataFrame(rows)
    frame["size"] = frame.error.abs()
    # The truth's own error counts for the run: a claim cannot be held to more than is known.
    frame["off"] = frame["size"] / np.hypot(frame.log_odds_sd, np.sqrt(2.0) * frame.truth_error)
    groups = frame.groupby(["problem", "method", "budget"], sort=False)
    return pd.DataFrame(
        {
            "runs": groups.size(),
            "median": groups["size"].median(),
            "mean": groups["size"].mean(),
            "worst": groups["size"].max(),
            "claimed sd": groups.log_odds_sd.median(),
            "in 1 sd": groups.off.apply(lambda o: float((o <= 1).mean())),
            "in 2 sd": groups.off.apply(lambda o: float((o <= 2).mean())),
            "z error": groups.z_error.mean(),
            "overhead": groups.overhead.mean(),
        }
    ).reset_index()
