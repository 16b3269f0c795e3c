"""What a step costs: ``python benchmarks/step.py [--figure FILE]``.

Overhead per evaluation (ask + tell) at k = 2, d = 3 from 20 to 250 evaluations, once everything is compiled;
the cost of compiling a 100-evaluation run, cold and with JAX's persistent cache; peak memory; import time;
growth with n and k. Each figure comes from a fresh process. PyVBMC runs on the same likelihoods in the same
invocation when it is installed.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from modelodds import Model, Session
from modelodds.problems.tails import tails

CACHE = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}


def models(k: int, d: int = 3) -> list[Model]:
    """``k`` models: Student-t and cigar likelihoods in turn."""
    found = []
    for i in range(k):
        model = tails(d, i // 2).models[i % 2]
        found.append(Model(f"{model.name}-{i}", model.log_likelihood, model.prior))
    return found


def steps(k: int, n: int) -> np.ndarray:
    """Seconds of our own in each of ``n`` evaluations."""
    session = Session(models(k), budget=n)
    likelihoods = {m.name: m.log_likelihood for m in session.models}
    spent = np.empty(n)
    for i in range(n):
        before = session.overhead_seconds
        (query,) = session.ask()
        session.tell(query, likelihoods[query.model](query.theta))
        spent[i] = session.overhead_seconds - before
    return spent


def measure_steps(k: int, n: int) -> dict[str, object]:
    """Steps of a first run, compiling as it goes, and of a second one in the same process."""
    cold, warm = steps(k, n), steps(k, n)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # KiB on Linux
    return {"cold": cold.tolist(), "warm": warm.tolist(), "peak_gib": peak}


def measure_pyvbmc(n: int) -> dict[str, object]:
    """PyVBMC's own seconds per evaluation, one model after the other with n / 2 evaluations each."""
    try:
        from pyvbmc import VBMC
    except ImportError:
        return {}
    own, calls = 0.0, 0
    for model in models(2):
        inside = [0.0, 0]

        def log_joint(theta: np.ndarray, model: Model = model, inside: list[float] = inside) -> float:
            start = time.perf_counter()
            theta = np.ravel(theta)
            value = model.log_likelihood(theta) - 0.5 * float(theta @ theta)
            inside[0] += time.perf_counter() - start
            inside[1] += 1
            return value

        start = time.perf_counter()
        np.random.seed(0)  # noqa: NPY002 -- PyVBMC draws from NumPy's global generator
        options = {"max_fun_evals": n // 2, "display": "off", "min_fun_evals": n // 2, "tol_stable_count": n}
        VBMC(
            log_joint,
            np.zeros((1, 3)),
            plausible_lower_bounds=np.full((1, 3), -1.0),
            plausible_upper_bounds=np.full((1, 3), 1.0),
            options=options,
        ).optimize()
        own += time.perf_counter() - start - inside[0]
        calls += int(inside[1])
    return {"per_evaluation": own / calls, "calls": calls}


def fresh(task: str, *arguments: int, **environment: str) -> dict:
    """Run one of the measurements in a process of its own."""
    command = [sys.executable, __file__, "--task", task, *map(str, arguments)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def import_seconds(statement: str, repeats: int = 5) -> float:
    """Median wall time of a process that does nothing else."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def compilation() -> tuple[float, float]:
    """Seconds that compiling adds to a 100-evaluation run: with an empty cache, and with a full one."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [fresh("steps", 2, 100, JAX_COMPILATION_CACHE_DIR=folder, **CACHE) for _ in range(2)]
    first, second = (sum(run["cold"]) - sum(run["warm"]) for run in runs)
    return first, second


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--task", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        task, *numbers = arguments.task
        measure = {"steps": measure_steps, "pyvbmc": measure_pyvbmc}[task]
        print(json.dumps(measure(*map(int, numbers))))
        return
    for statement in ("import modelodds", "from modelodds import *"):
        print(f"{statement}: {import_seconds(statement):.2f} s (median of 5)")
    print(
        "compiling a 100-evaluation run: {:.1f} s cold, {:.1f} s with the persistent cache".format(
            *compilation()
        )
    )
    run = fresh("steps", 2, 250)
    ours = np.array(run["warm"][20:])
    print(
        f"ours, k=2, d=3, evaluations 20 to 250: median {np.median(ours):.3f} s, "
        f"95th percentile {np.quantile(ours, 0.95):.3f} s, mean {ours.mean():.3f} s; "
        f"peak memory {run['peak_gib']:.2f} GiB"
    )
    peer = fresh("pyvbmc", 250)
    if peer:
        ratio = peer["per_evaluation"] / ours.mean()
        print(
            f"PyVBMC, the same likelihoods, {peer['calls']} evaluations: "
            f"mean {peer['per_evaluation']:.3f} s, {ratio:.1f} times ours"
        )
    else:
        print("PyVBMC is not installed: pip install 'modelodds[bench]' for the comparison")
    growth = {k: np.array(fresh("steps", k, 40 * k)["warm"]) for k in (2, 4, 8)}
    for k, spent in growth.items():
        print(f"k={k}, {len(spent)} evaluations: median {np.median(spent[20:]):.3f} s")
    if arguments.figure:
        draw(np.array(run["warm"]), growth, arguments.figure)
        print(f"figure: {arguments.figure}")


def draw(by_n: np.ndarray, by_k: dict[int, np.ndarray], path: Path) -> None:
    """How a step's cost grows with the number of evaluations and of models."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(np.arange(len(by_n)), 1000 * by_n, ".", color="#0072B2", markersize=4)
    left.set(xlabel="evaluations so far (k = 2, d = 3)", ylabel="ask + tell, ms", yscale="log")
    right.boxplot(
        [1000 * s[20:] for s in by_k.values()], tick_labels=[str(k) for k in by_k], showfliers=False
    )
    right.set(xlabel="models k (40 evaluations each)", ylabel="ask + tell, ms", ylim=(0, None))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
