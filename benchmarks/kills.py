"""Kill a running comparison again and again: ``python benchmarks/kills.py [--kills 200]``.

A comparison runs in a process of its own and is killed with SIGKILL: at any moment of its start, or when it
has made a few evaluations more, in the middle of what it is at. After each kill the ledger must pass its
check, hold all that it held before, and nothing that it holds may be evaluated again. When a comparison has
come to its end it must equal, bit for bit, one that nobody killed; the next one then begins.

Processes are forked from one that has imported everything and computed nothing, which saves their start.
JAX's persistent cache, if JAX_COMPILATION_CACHE_DIR is set, saves most of the compiling.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from modelodds import Model, Result, compare
from modelodds.journal import Entry, inspect_or_new
from modelodds.stopping import Never

BUDGET = 30
SLEEP = 0.01  # seconds of an evaluation


def models(calls: Path | None) -> list[Model]:
    """Two Gaussians that note on the disk where they are evaluated, and that they have been."""

    def model(name: str, y: float, width: float) -> Model:
        def log_likelihood(theta: Any) -> float:
            note(calls, "called", name, theta)
            time.sleep(SLEEP)
            value = float(stats.norm.logpdf(theta[0], y, width))
            note(calls, "returned", name, theta)
            return value

        return Model(name, log_likelihood, {"x": stats.norm()})

    return [model("a", 0.3, 0.5), model("b", -1.0, 0.7)]


def note(calls: Path | None, *what: Any) -> None:
    if calls is not None:
        with calls.open("a") as file:
            file.write(json.dumps([str(w) if not hasattr(w, "tolist") else w.tolist() for w in what]) + "\n")


def child(work: Callable[[], None]) -> int:
    """The number of a process that does ``work``."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def run(seed: int, ledger: Path | None, calls: Path | None, out: Path) -> None:
    compare(models(calls), budget=BUDGET, rng=seed, stop=Never(), ledger=ledger, progress=False).to_json(out)


def n_lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


def wait_for_moment(pid: int, calls: Path, rng: np.random.Generator) -> int | None:
    """Wait until it is time to kill; the exit status if the process has ended by itself."""
    begun, early = time.monotonic(), rng.random() < 0.4
    until = begun + rng.uniform(0, 4.0)
    lines, more = n_lines(calls), 2 * int(rng.integers(1, 9))
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if (early and time.monotonic() > until) or n_lines(calls) >= lines + more:
            time.sleep(rng.uniform(0, 3 * SLEEP))
            return None
        time.sleep(0.002)


def points(entries: list[Entry], kind: str) -> Counter[tuple[str, float]]:
    """How often each point was asked for, or came back: a session may ask for one again."""
    asked = {e.query: (str(e.model), json.loads(str(e.theta))["x"]) for e in entries if e.kind == "ask"}
    return Counter(asked[e.query] for e in entries if e.kind == kind)


def read_calls(calls: Path, kind: str) -> list[tuple[str, float]]:
    if not calls.exists():
        return []
    rows = [json.loads(line) for line in calls.read_text().splitlines() if line.endswith("]")]
    return [(name, theta[0]) for what, name, theta in rows if what == kind]


class Tally:
    """What was seen."""

    def __init__(self) -> None:
        self.kills = self.finished = self.returned_unrecorded = self.interrupted = 0
        self.lost = self.twice = self.unsound = self.unequal = self.broken = 0

    @property
    def bad(self) -> int:
        return self.lost + self.twice + self.unsound + self.unequal + self.broken


def one_run(seed: int, folder: Path, tally: Tally, kills: int, rng: np.random.Generator) -> None:
    """Kill a run until it has come to its end, or enough were killed."""
    ledger, calls, out = folder / "run.db", folder / "calls", folder / "result.json"
    before: list[Entry] = []
    while True:
        known, called = points(before, "outcome"), len(read_calls(calls, "called"))
        pid = child(lambda: run(seed, ledger, calls, out))
        code = wait_for_moment(pid, calls, rng)
        if code is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            tally.kills += 1
        tally.broken += code not in (None, 0)
        contents = inspect_or_new(ledger)
        tally.unsound += contents.damage is not None
        tally.lost += contents.entries[: len(before)] != before
        due = points(contents.entries, "ask") - known
        tally.twice += (Counter(read_calls(calls, "called")[called:]) - due).total()
        before = contents.entries
        if code is not None or tally.kills >= kills:
            break
    returned, recorded = Counter(read_calls(calls, "returned")), points(before, "outcome")
    tally.lost += code == 0 and recorded.total() < BUDGET
    tally.returned_unrecorded += (returned - recorded).total()
    tally.interrupted += len(read_calls(calls, "called")) - returned.total()
    if code == 0:
        tally.finished += 1
        plain = folder / "plain.json"
        os.waitpid(child(lambda: run(seed, None, None, plain)), 0)
        tally.unequal += not same(Result.from_json(out), Result.from_json(plain))


def same(a: Result, b: Result) -> bool:
    tables = [r.evaluations.drop(columns="seconds") for r in (a, b)]
    draws = all(np.array_equal(a.draws[n], b.draws[n]) for n in a.names)
    return (
        tables[0].equals(tables[1])
        and a.history.equals(b.history)
        and a.log_evidence == b.log_evidence
        and draws
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=np.inf, help="begin no run after so long")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", message="os.fork")  # nothing was computed here, so no thread is lost
    rng, tally, start = np.random.default_rng(arguments.seed), Tally(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        seed = 0
        end = start + 60 * arguments.minutes
        while tally.kills < arguments.kills and not tally.bad and time.monotonic() < end:
            place = Path(folder) / str(seed)
            place.mkdir()
            one_run(seed, place, tally, arguments.kills, rng)
            print(f"{tally.kills} kills, {tally.finished} runs finished", file=sys.stderr, flush=True)
            seed += 1
    print(
        f"{tally.kills} kills in {time.monotonic() - start:.0f} s, {tally.finished} runs of {BUDGET} finished"
    )
    print(f"ledgers that failed their check: {tally.unsound}")
    print(f"rows of a ledger lost: {tally.lost}")
    print(f"evaluations on record made again: {tally.twice}")
    print(f"finished runs that differ from an uninterrupted one: {tally.unequal}")
    print(f"runs that ended with an error: {tally.broken}")
    print(f"evaluations cut short by a kill, and made again: {tally.interrupted}")
    print(
        f"evaluations that returned, but were killed before they were on record: {tally.returned_unrecorded}"
    )
    sys.exit(bool(tally.bad))


if __name__ == "__main__":
    main()
