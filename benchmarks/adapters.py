"""Evidences of models from other libraries' documentation, by long runs of those libraries, and by ours.

``python benchmarks/adapters.py``: every model of tests/example_tutorials.py, by its own library. Runs that
are in results/adapters/long_runs.csv already are skipped; what is not installed is named and left out.
``python benchmarks/adapters.py --ours`` then runs our method on all of them (results/adapters/ours.csv, begun
anew each time) and prints both side by side, as Markdown. ``--only NAME ...`` picks tutorials.

    pip install 'modelodds[adapters]'
"""

import argparse
import csv
import importlib.metadata
import importlib.util
import logging
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from example_tutorials import TUTORIALS, Tutorial
from modelodds import compare
from modelodds.verdict import plus_minus

OUT = Path(__file__).parents[1] / "results" / "adapters"
COMMAND = "python benchmarks/adapters.py"
DISTRIBUTIONS = {"nautilus": "nautilus-sampler"}  # where they are not called what they are imported as
KEY = ["tutorial", "model"]

Estimate = tuple[float, float, int]  # log-evidence, its standard error, evaluations (0: not told)


def smc(model: Any) -> Estimate:
    """PyMC's sequential Monte Carlo, sixteen independent runs."""
    import pymc as pm

    with model:
        found = pm.sample_smc(5000, chains=16, cores=1, random_seed=1, progressbar=False)
    stages = found.sample_stats["log_marginal_likelihood"].values
    last = [[value for value in chain if np.isfinite(value)][-1] for chain in map(np.ravel, stages)]
    ratio = np.exp(np.asarray(last, dtype=float) - np.max(last))
    error = ratio.std(ddof=1) / ratio.mean() / np.sqrt(len(ratio))
    return float(np.max(last) + np.log(ratio.mean())), float(error), 0


def jaxns(native: Any) -> Estimate:
    """NumPyro's nested sampling, which is JAXNS's."""
    import jax
    import numpyro

    numpyro.enable_x64()
    from numpyro.contrib.nested_sampling import NestedSampler

    program, arguments = native
    sampler = NestedSampler(program, constructor_kwargs={"num_live_points": 4000, "max_samples": 2e5})
    sampler.run(jax.random.key(1), **arguments)
    found = sampler._results
    return (
        float(found.log_Z_mean),
        float(found.log_Z_uncert),
        int(found.total_num_likelihood_evaluations),
    )


def dynesty(native: Any) -> Estimate:
    import dynesty

    log_likelihood, transform, parameters = native
    d = parameters if isinstance(parameters, int) else len(parameters)
    rng = np.random.default_rng(1)
    sampler = dynesty.NestedSampler(log_likelihood, transform, d, nlive=5000, rstate=rng)
    sampler.run_nested(dlogz=0.001, print_progress=False)
    found = sampler.results
    return float(found.logz[-1]), float(found.logzerr[-1]), int(np.sum(found.ncall))


def ultranest(native: Any) -> Estimate:
    import ultranest

    np.random.seed(1)  # noqa: NPY002, the generator it draws from
    names, log_likelihood, transform = native
    sampler = ultranest.ReactiveNestedSampler(names, log_likelihood, transform)
    found = sampler.run(min_num_live_points=1000, dlogz=0.1, show_status=False, viz_callback=False)
    return float(found["logz"]), float(found["logzerr"]), int(found["ncall"])


def nautilus(native: Any) -> Estimate:
    """Its effective sample size is the evidence's, too."""
    import nautilus

    sampler = nautilus.Sampler(*native, n_live=4000, seed=1)
    sampler.run(n_eff=100_000, discard_exploration=True)
    return float(sampler.log_z), float(sampler.n_eff) ** -0.5, int(sampler.n_like)


def bilby(native: Any) -> Estimate:
    import bilby

    bilby.core.utils.logger.setLevel(logging.ERROR)
    bilby.core.utils.random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        found = bilby.run_sampler(
            *native, sampler="dynesty", sample="unif", bound="multi", nlive=1000, dlogz=0.01, seed=1,
            outdir=folder, label="long", check_point_plot=False, resume=False, save=False,
        )  # fmt: skip
    return float(found.log_evidence), float(found.log_evidence_err), int(found.num_likelihood_evaluations)


LONG = {
    "pymc": smc,
    "numpyro": jaxns,
    "dynesty": dynesty,
    "ultranest": ultranest,
    "nautilus": nautilus,
    "bilby": bilby,
}


def append(path: Path, row: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)
    print(*row.values(), flush=True)


def known(path: Path) -> set[tuple[str, str]]:
    return set(pd.read_csv(path)[KEY].itertuples(index=False, name=None)) if path.exists() else set()


def long_runs(name: str, tutorial: Tutorial, path: Path) -> None:
    done = known(path)
    for model, native in tutorial.natives().items():
        if (name, model) in done:
            continue
        start = time.perf_counter()
        log_evidence, error, calls = LONG[tutorial.library](native)
        version = importlib.metadata.version(DISTRIBUTIONS.get(tutorial.library, tutorial.library))
        append(
            path,
            {
                "tutorial": name,
                "model": model,
                "log_evidence": round(log_evidence, 4),
                "error": round(error, 4),
                "evaluations": calls or "",
                "seconds": round(time.perf_counter() - start, 1),
                "library": tutorial.library,
                "version": version,
                "command": COMMAND,
            },
        )


def our_run(name: str, tutorial: Tutorial, path: Path) -> None:
    start = time.perf_counter()
    result = compare(tutorial.models(), budget=tutorial.budget, rng=0, progress=False)
    seconds = time.perf_counter() - start
    for model in result.names:
        append(
            path,
            {
                "tutorial": name,
                "model": model,
                "log_evidence": round(result.log_evidence[model], 4),
                "sd": round(result.log_evidence_sd[model], 4),
                "evaluations": result.n_evaluations[model],
                "warned": any(r.level == "warning" and r.model == model for r in result.checks()),
                "seconds": round(seconds, 1),
                "version": result.version,
                "command": f"{COMMAND} --ours",
            },
        )


def markdown() -> str:
    """Both side by side; off is in standard deviations of the two together."""
    both = pd.read_csv(OUT / "ours.csv").merge(
        pd.read_csv(OUT / "long_runs.csv"), on=KEY, suffixes=("", "_long")
    )
    lines = ["| tutorial | model | long run | evaluations | ours | evaluations | apart |", "|---" * 7 + "|"]
    for row in both.itertuples():
        apart = (row.log_evidence - row.log_evidence_long) / np.hypot(row.sd, row.error)
        calls = "" if np.isnan(row.evaluations_long) else f"{row.evaluations_long:.0f}"
        cells = [
            row.tutorial,
            row.model,
            plus_minus(row.log_evidence_long, row.error, 2),
            calls,
            plus_minus(row.log_evidence, row.sd, 2) + (", warned" if row.warned else ""),
            row.evaluations,
            f"{apart:.1f} sd",
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=TUTORIALS, default=list(TUTORIALS))
    parser.add_argument("--ours", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # theirs
    logging.disable(logging.WARNING)
    if arguments.ours:
        (OUT / "ours.csv").unlink(missing_ok=True)
    for name in arguments.only:
        tutorial = TUTORIALS[name]
        if importlib.util.find_spec(tutorial.library) is None:
            print(f"{name}: {tutorial.library} is not installed")
        elif arguments.ours:
            our_run(name, tutorial, OUT / "ours.csv")
        else:
            long_runs(name, tutorial, OUT / "long_runs.csv")
    if arguments.ours:
        print(markdown())


if __name__ == "__main__":
    main()
