"""The paper's synthetic experiment (Chai et al. 2019, section 6.1): 100 datasets in each of five dimensions.

Every method gets 50 d evaluations in total. What it says of z_1, the posterior probability of the true
(squared-exponential) model, is noted every d evaluations; errors are fractions of the true z_1.
``round_robin_long`` is round-robin with four times as many, to see when it gets where ours is at 50 d.
"""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from modelodds.baselines import METHODS, Entry
from modelodds.errors import OptionError
from modelodds.experiments.curves import settled_at
from modelodds.experiments.statistics import smaller
from modelodds.problems import load
from modelodds.problems.base import Problem
from modelodds.result import Result

OUT = Path("results/synthetic/curves.csv.gz")
PER_DIMENSION = 50  # evaluations in total
METHOD_NAMES = (
    "default",
    "default_independent",
    "paper",
    "round_robin",
    "round_robin_default",
    "bridge",
    "reversible_jump",
    "monte_carlo",
    "quasi_monte_carlo",
)
EVEN = "always ½"  # whoever says so without a single evaluation: what any method has to beat
LONG = {"round_robin_long": ("round_robin", 4)}  # methods with some times the budget, not in the table


class Task(NamedTuple):
    """One run; the dataset's number is the method's seed, too."""

    d: int
    dataset: int
    method: str


def tasks(dimensions: Iterable[int], datasets: Iterable[int], methods: Iterable[str]) -> list[Task]:
    """All runs, dataset by dataset, so that an unfinished sweep has all methods on the same datasets."""
    dimensions, methods = list(dimensions), list(methods)
    return [Task(d, i, m) for i in datasets for d in dimensions for m in methods]


def check_method(name: str) -> None:
    """Complain about a method that does not exist."""
    if name not in METHODS and name not in LONG:
        raise OptionError(f"There is no method {name!r}; the methods are {', '.join([*METHODS, *LONG])}.")


def work(task: Task) -> list[dict[str, Any]]:
    """The rows of one run."""
    name, times = LONG.get(task.method, (task.method, 1))
    return run(task, METHODS[name], times * PER_DIMENSION * task.d)


def run(task: Task, method: Entry, budget: int) -> list[dict[str, Any]]:
    """The rows of one run of ``method``."""
    problem = load(f"synthetic-{task.d}", task.dataset)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = method(problem.models, budget, task.dataset)
    return record(task, problem, result)


def record(task: Task, problem: Problem, result: Result) -> list[dict[str, Any]]:
    """What ``result`` said every d evaluations, or next after that, the truth beside it, to seven digits."""
    first, second = result.names
    truth = problem.log_evidence[0] - problem.log_evidence[1]
    history = result.history
    passed = history.n_evaluations // task.d  # not all methods say something at every evaluation
    history = history[(passed > passed.shift(fill_value=0)) | (history.index == history.index[-1])]
    odds = np.array(history[f"log_evidence[{first}]"] - history[f"log_evidence[{second}]"])
    z1 = np.array(history[f"probability[{first}]"])
    odds[-1], z1[-1] = result.log_odds(first, second)[0], result.probabilities[first]
    return [
        task._asdict()
        | {
            "n_evaluations": int(n),
            "z1": float(f"{z:.7g}"),
            "log_odds": float(f"{log_odds:.7g}"),
            "z1_true": float(f"{special.expit(truth):.7g}"),
            "log_odds_true": float(f"{truth:.7g}"),
        }
        for n, z, log_odds in zip(history.n_evaluations, z1, odds, strict=True)
    ]


# ---------------------------------------------------------------------- tables


def errors(rows: pd.DataFrame) -> pd.Series:
    """Fractional error of z_1 in each row."""
    return (rows.z1 - rows.z1_true).abs() / rows.z1_true


def along(rows: pd.DataFrame, value: pd.Series) -> pd.DataFrame:
    """``value`` of one method in one dimension on a common grid: a row per dataset, a column per n.

    Between two records of a run the earlier one stands; columns before every run's first record are left out.
    """
    wide = rows.assign(value=value).pivot(index="dataset", columns="n_evaluations", values="value")
    return wide.sort_index(axis=1).ffill(axis=1).dropna(axis=1)


def final_errors(rows: pd.DataFrame) -> pd.DataFrame:
    """Fractional error of z_1 at the full budget: one row per d and dataset, one column per method.

    The last column is EVEN's.
    """
    rows = rows[~rows.method.isin(list(LONG))]
    end = rows.sort_values("n_evaluations").groupby(["d", "dataset", "method"]).tail(1)
    wide = end.assign(error=errors(end)).pivot(index=["d", "dataset"], columns="method", values="error")
    return wide[in_order(wide.columns, METHOD_NAMES)].assign(**{EVEN: even_errors(end)})


def even_errors(rows: pd.DataFrame) -> pd.Series:
    """Fractional error of z_1 = ½, by d and dataset."""
    truth = rows.groupby(["d", "dataset"]).z1_true.first()
    return (0.5 - truth).abs() / truth


def in_order(names: Iterable[str], first: Iterable[str]) -> list[str]:
    """``names``, those of ``first`` before the others."""
    names, first = list(names), list(first)
    return [n for n in first if n in names] + sorted(n for n in names if n not in first)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean, median and standard error of each method, and one-sided paired tests of ours against it."""
    table = []
    for d, wide in final_errors(rows).groupby(level="d"):
        for method in wide.columns:
            error = wide[method].dropna()
            row = {
                "d": d,
                "method": method,
                "n": len(error),
                "mean": error.mean(),
                "median": error.median(),
                "s.e.": error.std(ddof=1) / np.sqrt(max(1, len(error))),
                "mean / median": error.mean() / error.median() if error.median() else np.nan,
            }
            for ours in ("default", "paper"):
                p = smaller(wide[ours], error) if ours in wide and method != ours else (np.nan, np.nan)
                row |= dict(zip((f"t, {ours}", f"Wilcoxon, {ours}"), p, strict=True))
            table.append(row)
    return pd.DataFrame(table)


def speed_up(rows: pd.DataFrame, ours: str = "default", theirs: str = "round_robin") -> pd.DataFrame:
    """How many evaluations ``theirs`` needs for the error that ``ours`` ends with, and the reverse.

    Of mean and of median errors over the datasets that both have. ``needs`` is where the error falls to that
    level for good, infinite where it never does in ``of`` evaluations; ``saved`` is where ours has reached
    what theirs ends with. The long run of a method counts where there is one.
    """
    table = []
    for d, group in rows.groupby("d"):
        name = next(
            (n for n, (short, _) in LONG.items() if short == theirs and n in set(group.method)), theirs
        )
        mine, other = (group[group.method == m] for m in (ours, name))
        shared = set(mine.dataset) & set(other.dataset)
        if not shared:
            continue
        a, b = (along(g, errors(g)).loc[sorted(shared)] for g in (mine, other))
        for statistic in ("mean", "median"):
            x, y = a.agg(statistic), b.agg(statistic)
            budget = int(x.index[-1])
            needs = settled_at(y.index.to_numpy(), y.to_numpy(), float(x.iloc[-1]))
            at_budget = float(y[y.index <= budget].iloc[-1])
            earlier = settled_at(x.index.to_numpy(), x.to_numpy(), at_budget)
            table.append(
                {
                    "d": d,
                    "statistic": statistic,
                    "n": len(shared),
                    "error": float(x.iloc[-1]),
                    "needs": needs,
                    "of": int(y.index[-1]),
                    "factor": needs / budget,
                    "their error": at_budget,
                    "ours there at": earlier,
                    "saved": budget / earlier,
                }
            )
    return pd.DataFrame(table)


def costs(rows: pd.DataFrame) -> pd.DataFrame:
    """Seconds of a run, by dimension (rows) and method (columns): medians over datasets, where known."""
    if "seconds" not in rows:
        return pd.DataFrame()
    each = rows.drop_duplicates(["d", "dataset", "method"])
    wide = each.pivot_table(index="d", columns="method", values="seconds", aggfunc="median")
    return wide[in_order(wide.columns, METHOD_NAMES)].reset_index()
