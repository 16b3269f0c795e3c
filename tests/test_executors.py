"""Evaluations elsewhere: in threads, processes and on a Dask cluster; what goes wrong there."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from example_models import CENTRES, N, bell, gap, gaussian, log_evidence
from example_workers import Dies, gaussians
from modelodds import Failures, Model, Result, Session, compare
from modelodds.errors import LedgerError, ModelError, OptionError
from modelodds.executors import Workers, n_workers
from modelodds.ledger import evaluations, standing
from modelodds.stopping import Never

BUDGET = 24
pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")


def run(models: list[Model], **options: Any) -> Result:
    return compare(models, **{"budget": BUDGET, "progress": False, "stop": Never(), **options})


def model(act: Callable[[float], Any], name: str = "a") -> Model:
    """Model ``a``, which does something else first, and fails if that is not None."""
    y, width = CENTRES["a"]

    def log_likelihood(theta: Any) -> Any:
        done = act(float(theta[0]))
        return (
            -0.5 * ((theta[0] - y) / width) ** 2 - np.log(width * np.sqrt(2 * np.pi))
            if done is None
            else done
        )

    return Model(name, log_likelihood, {"x": N()})


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers(2) as pool:
        yield pool


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Dask cluster of two worker processes.

    A local cluster gives a worker up that is not back after 15 seconds; on a busy machine that is too short.
    """
    distributed = pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "300s"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest.fixture(params=["threads", "workers", "processes", "dask"])
def executor(request: pytest.FixtureRequest) -> Iterator[Any]:
    """One of each kind, with two workers."""
    if request.param == "threads":
        with ThreadPoolExecutor(2) as pool:
            yield pool
    elif request.param == "processes":
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes:
            yield processes
    else:
        yield request.getfixturevalue({"workers": "workers", "dask": "cluster"}[request.param])


@pytest.mark.filterwarnings("ignore")  # Dask's own
def test_every_kind_finds_the_answer_and_loses_nothing(executor: Any, tmp_path: Path) -> None:
    models = [Model("a", gaussians, {"x": N()}), Model("b", gaussians, {"x": N(0, 2)})]
    result = run(models, executor=executor, ledger=tmp_path / "run.db")
    assert n_workers(executor) == 2
    assert result.status == "budget" and set(result.evaluations["status"]) == {"ok"}
    table = evaluations(tmp_path / "run.db")
    assert len(table) == len(set(table["id"])) == BUDGET and table["host"].ne("").all()
    y, width = CENTRES["a"]
    truth = N.logpdf(y, 0, np.hypot(1, width)) - N.logpdf(y, 0, np.hypot(2, width))
    assert result.log_bayes_factor("a", "b")[0] == pytest.approx(truth, abs=0.01)


def test_a_free_worker_gets_its_next_point_at_once() -> None:
    """One evaluation that lasts as long as ten others holds nobody up."""
    calls: list[float] = []
    others = threading.Event()

    def act(x: float) -> None:
        calls.append(x)
        if len(calls) == 1:
            assert others.wait(30), "the others wait for the slow one"
        if len(calls) == 11:
            others.set()

    with ThreadPoolExecutor(2) as pool:
        result = run([model(act)], budget=14, executor=pool)
    assert set(result.evaluations["status"]) == {"ok"}
    assert result.evaluations["id"].tolist().index(0) >= 9  # the first asked came back among the last


def test_what_a_worker_cannot_be_sent(workers: Workers) -> None:
    lock = threading.Lock()
    with pytest.raises(ModelError, match="model 'a' cannot be sent to a worker"):
        run([model(lambda x: lock.locked() or None)], executor=workers)
    with pytest.raises(OptionError, match="number of workers"):
        Workers(0)


# ---------------------------------------------------------------------- timeouts


def hang(x: float) -> None:
    """Hangs to the right of 0.9, in Python."""
    while x > 0.9:
        time.sleep(0.01)


def test_timeouts_without_an_executor() -> None:
    result = run([model(hang)], budget=14, failures=Failures(timeout=0.1))
    failed = result.evaluations[result.evaluations["status"] == "failed"]
    assert len(failed) >= 1 and set(failed["reason"]) == {"stopped: it took longer than 0.1 seconds"}
    assert (failed["x"] > 0.9).all() and failed["seconds"].between(0.05, 5).all()
    assert result.log_evidence["a"] == pytest.approx(log_evidence("a"), abs=0.05)


def test_an_except_clause_does_not_swallow_the_timeout() -> None:
    def stubborn(x: float) -> None:
        for _ in range(200):
            try:
                hang(x)
            except Exception:
                continue

    result = run([model(stubborn)], budget=8, failures=Failures(timeout=0.1))
    assert "failed" in set(result.evaluations["status"])


def test_a_worker_that_cannot_be_interrupted_is_killed(workers: Workers, tmp_path: Path) -> None:
    """Compiled code does not hear signals; here they are blocked, which comes to the same."""
    notes = str(tmp_path / "pids")

    def act(x: float) -> None:
        if x > 0.9:
            with open(notes, "a") as file:
                file.write(f"{os.getpid()}\n")
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM, signal.SIGTERM])
            time.sleep(600)

    result = run([model(act)], budget=10, executor=workers, failures=Failures(timeout=0.2))
    failed = result.evaluations[result.evaluations["status"] == "failed"]
    assert len(failed) >= 1 and set(failed["reason"]) == {"stopped: it took longer than 0.2 seconds"}
    for pid in map(int, Path(notes).read_text().split()):
        assert not alive(pid)


def alive(pid: int) -> bool:
    for _ in range(50):  # the system takes a moment
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.1)
    return True


def test_threads_past_their_time_are_given_up() -> None:
    release = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        try:
            result = run(
                [model(lambda x: release.wait(60) and None)],
                executor=pool,
                failures=Failures(timeout=0.05),
            )
        finally:
            release.set()
    assert result.status == "broken" and "threads cannot be stopped" in result.message
    assert set(result.evaluations["reason"]) == {"stopped: it took longer than 0.05 seconds"}


@pytest.mark.filterwarnings("ignore")
def test_a_dask_worker_past_its_time_is_restarted(cluster: Any) -> None:
    before = {worker["pid"] for worker in cluster.run(lambda: {"pid": os.getpid()}).values()}

    def act(x: float) -> None:
        if x > 1.2:
            time.sleep(600)

    result = run([model(act)], budget=8, executor=cluster, failures=Failures(timeout=0.5))
    failed = result.evaluations[result.evaluations["status"] == "failed"]
    assert len(failed) >= 1 and (failed["x"] > 1.2).all()
    cluster.wait_for_workers(2, timeout=240)
    after = {worker["pid"] for worker in cluster.run(lambda: {"pid": os.getpid()}).values()}
    assert before - after


# ---------------------------------------------------------------------- workers that die


def test_a_killed_worker_is_replaced(workers: Workers, tmp_path: Path) -> None:
    def act(x: float) -> None:
        if x > 0.9:
            os.kill(os.getpid(), signal.SIGKILL)

    result = run([model(act)], budget=12, executor=workers, ledger=tmp_path / "run.db")
    failed = result.evaluations[result.evaluations["status"] == "failed"]
    assert len(failed) >= 1 and (failed["x"] > 0.9).all()
    assert set(failed["reason"]) == {"its worker process died (killed by signal 9)"}
    assert (result.evaluations["status"] == "ok").sum() >= 8


def test_a_pool_that_breaks_ends_the_run_and_loses_nothing(tmp_path: Path) -> None:
    """Of a ProcessPoolExecutor nothing is left when one worker dies; what was out is made again."""
    ledger, sign = tmp_path / "run.db", tmp_path / "died"

    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        result = run([Model("a", Dies(str(sign)), {"x": N()})], executor=pool, ledger=ledger, budget=12)
    assert result.status == "broken" and "Workers replaces workers that die" in result.message
    assert standing(ledger).out >= 1 and not standing(ledger).failed["a"]
    result = run([Model("a", Dies(str(sign)), {"x": N()})], ledger=ledger, budget=12)
    assert result.status == "budget" and result.n_failures == {"a": 0}


@pytest.mark.filterwarnings("ignore")
def test_dask_goes_on_when_a_worker_is_killed(cluster: Any, tmp_path: Path) -> None:
    cluster.wait_for_workers(2, timeout=240)
    sign = str(tmp_path / "died")

    def act(x: float) -> None:
        if x > 0 and not os.path.exists(sign):
            open(sign, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)

    result = run([model(act)], executor=cluster, budget=14, ledger=tmp_path / "run.db")
    assert os.path.exists(sign) and result.status == "budget"
    assert set(result.evaluations["status"]) == {"ok"}  # Dask gave it to another
    assert result.log_evidence["a"] == pytest.approx(log_evidence("a"), abs=0.01)


# ---------------------------------------------------------------------- failures


def test_memory_errors_are_failures() -> None:
    def act(x: float) -> None:
        if x > 0.9:
            np.empty(2**45)  # more than there is

    result = run([model(act)], budget=14)
    reasons = set(result.evaluations.query("status == 'failed'")["reason"])
    assert len(reasons) == 1 and "MemoryError" in reasons.pop()


def test_retries() -> None:
    tries: dict[float, int] = {}

    def act(x: float) -> Any:
        tries[x] = tries.get(x, 0) + 1
        return np.nan if tries[x] <= 2 else None

    assert run([model(act)], budget=8, failures=Failures(retries=2)).n_failures == {"a": 0}
    assert set(tries.values()) == {3}
    assert run([model(lambda x: np.nan)], budget=8, failures=Failures(retries=1)).n_failures == {"a": 8}


def test_max_failures() -> None:
    result = run([model(lambda x: np.nan)], failures=Failures(max_failures=3))
    assert result.status == "failures" and result.n_failures == {"a": 4}
    for bad in ({"retries": -1}, {"timeout": 0}, {"max_failures": 1.5}, {"timeout": "1"}, {"retries": True}):
        with pytest.raises(OptionError, match="must be"):
            Failures(**bad)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_fifth_failing_at_random_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    result = run(
        [model(lambda x: np.nan if rng.random() < 0.2 else None), gaussian("b")], budget=40, rng=seed
    )
    assert 1 <= result.n_failures["a"] <= 20
    mean, sd = result.log_bayes_factor("a", "b")
    assert abs(mean - gap("a", "b")) < 4 * sd + 1e-3 and abs(mean - gap("a", "b")) < 0.02


def test_a_region_that_always_fails_stops_being_asked() -> None:
    """A corner of the prior without a likelihood worth mentioning: the answer is as without it."""

    def corner(theta: Any) -> float:
        return np.nan if theta[0] > 1.2 and theta[1] > 0 else bell(-0.2, 0.4)(theta)

    other = Model("b", bell(0.3, 0.5), {"x": N(), "y": N()})
    result = run([Model("a", corner, {"x": N(), "y": N()}), other], budget=50)
    truth = 2 * (stats.norm.logpdf(-0.2, 0, np.hypot(1, 0.4)) - stats.norm.logpdf(0.3, 0, np.hypot(1, 0.5)))
    mean, sd = result.log_bayes_factor("a", "b")
    assert abs(mean - truth) < 4 * sd + 1e-3
    late = result.evaluations.iloc[25:]
    assert (late["status"] == "failed").sum() <= 2


# ---------------------------------------------------------------------- Ctrl-C

SLOW = """
import sys, time
from scipy import stats
from modelodds import Model, compare
from modelodds.executors import Workers

def slow(theta):
    time.sleep(0.2)
    return -theta[0] ** 2

if __name__ == "__main__":
    import signal
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Workers(2) as workers:
        result = compare([Model("a", slow, {"x": stats.norm()})], budget=1000, executor=workers,
                         ledger=sys.argv[1])
    print(result.status, len(result.evaluations))
"""


def done(ledger: Path) -> int:
    try:
        return sum(standing(ledger).done.values())
    except LedgerError:  # not begun yet
        return 0


@pytest.mark.parametrize("twice", [False, True])
def test_ctrl_c_with_workers(tmp_path: Path, twice: bool) -> None:
    script, ledger = tmp_path / "slow.py", tmp_path / "run.db"
    script.write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, str(script), str(ledger)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        while done(ledger) < 4:
            time.sleep(0.2)
            assert process.poll() is None, process.communicate()
        os.killpg(process.pid, signal.SIGINT)  # the whole group, as a terminal does
        if twice:
            time.sleep(0.05)
            os.killpg(process.pid, signal.SIGINT)
        start = time.monotonic()
        output, errors = process.communicate(timeout=300)  # the result is still to be compiled
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if twice:
        assert "KeyboardInterrupt" in errors and time.monotonic() - start < 120
    else:
        assert output.startswith("interrupted "), errors
        assert int(output.split()[1]) >= 4
    assert standing(ledger).status in ("interrupted", "stopped")


@pytest.mark.parametrize("workers", [0, 2])
def test_a_ctrl_c_that_python_loses_is_heard(workers: int) -> None:
    """A Ctrl-C that falls into a callback of the garbage collector is dropped by Python."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    lost: list[Any] = []

    def collecting(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and not lost:
            lost.append(info)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0)  # here Python raises, and drops what it raised

    def stop(session: Session) -> bool:
        if session.n_evaluations == 8:
            gc.callbacks.append(collecting)
            gc.collect()
        return False

    hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: lost.append(unraisable.exc_type)
    try:
        with ThreadPoolExecutor(workers or 1) as threads:
            executor = threads if workers else None
            result = run([Model("a", bell(0.0, 0.5), {"x": N()})], budget=40, stop=stop, executor=executor)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        sys.unraisablehook = hook
        gc.callbacks.remove(collecting)
        signal.signal(signal.SIGINT, before)
    assert KeyboardInterrupt in lost
    assert result.status == "interrupted"
    assert 8 <= len(result.evaluations) < 12


def test_the_users_own_ctrl_c_is_left_alone() -> None:
    pressed: list[int] = []

    def press(session: Session) -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return False

    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        result = run([Model("a", bell(0.0, 0.5), {"x": N()})], budget=12, stop=press)
    finally:
        signal.signal(signal.SIGINT, before)
    assert pressed and result.status == "budget"
