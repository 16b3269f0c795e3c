"""Shows how a comparison goes: a live table on a terminal, plain lines now and then in a log."""

import time
from types import TracebackType

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from modelodds.session import Belief, Session

LINES = 10  # plain lines in a log, spread over the budget


class Progress:
    """Context manager around a run; ``update()`` after each evaluation."""

    def __init__(self, session: Session, budget: int, show: bool, console: Console | None = None) -> None:
        self.session, self.budget = session, budget
        self._console = (console or Console(stderr=True)) if show else None
        self._live: Live | None = None
        self._start = time.perf_counter()
        self._lines = 0

    def __enter__(self) -> "Progress":
        if self._console is not None and self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=8, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self) -> None:
        """Show where the session stands."""
        if self._live is not None:
            self._live.update(self._view())
        elif self._console is not None:
            self._line()

    def _belief(self) -> Belief | None:
        return None if self.session.in_design else self.session.belief()

    def _line(self) -> None:
        done = self.session.n_evaluations
        if done * LINES < (self._lines + 1) * self.budget:
            return
        self._lines = done * LINES // self.budget
        belief = self._belief()
        shares = "initial design" if belief is None else ", ".join(
            f"{m.name} {p:.3f} ± {sd:.3f}"
            for m, p, sd in zip(self.session.models, belief.probabilities, belief.probability_sd, strict=True)
        )
        assert self._console is not None
        self._console.print(f"modelodds: {done}/{self.budget} evaluations: {shares}", highlight=False, soft_wrap=True)

    def _view(self) -> RenderableType:
        belief, counts = self._belief(), self.session.counts()
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
        for title in ("model", "probability", "log-evidence", "log-odds against the best", "evaluations"):
            table.add_column(title, justify="left" if title == "model" else "right")
        for i, model in enumerate(self.session.models):
            cells = ["…", "…", "…"] if belief is None else self._cells(belief, i)
            table.add_row(model.name, *cells, str(counts[model.name]))
        return Group(table, self._footer())

    def _cells(self, belief: Belief, i: int) -> list[str]:
        best = int(np.argmax(belief.probabilities))
        prior = np.log([m.prior_probability for m in self.session.models])
        gap = belief.mean[i] + prior[i] - belief.mean[best] - prior[best]
        gap_sd = np.hypot(belief.sd[i], belief.sd[best])
        return [
            f"{belief.probabilities[i]:.3f} ± {belief.probability_sd[i]:.3f}",
            f"{belief.mean[i]:.2f} ± {belief.sd[i]:.2f}",
            "best" if i == best else f"{gap:.2f} ± {gap_sd:.2f}",
        ]

    def _footer(self) -> RenderableType:
        done = self.session.n_evaluations
        elapsed = time.perf_counter() - self._start
        failures = f", {self.session.n_failures} failed" if self.session.n_failures else ""
        line = Table.grid(padding=(0, 2))
        line.add_row(
            ProgressBar(total=self.budget, completed=done, width=40),
            Text(f"{done}/{self.budget} evaluations{failures}"),
            Text(f"{elapsed:.0f} s, of which ours {1000 * self.session.overhead_seconds / max(done, 1):.0f} ms each", "dim"),
        )
        return line
