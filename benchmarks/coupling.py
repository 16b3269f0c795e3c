"""What coupling costs and what it saves: ``python benchmarks/coupling.py step`` and ``... table``.

``step`` times an evaluation's share of our own computing for two nested models of 150 points each, coupled
and not: the points are given, then further evaluations are asked for one by one.

``table`` runs problems with and without coupling and counts the evaluations after which the log-odds of the
two truly most probable models are within 0.1 nats of the truth for good, the belief being looked at after
every evaluation. Absorbers and planets are exchangeable parts: what their models share is the search of
`family.py`, with which the default has them too; without coupling it is left out. Runs are kept in
results/coupling/runs.csv, and those that are there are skipped.
"""

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from modelodds import Method, Model, Prior, Session
from modelodds.cli.bench import show, span
from modelodds.experiments.curves import Pair, settled_at
from modelodds.experiments.leaderboard import data_of
from modelodds.experiments.sweep import sweep
from modelodds.problems import load
from modelodds.problems.base import Problem
from modelodds.problems.planets import SHORTEST

OUT = Path(__file__).parents[1] / "results" / "coupling" / "runs.csv"
TRUTHS = OUT.with_name("absorbers.csv")  # evidences of one absorber and two, by seed
WITHIN = 0.1  # nats
COUPLINGS = ("independent", "shared")
TINY = 1e-12  # both planets with the shortest period


def known(name: str, seed: int) -> Problem:
    """A problem whose truths are stored for some sets of data, which take turns."""
    return load(name, data_of(name, seed))


def planets(seed: int) -> Problem:
    """No planet, one or two; two can be exchanged for each other, where the problem has them in order."""
    problem = known("planets", seed)
    none, one, ordered = problem.models
    low = np.log(SHORTEST)

    def log_likelihood(theta: np.ndarray) -> np.ndarray:
        star, *pair = np.split(theta, [2, 5], axis=1)
        apart = pair[0][:, :1] > pair[1][:, :1]
        outer, inner = np.where(apart, *pair), np.where(apart, *pair[::-1])
        inner[:, 0] = (inner[:, 0] - low) / np.maximum(outer[:, 0] - low, TINY)
        return np.asarray(ordered.log_likelihood(np.hstack([star, outer, inner])))

    star, orbit = none.prior.components, list(one.prior.components.items())[2:]
    first, second = ({f"{name}_{i}": prior for name, prior in orbit} for i in (1, 2))
    single = replace(one, prior=Prior(star | first))
    both = Model(
        ordered.name,
        log_likelihood,
        Prior(star | first | second),
        vectorized=True,
        exchangeable=[tuple(first), tuple(second)],
    )
    return replace(problem, models=(none, single, both))


@cache
def sightline(seed: int) -> Any:
    """A simulated spectrum with one absorber or two."""
    from modelodds.apps.dla.null import NullModel
    from modelodds.apps.dla.sightline import Sightline
    from modelodds.apps.dla.simulate import simulate

    null, rng = NullModel.load(), np.random.default_rng([9, seed])
    z_qso = rng.uniform(2.6, 3.2)
    low, high = Sightline.of(simulate(null, z_qso, snr=4.0, seed=seed), null).z_range
    drawn = [(rng.uniform(low, high), rng.uniform(20.3, 21.3)) for _ in range(1 + seed % 2)]
    return Sightline.of(simulate(null, z_qso, drawn, snr=4.0, seed=seed), null)


class Truth(NamedTuple):
    """The evidences of one simulated spectrum, to be found once."""

    seed: int


def truth(task: Truth) -> list[dict[str, Any]]:
    """By quadrature, and by importance sampling with four times the points where that is too uncertain."""
    from modelodds.apps.dla.models import models
    from modelodds.apps.dla.quadrature import one_absorber
    from modelodds.apps.dla.sampling import sampled

    line = sightline(task.seed)
    one, two = models(line)
    grid = one_absorber(one.log_likelihood)  # type: ignore[arg-type]
    for times in (1, 4):
        found = sampled(two, grid, line.z_range, 0, times)
        if found.error <= 0.5 * WITHIN:
            break
    error = float(np.hypot(grid.error, found.error))
    return [task._asdict() | {"one": grid.log_evidence, "two": found.log_evidence, "error": error}]


def absorbers(seed: int) -> Problem:
    """One against two absorbers; the truths have been found before."""
    from modelodds.apps.dla.models import models

    row = pd.read_csv(TRUTHS).set_index("seed").loc[seed]
    known = (float(row["one"]), float(row["two"]))
    error = float(row["error"])
    return Problem(f"absorbers-{seed}", tuple(models(sightline(seed))), known, error, "importance sampling")


PROBLEMS: dict[str, tuple[Callable[[int], Problem], int]] = {
    "nested-2": (lambda seed: load("nested-2", seed), 60),
    "nested-3": (lambda seed: load("nested-3", seed), 80),
    "nested-5": (lambda seed: load("nested-5", seed), 160),
    "absorbers": (absorbers, 200),
    "battery": (lambda seed: known("battery", seed), 200),
    "planets": (planets, 100),
}
"""Each problem by seed, and the evaluations that a run gets."""


class Task(NamedTuple):
    """One run: ``seed`` is the data's and the method's."""

    problem: str
    seed: int
    coupling: str
    budget: int


def work(task: Task) -> list[dict[str, Any]]:
    """The row of one run."""
    problem = PROBLEMS[task.problem][0](task.seed)
    pair, names = Pair.of(problem), [m.name for m in problem.models]
    a, b = names.index(pair.first), names.index(pair.second)
    session = Session(problem.models, Method(coupling=task.coupling), rng=task.seed, budget=task.budget)
    if task.coupling == "independent":
        for learner in session._learners:
            learner.family = None
    by_name = {m.name: m for m in problem.models}
    counts, errors, sd, joined = [], [], [], 0
    while session.n_evaluations < task.budget and (queries := session.ask()):
        for query in queries:
            session.tell(query, evaluate(by_name[query.model], query.theta))
        belief = session.belief()
        log_joint = belief.mean + session.log_prior
        counts.append(session.n_evaluations)
        errors.append(log_joint[a] - log_joint[b] - pair.log_odds)
        sd.append(belief.log_odds_sd(a, b))
        joined += session.joined
    at = settled_at(np.array(counts), np.array(errors), WITHIN)
    return [
        task._asdict()
        | {
            "settled_at": at,
            "error": errors[-1],
            "log_odds_sd": sd[-1],
            "truth_error": problem.error,
            "joined": joined / len(counts),
            "overhead": session.overhead_seconds / len(counts),
        }
    ]


def evaluate(model: Model, theta: np.ndarray) -> float:
    """One log-likelihood."""
    return float(np.squeeze(model.log_likelihood(theta[None] if model.vectorized else theta)))


def summary(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """By problem: evaluations with and without coupling over the seeds that both have, and their ratio.

    A run that has not settled counts with its budget; the ratio is of sums, and has a bootstrap interval.
    """
    frame = pd.DataFrame(rows)
    found = []
    for problem, part in frame.groupby("problem", sort=False):
        spent = part.assign(n=part.settled_at.clip(upper=part.budget)).pivot_table("n", "seed", "coupling")
        spent = spent.dropna().reindex(columns=COUPLINGS)
        settled = part.assign(n=np.isfinite(part.settled_at)).pivot_table("n", "seed", "coupling").sum()
        apart, shared = spent.to_numpy().T
        rng = np.random.default_rng(0)
        index = rng.integers(len(spent), size=(2000, len(spent)))
        low, high = np.quantile(apart[index].sum(1) / shared[index].sum(1), [0.05, 0.95])
        found.append(
            {
                "problem": problem,
                "seeds": len(spent),
                "independent": np.median(apart),
                "shared": np.median(shared),
                "fewer": apart.sum() / shared.sum(),
                "from": low,
                "to": high,
                "settled": "{:.0f} and {:.0f}".format(*settled.reindex(COUPLINGS)),
                "error": "{:.2g} and {:.2g}".format(*_errors(part, spent.index)),
                "joined": part[part.coupling == "shared"].joined.mean(),
                "cost": part.groupby("coupling").overhead.mean().reindex(COUPLINGS)["shared"]
                / part.groupby("coupling").overhead.mean()["independent"],
            }
        )
    return pd.DataFrame(found)


def _errors(part: pd.DataFrame, seeds: pd.Index) -> Iterable[float]:
    """Mean error at the end, in nats, without and with coupling, over ``seeds``."""
    ended = part[part.seed.isin(seeds)]
    return ended.error.abs().groupby(ended.coupling).mean().reindex(COUPLINGS)


# ---------------------------------------------------------------------- cost


def humps(d: int) -> Model:
    """Two humps along one parameter, banana-shaped with the others: no quadratic; nested in ``d``."""

    def log_likelihood(theta: np.ndarray) -> float:
        first = np.logaddexp(-2 * (theta[0] - 0.8) ** 2, -2 * (theta[0] + 0.8) ** 2)
        return float(first - sum((theta[j] - 0.3 * theta[j - 1] ** 2) ** 2 for j in range(1, d)))

    return Model(f"{d} parameters", log_likelihood, Prior({f"w{j}": stats.norm() for j in range(d)}))


def step(points: int = 150, more: int = 20) -> dict[str, float]:
    """Seconds of our own per evaluation, once two models have ``points`` each, compiled beforehand."""
    spent = {}
    for coupling in COUPLINGS:
        for _ in range(2):  # the first compiles
            models = [humps(3), humps(4)]
            session = Session(models, Method(coupling=coupling, climb=False), rng=0)
            by_name, rng = {m.name: m for m in models}, np.random.default_rng(0)
            for model in models:
                for theta in 0.8 * rng.normal(size=(points, model.dim)):
                    session.add(model.name, theta, evaluate(model, theta))
            session.belief()
            seconds = []
            for _ in range(more):
                start = session.overhead_seconds
                (query,) = session.ask()
                session.tell(query, evaluate(by_name[query.model], query.theta))
                session.belief()
                seconds.append(session.overhead_seconds - start)
        spent[coupling] = float(np.mean(seconds))
        print(
            f"{coupling}: mean {np.mean(seconds):.3f} s, median {np.median(seconds):.3f} s per evaluation"
            + (f", joined: {session.joined}" if coupling == "shared" else "")
        )
    return spent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["step", "table"])
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--seeds", type=span, default=(0, 20), help="such as 0:20")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    start = time.perf_counter()
    if arguments.what == "step":
        spent = step()
        ratio = spent["shared"] / spent["independent"]
        print(f"two models of 150 points each: a coupled step costs {ratio:.1f} times an independent one")
        return
    tasks = [
        Task(problem, seed, coupling, PROBLEMS[problem][1])
        for problem in arguments.problems
        for seed in range(*arguments.seeds)
        for coupling in COUPLINGS
    ]
    rows = []
    if "absorbers" in arguments.problems:
        list(sweep([Truth(seed) for seed in range(*arguments.seeds)], truth, TRUTHS, arguments.jobs))
    for done in sweep(tasks, work, arguments.out, arguments.jobs):
        rows += done
        row = done[0]
        print(
            f"{row['problem']} {row['seed']} {row['coupling']}: settled at {row['settled_at']:g} "
            f"({time.perf_counter() - start:.0f} s)",
            flush=True,
        )
    show(summary(rows))


if __name__ == "__main__":
    main()
