"""What working side by side costs in evaluations: ``python benchmarks/batches.py [--seeds 10]``.

The same comparisons with one worker and with eight, whose evaluations last between one and two units of time,
as a simulation: no time passes. Printed is the median number of evaluations, of both models together, until
the log-odds stay within a tenth of a nat of the truth, and the ratio.
"""

import argparse
import heapq

import numpy as np

from modelodds import Session
from modelodds.evaluate import evaluate
from modelodds.problems import load

WITHIN = 0.1  # nats
PROBLEMS = {"regression-2": 60, "tails-2": 90, "rosenbrock-2": 90}


def needed(name: str, seed: int, workers: int, budget: int) -> float:
    """Evaluations after which the error stays small; infinite if it does not within the budget."""
    problem = load(name, seed)
    models, rng = {m.name: m for m in problem.models}, np.random.default_rng(seed)
    session = Session(problem.models, rng=seed, budget=budget)
    truth = problem.log_evidence[0] - problem.log_evidence[1]
    out: list[tuple[float, int, object]] = []
    clock, last_bad = 0.0, 0
    while session.n_evaluations < budget:
        while len(out) < workers and session.n_evaluations + len(out) < budget:
            (query,) = session.ask()
            heapq.heappush(out, (clock + rng.uniform(1, 2), query.id, query))
        clock, _, query = heapq.heappop(out)
        session.tell(query, evaluate(models[query.model], query.theta))
        if session.in_design:
            last_bad = session.n_evaluations
            continue
        mean = session.belief().mean
        if not abs(mean[0] - mean[1] - truth) <= WITHIN:
            last_bad = session.n_evaluations
    return last_bad + 1 if last_bad < budget else np.inf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--workers", type=int, default=8)
    arguments = parser.parse_args()
    for name, budget in PROBLEMS.items():
        found = np.array(
            [
                [needed(name, seed, workers, budget) for workers in (1, arguments.workers)]
                for seed in range(arguments.seeds)
            ]
        )
        one, many = np.median(found, axis=0)
        print(
            f"{name}, {arguments.seeds} seeds: {one:g} evaluations with one worker, {many:g} with "
            f"{arguments.workers}: {many / one:.2f} times; not reached: {np.isinf(found).sum(0).tolist()}",
            flush=True,
        )


if __name__ == "__main__":
    main()
