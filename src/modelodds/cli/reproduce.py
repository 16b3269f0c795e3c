"""``modelodds reproduce``: the paper's experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from modelodds.cli.bench import show, span
from modelodds.cli.ending import plain_errors, refuse

if TYPE_CHECKING:
    import pandas as pd

    from modelodds.experiments.cluster import Cluster

app = typer.Typer(no_args_is_help=True, help="The experiments of Chai et al. (2019), and their statistics.")

Datasets = Annotated[str, typer.Option(metavar="N", help="How many, or FIRST:AFTER_LAST.")]
Method = Annotated[list[str] | None, typer.Option(metavar="NAME", help="May be repeated; all by default.")]
Jobs = Annotated[int, typer.Option(metavar="N", help="Processes; 0: this one.")]
Dask = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Address of a Dask scheduler to run on instead.")
]
Together = Annotated[
    int,
    typer.Option(help="Runs under way at once in each process, batched for a GPU; 0: one after the other."),
]
Out = Annotated[
    Path | None, typer.Option(metavar="PATH", help="Where runs are kept; those in it are skipped.")
]
Redo = Annotated[bool, typer.Option("--redo", help="Run again what other code has made.")]
TableOnly = Annotated[bool, typer.Option("--table", help="Only tables and figures of what is there.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print the tables as Markdown.")]


@app.command()
def motivation(
    out: Annotated[Path | None, typer.Option(help="Folder for the figure.")] = None,
    method: Annotated[str, typer.Option(help="default or paper.")] = "default",
) -> None:
    """Section 4: two evidences uncertain, their odds certain."""
    with plain_errors():
        from modelodds.experiments import motivation as experiment
        from modelodds.experiments.figures import save
        from modelodds.plots import evidences_figure

        folder, result = out or experiment.OUT, experiment.run(method)
        written = save(evidences_figure(result), folder / "evidences")
        (folder / "evidences.txt").write_text(experiment.in_words(result) + "\n", encoding="utf-8")
        typer.echo(experiment.in_words(result))
        _written(written)


@app.command()
def synthetic(
    dimension: Annotated[list[int] | None, typer.Option(metavar="D", help="1 to 5; may be repeated.")] = None,
    datasets: Datasets = "100",
    method: Method = None,
    jobs: Jobs = 2,
    dask: Dask = None,
    together: Together = 0,
    out: Out = None,
    redo: Redo = False,
    table_only: TableOnly = False,
    markdown: Markdown = False,
) -> None:
    """Section 6.1: two covariances of a Gaussian process, 50 d evaluations, 100 datasets per dimension.

    Errors are fractions of the true z_1 at the full budget; p-values are of one-sided paired tests that our
    default's, and the paper preset's, errors are the smaller ones. Then: how many evaluations round-robin
    needs for the error that our default ends with, and the seconds of a run. The method round_robin_long
    gives round-robin four times the budget for that.
    """
    with plain_errors():
        from modelodds.experiments import synthetic as experiment
        from modelodds.experiments.figures import errors_figure, save

        path, methods = out or experiment.OUT, method or list(experiment.METHOD_NAMES)
        for name in methods:
            experiment.check_method(name)
        todo = experiment.tasks(dimension or range(1, 6), range(*span(datasets)), methods)
        _run(todo, experiment.work, path, Workers(jobs, dask, together), redo, table_only)
        rows = _rows(path, dimension or range(1, 6), method)
        tables = experiment.summary(rows), experiment.speed_up(rows), experiment.costs(rows)
        _show(tables, markdown)
        drawn = [name for name in dict.fromkeys(rows.method) if name not in experiment.LONG]
        _written(save(errors_figure(rows, drawn), path.with_name("errors")))


@app.command()
def model_choice(
    dimension: Annotated[list[int] | None, typer.Option(help="1 and 2 by default; may be repeated.")] = None,
    datasets: Datasets = "100",
    method: Method = None,
    jobs: Jobs = 2,
    dask: Dask = None,
    together: Together = 0,
    out: Out = None,
    redo: Redo = False,
    table_only: TableOnly = False,
    markdown: Markdown = False,
) -> None:
    """Section 6.3: targets that ask only which model is the better.

    Share of datasets whose truly better model is the favourite after two fifths of the budget and at its end,
    with exact 95 % intervals and McNemar's test against our default; fractional errors of z_1 at the end; and
    in how many runs a target chose exactly the points of another. Runs that the synthetic experiment has
    already made, by the same code, are taken from there.
    """
    with plain_errors():
        from modelodds.experiments import model_choice as experiment
        from modelodds.experiments import synthetic as other
        from modelodds.experiments.figures import choices_figure, errors_figure, save

        path, methods = out or experiment.OUT, method or list(experiment.METHOD_NAMES)
        dimensions = dimension or experiment.DIMENSIONS
        for name in methods:
            experiment.check_method(name)
        todo = other.tasks(dimensions, range(*span(datasets)), methods)
        if not table_only:
            _borrow(todo, path, redo)
        _run(todo, experiment.work, path, Workers(jobs, dask, together), redo, table_only)
        rows = _rows(path, dimensions, method)
        tables = experiment.choices(rows), experiment.z_errors(rows), experiment.agreement(rows)
        _show(tables, markdown)
        drawn = ["default", *experiment.PAPER, *experiment.MONTE_CARLO]
        written = save(errors_figure(rows, drawn), path.with_name("errors"))
        _written([*written, *save(choices_figure(rows), path.with_name("right"))])


@app.command()
def parts(
    dimension: Annotated[list[int] | None, typer.Option(help="3 by default; may be repeated.")] = None,
    datasets: Annotated[str | None, typer.Option(metavar="N", help="How many, or FIRST:AFTER_LAST.")] = None,
    method: Method = None,
    jobs: Jobs = 2,
    dask: Dask = None,
    together: Together = 0,
    out: Out = None,
    redo: Redo = False,
    table_only: TableOnly = False,
    markdown: Markdown = False,
) -> None:
    """What in the paper's method fails on the synthetic task: its preset with one choice made as ours is.

    Errors are fractions of the true z_1 at the full budget; p-values are of one-sided paired tests that they
    are smaller than the preset's. Runs that the synthetic experiment has already made, by the same code, are
    taken from there.
    """
    with plain_errors():
        from modelodds.experiments import parts as experiment
        from modelodds.experiments.synthetic import tasks

        path, methods = out or experiment.OUT, method or list(experiment.METHOD_NAMES)
        dimensions = dimension or experiment.DIMENSIONS
        for name in methods:
            experiment.check_method(name)
        todo = tasks(dimensions, range(*span(datasets or str(experiment.DATASETS))), methods)
        if not table_only:
            _borrow(todo, path, redo)
        _run(todo, experiment.work, path, Workers(jobs, dask, together), redo, table_only)
        _show([experiment.summary(_rows(path, dimensions, method))], markdown)


@app.command()
def page(
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/paper.md"),
    results: Annotated[Path, typer.Option(help="Folder with the experiments' results.")] = Path("results"),
) -> None:
    """Write the page of docs that holds the paper's claims against what the experiments found."""
    with plain_errors():
        from modelodds.experiments.page import write

        _written(write(out, results))


# ---------------------------------------------------------------------- what the commands share


class Workers(NamedTuple):
    """Who does the work: processes of this machine, a Dask cluster, or a fleet that shares an accelerator."""

    jobs: int
    dask: str | None
    together: int

    @contextmanager
    def cluster(self) -> Iterator[Cluster]:
        """Where to send tasks, for as long as it takes."""
        from modelodds.experiments.cluster import Cluster, dask_cluster

        if self.dask:
            with dask_cluster(self.dask) as cluster:
                yield cluster
        elif self.together:
            from modelodds.experiments.fleet import Fleet

            processes = max(1, self.jobs)
            with Fleet(processes, self.together) as executor:
                yield Cluster(executor, processes * self.together)
        else:
            yield Cluster(None, self.jobs)


def _run(
    tasks: Sequence[Any],
    work: Callable[[Any], Any],
    path: Path,
    workers: Workers,
    redo: bool,
    table_only: bool,
) -> None:
    """Do what is missing, and say what in the file is of other code."""
    from modelodds.experiments.pace import watched
    from modelodds.experiments.provenance import code_version, others
    from modelodds.experiments.sweep import read, sweep

    if table_only and not path.exists():
        refuse(f"There are no runs in {path} yet; leave --table out to make them.")
    if not table_only and tasks:
        if workers.together:  # runs of one kind are alike enough to be batched
            tasks = sorted(tasks, key=lambda task: (task.d, task.method))
        with workers.cluster() as (executor, n):
            runs = sweep(tasks, work, path, workers.jobs, executor, redo)
            for _ in watched(runs, tasks, ("d", "method"), n):
                pass
    mixed = others(read(path), list(tasks[0]._fields)) if tasks else {}
    if mixed:
        counts = ", ".join(f"{n} by {code}" for code, n in mixed.items())
        this = f"this is {code_version()}. --redo runs them again."
        typer.echo(f"modelodds: {path} has runs of other code: {counts}; {this}", err=True)


def _borrow(tasks: Sequence[Any], path: Path, redo: bool) -> None:
    """Take over what the synthetic experiment, in the folder beside this one, has run of these tasks."""
    from modelodds.experiments.model_choice import borrowed
    from modelodds.experiments.sweep import append, drop_stale, mend, read

    mend(path)
    if redo:
        drop_stale(path, tasks)
    made = read(path.absolute().parents[1] / "synthetic" / path.name)
    append(path, borrowed(tasks, read(path), made))


def _rows(path: Path, dimensions: Sequence[int], methods: list[str] | None) -> pd.DataFrame:
    from modelodds.experiments.sweep import read

    rows = read(path)
    rows = rows[rows.d.isin(dimensions) & rows.method.isin(methods or rows.method)]
    if rows.empty:
        refuse(f"{path} has no such runs.")
    return rows


def _show(tables: Sequence[pd.DataFrame], markdown: bool) -> None:
    from modelodds.experiments.page import markdown_table

    for table in tables:
        if len(table):
            typer.echo(markdown_table(table) + "\n") if markdown else show(table)


def _written(paths: Sequence[Path]) -> None:
    typer.echo(f"Written: {', '.join(str(path) for path in paths)}")


@app.command()
def dla(
    spectrum: Annotated[list[str] | None, typer.Option(help="PLATE-MJD-FIBER; may be repeated.")] = None,
    repeats: Annotated[str, typer.Option(help="How many, or FIRST:AFTER_LAST.")] = "5",
    method: Annotated[list[str] | None, typer.Option(help="May be repeated; the paper's by default.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes; 0: this one.")] = 2,
    out: Annotated[Path | None, typer.Option(help="Where runs are kept; those in it are skipped.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Figure 3, as .png and .svg; beside the runs.")] = None,
    table_only: Annotated[bool, typer.Option("--table", help="Only the table of what is there.")] = False,
) -> None:
    """Section 6.2: one damped absorber or two in 20 quasar spectra, 150 evaluations, five repeats.

    Errors are of the log-odds, in nats, at the full budget; p-values are of one-sided paired t-tests that our
    default's, and the paper preset's, errors are the smaller ones: over spectra, and over runs. told is the
    share of runs that had an estimate; those without count as log-odds of 0.
    """
    with plain_errors():
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        from modelodds.apps.dla import truth
        from modelodds.apps.dla.survey import entries, entry
        from modelodds.experiments import dla as experiment
        from modelodds.experiments.sweep import read, sweep

        path, methods = out or experiment.OUT, method or list(experiment.METHOD_NAMES)
        for name in methods:
            experiment.check_method(name)
        if table_only and not path.exists():
            refuse(f"There are no runs in {path} yet; leave --table out to make them.")
        if not table_only:
            names = [entry(n).name for n in spectrum] if spectrum else [e.name for e in entries()]
            for name in names:
                truth.stored(name, (1, 2))  # better missed now than in a worker
            todo = experiment.tasks(names, range(*span(repeats)), methods)
            columns = TextColumn("running"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
            with Progress(*columns) as bar:
                for _ in bar.track(sweep(todo, experiment.work, path, jobs), total=len(todo)):
                    pass
        rows = read(path)
        rows = rows[rows.spectrum.isin(spectrum or rows.spectrum) & rows.method.isin(method or rows.method)]
        show(experiment.summary(rows))
        drawing, stem = experiment.figure(rows), (figure or path.parent / "figure3.png").with_suffix("")
        for suffix in (".png", ".svg"):
            drawing.savefig(stem.with_suffix(suffix), dpi=150)
        typer.echo(f"Written: {stem}.png, {stem}.svg")


@app.command("dla-truth")
def dla_truth(
    spectrum: Annotated[list[str] | None, typer.Option(help="PLATE-MJD-FIBER; may be repeated.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes; 0: this one.")] = 2,
    out: Annotated[Path | None, typer.Option(help="Where they are kept; those in it are skipped.")] = None,
) -> None:
    """Ground truth of that experiment: log-evidences of no, one and two absorbers, each with its error."""
    with plain_errors():
        from rich.progress import track

        from modelodds.apps.dla import truth
        from modelodds.apps.dla.survey import entries, entry
        from modelodds.experiments.sweep import read, sweep

        path = out or truth.OUT
        names = [entry(n).name for n in spectrum] if spectrum else [e.name for e in entries()]
        todo = truth.tasks(names)
        list(track(sweep(todo, truth.work, path, jobs), total=len(todo), description="running"))
        rows = read(path)
        rows = rows[rows.spectrum.isin(names)].sort_values(["spectrum", "absorbers"])
        show(rows.astype({"log_evidence": str}))


@app.command("dla-catalogue")
def dla_catalogue(
    spectrum: Annotated[list[str] | None, typer.Option(help="PLATE-MJD-FIBER; may be repeated.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes; 0: this one.")] = 2,
    out: Annotated[Path | None, typer.Option(help="Where rows are kept; those in it are skipped.")] = None,
) -> None:
    """Catalogued absorbers against the one-absorber posterior, by dense quadrature.

    share: posterior probability within 0.005 of the catalogue's z and 0.3 of its log N_HI.
    """
    with plain_errors():
        from rich.progress import track

        from modelodds.apps.dla import check
        from modelodds.apps.dla.survey import entries, entry
        from modelodds.experiments.sweep import read, sweep

        path = out or check.OUT
        names = [entry(n).name for n in spectrum] if spectrum else [e.name for e in entries()]
        todo = check.tasks(names)
        list(track(sweep(todo, check.work, path, jobs), total=len(todo), description="running"))
        rows = read(path)
        rows = rows[rows.spectrum.isin(names)].sort_values("spectrum")
        numbers = ["catalogue_z", "catalogue_log_nhi", "z_median", "log_nhi_median"]
        show(rows[["spectrum", *numbers, "share", "verdict"]].astype(dict.fromkeys(numbers, str)))
        inside = rows[rows.inside]
        held = int((inside.verdict == "contained").sum())
        typer.echo(f"Contained: {held} of the {len(inside)} absorbers inside the prior's range.")
