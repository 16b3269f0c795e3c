"""What knowing of exchangeable parts is worth: ``python benchmarks/exchange.py [--spectra 8]``.

Simulated spectra with one or two damped absorbers in turn, signal-to-noise ratios from 1.5 to 7, one absorber
against two in 150 evaluations, as in the experiment on real spectra (``experiments/dla.py``). The
two-absorber model is told that its absorbers can be exchanged, or not. Printed is the error in nats of its
log-evidence and of the log-odds, the truth being quadrature's and importance sampling's. Needs a null model
(``docs/dla.md``).
"""

import argparse
import time
import warnings
from dataclasses import replace

import numpy as np

from modelodds.apps import dla
from modelodds.apps.dla.sightline import Sightline
from modelodds.apps.dla.truth import evidence
from modelodds.experiments.dla import METHODS


def sightline(i: int) -> tuple[Sightline, int]:
    """Simulated spectrum number ``i`` and how many absorbers it has."""
    rng, null, k = np.random.default_rng([99, i]), dla.NullModel.load(), 1 + i % 2
    z_qso, snr = rng.uniform(2.4, 3.3), float(np.exp(rng.uniform(np.log(1.5), np.log(7.0))))
    low = max(3600.0 / 1215.67, 912.0 * (1.0 + z_qso) / 1215.67) - 0.95
    absorbers = [(rng.uniform(low, z_qso - 0.05), 20.0 + abs(rng.normal(0.3, 0.6))) for _ in range(k)]
    return Sightline.of(dla.simulate(null, z_qso, absorbers, snr, seed=1000 + i), null), k


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spectra", type=int, default=8)
    warnings.simplefilter("ignore")
    table = []
    for i in range(parser.parse_args().spectra):
        line, k = sightline(i)
        truth = [evidence(line, n)[0] for n in (1, 2)]
        told = dla.models(line, absorbers=(1, 2))
        words, errors = [], []
        for name, models in {"not told": [replace(m, exchangeable=()) for m in told], "told": told}.items():
            start = time.perf_counter()
            result = METHODS["default"](models, 0)
            spent = time.perf_counter() - start
            one, two = (result.log_evidence[m] - t for m, t in zip(result.names, truth, strict=True))
            sd = result.log_bayes_factor(*result.names)[1]
            words.append(f"{name}: two {two:+.2f}, odds {one - two:+.2f} ± {sd:.2g}, {spent:.0f} s")
            errors += [abs(two), abs(one - two)]
        table.append(errors)
        print(
            f"spectrum {i}, {k} absorbers, log-odds {truth[0] - truth[1]:.2f}; {'; '.join(words)}", flush=True
        )
    median = np.median(table, axis=0)
    print(
        f"median error of two absorbers' evidence {median[0]:.2f} not told, {median[2]:.2f} told; "
        f"of the log-odds {median[1]:.2f} and {median[3]:.2f}"
    )


if __name__ == "__main__":
    main()
