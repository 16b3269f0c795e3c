"""Likelihoods a second: ``python benchmarks/dla.py``.

A simulated spectrum of the learned null model's rank and of about 1200 pixels, one and two absorbers, points
of the prior in batches of 4096, and one at a time; gradients; the plain dense version of the tests beside it.
"""

import sys
import time
from pathlib import Path

import numpy as np

from modelodds.apps import dla

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from example_dla import reference

POINTS = 4096


def rate(call: object, n: int, least: float = 2.0) -> float:
    """Best of several timings, in points a second."""
    call()  # type: ignore[operator]
    best, start = 0.0, time.perf_counter()
    while time.perf_counter() - start < least:
        before = time.perf_counter()
        call()  # type: ignore[operator]
        best = max(best, n / (time.perf_counter() - before))
    return best


def main() -> None:
    null = dla.NullModel.synthetic(rank=20)
    spectrum = dla.simulate(null, 2.95, [(2.6, 21.0)], snr=5.0, seed=0)
    line = dla.Sightline.of(spectrum, null)
    print(f"{line.n_pixels} pixels, rank {line.m.shape[1]}")
    for model in dla.models(line, absorbers=(1, 2)):
        u = np.random.default_rng(0).uniform(size=(POINTS, model.dim))
        theta = model.prior.to_theta(model.prior.from_unit(u)[0])
        f = model.log_likelihood
        print(
            f"{model.name}: {rate(lambda f=f, t=theta: f(t), POINTS):.0f} likelihoods/s in batches, "
            f"{rate(lambda f=f, t=theta: f(t[:1]), 1):.0f} one at a time, "
            f"{rate(lambda f=f, t=theta: f.gradient(t[:1024]), 1024):.0f} gradients/s"
        )
    plain = rate(lambda: reference(spectrum, null, [(2.6, 21.0)]), 1)
    print(f"plain NumPy with dense covariances: {plain:.1f} likelihoods/s")


if __name__ == "__main__":
    main()
