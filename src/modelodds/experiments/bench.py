"""Any method on any problem: one row per run, and the table that sums them up.

Errors are of the log-odds of the two truly most probable models, in nats, and of the posterior model
probabilities (the largest of them). Where the truth itself is only known to some error, that is part of the
row, too.
"""

import csv
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from modelodds.baselines import METHODS
from modelodds.errors import OptionError
from modelodds.problems import load
from modelodds.problems.base import Problem
from modelodds.result import Result

KEY = ("problem", "data", "method", "budget", "seed")


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
    prior = np.log([m.prior_probability for m in problem.models])
    truth = np.array(problem.log_evidence) + prior
    first, second = np.argsort(-truth, kind="stable")[:2]
    found, sd = result.log_odds(result.names[first], result.names[second])
    z = np.array(list(result.probabilities.values()))
    return {
        "evaluations": len(result.evaluations),
        "log_odds": found,
        "log_odds_sd": sd,
        "log_odds_true": float(truth[first] - truth[second]),
        "truth_error": problem.error,
        "error": found - float(truth[first] - truth[second]),
        "z_error": float(np.abs(z - special.softmax(truth)).max()),
        "overhead": result.overhead_seconds / max(1, len(result.evaluations)),
    }


def run_all(tasks: Iterable[Task], out: Path | None = None, jobs: int = 1) -> Iterator[dict[str, object]]:
    """Rows as they come; those that ``out`` has already are given first, and new ones are appended to it."""
    tasks, done = list(tasks), read(out)
    known = {tuple(row[k] for k in KEY): row for row in done}
    yield from (known[task] for task in tasks if task in known)
    rest = [task for task in tasks if task not in known]
    for row in _compute(rest, jobs):
        if out is not None:
            _append(out, row)
        yield row


def _compute(tasks: list[Task], jobs: int) -> Iterator[dict[str, object]]:
    if jobs <= 1 or len(tasks) <= 1:
        yield from map(run, tasks)
        return
    with ProcessPoolExecutor(min(jobs, len(tasks)), get_context("spawn")) as pool:
        for future in as_completed([pool.submit(run, task) for task in tasks]):
            yield future.result()


def read(path: Path | None) -> list[dict[str, object]]:
    """The rows of a file of earlier runs; none if there is no such file."""
    if path is None or not path.exists():
        return []
    return [{str(k): v for k, v in row.items()} for row in pd.read_csv(path).to_dict("records")]


def _append(path: Path, row: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


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
