"""How a sweep gets on: runs done, and the time left, by what runs of the same kind have taken.

Runs of one sweep differ in cost by a hundred times, so their mere number says little. A kind, such as a
method in some dimension, is expected to take what it has taken on average; one not seen yet, the average of
all. A bar on a terminal, a plain line now and then in a log.
"""

import time
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

LINES = 20  # plain lines in a log
Row = dict[str, Any]


class Pace:
    """Expected time left of runs of several kinds, ``workers`` of them at a time."""

    def __init__(self, kinds: Iterable[Hashable], workers: int = 1) -> None:
        self.workers = max(1, workers)
        self.left: dict[Hashable, int] = defaultdict(int)
        self.seconds: dict[Hashable, list[float]] = defaultdict(list)
        for kind in kinds:
            self.left[kind] += 1

    def done(self, kind: Hashable, seconds: float) -> None:
        """Note that a run of this kind is done, and what it took; NaN where that is not known."""
        self.left[kind] -= 1
        if seconds == seconds:
            self.seconds[kind].append(seconds)

    def time_left(self) -> float | None:
        """Seconds until all are done; None before any is."""
        seen = [s for seconds in self.seconds.values() for s in seconds]
        if not seen:
            return None
        typical = sum(seen) / len(seen)
        each = {kind: sum(s) / len(s) for kind, s in self.seconds.items() if s}
        total = sum(n * each.get(kind, typical) for kind, n in self.left.items())
        return total / min(self.workers, max(1, sum(self.left.values())))


def in_words(seconds: float | None) -> str:
    """A duration, as a person would say it."""
    if seconds is None:
        return "time left not known yet"
    if seconds < 60:
        return f"{seconds:.0f} s left"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min left" if hours else f"{minutes} min left"


def watched(
    runs: Iterable[Sequence[Row]],
    tasks: Sequence[Any],
    by: tuple[str, ...],
    workers: int = 1,
    console: Console | None = None,
) -> Iterator[Sequence[Row]]:
    """The rows of ``runs`` as they come, shown to whoever waits for them.

    Parameters
    ----------
    runs : iterable of rows
        What `sweep` gives, a task at a time, with their ``seconds``.
    tasks : sequence of named tuples
        All tasks of the sweep.
    by : tuple of str
        Fields of a task that say what kind it is.
    workers : int
        How many runs are under way at a time.
    console : Console, optional
        Where to show it; standard error by default.
    """
    console = console or Console(stderr=True)
    pace = Pace([tuple(getattr(task, field) for field in by) for task in tasks], workers)
    columns = TextColumn("running"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}")
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        shown, lines = bar.add_task("", total=len(tasks), left=in_words(None)), Lines(console, len(tasks))
        for number, rows in enumerate(runs, start=1):
            pace.done(tuple(rows[0][field] for field in by), rows[0].get("seconds", float("nan")))
            left = in_words(pace.time_left())
            bar.update(shown, completed=number, left=left)
            lines.show(number, left)
            yield rows


class Lines:
    """Plain lines now and then, where there is no terminal to show a bar on."""

    def __init__(self, console: Console, total: int) -> None:
        self.console, self.total, self.printed = console, total, 0
        self.start = time.perf_counter()

    def show(self, number: int, left: str) -> None:
        """Print where the sweep is, if it has come far enough since the last line."""
        part = number * LINES // self.total
        waited = time.perf_counter() - self.start > 1.0  # what a file had already is no news
        if not self.console.is_terminal and waited and part > self.printed:
            self.printed = part
            self.console.print(f"modelodds: {number}/{self.total} runs, {left}", highlight=False)
