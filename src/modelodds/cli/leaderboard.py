"""``modelodds leaderboard``: all problems, all methods, many seeds."""

from pathlib import Path
from typing import Annotated

import typer

from modelodds.cli.bench import as_markdown, show, span
from modelodds.cli.ending import plain_errors, refuse


def leaderboard(
    problem: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only these; may be repeated.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="May be repeated; ours by default.")
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="N", help="How many, or FIRST:AFTER_LAST.")] = "20",
    jobs: Annotated[int, typer.Option(metavar="N", help="Processes; 0: this one.")] = 2,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where runs are kept; those in it are skipped.")
    ] = None,
    table_only: Annotated[bool, typer.Option("--table", help="Only tables of what is there.")] = False,
    figures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Draw figures into this folder.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Tables as markdown.")] = False,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page of docs, its figures beside it.")
    ] = None,
) -> None:
    """Run methods on every problem and print who needs how many evaluations, and whose claims hold.

    needed: median of the evaluations, of all models together, after which the log-odds of the two best models
    stay within 0.1 nats of the truth; worst at twice: the largest error of any run after twice as many.
    """
    with plain_errors():
        import pandas as pd
        from rich.progress import track

        from modelodds.experiments import leaderboard as board
        from modelodds.experiments.bench import check_method
        from modelodds.experiments.sweep import read, sweep

        path, methods = out or board.OUT, method or ["default"]
        for name in methods:
            check_method(name)
        if table_only and not path.exists():
            refuse(f"There are no runs in {path} yet; leave --table out to make them.")
        if not table_only:
            todo = board.tasks(problem or board.SUITE, methods, range(*span(seeds)))
            list(track(sweep(todo, board.work, path, jobs), total=len(todo), description="running"))
        rows = read(path)
        rows = rows[rows.problem.isin(problem or board.SUITE)]
        rows = rows[rows.method.isin(methods)] if method else rows
        order = pd.Categorical(rows.problem, board.SUITE, ordered=True)
        rows = rows.assign(rank=order).sort_values(["rank", "method"], kind="stable")
        standings = board.standings(rows)
        for table in (standings, board.calibration(rows)):
            print(as_markdown(table)) if markdown else show(table)
        if figures is not None:
            from modelodds.experiments.leaderboard_plots import save

            for written in save(rows, standings, figures):
                print(written)
        if page is not None:
            from modelodds.experiments.leaderboard_page import write

            for written in write(rows, page):
                print(written)
