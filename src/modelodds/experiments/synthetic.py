"""The paper's synthetic experiment (Chai et al. 2019, section 6.1): 100 datasets in each of five dimensions.

Every method gets 50 d evaluations in total. What it says of z_1, the posterior probability of the true
(squared-exponential) model, is noted every d evaluations; errors are fractions of the true z_1.
"""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special, stats

from modelodds.baselines import METHODS
from modelodds.problems import load

OUT = Path("results/synthetic/curves.csv.gz")
PER_DIMENSION = 50  # evaluations in total
METHOD_NAMES = ("default", "paper", "round_robin", "round_robin_default", "bridge", "reversible_jump")


class Task(NamedTuple):
    """One run; the dataset's number is the method's seed, too."""

    d: int
    dataset: int
    method: str


def tasks(dimensions: Iterable[int], datasets: Iterable[int], methods: Iterable[str]) -> list[Task]:
    """All runs, dataset by dataset, so that an unfinished sweep has all methods on the same datasets."""
    dimensions, methods = list(dimensions), list(methods)
    return [Task(d, i, m) for i in datasets for d in dimensions for m in methods]


def work(task: Task) -> list[dict[str, Any]]:
    """The rows of one run."""
    problem = load(f"synthetic-{task.d}", task.dataset)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = METHODS[task.method](problem.models, PER_DIMENSION * task.d, task.dataset)
    first, second = result.names
    truth = problem.log_evidence[0] - problem.log_evidence[1]
    history = result.history
    history = history[(history.n_evaluations % task.d == 0) | (history.index == history.index[-1])]
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


def final_errors(rows: pd.DataFrame) -> pd.DataFrame:
    """Fractional error of z_1 at the full budget: one row per d and dataset, one column per method."""
    end = rows.sort_values("n_evaluations").groupby(["d", "dataset", "method"]).tail(1)
    error = (end.z1 - end.z1_true).abs() / end.z1_true
    return end.assign(error=error).pivot(index=["d", "dataset"], columns="method", values="error")


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean, median and standard error of each method, and one-sided paired tests of ours against it."""
    table = []
    for d, errors in final_errors(rows).groupby(level="d"):
        for method in errors.columns:
            error = errors[method].dropna()
            row = {
                "d": d,
                "method": method,
                "n": len(error),
                "mean": error.mean(),
                "median": error.median(),
                "s.e.": error.std(ddof=1) / np.sqrt(max(1, len(error))),
                "mean / median": error.mean() / error.median(),
            }
            for ours in ("default", "paper"):
                row |= _against(errors, ours, method)
            table.append(row)
    return pd.DataFrame(table)


def _against(errors: pd.DataFrame, ours: str, method: str) -> dict[str, float]:
    """P-values of paired tests that ``ours`` errs less than ``method``; NaN where there are none."""
    names = f"t, {ours}", f"Wilcoxon, {ours}"
    if ours not in errors or method == ours or len(both := errors[[ours, method]].dropna()) < 3:
        return dict.fromkeys(names, np.nan)
    t = stats.ttest_rel(both[ours], both[method], alternative="less").pvalue
    wilcoxon = stats.wilcoxon(both[ours], both[method], alternative="less").pvalue
    return dict(zip(names, (float(t), float(wilcoxon)), strict=True))
