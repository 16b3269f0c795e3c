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


@app.command()
def dla(
    spectrum: Annotated[list[str] | None, typer.Option(help="PLATE-MJD-FIBER; may be repeated.")] = None,
    repeats: Annotated[str, typer.Option(help="How many, or FIRST:AFTER_LAST.")] = "5",
    method: Annotated[list[str] | None, typer.Option(help="May be repeated; the paper's by default.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 2,
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
    jobs: Annotated[int, typer.Option(help="Processes.")] = 2,
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
    jobs: Annotated[int, typer.Option(help="Processes.")] = 2,
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
