"""Many datasets at once on one device: ``python benchmarks/gpu_batch.py`` on any JAX backend.

First the pure functions that a run spends its time in, mapped over 100 datasets, against one by one on the
CPU: milliseconds, and the largest relative difference. Then whole runs of the paper's synthetic task in
lockstep (``experiments/lockstep.py``), and some of them again on their own, on the CPU: seconds, how large
the batches were, what share of the time was Python's, and how far the answers are apart.
``modelodds reproduce synthetic --jobs 12 --together 9`` makes whole sweeps this way, in twelve processes;
``python benchmarks/gpu_batch.py --table`` holds such runs, in results/accelerator, against those of CPUs.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
from scipy import stats

from modelodds.baselines import METHODS
from modelodds.experiments import synthetic
from modelodds.experiments.lockstep import LockstepExecutor, as_call, batched
from modelodds.experiments.page import markdown_table
from modelodds.experiments.provenance import code_version
from modelodds.experiments.sweep import read
from modelodds.precision import jit64
from modelodds.problems import load
from modelodds.result import Result
from modelodds.surrogate.fit import _objective, hyper_prior, unflatten
from modelodds.surrogate.gp import Data, Spec, condition, predict

CPU = jax.devices("cpu")[0]
MADE = Path("results/accelerator") / synthetic.OUT.name
APART = 1e-5  # nats
SPEC = Spec("matern52", "full_quadratic")
STATIC = ("spec", "log_space")


def observations(d: int, seed: int, n: int) -> Data:
    """Log-likelihoods of one synthetic dataset at ``n`` points of the prior."""
    model = load(f"synthetic-{d}", seed).models[0]
    x = np.random.default_rng(seed).normal(size=(n, d))
    y = model.log_likelihood(model.prior.to_theta(x))
    return Data(x, np.maximum(y - y.max(), -50.0), np.full(n, 1e-4), np.ones(n))


def fit_arguments(d: int, seed: int, n: int) -> tuple[Any, ...]:
    """A call of the hyperparameters' objective."""
    prior = hyper_prior(SPEC, d, True)
    vector = prior.loc + 0.3 * np.random.default_rng(seed).normal(size=prior.loc.size)
    return vector, 0, observations(d, seed, n), prior.loc, prior.scale


def predict_at_nodes(vector: Any, data: Any, x: Any, spec: Spec) -> Any:
    """Condition on the data and predict at the nodes."""
    return predict(spec, condition(spec, unflatten(vector, data.x.shape[1]), data), x)


def milliseconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """Best of some repeats, the first for compiling."""
    jax.block_until_ready(work())
    spent = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(work())
        spent.append(time.perf_counter() - start)
    return 1000.0 * min(spent)


def difference(one_by_one: list[Any], together: Any) -> float:
    """Largest difference of two ways to the same numbers, relative to the largest of each array."""
    worst = 0.0
    for i, single in enumerate(one_by_one):
        for a, b in zip(jax.tree.leaves(single), jax.tree.leaves(together), strict=True):
            a, b = np.asarray(a), np.asarray(b)[i]
            worst = max(worst, float(np.abs(a - b).max() / max(1.0, np.abs(a).max())))
    return worst


def functions(d: int, many: int, n: int, nodes: int) -> None:
    """Print what batching does for single functions."""
    value_and_grad = jax.value_and_grad(_objective)
    fits = [fit_arguments(d, i % 100, n) for i in range(many)]
    x = np.random.default_rng(0).normal(size=(nodes, d))
    log = {"spec": SPEC, "log_space": True}
    cases: dict[str, tuple[Any, tuple[str, ...], list[tuple[Any, ...]], dict[str, Any]]] = {
        "objective of a fit, with gradient": (value_and_grad, STATIC, fits, log),
        f"condition, predict at {nodes} nodes": (
            predict_at_nodes, ("spec",), [(a[0], a[2], x) for a in fits], {"spec": SPEC},
        ),
    }  # fmt: skip
    for name, (fn, static, args, fixed) in cases.items():
        single = jit64(fn, static)
        calls = [as_call(fn, static, a, fixed) for a in args]
        together = milliseconds(lambda calls=calls: batched(calls))
        with jax.default_device(CPU):
            alone = milliseconds(lambda s=single, args=args, f=fixed: [s(*a, **f) for a in args])
            reference = [jax.device_get(single(*a, **fixed)) for a in args]
        print(
            f"{name}, n={n}, d={d}, {many} datasets: batched {together:.1f} ms, one by one on the CPU "
            f"{alone:.1f} ms ({alone / together:.1f} times as long); largest relative difference "
            f"{difference(reference, batched(calls)):.1e}"
        )


def run(method: str, d: int, dataset: int) -> Result:
    """One run of the synthetic task, unrounded."""
    return METHODS[method](load(f"synthetic-{d}", dataset).models, synthetic.PER_DIMENSION * d, dataset)


def whole_runs(method: str, d: int, datasets: int, width: int, alone: int) -> None:
    """Print what lockstep does for whole runs."""
    start, found = time.perf_counter(), {}
    with LockstepExecutor(width) as executor:
        futures = {executor.submit(run, method, d, i): i for i in range(datasets)}
        for future in as_completed(futures):
            found[futures[future]] = future.result()
    seconds, tally = time.perf_counter() - start, executor.tally
    print(
        f"{method}, d={d}: {datasets} datasets in lockstep, {width} at a time: {seconds:.0f} s, compiling "
        f"included; {tally.calls} calls in {tally.batches} batches ({tally.calls / tally.batches:.1f} each); "
        f"{100 * (1 - tally.seconds / seconds):.0f} % of the time in Python between them"
    )
    gaps, spent = [], []
    with jax.default_device(CPU):
        for i in range(min(alone, datasets)):
            start = time.perf_counter()
            single = run(method, d, i)
            spent.append(time.perf_counter() - start)
            a, b = (r.history[f"log_evidence[{r.names[0]}]"].to_numpy() for r in (single, found[i]))
            first = np.flatnonzero(np.abs(a - b) > 1e-8)
            gaps.append(abs(single.log_odds(*single.names)[0] - found[i].log_odds(*single.names)[0]))
            print(
                f"  dataset {i} alone on the CPU: {spent[-1]:.1f} s; log-odds differ by {gaps[-1]:.1e}; "
                f"evidence within 1e-8 for the first {first[0] if len(first) else len(a)} of {len(a)} records"
            )
    if spent:
        each = float(np.median(spent))
        print(f"  {datasets} of them one by one would take {each * datasets:.0f} s on one core")


def against(made: Path, reference: Path) -> pd.DataFrame:
    """Runs of an accelerator beside the same ones of CPUs: errors at the end, and where curves part."""
    keys, table = ["d", "dataset", "method"], []
    both = read(made).merge(read(reference), on=[*keys, "n_evaluations"], suffixes=("", "_cpu"))
    both["apart"] = (both.log_odds - both.log_odds_cpu).abs() > APART
    for (d, method), rows in both.groupby(["d", "method"]):
        end = rows.sort_values("n_evaluations").groupby("dataset").tail(1)
        ours, theirs = (abs(end[z] - end.z1_true) / end.z1_true for z in ("z1", "z1_cpu"))
        row = {"d": d, "method": method, "n": len(end), "mean": ours.mean(), "mean, CPU": theirs.mean()}
        row |= {"median": ours.median(), "median, CPU": theirs.median()}
        row |= {"Wilcoxon, two-sided": stats.wilcoxon(ours, theirs).pvalue}
        first = rows[rows.apart].groupby("dataset").n_evaluations.min()
        table.append(
            row | {"apart after": first.reindex(end.dataset).median(), "never": len(end) - len(first)}
        )
    return pd.DataFrame(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dimension", type=int, default=2)
    parser.add_argument("--datasets", type=int, default=100)
    parser.add_argument("--method", default="default")
    parser.add_argument("--width", type=int, default=100, help="runs under way at once")
    parser.add_argument("--alone", type=int, default=2, help="runs repeated one by one on the CPU")
    parser.add_argument("--points", type=int, default=128, help="observations in the functions' benchmark")
    parser.add_argument("--nodes", type=int, default=4096)
    parser.add_argument("--functions-only", action="store_true")
    parser.add_argument("--table", action="store_true", help="only of the runs in results/accelerator")
    asked = parser.parse_args()
    if asked.table:
        print(markdown_table(against(MADE, synthetic.OUT)))
        raise SystemExit
    warnings.simplefilter("ignore")
    print(f"backend {jax.default_backend()}, {jax.devices()[0].device_kind}; modelodds {code_version()}")
    functions(asked.dimension, asked.datasets, asked.points, asked.nodes)
    if not asked.functions_only:
        whole_runs(asked.method, asked.dimension, asked.datasets, asked.width, asked.alone)
