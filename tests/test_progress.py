"""What a run shows: live on a terminal, plain lines in a log, nothing when told so."""

import io
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from modelodds import odds
from modelodds.belief import Belief
from modelodds.progress import Progress, take_snapshot

NAMES = ["probit", "a model [b]of[/b] the longest name one can think of"]


def fake_session(done: int = 45, known: bool = True, sd: float = 0.1) -> Any:
    """A session's public face, without running one; ``sd`` is that of the log-evidences."""
    mean, sds = np.array([-1234.5, -1235.5]), np.full(2, sd)
    z, cov = odds.moments(mean, sds, np.zeros(2))
    return SimpleNamespace(
        models=[SimpleNamespace(name=name, prior_probability=1.0) for name in NAMES],
        n_evaluations=done,
        n_failures=2,
        counts=lambda: dict.fromkeys(NAMES, done // 2),
        overhead_seconds=4.5,
        in_design=not known,
        standing=Belief(mean, sds, z, np.sqrt(np.diag(cov))) if known else None,
    )


def console(width: int, terminal: bool) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_of_the_live_view_wraps(width: int, known: bool) -> None:
    screen = console(width, terminal=True)
    view = Progress(fake_session(known=known), 150, True, screen)
    view._start -= 1234.5
    view._snapshot = take_snapshot(view.session, 1234.5)
    screen.print(view.render())
    lines = screen.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(lines) == 6  # titles, two models, a gap, the bar, the clock
    assert max(map(len, lines)) <= width
    assert lines[1].startswith("probit") and "45/150 evaluations, 2 failed" in lines[4]


@pytest.mark.parametrize("width", [60, 80])
def test_a_precise_answer_fits_as_well_and_is_not_called_exact(width: int) -> None:
    screen = console(width, terminal=True)
    screen.print(Progress(fake_session(sd=1e-6), 150, True, screen).render())
    title, row, *_ = screen.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert title.rstrip().endswith("evaluations") and row.rstrip().endswith("22")
    assert "0.731 ± <0.001" in row


def test_names_are_not_read_as_markup() -> None:
    screen = console(150, terminal=True)
    screen.print(Progress(fake_session(), 150, True, screen).render())
    assert NAMES[1] in screen.file.getvalue()  # type: ignore[attr-defined]


def test_a_log_gets_plain_lines_now_and_then() -> None:
    log = console(80, terminal=False)
    session = fake_session(done=0)
    with Progress(session, 100, True, log) as view:
        for session.n_evaluations in range(1, 101):
            view.update()
    lines = log.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(lines) == 10 and all("\x1b" not in line for line in lines)
    assert lines[0].startswith("modelodds: 10/100 evaluations, 2 failed: probit 0.7") and NAMES[1] in lines[0]


def test_silence() -> None:
    log = console(80, terminal=True)
    with Progress(fake_session(), 100, False, log) as view:
        view.update()
    assert log.file.getvalue() == ""  # type: ignore[attr-defined]
