"""The leaderboard: every problem, every method, many seeds, as curves of error against evaluations.

``modelodds leaderboard`` runs what is missing and prints the tables; `work` is one run, `standings` sums up.
Evaluations are those of all models together.
"""

import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from modelodds.baselines import METHODS
from modelodds.baselines.base import IGNORANCE
from modelodds.experiments.curves import Pair, curve, settled_at, thinned
from modelodds.problems import find, load
from modelodds.problems.truth import known_seeds

OUT = Path("results/leaderboard/curves.csv.gz")

SUITE = (
    "regression-2",
    "regression-4",
    "regression-8",
    "plane",
    "rosenbrock",
    "ring",
    "tails-2",
    "tails-4",
    "tails-6",
    "tails-10",
    "lumpy-2",
    "lumpy-4",
    "lumpy-8",
    "nested-3",
    "nested-6",
    "synthetic-1",
    "synthetic-2",
    "synthetic-3",
    "synthetic-4",
    "synthetic-5",
    "links",
    "nile",
    "epidemic",
    "battery",
    "planets",
)
OURS = ("default", "default_independent", "default_stopping", "paper", "round_robin", "round_robin_default")
SURROGATES = (*OURS, "pyvbmc", "bobe")
PER_PARAMETER = 15  # evaluations of a model with d parameters: this many times d + 2, more for these, ...
HARD = {"lumpy-8": 20, "epidemic": 50}
OWN = {"pyvbmc": 50, "bobe": 50}  # ... and as many as they recommend for peers that end by their own rule
SAMPLERS = 10_000  # evaluations that samplers get, ...
THIRSTY = {"dynesty": 200_000, "nautilus": 200_000}  # ... and those that end by themselves
WITHIN = 0.1  # nats
LEVELS = (0.5, 0.8, 0.95)


class Task(NamedTuple):
    """One run: ``data`` is the problem's seed, ``seed`` the method's."""

    problem: str
    data: int
    method: str
    seed: int


def tasks(problems: Iterable[str], methods: Iterable[str], seeds: Iterable[int]) -> list[Task]:
    """All runs; data change with the seed where a problem has more than one set of them."""
    seeds = list(seeds)
    return [Task(p, data_of(p, seed), m, seed) for m in methods for seed in seeds for p in problems]


def data_of(problem: str, seed: int) -> int:
    """Seed of the problem's data that goes with a method's seed."""
    family, _ = find(problem)
    if not family.seeded:
        return 0
    if family.candidates is None:
        return seed
    known = known_seeds(problem)
    return known[seed % len(known)]


def budget(problem: str, data: int, method: str) -> int:
    """Evaluations that a method gets, of all models together."""
    if method not in SURROGATES:
        return THIRSTY.get(method, SAMPLERS)
    each = OWN.get(method, HARD.get(problem, PER_PARAMETER))
    return sum(each * (m.dim + 2) if m.dim else 1 for m in load(problem, data).models)


def work(task: Task) -> list[dict[str, Any]]:
    """The rows of one run."""
    problem, start = load(task.problem, task.data), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = METHODS[task.method](problem.models, budget(*task[:3]), task.seed)
    rows, true = curve(problem, result), Pair.of(problem).log_odds
    rows = thinned(rows).assign(
        log_odds_true=true,
        needed=settled_at(rows.n_evaluations.to_numpy(), (rows.log_odds - true).to_numpy(), WITHIN),
        truth_error=problem.error,
        overhead=result.overhead_seconds / max(1, len(result.evaluations)),
        seconds=time.perf_counter() - start,
    )
    return [task._asdict() | {str(k): v for k, v in row.items()} for row in rows.to_dict("records")]


# ---------------------------------------------------------------------- tables


def errors(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with ``error`` and ``off``: the error in claimed standard deviations.

    The truth's own error counts for the run: a claim cannot be held to more than is known.
    """
    error = rows.log_odds - rows.log_odds_true
    off = error.abs() / np.hypot(rows.log_odds_sd, np.sqrt(2.0) * rows.truth_error)
    return rows.assign(error=error, off=off)


def standings(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per problem and method: evaluations to the answer, errors at the end, coverage, overhead."""
    rows = errors(answered(rows))
    table = []
    for (problem, method), group in rows.groupby(["problem", "method"], sort=False):
        runs = [run.sort_values("n_evaluations") for _, run in group.groupby(["data", "seed"])]
        end = pd.DataFrame([r.iloc[-1] for r in runs])
        needed = end.needed.to_numpy()
        median = float(np.median(needed))
        table.append(
            {
                "problem": problem,
                "method": method,
                "runs": len(runs),
                "budget": int(end.n_evaluations.max()),
                "needed": median,
                "needed (worst)": float(needed.max()),
                "worst at twice": worst_at(runs, 2 * median),
                "median": float(end.error.abs().median()),
                "worst": float(end.error.abs().max()),
                "z error": float(end.z_error.median()),
                **coverage(end.off),
                "overhead": float(end.overhead.mean()),
            }
        )
    return pd.DataFrame(table)


def worst_at(runs: list[pd.DataFrame], n: float) -> float:
    """Largest error of the runs after ``n`` evaluations, or at their end where that comes first."""
    if not np.isfinite(n):
        return float("nan")
    return max(abs(float(r.error[r.n_evaluations <= max(n, r.n_evaluations.min())].iloc[-1])) for r in runs)


def coverage(off: pd.Series) -> dict[str, float]:
    """Share of runs whose interval of each level has the truth."""
    return {f"in {100 * p:.0f} %": float((off <= special.ndtri(0.5 + 0.5 * p)).mean()) for p in LEVELS}


def calibration(rows: pd.DataFrame, shares: tuple[float, ...] = (0.25, 0.5, 1.0)) -> pd.DataFrame:
    """Coverage of every method over all problems and seeds, at these shares of the budget."""
    rows = errors(rows)
    found = []
    for method, group in rows.groupby("method", sort=False):
        for share in shares:
            if len(at := telling(picked(group, share))):
                found.append({"method": method, "share": share, "runs": len(at), **coverage(at.off)})
    return pd.DataFrame(found)


def answered(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows, ``needed`` counting from where a run claims anything: even odds until then are no answer."""
    runs = [rows[name] for name in Task._fields]
    n, silent = rows.n_evaluations, rows.log_odds_sd >= IGNORANCE
    last = n.where(silent, -np.inf).groupby(runs).transform("max")  # that says nothing
    first = n.where(n > last, np.inf).groupby(runs).transform("min")
    return rows.assign(needed=rows.needed.where(rows.needed > last, first))


def telling(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that claim anything: while a sampler is under way, it may not."""
    return rows[rows.log_odds_sd < IGNORANCE]


def picked(rows: pd.DataFrame, share: float) -> pd.DataFrame:
    """The row of each run at this share of its evaluations."""
    rows = rows.sort_values("n_evaluations", kind="stable")
    runs = rows.groupby(["problem", "data", "method", "seed"]).n_evaluations
    limit = np.maximum(share * runs.transform("max"), runs.transform("min"))
    return rows[rows.n_evaluations <= limit].groupby(["problem", "data", "method", "seed"]).tail(1)
