"""A survey of simulated spectra: ``python benchmarks/dla_survey.py --spectra 1000 --jobs 2``.

Each spectrum has no, one or two damped absorbers, drawn from the prior that ``modelodds dla --fraction 0.5``
assumes, and a signal-to-noise ratio between 2 and 10. It is decided as that command decides it. Printed are
how often each number was decided rightly, how often it should have been by the probabilities that were told,
the seconds of a spectrum, and what the 160 000 of BOSS would take. Runs are kept in results/dla/survey.csv,
and those that are there are skipped. Needs a null model (``docs/dla.md``).
"""

import argparse
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from modelodds.apps import dla
from modelodds.apps.dla.decide import Settings, decide
from modelodds.apps.dla.prior import COLUMN_DENSITY, model_probabilities
from modelodds.apps.dla.sightline import Sightline
from modelodds.cli.bench import show
from modelodds.experiments.sweep import sweep

OUT = Path(__file__).parents[1] / "results" / "dla" / "survey.csv"
FRACTION = 0.5  # of spectra that have an absorber
BOSS = 160_000  # spectra
CORES = 64  # of a cluster


class Task(NamedTuple):
    """One spectrum, by its number."""

    number: int


@cache
def null_model() -> dla.NullModel:
    """The one that is at hand."""
    return dla.NullModel.load()


def work(task: Task) -> list[dict[str, Any]]:
    """How many absorbers it has, and how many it was found to have."""
    rng, null = np.random.default_rng([2017, task.number]), null_model()
    z_qso, snr = rng.uniform(2.3, 3.5), float(np.exp(rng.uniform(np.log(2.0), np.log(10.0))))
    count = int(rng.choice(3, p=model_probabilities(z_qso, 2, FRACTION)))
    empty = dla.simulate(null, z_qso, [], snr, seed=task.number)
    low, high = Sightline.of(empty, null).z_range
    absorbers = [(rng.uniform(low, high), COLUMN_DENSITY.rvs(random_state=rng)) for _ in range(count)]
    found = decide(
        dla.simulate(null, z_qso, absorbers, snr, seed=task.number), null, Settings(fraction=FRACTION)
    )
    told = {f"p{k}": float(f"{p:.4g}") for k, p in enumerate(found.probability)}
    return [
        task._asdict()
        | {"absorbers": count, "decided": found.best, **told}
        | {"snr": round(snr, 2), "evaluations": found.evaluations}
    ]


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """By the true number: spectra, those decided for 0, 1 and 2, and the probability told of the truth."""
    rows = rows.assign(p=rows[["p0", "p1", "p2"]].to_numpy()[np.arange(len(rows)), rows.absorbers])
    found = pd.crosstab(rows.absorbers, rows.decided).reindex(columns=range(3), fill_value=0)
    found.columns = [f"decided {k}" for k in found.columns]
    found.insert(0, "spectra", rows.groupby("absorbers").size())
    return found.assign(probability=rows.groupby("absorbers").p.mean()).reset_index()


def main() -> None:
    """Decide and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--spectra", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    tasks = [Task(number) for number in range(given.spectra)]
    done = [row for rows in sweep(tasks, work, given.out, given.jobs) for row in rows]
    rows = pd.DataFrame(done)
    show(summary(rows))
    right, told = (rows.decided == rows.absorbers).mean(), rows[["p0", "p1", "p2"]].max(axis=1).mean()
    seconds = rows.seconds.mean()
    thousand, boss = 1000 * seconds / 2 / 3600, BOSS * seconds / CORES / 3600
    print(f"{len(rows)} spectra: {right:.1%} decided rightly, {told:.1%} by the probabilities told")
    print(
        f"{seconds:.1f} s each on one core (median {rows.seconds.median():.1f} s): "
        f"1000 take two cores {thousand:.1f} hours, and BOSS {CORES} cores {boss:.0f} hours"
    )


if __name__ == "__main__":
    main()
