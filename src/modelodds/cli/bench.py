"""``modelodds bench``: any method on any problem."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modelodds.cli.ending import plain_errors, refuse

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console


def bench(
    problem: Annotated[
        list[str], typer.Option(metavar="NAME", help="As `modelodds problems` lists them; may be repeated.")
    ],
    method: Annotated[
        list[str], typer.Option(metavar="NAME", help="As `modelodds problems` lists them; may be repeated.")
    ],
    budget: Annotated[
        list[int], typer.Option(metavar="N", help="Likelihood calls of all models; may be repeated.")
    ],
    seeds: Annotated[str, typer.Option(metavar="N", help="How many, or FIRST:AFTER_LAST.")] = "10",
    data: Annotated[
        int | None,
        typer.Option(
            metavar="SEED", help="Hold the problem's data at this seed; else they change with the seed."
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(metavar="N", help="Processes.")] = 1,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep every run here (CSV); runs in it are skipped.")
    ] = None,
) -> None:
    """Run methods on problems with known answers and print how far off they are.

    Columns: median, mean and worst error of the log-odds of the two best models, in nats; the method's own
    median claim (sd) and how often the truth was within one and two of them; the mean error of the model
    probabilities; seconds of overhead per evaluation.
    """
    with plain_errors():
        from rich.progress import track

        from modelodds.experiments.bench import Task, check_method, run_all, table
        from modelodds.problems import find

        for name in method:
            check_method(name)
        first, after = span(seeds)
        fixed = {p: data if data is not None else None if find(p)[0].seeded else 0 for p in problem}
        tasks = [
            Task(p, s if fixed[p] is None else int(fixed[p] or 0), m, b, s)
            for p in problem
            for m in method
            for b in budget
            for s in range(first, after)
        ]
        rows = list(track(run_all(tasks, out, jobs), total=len(tasks), description="running"))
        show(table(rows))


KEYS = ("problem", "method", "setting", "budget", "share", "d", "spectrum")


def show(frame: "pd.DataFrame") -> None:
    """Print a table; where the terminal is too narrow for it, in parts that each repeat what a row is of."""
    from rich.console import Console

    console = Console(width=None if Console().is_terminal else 140)
    _show(frame, console)


def _show(frame: "pd.DataFrame", console: "Console") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.measure import Measurement
    from rich.table import Table

    shown = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in frame.columns:
        label = name in ("problem", "method", "setting", "spectrum", "verdict", "origin")
        shown.add_column(name, justify="left" if label else "right", no_wrap=True)
    for row in frame.itertuples(index=False):
        shown.add_row(*(_cell(name, value) for name, value in zip(frame.columns, row, strict=True)))
    unlimited = console.options.update(max_width=10_000)
    values = [name for name in frame.columns if name not in KEYS]
    if Measurement.get(console, unlimited, shown).maximum <= console.width or len(values) < 2:
        console.print(shown)
        return
    keys, half = [name for name in frame.columns if name in KEYS], (len(values) + 1) // 2
    for part in (values[:half], values[half:]):
        _show(frame[keys + part], console)


def as_markdown(frame: "pd.DataFrame") -> str:
    """The table for a page of the docs."""
    lines = ["| " + " | ".join(frame.columns) + " |", "|" + "---|" * len(frame.columns)]
    for row in frame.itertuples(index=False):
        cells = (_cell(name, value) for name, value in zip(frame.columns, row, strict=True))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(name: str, value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    if name.startswith("in "):
        return f"{100 * value:.0f} %"
    return f"{1000 * value:.2g} ms" if name == "overhead" else f"{value:.3g}"


def span(seeds: str) -> tuple[int, int]:
    """First and after-last of ``10`` or ``5:15``."""
    first, colon, after = seeds.partition(":")
    if not first.isdigit() or (colon and not after.isdigit()):
        refuse(f"--seeds {seeds} is neither a number nor FIRST:AFTER_LAST, such as 10 or 0:10.")
    return (int(first), int(after)) if colon else (0, int(first))
