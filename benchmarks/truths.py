"""The stored ground truths against a second method: tempered sequential Monte Carlo with many particles.

``python benchmarks/truths.py battery planets synthetic-5 [--seeds 0:5] [--jobs 2]``: every model of every
problem, several independent ladders each; the log of the mean of their evidences, its standard error by their
spread, and the distance to the stored truth in standard errors of both. Rows are appended to
results/baselines/truths.csv; those that are there already are skipped.

Particles start as draws of the prior and climb a ladder of powers of the likelihood, each rung leaving half
of them effective. At each rung they are resampled and moved: by random-walk steps of their own covariance
and, which serves several modes and thin ridges, by steps along the difference of two particles of the other
half (ter Braak 2006), until nearly all of them have moved often.
"""

import argparse
import csv
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import ndtr

from modelodds.baselines.annealed import next_rise
from modelodds.baselines.base import Meter, Target
from modelodds.baselines.walk import shrunk_covariance
from modelodds.nodes import systematic
from modelodds.problems import load
from modelodds.problems.truth import log_likelihoods

OUT = Path("results/baselines/truths.csv")
MOVES = 10.0  # accepted moves per particle and rung, on the average, ...
STEPS = 60  # ... or this many tries


def log_f(target: Target, v: np.ndarray) -> np.ndarray:
    """Log of likelihood times prior over the reference density at ``v`` (n, d)."""
    x, log_weight = target.model.prior.from_unit(ndtr(v))
    return np.asarray(log_likelihoods(target.model, x) + log_weight)


def ladder(target: Target, n: int, rng: np.random.Generator) -> float:
    """Log-evidence by one climb of ``n`` particles."""
    v = rng.standard_normal((n, target.dim))
    f, power, log_evidence, log_scale = log_f(target, v), 0.0, 0.0, np.zeros(2)
    while power < 1.0:
        rise = next_rise(f, 1.0 - power)
        log_weight = rise * f
        weight = np.exp(log_weight - log_weight.max())
        power, log_evidence = power + rise, log_evidence + log_weight.max() + np.log(weight.mean())
        chosen = rng.permutation(systematic(weight, n))
        v, f = v[chosen], f[chosen]
        moved = 0.0
        for step in range(STEPS):
            kind, half = step % 2, slice(0, n // 2) if step // 2 % 2 else slice(n // 2, n)
            other = np.delete(v, half, axis=0)
            m = len(v[half])
            if kind:
                a, b = rng.integers(len(other), size=(2, m))
                jump = np.exp(log_scale[1]) * (other[a] - other[b])
            else:
                chol = np.linalg.cholesky(shrunk_covariance(other))
                jump = np.exp(log_scale[0]) * rng.standard_normal((m, target.dim)) @ chol.T
            jump *= np.exp(rng.normal(size=(m, 1)))  # large steps and small ones
            there = v[half] + jump
            new = log_f(target, there)
            gain = power * (new - f[half]) - 0.5 * (there**2 - v[half] ** 2).sum(1)
            taken = np.log(rng.uniform(size=m)) < gain
            v[half] = np.where(taken[:, None], there, v[half])
            f[half] = np.where(taken, new, f[half])
            log_scale[kind] += 0.5 * (taken.mean() - 0.25)
            moved += 0.5 * taken.mean()
            if moved >= MOVES:
                break
    return float(log_evidence)


def check(problem: str, seed: int, index: int, n: int, repeats: int) -> dict[str, object]:
    """The row of one model."""
    start = time.perf_counter()
    loaded = load(problem, seed)
    model = loaded.models[index]
    target = Target(model, Meter(loaded.models, 1))
    rng = np.random.default_rng([seed, index])
    found = np.array([ladder(target, n, rng) for _ in range(repeats)])
    share = np.exp(found - found.max())
    mean, error = found.max() + np.log(share.mean()), share.std(ddof=1) / share.mean() / np.sqrt(repeats)
    stored = loaded.log_evidence[index]
    return {
        "problem": problem,
        "seed": seed,
        "model": model.name,
        "stored": stored,
        "stored_error": loaded.error,
        "found": round(float(mean), 6),
        "found_error": round(float(error), 6),
        "off": round(float((mean - stored) / np.hypot(error, loaded.error)), 3),
        "seconds": round(time.perf_counter() - start, 1),
    }


def run_all(tasks: list[tuple], jobs: int) -> Iterator[dict[str, object]]:
    """Rows as they come."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for future in as_completed([pool.submit(check, *task) for task in tasks]):
            yield future.result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("problems", nargs="+")
    parser.add_argument("--seeds", default="0:5", help="FIRST:AFTER_LAST")
    parser.add_argument("--particles", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--largest", action="store_true", help="only the model of most parameters")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    first, after = map(int, arguments.seeds.split(":"))
    known = set()
    if arguments.out.exists():
        frame = pd.read_csv(arguments.out)
        known = set(zip(frame.problem, frame.seed, frame.model, strict=True))
    tasks = []
    for problem in arguments.problems:
        for seed in range(first, after):
            try:
                models = load(problem, seed).models
            except ValueError as missing:
                print(missing)
                continue
            tasks += [
                (problem, seed, i, arguments.particles, arguments.repeats)
                for i, model in enumerate(models)
                if (problem, seed, model.name) not in known
                and (not arguments.largest or model.dim == max(m.dim for m in models))
            ]
    for row in run_all(tasks, arguments.jobs):
        new = not arguments.out.exists()
        with arguments.out.open("a", newline="") as file:
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)
        print(*row.values(), flush=True)


if __name__ == "__main__":
    main()
