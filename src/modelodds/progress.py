"""Shows how a comparison goes: a live table on a terminal, plain lines now and then in a log.

The view only looks: it shows the belief that the session last formed for itself and never asks it to
form one. Forming a belief refits surrogates, so a view that asked would change the run it shows.
"""

import time
from dataclasses import dataclass
from types import TracebackType

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from modelodds.belief import Belief
from modelodds.session import Session

LINES = 10  # plain lines in a log, spread over the budget
LOST = 100.0  # nats: a log-evidence less certain than this is not worth a number
LEAST = 0.0005  # uncertainty of a probability that three decimals would show as none
BAR = 40  # characters
NARROW = 76  # columns of a terminal below which the log-evidences are left out


@dataclass(frozen=True)
class Snapshot:
    """A session after an evaluation."""

    done: int
    failures: int
    counts: dict[str, int]
    elapsed: float  # seconds since the start, when this was so
    overhead_seconds: float
    in_design: bool
    belief: Belief | None  # None before there is one


class Progress:
    """Context manager around a run; ``update()`` after each evaluation."""

    def __init__(self, session: Session, budget: int, show: bool, console: Console | None = None) -> None:
        self.session, self.budget = session, budget
        self._console = (console or Console(stderr=True)) if show else None
        self._live: Live | None = None
        self._start = time.perf_counter()
        self._lines = 0
        self._snapshot = take_snapshot(session, 0.0)

    def __enter__(self) -> "Progress":
        if self._console is not None and self._console.is_terminal:
            self._live = Live(
                console=self._console, refresh_per_second=4, transient=True, get_renderable=self.render
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self) -> None:
        """Show where the session stands."""
        if self._console is None:
            return
        self._snapshot = take_snapshot(self.session, time.perf_counter() - self._start)
        if self._live is None:
            self._line()

    # ------------------------------------------------------------------ a log

    def _line(self) -> None:
        done = self._snapshot.done
        if done * LINES < (self._lines + 1) * self.budget:
            return
        self._lines = done * LINES // self.budget
        failed = f", {self._snapshot.failures} failed" if self._snapshot.failures else ""
        assert self._console is not None
        self._console.print(
            f"modelodds: {done}/{self.budget} evaluations{failed}: {self._shares()}",
            highlight=False,
            soft_wrap=True,
            markup=False,
            emoji=False,
        )

    def _shares(self) -> str:
        belief = self._snapshot.belief
        if belief is None:
            return "initial points"
        shares = zip(self.session.models, belief.probabilities, belief.probability_sd, strict=True)
        return ", ".join(f"{m.name} {_share(p, sd)}" for m, p, sd in shares)

    # ------------------------------------------------------------------ a terminal

    def render(self) -> RenderableType:
        """The live view, never wrapped: narrow terminals cut names, then leave the log-evidences out."""
        titles = ["probability", "log-evidence", "log-odds to best", "evaluations"]
        narrow = self._console is not None and self._console.width < NARROW
        shown = [i for i, title in enumerate(titles) if not (narrow and title == "log-evidence")]
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("model", min_width=8)
        for j in shown:
            table.add_column(titles[j], justify="right", no_wrap=True)
        for i, model in enumerate(self.session.models):
            cells = [*self._cells(i), str(self._snapshot.counts[model.name])]
            name = Text(model.name, no_wrap=True, overflow="ellipsis")
            table.add_row(name, *(cells[j] for j in shown))
        return Group(
            table, Text(), self._bar(), Text(self._clock(), "dim", no_wrap=True, overflow="ellipsis")
        )

    def _cells(self, i: int) -> list[str]:
        belief = self._snapshot.belief
        if belief is None:
            return ["…"] * 3
        best = int(np.argmax(belief.probabilities))
        prior = np.log([m.prior_probability for m in self.session.models])
        gap = belief.mean[i] + prior[i] - belief.mean[best] - prior[best]
        return [
            _share(belief.probabilities[i], belief.probability_sd[i]),
            _nats(belief.mean[i], belief.sd[i]),
            "best" if i == best else _nats(gap, belief.log_odds_sd(i, best)),
        ]

    def _bar(self) -> RenderableType:
        done, failures = self._snapshot.done, self._snapshot.failures
        failed = f", {failures} failed" if failures else ""
        line = Table.grid(padding=(0, 2))
        line.add_row(
            ProgressBar(total=self.budget, completed=done, width=BAR),
            Text(f"{done}/{self.budget} evaluations{failed}", no_wrap=True),
        )
        return line

    def _clock(self) -> str:
        elapsed = time.perf_counter() - self._start
        if self._snapshot.belief is None:
            stage = "initial points" if self._snapshot.in_design else "compiling, once per run"
            return f"{elapsed:.0f} s: {stage}"
        # Both as of the last evaluation: what is under way now belongs to neither yet.
        shot = self._snapshot
        own = min(shot.overhead_seconds, shot.elapsed)
        each = [f"{seconds / max(shot.done, 1):.2g} s" for seconds in (shot.elapsed - own, own)]
        return f"{elapsed:.0f} s; an evaluation takes {each[0]} in the model, {each[1]} in modelodds"


def take_snapshot(session: Session, elapsed: float) -> Snapshot:
    """Copy what the view shows, so that its own thread never reads a session at work."""
    return Snapshot(
        session.n_evaluations,
        session.n_failures,
        session.counts(),
        elapsed,
        session.overhead_seconds,
        session.in_design,
        session.standing,
    )


def _share(p: float, sd: float) -> str:
    """A probability in a width that never grows: the table must fit the terminal at any precision."""
    return f"{p:.3f} ± {sd:.3f}" if sd >= LEAST else f"{p:.3f} ± <{2 * LEAST:.3f}"


def _nats(mean: float, sd: float) -> str:
    return "unknown" if sd > LOST else f"{mean:.2f} ± {sd:.2f}"
