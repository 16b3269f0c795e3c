"""``modelodds dla SPECTRUM...``: how many damped absorbers quasar spectra have, and where."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from modelodds.cli.ending import FAILED, check_writable, plain_errors, refuse

if TYPE_CHECKING:
    from rich.table import Table


def dla(
    spectra: Annotated[
        list[Path], typer.Argument(metavar="SPECTRA", help="SDSS files spec-PLATE-MJD-FIBER.fits.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Catalogue, .csv or .fits; spectra in it are not looked at again."),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for a figure of each spectrum.")
    ] = None,
    redshifts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV with columns file and z_qso; the files' own otherwise."),
    ] = None,
    most: Annotated[
        int, typer.Option(metavar="N", help="Largest number of absorbers to consider.", min=1)
    ] = 2,
    budget: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Evaluations per spectrum, chosen one by one; left out, all it takes."
        ),
    ] = None,
    fraction: Annotated[
        float | None,
        typer.Option(metavar="P", help="Prior probability of an absorber; the DR9 catalogue's by default."),
    ] = None,
    jobs: Annotated[int, typer.Option(metavar="N", help="Processes.", min=1)] = 1,
    seed: Annotated[int, typer.Option(metavar="N", help="Same seed, same answer.")] = 0,
) -> None:
    """Decide between 0, 1, 2, ... damped Lyman-α absorbers in each of the SPECTRA.

    The null model is that of the folder named by MODELODDS_DATA, or of the package gp_dla_finder. Evidences
    come from quadrature and importance sampling, or with --budget from so many evaluations chosen by the
    library's method. Intervals are 95 %. A file that cannot be used is reported, noted in the catalogue, and
    skipped.

    Exit codes: 0 it ran, 1 no file could be used, 2 the input is at fault, 130 interrupted.
    """
    check_writable(out)
    with plain_errors():
        from rich.progress import track

        from modelodds.apps.dla.decide import Settings, Task, Work
        from modelodds.apps.dla.null import NullModel
        from modelodds.experiments.sweep import sweep

        NullModel.load()  # without it, no file can be used: better said once, and before
        if figures is not None:
            figures.mkdir(parents=True, exist_ok=True)
        kept = out.with_suffix(".csv") if out is not None else None
        _check_columns(kept, most)
        work = Work(Settings(most, budget, fraction, seed), _redshifts(redshifts), figures)
        found = []
        todo = [Task(str(path)) for path in spectra]
        for rows in track(
            sweep(todo, work, kept, jobs if jobs > 1 else 0),
            total=len(todo),
            description="deciding",
            transient=True,
        ):
            found += list(rows)
        _print(found, most)
        if out is not None and out != kept:
            _write_fits(out, kept)
        if out is not None:
            typer.echo(f"Written: catalogue {out}" + (f", from {kept}" if out != kept else ""))
    if all(row["status"] == "failed" for row in found):
        raise typer.Exit(FAILED)


def _check_columns(path: Path | None, most: int) -> None:
    """Refuse to go on with a catalogue of another kind."""
    from modelodds.apps.dla.decide import columns
    from modelodds.experiments.sweep import read

    there = read(path)
    if len(there) and list(there.columns) != columns(most):
        refuse(f"{path} is not a catalogue of up to {most} absorbers; name another file with --out.")


def _redshifts(path: Path | None) -> dict[str, float]:
    if path is None:
        return {}
    import pandas as pd

    try:
        table = pd.read_csv(path)
        return {str(f): float(z) for f, z in zip(table["file"], table["z_qso"], strict=True)}
    except (OSError, KeyError, ValueError) as error:
        refuse(f"{path} has no columns file and z_qso to read: {error}.")


def _print(rows: list[dict[str, Any]], most: int) -> None:
    from rich.console import Console

    console = Console(width=None if Console().is_terminal else 140)
    good = [row for row in rows if row["status"] == "ok"]
    if good:
        console.print(_table(good, most))
    for row in rows:
        if row["status"] != "ok":
            typer.echo(f"skipped: {row['reason']}", err=True)


def _table(rows: list[dict[str, Any]], most: int) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from modelodds.apps.dla.decide import in_words

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("spectrum", no_wrap=True)
    for name in ("z_qso", *(f"P({k})" for k in range(most + 1)), "±"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("absorbers, 95 % intervals")
    for row in rows:
        chances = [f"{row[f'p_{k}']:.3g}" for k in range(most + 1)]
        spread = max(row[f"p_{k}_sd"] for k in range(most + 1))
        table.add_row(str(row["name"]), f"{row['z_qso']:.4f}", *chances, f"{spread:.2g}", in_words(row))
    return table


def _write_fits(out: Path, kept: Path | None) -> None:
    from astropy.table import Table as FitsTable

    from modelodds.experiments.sweep import read

    frame = read(kept).fillna({"reason": ""})
    FitsTable.from_pandas(frame).write(out, overwrite=True)
