"""How busy workers are kept: ``python benchmarks/workers.py [--workers 8] [--seconds 1]``.

A likelihood that sleeps is evaluated by many workers at once: worker processes of our own, and a Dask cluster
of processes. Printed are evaluations per second, how many times that is what one worker could do who loses no
time at all, and our own seconds per evaluation. Everything is compiled, and all workers are up, before the
clock starts.
"""

import argparse
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # workers import this file: nothing heavy before it is needed
    from modelodds import Model

FIRST = 16  # evaluations that are not timed: the initial design, and compiling


def models(seconds: float) -> "list[Model]":
    from scipy import stats

    from modelodds import Model

    def model(name: str, y: float, width: float) -> "Model":
        def log_likelihood(theta: Any) -> float:
            import math
            import time

            time.sleep(seconds)
            return -0.5 * sum(((t - y) / width) ** 2 for t in theta) - len(theta) * math.log(width)

        return Model(name, log_likelihood, {"x": stats.norm(), "y": stats.norm()})

    return [model("a", 0.3, 0.5), model("b", -1.0, 0.7)]


def throughput(n: int, seconds: float, executor: Any = None) -> tuple[float, float]:
    """Evaluations per second from the first on that is timed, and our own seconds per evaluation."""
    from modelodds import compare

    moments: list[tuple[float, float, int]] = []

    def look(session: Any) -> bool:
        moments.append((time.monotonic(), session.overhead_seconds, session.n_evaluations))
        return False

    compare(models(seconds), budget=n, executor=executor, stop=look, progress=False)
    first = next(m for m in moments if m[2] >= FIRST)
    last = moments[-1]
    made = last[2] - first[2]
    return made / (last[0] - first[0]), (last[1] - first[1]) / made


def show(what: str, rate: float, alone: float, own: float) -> None:
    print(f"{what}: {rate:.3g} a second, {rate / alone:.2f} times; {own:.3f} s of ours each", flush=True)


def main() -> None:
    from modelodds import compare
    from modelodds.executors import Workers
    from modelodds.stopping import Never

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--evaluations", type=int, default=80)
    arguments = parser.parse_args()
    n, seconds, k = arguments.evaluations, arguments.seconds, arguments.workers
    compare(models(0.0), budget=n, stop=Never(), progress=False)  # compiles
    alone = 1.0 / seconds
    with Workers(k) as workers:
        for future in [workers.submit(time.sleep, 2.0) for _ in range(k)]:
            future.result()
        rate, own = throughput(n, seconds, workers)
    show(f"{k} processes", rate, alone, own)
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=k, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        client.wait_for_workers(k)
        client.gather([client.submit(time.sleep, 2.0, pure=False) for _ in range(k)])
        rate, own = throughput(n, seconds, client)
    show(f"{k} of Dask", rate, alone, own)


if __name__ == "__main__":
    main()
