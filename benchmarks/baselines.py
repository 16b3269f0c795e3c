"""Bridge sampling and reversible jump against textbook versions of themselves, and against the truth.

``python benchmarks/baselines.py [--seeds 50:100] [--jobs 2]``: three problems, the data of seed 0 and 50
seeds of the method, none of them those that its constants were chosen on (0 to 49). Every run is appended to
results/baselines/textbook.csv, and runs that are there already are skipped.

The textbook bridge spends half of each model's calls on a random walk, drops a fifth of it as burn-in, fits a
Gaussian to half of the rest and draws the other half of the calls from it. The textbook reversible jump
counts visits. All walk the same adaptive random walk.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from modelodds.baselines import METHODS, Entry
from modelodds.baselines.base import Estimate, History, Meter
from modelodds.baselines.bridge import bridge
from modelodds.baselines.walk import Walk
from modelodds.cli.bench import show, span
from modelodds.experiments.bench import Task, run_all, table
from modelodds.result import Result

PROBLEMS = ("nested-3", "tails-2", "synthetic-2")
BUDGETS = (50, 100, 200, 500, 1000)
RIVALS = (("bridge", "bridge_textbook"), ("reversible_jump", "reversible_jump_visits"))
SILENT = 100.0  # nats: a claimed standard deviation beyond this is no estimate
OURS = (
    "bridge",
    "bridge_textbook",
    "reversible_jump",
    "reversible_jump_acceptance",
    "reversible_jump_visits",
)


def run(models, budget: int, rng: int) -> Result:
    """Textbook bridge sampling."""
    start, meter = time.perf_counter(), Meter(models, budget)
    targets, generator = meter.targets(), np.random.default_rng(rng)
    found = [_one(target, budget // len(targets), generator) for target in targets]
    mean, variance = np.array(found).T
    estimate = Estimate(mean, np.diag(variance))
    return History(meter).result(estimate, {}, "bridge_textbook", rng, time.perf_counter() - start)


def _one(target, calls: int, rng: np.random.Generator) -> tuple[float, float]:
    walk = Walk(target, rng)
    for _ in range(calls // 2):
        walk.step()
    kept = np.array([p.v for p in walk.chain[len(walk.chain) // 5 :]])
    fitted, rest = kept[: len(kept) // 2], walk.chain[len(walk.chain) // 5 :][len(kept) // 2 :]
    d = target.dim
    if len(np.unique(fitted, axis=0)) < d + 2:
        return np.nan, np.nan
    centre, cov = fitted.mean(0), np.cov(fitted.T).reshape(d, d) + 1e-12 * np.eye(d)
    chol = np.linalg.cholesky(cov)
    proposed = [target.at(centre + chol @ rng.standard_normal(d)) for _ in range(calls - calls // 2)]

    def log_ratios(points: list) -> np.ndarray:
        v = np.array([p.v for p in points])
        white = np.linalg.solve(chol, (v - centre).T)
        log_g = -0.5 * (white**2).sum(0) - np.log(np.diag(chol)).sum() - 0.5 * d * np.log(2 * np.pi)
        return np.array([p.log_joint for p in points]) - log_g

    return bridge(log_ratios(rest), log_ratios(proposed))


# Registered where every process that imports this file finds them.
METHODS["reversible_jump_acceptance"] = Entry(
    "baselines.reversible_jump", "the ratio of mean acceptance probabilities", (("estimator", "acceptance"),)
)


class _Textbook(Entry):
    def __call__(self, models, budget, rng=0) -> Result:
        return run(models, budget, rng)


METHODS["bridge_textbook"] = _Textbook("", "textbook bridge sampling")


def markdown(summary) -> str:
    """For the docs: median and mean error of the log-odds, error of z, and the last budget's coverage."""
    lines = ["| problem | calls | " + " | ".join(OURS) + " |", "|---|---|" + "---|" * len(OURS)]
    for problem in PROBLEMS:
        for budget in BUDGETS:
            rows = summary[(summary.problem == problem) & (summary.budget == budget)].set_index("method")
            cells = [" / ".join(f"{rows.loc[m, c]:.2g}" for c in ("median", "mean", "z error")) for m in OURS]
            lines.append(f"| {problem} | {budget} | " + " | ".join(cells) + " |")
        cells = [f"{100 * rows.loc[m, 'in 1 sd']:.0f} % / {100 * rows.loc[m, 'in 2 sd']:.0f} %" for m in OURS]
        lines.append(f"| | {BUDGETS[-1]}: in 1 sd / 2 sd | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def worse(rows) -> str:
    """For the docs: is ours worse than its textbook version? One-sided paired Wilcoxon tests, cell by cell.

    Only runs in which both tell anything are compared: one that tells nothing leaves the odds at the prior's.
    """
    frame = pd.DataFrame(rows).set_index(["problem", "budget", "method", "seed"]).sort_index()
    lines = ["| problem | calls | " + " | ".join(f"{a}: runs, p (log-odds), p (z)" for a, _ in RIVALS) + " |"]
    lines.append("|---|---|" + "---|" * len(RIVALS))
    for problem in PROBLEMS:
        for budget in BUDGETS:
            cells = []
            for ours, textbook in RIVALS:
                a, b = (frame.loc[problem, budget, method] for method in (ours, textbook))
                told = (a.log_odds_sd < SILENT) & (b.log_odds_sd < SILENT)
                more = [(a[c].abs() - b[c].abs())[told] for c in ("error", "z_error")]
                p = [stats.wilcoxon(m, alternative="greater").pvalue if len(m) > 5 else np.nan for m in more]
                cells.append(f"{told.sum()}, {p[0]:.2g}, {p[1]:.2g}")
            lines.append(f"| {problem} | {budget} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="50:100", help="how many, or FIRST:AFTER_LAST")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/baselines/textbook.csv"))
    arguments = parser.parse_args()
    tasks = [
        Task(problem, 0, method, budget, seed)
        for problem in PROBLEMS
        for method in OURS
        for budget in BUDGETS
        for seed in range(*span(arguments.seeds))
    ]
    rows = list(run_all(tasks, arguments.out, arguments.jobs))
    order = {task: i for i, task in enumerate(tasks)}
    rows.sort(key=lambda row: order[tuple(row[k] for k in Task._fields)])
    summary = table(rows)
    show(summary)
    print(markdown(summary))
    print(worse(rows))


if __name__ == "__main__":
    main()
