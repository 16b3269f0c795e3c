"""Cases to develop on, so that those reported are never tuned on: ``python benchmarks/fresh.py synthetic``.

``synthetic`` runs the paper's task on datasets from number 100 on, which no table has; the truth is Sobol's
sequence over the prior (2^16 points, 2^17 from d = 4). ``absorbers`` runs simulated spectra, signal-to-noise
ratios from 2 to 12, with no absorber against one, in 76 evaluations, and looks at the evidence of one, whose
peak is narrow and hard to find; the truth is quadrature's. ``crowded`` runs spectra that have up to four
absorbers, some side by side or too weak for the prior, one against two, in 150 evaluations as in the
experiment on real spectra, and looks at the log-odds; the truth is quadrature's and importance sampling's.
Both need a null model (``docs/dla.md``).

To compare two versions of the code, run it with either of them on ``PYTHONPATH``.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special, stats

from modelodds.baselines import METHODS, ours
from modelodds.experiments.dla import START
from modelodds.experiments.sweep import sweep
from modelodds.method import resolve_method
from modelodds.problems import synthetic

FIRST = 100
BUDGET = 76


class Dataset(NamedTuple):
    """One run on the paper's task."""

    d: int
    dataset: int
    method: str


class Spectrum(NamedTuple):
    """One run on a simulated spectrum."""

    number: int


class Crowded(NamedTuple):
    """One run on a simulated spectrum of up to four absorbers."""

    number: int


def log_evidence(model: Any) -> float:
    """By quasi-Monte Carlo over the prior."""
    u = stats.qmc.Sobol(model.dim, rng=1).random_base2(16 if model.dim < 4 else 17)
    x, _ = model.prior.from_unit(np.clip(u, 1e-12, 1.0 - 1e-12))
    value = model.log_likelihood(model.prior.to_theta(x))
    return float(special.logsumexp(value) - np.log(len(u)))


def on_dataset(task: Dataset) -> list[dict[str, Any]]:
    """The error of the log-odds, and that of z_1 as a fraction."""
    models = synthetic.candidates(task.d, task.dataset)
    truth = log_evidence(models[0]) - log_evidence(models[1])
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = METHODS[task.method](models, 50 * task.d, task.dataset)
    found, sd = result.log_odds(*result.names)
    fraction = abs(result.probabilities[result.names[0]] / special.expit(truth) - 1.0)
    seconds = time.perf_counter() - start
    return [
        task._asdict() | {"error": fraction, "nats": abs(found - truth), "claimed": sd, "seconds": seconds}
    ]


def on_spectrum(task: Spectrum) -> list[dict[str, Any]]:
    """The error of the evidence of one absorber, in nats."""
    from modelodds.apps import dla
    from modelodds.apps.dla.sightline import Sightline
    from modelodds.apps.dla.truth import evidence

    null, rng = dla.NullModel.load(), np.random.default_rng([77, task.number])
    z_qso, snr = rng.uniform(2.4, 3.4), float(np.exp(rng.uniform(np.log(2.0), np.log(12.0))))
    low, high = Sightline.of(dla.simulate(null, z_qso, snr=snr, seed=task.number), null).z_range
    absorber = (rng.uniform(low, high), rng.uniform(20.0, 21.5))
    line = Sightline.of(dla.simulate(null, z_qso, [absorber], snr=snr, seed=task.number), null)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = dla.models(line, absorbers=(0, 1))
        result = ours.run(models, BUDGET, task.number, resolve_method("default", **START))
    name = result.names[1]
    off, seconds = abs(result.log_evidence[name] - evidence(line, 1)[0]), time.perf_counter() - start
    claimed = result.log_evidence_sd[name]
    return [task._asdict() | {"d": 2, "error": off, "nats": off, "claimed": claimed, "seconds": seconds}]


def on_crowded(task: Crowded) -> list[dict[str, Any]]:
    """The error of the log-odds of one absorber over two, in nats."""
    from modelodds.apps import dla
    from modelodds.apps.dla.quadrature import one_absorber
    from modelodds.apps.dla.sampling import sampled
    from modelodds.apps.dla.sightline import Sightline
    from modelodds.experiments.dla import METHODS as ON_SPECTRA

    null, rng, count = dla.NullModel.load(), np.random.default_rng([4242, task.number]), 1 + task.number % 4
    z_qso, snr = rng.uniform(2.3, 3.4), float(np.exp(rng.uniform(np.log(2.0), np.log(15.0))))
    low = max(3600.0, 912.0 * (1.0 + z_qso)) / 1215.67 - 0.95
    absorbers = [(rng.uniform(low, z_qso - 0.03), rng.uniform(19.5, 21.8)) for _ in range(count)]
    if task.number % 3 == 0 and count > 1:
        absorbers[1] = (absorbers[0][0] + rng.uniform(-0.03, 0.03), absorbers[1][1])
    line = Sightline.of(dla.simulate(null, z_qso, absorbers, snr, seed=5000 + task.number), null)
    one, two = dla.models(line, absorbers=(1, 2))
    grid = one_absorber(one.log_likelihood)  # type: ignore[arg-type]
    truth = grid.log_evidence - sampled(two, grid, line.z_range, 0, 1).log_evidence
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = ON_SPECTRA["default"]([one, two], 0)
    found, claimed = result.log_bayes_factor(*result.names)
    off, seconds = abs(found - truth), time.perf_counter() - start
    return [task._asdict() | {"d": 4, "error": off, "nats": off, "claimed": claimed, "seconds": seconds}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", choices=["synthetic", "absorbers", "crowded"])
    parser.add_argument("--dimension", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--method", default="default")
    parser.add_argument("-n", type=int, default=20, help="datasets per dimension, or spectra")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    numbers = range(FIRST, FIRST + given.n)
    tasks: list[Any] = [Dataset(d, i, given.method) for d in given.dimension for i in numbers]
    work: Callable[[Any], list[dict[str, Any]]] = on_dataset
    if given.cases == "absorbers":
        tasks, work = [Spectrum(i) for i in range(given.n)], on_spectrum
    if given.cases == "crowded":
        tasks, work = [Crowded(i) for i in range(given.n)], on_crowded
    rows = []
    for found in sweep(tasks, work, None, given.jobs):
        rows += found
        print(", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in found[0].items()))
    frame = pd.DataFrame(rows)
    for d, group in frame.groupby("d"):
        error, beyond = group.error, int((group.nats > 2 * group.claimed).sum())
        print(
            f"d = {d}, {len(group)} cases: mean {error.mean():.3g}, median {error.median():.3g}, worst "
            f"{error.max():.3g}; beyond two claimed standard deviations {beyond}; "
            f"{group.seconds.median():.1f} s a run"
        )


if __name__ == "__main__":
    main()
