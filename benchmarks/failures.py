"""What failing evaluations cost: ``python benchmarks/failures.py [--seeds 20]``.

Three runs of each problem and seed: one in which nothing fails, one in which each evaluation fails with
probability one fifth, and one in which the first model fails wherever its first parameter is in the top fifth
of its prior. A failure says nothing about the likelihood, so the truth is the same in all three. Printed are
the error of the log-odds in nats, how often it lay within two of its standard deviations, and how many
evaluations failed, of all and of the last half: a region that always fails should stop being asked.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from modelodds import Failures, Model, Result, compare
from modelodds.problems import load
from modelodds.stopping import Never

PROBLEMS = {"tails-2": 60, "synthetic-2": 70}
SHARE = 0.2  # of the evaluations, or of the first parameter's prior


def sound(models: tuple[Model, ...], rng: np.random.Generator) -> list[Model]:
    return list(models)


def at_random(models: tuple[Model, ...], rng: np.random.Generator) -> list[Model]:
    return [failing(m, lambda theta: rng.random() < SHARE) for m in models]


def in_a_region(models: tuple[Model, ...], rng: np.random.Generator) -> list[Model]:
    first, *others = models
    middle = np.full(first.dim, 0.5)
    middle[0] = 1.0 - SHARE
    edge = first.prior.to_theta(first.prior.from_unit(middle[None])[0])[0, 0]
    return [failing(first, lambda theta: theta[..., 0] > edge), *others]


def failing(model: Model, when: Callable[[Any], Any]) -> Model:
    """The same model, whose likelihood raises where ``when`` says so."""

    def log_likelihood(theta: Any) -> Any:
        if np.any(when(theta)):
            raise RuntimeError("the simulation did not converge")
        return model.log_likelihood(theta)

    return Model(model.name, log_likelihood, model.prior, vectorized=model.vectorized)


CASES = {"nothing": sound, "a fifth at random": at_random, "a region": in_a_region}


def run(name: str, case: str, seed: int, budget: int) -> tuple[float, float, int, int]:
    """Error of the log-odds, its standard deviation, failures, and those of the last half."""
    problem = load(name, seed)
    models = CASES[case](problem.models, np.random.default_rng([7, seed]))
    lenient = Failures(max_failures=budget)
    result: Result = compare(models, budget=budget, rng=seed, stop=Never(), failures=lenient, progress=False)
    mean, sd = result.log_bayes_factor(*result.names)
    failed = (result.evaluations["status"] == "failed").to_numpy()
    truth = problem.log_evidence[0] - problem.log_evidence[1]
    return mean - truth, sd, int(failed.sum()), int(failed[budget // 2 :].sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    for name, budget in PROBLEMS.items():
        for case in CASES:
            found = np.array([run(name, case, seed, budget) for seed in range(arguments.seeds)])
            error, sd, failed, late = np.abs(found[:, 0]), *found[:, 1:].T
            print(
                f"{name}, {budget} evaluations, {case} fails, {arguments.seeds} seeds: error median "
                f"{np.median(error):.4f}, worst {error.max():.4f}; sd median {np.median(sd):.4f}; "
                f"within 2 sd {(error <= 2 * sd).sum()}; failed {failed.mean():.1f} in the mean, "
                f"{late.mean():.1f} of the last half",
                flush=True,
            )


if __name__ == "__main__":
    main()
