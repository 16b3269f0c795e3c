"""``modelodds reproduce``: the paper's experiments."""

from pathlib import Path
from typing import Annotated

import typer

from modelodds.cli.bench import show, span
from modelodds.cli.ending import plain_errors, refuse

app = typer.Typer(no_args_is_help=True, help="The experiments of Chai et al. (2019), and their statistics.")


@app.command()
def synthetic(
    dimension: Annotated[list[int] | None, typer.Option(help="1 to 5; may be repeated.")] = None,
    datasets: Annotated[str, typer.Option(help="How many, or FIRST:AFTER_LAST.")] = "100",
    method: Annotated[list[str] | None, typer.Option(help="May be repeated; the paper's by default.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 2,
    out: Annotated[Path | None, typer.Option(help="Where runs are kept; those in it are skipped.")] = None,
    table_only: Annotated[bool, typer.Option("--table", help="Only the table of what is there.")] = False,
) -> None:
    """Section 6.1: two covariances of a Gaussian process, 50 d evaluations, 100 datasets per dimension.

    Errors are fractions of the true z_1 at the full budget; p-values are of one-sided paired tests that our
    default's, and the paper preset's, errors are the smaller ones.
    """
    with plain_errors():
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        from modelodds.experiments import synthetic as experiment
        from modelodds.experiments.bench import check_method
        from modelodds.experiments.sweep import read, sweep

        path, methods = out or experiment.OUT, method or list(experiment.METHOD_NAMES)
        for name in methods:
            check_method(name)
        if table_only and not path.exists():
            refuse(f"There are no runs in {path} yet; leave --table out to make them.")
        if not table_only:
            todo = experiment.tasks(dimension or range(1, 6), range(*span(datasets)), methods)
            columns = TextColumn("running"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
            with Progress(*columns) as bar:
                for _ in bar.track(sweep(todo, experiment.work, path, jobs), total=len(todo)):
                    pass
        rows = read(path)
        rows = rows[rows.d.isin(dimension or range(1, 6)) & rows.method.isin(method or rows.method)]
        show(experiment.summary(rows))
