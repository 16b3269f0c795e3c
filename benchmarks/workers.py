"""How busy workers are kept: ``python benchmarks/workers.py [--workers 8] [--seconds 1]``.

Likelihoods that sleep (tails-3: k = 2, d = 3) are evaluated by many workers at once: worker processes of our
own, and a Dask cluster of processes. Printed are evaluations per second, how many times that is what one
worker could do who loses no time at all, the share of their time for which workers wait, and our own seconds
per evaluation, by the clock and of the processor; all of it also by how far the run has come. Results that
come back while we are at work are taken in together. The run has a ledger. Everything is compiled, and all
workers are up, before the clock starts.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # workers import this file: nothing heavy before it is needed
    from modelodds import Model

FIRST = 32  # evaluations that are not timed: the initial design, and all workers' first
STRETCH = 75  # evaluations to a line


class Moment(NamedTuple):
    """A look at a run."""

    clock: float
    own: float  # seconds of ours so far
    made: int  # evaluations so far
    cpu: float  # seconds of processor time of this process so far


def models(seconds: float) -> "list[Model]":
    from modelodds import Model
    from modelodds.problems.tails import tails

    def sleeping(model: "Model") -> "Model":
        def log_likelihood(theta: Any) -> float:
            time.sleep(seconds)
            return model.log_likelihood(theta)  # type: ignore[no-any-return]

        return Model(model.name, log_likelihood, model.prior)

    return [sleeping(model) for model in tails(3, 0).models]


def look_at(n: int, seconds: float, executor: Any) -> list[Moment]:
    """A run of ``n`` evaluations, seen whenever results were taken in."""
    from modelodds import compare

    moments: list[Moment] = []

    def look(session: Any) -> bool:
        session.settled_belief()  # as the usual stopping rule does
        now = time.monotonic(), session.overhead_seconds, session.n_evaluations, time.process_time()
        moments.append(Moment(*now))
        return False

    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "run.db"
        compare(models(seconds), budget=n, executor=executor, stop=look, ledger=ledger, progress=False)
    return moments


def show(what: str, moments: list[Moment], k: int, seconds: float) -> None:
    import numpy as np

    made = np.diff([m.made for m in moments])
    own = np.repeat(np.diff([m.own for m in moments]) / made, made)  # of each evaluation
    rate = made.sum() / (moments[-1].clock - moments[0].clock)
    print(
        f"{what}, evaluations {moments[0].made} to {moments[-1].made}: {rate:.2f} a second, "
        f"{rate * seconds:.2f} times one worker; waiting {max(0.0, 1 - rate * seconds / k):.0%} of the time; "
        f"ours: median {np.median(own):.3f} s, 95th percentile {np.quantile(own, 0.95):.3f} s, "
        f"{(moments[-1].cpu - moments[0].cpu) / made.sum():.3f} s of processor time in the mean; "
        f"taken in {made.mean():.1f} at a time",
        flush=True,
    )


def report(what: str, moments: list[Moment], k: int, seconds: float) -> None:
    """All that is timed, and stretch by stretch; the end, when workers run out of work, is left out."""
    timed = [m for m in moments if FIRST <= m.made <= moments[-1].made - k]
    show(what, timed, k, seconds)
    for start in range(FIRST, timed[-1].made - STRETCH // 2, STRETCH):
        some = [m for m in timed if start <= m.made <= start + STRETCH]
        show(what, some, k, seconds)


def main() -> None:
    from modelodds import compare
    from modelodds.executors import Workers
    from modelodds.stopping import Never

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--evaluations", type=int, default=250)
    parser.add_argument("--dask", action=argparse.BooleanOptionalAction, default=True)
    arguments = parser.parse_args()
    n, seconds, k = arguments.evaluations, arguments.seconds, arguments.workers
    compare(models(0.0), budget=n, batch=k, stop=Never(), progress=False)  # compiles
    with Workers(k) as workers:
        for future in [workers.submit(time.sleep, 2.0) for _ in range(k)]:
            future.result()
        report(f"{k} processes", look_at(n, seconds, workers), k, seconds)
    if not arguments.dask:
        return
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=k, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        client.wait_for_workers(k)
        client.gather([client.submit(time.sleep, 2.0, pure=False) for _ in range(k)])
        report(f"{k} of Dask", look_at(n, seconds, client), k, seconds)


if __name__ == "__main__":
    main()
