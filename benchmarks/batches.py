"""What working side by side costs in evaluations: ``python benchmarks/batches.py [--seeds 20]``.

The same comparisons with one worker and with eight, whose evaluations last between one and two units of time,
as a simulation: no time passes. Printed are medians of the number of evaluations, of all models together,
until the log-odds of the two most probable models stay within a tenth and within 0.03 nats of the truth, and
their ratios. Eight workers choose each point without the values of seven others, so that a run of n
evaluations in sequence can hardly be had in fewer than n + 7.
"""

import argparse
import heapq

import numpy as np

from modelodds import Query, Session
from modelodds.evaluate import evaluate
from modelodds.problems import load
from modelodds.problems.base import Problem

WITHIN = (0.1, 0.03)  # nats
PROBLEMS = {
    "regression-2": 30,
    "nested-3": 40,
    "tails-2": 50,
    "synthetic-2": 70,
    "rosenbrock": 85,
    "plane": 100,
}
OF_ONE_SEED = ("rosenbrock", "plane")  # the data are always the same; the run's seed changes


def errors(problem: Problem, seed: int, workers: int, budget: int) -> np.ndarray:
    """Error of the log-odds in nats after each evaluation, (budget,); infinite in the initial design."""
    models, rng = {m.name: m for m in problem.models}, np.random.default_rng(seed)
    session = Session(problem.models, rng=seed, budget=budget)
    truth = np.array(problem.log_evidence)
    a, b = np.argsort(-truth)[:2]
    out: list[tuple[float, int, Query]] = []
    clock, found = 0.0, []
    while session.n_evaluations < budget:
        while len(out) < workers and session.n_evaluations + len(out) < budget:
            (query,) = session.ask()
            heapq.heappush(out, (clock + rng.uniform(1, 2), query.id, query))
        clock, _, query = heapq.heappop(out)
        session.tell(query, evaluate(models[query.model], query.theta))
        mean = np.full(len(truth), np.inf) if session.in_design else session.belief().mean
        found.append(abs(mean[a] - mean[b] - truth[a] + truth[b]) if np.isfinite(mean).all() else np.inf)
    return np.array(found)


def needed(error: np.ndarray, within: float) -> float:
    """Evaluations after which the error stays small; infinite if it does not to the end."""
    bad = np.flatnonzero(~(error <= within))
    last = bad[-1] + 1 if len(bad) else 0
    return float(last + 1) if last < len(error) else np.inf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=8)
    arguments = parser.parse_args()
    seeds, teams = range(arguments.first, arguments.first + arguments.seeds), (1, arguments.workers)
    ratios: dict[float, list[float]] = {within: [] for within in WITHIN}
    for name in arguments.problems:
        problems = [load(name, 0 if name in OF_ONE_SEED else seed) for seed in seeds]
        runs = [
            [errors(p, seed, workers, PROBLEMS[name]) for p, seed in zip(problems, seeds, strict=True)]
            for workers in teams
        ]
        for within in WITHIN:
            found = np.array([[needed(error, within) for error in team] for team in runs])
            one, many = np.median(found, axis=1)
            ratios[within].append(many / one)
            print(
                f"{name}, {len(seeds)} seeds, within {within:g}: {one:g} evaluations with one worker, "
                f"{many:g} with {arguments.workers}: {many / one:.2f} times; "
                f"not reached: {np.isinf(found).sum(1).tolist()}",
                flush=True,
            )
    for within, each in ratios.items():
        print(
            f"geometric mean of {len(each)} problems, within {within:g}: "
            f"{np.exp(np.mean(np.log(each))):.2f} times"
        )


if __name__ == "__main__":
    main()
