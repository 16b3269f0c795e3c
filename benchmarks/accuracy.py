"""How far off the default method is on problems with exact answers.

``python benchmarks/accuracy.py [family ...]``.
Families: regression-2, regression-4 (100 evaluations for both models), plane (120), tails-2, tails-4, tails-6
(25 (d + 2) per model). Every run is appended to results/core/accuracy.csv, and runs that are there already
are skipped; the table at the end is made of that file alone.
"""

import argparse
import csv
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

from modelodds import compare
from modelodds.problems import Problem
from modelodds.problems.plane import plane
from modelodds.problems.regression import regression
from modelodds.problems.tails import tails
from modelodds.stopping import Never

FAMILIES = ("regression-2", "regression-4", "plane", "tails-2", "tails-4", "tails-6")
COLUMNS = ("family", "method", "seed", "budget", "error", "sd", "log_odds_true", "evaluations_1", "overhead")


def problem(family: str, seed: int) -> tuple[Problem, int]:
    """The problem of a family and seed, and its budget for both models together."""
    name, _, d = family.partition("-")
    if name == "regression":
        return regression(int(d), seed), 100
    if name == "plane":
        return plane(), 120
    return tails(int(d), seed), 50 * (int(d) + 2)


def run(family: str, method: str, seed: int) -> dict[str, object]:
    """One comparison, as a row of the results."""
    task, budget = problem(family, seed)
    start = time.perf_counter()
    result = compare(task.models, budget=budget, stop=Never(), method=method, rng=seed, progress=False)
    mean, sd = result.log_bayes_factor(*result.names)
    truth = task.log_evidence[0] - task.log_evidence[1]
    first = result.n_evaluations[result.names[0]]
    return dict(
        zip(
            COLUMNS,
            (family, method, seed, budget, mean - truth, sd, truth, first, time.perf_counter() - start),
            strict=True,
        )
    )


def table(path: Path) -> pd.DataFrame:
    """Median, worst, and how often the truth lay within one and two standard deviations."""
    rows = pd.read_csv(path)
    rows["abs"], rows["z"] = rows.error.abs(), rows.error.abs() / rows.sd
    grouped = rows.groupby(["family", "method"])
    return pd.DataFrame(
        {
            "seeds": grouped.size(),
            "budget": grouped.budget.first(),
            "median": grouped["abs"].median(),
            "mean": grouped["abs"].mean(),
            "worst": grouped["abs"].max(),
            "median sd": grouped.sd.median(),
            "within 1 sd": grouped.z.agg(lambda z: np.mean(z < 1)),
            "within 2 sd": grouped.z.agg(lambda z: np.mean(z < 2)),
            "seconds": grouped.overhead.median(),
        }
    )


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=FAMILIES)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--method", default="default")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/core/accuracy.csv"))
    arguments = parser.parse_args()
    path = arguments.out
    path.parent.mkdir(parents=True, exist_ok=True)
    done = set()
    if path.exists():
        done = {tuple(row) for row in pd.read_csv(path)[["family", "method", "seed"]].itertuples(index=False)}
    method = arguments.method
    tasks = [
        (f, method, s)
        for f in arguments.families
        for s in range(arguments.seeds)
        if (f, method, s) not in done
    ]
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(run, *task) for task in tasks]):
            row = future.result()
            with path.open("a", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS)
                if file.tell() == 0:
                    writer.writeheader()
                writer.writerow(row)
            print(
                f"{row['family']} {row['seed']}: error {row['error']:+.4f}, claimed sd {row['sd']:.4f}",
                flush=True,
            )
    print(table(path).round(4).to_string())


if __name__ == "__main__":
    warnings.simplefilter("error")
    main()
