"""How a command ends: what it prints, what it writes, and its exit code."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from modelodds.errors import LedgerInUse, ModelOddsError

if TYPE_CHECKING:
    from modelodds.result import Result

OK, FAILED, BAD_INPUT, IN_USE, INTERRUPTED = 0, 1, 2, 3, 130  # 130 is what a shell reports after Ctrl-C
FIGURES = (".png", ".svg", ".pdf")
STATUS_CODES = {"failures": FAILED, "broken": FAILED, "interrupted": INTERRUPTED}  # every other status is OK


def refuse(message: str, code: int = BAD_INPUT) -> NoReturn:
    """Say what is wrong with the input, and end."""
    typer.echo(f"modelodds: {message}", err=True)
    raise typer.Exit(code)


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Errors meant for the user, and Ctrl-C, without a traceback."""
    try:
        yield
    except LedgerInUse as error:
        refuse(str(error), IN_USE)
    except ModelOddsError as error:
        refuse(str(error))
    except KeyboardInterrupt:
        typer.echo("modelodds: interrupted before there was a result.", err=True)
        raise typer.Exit(INTERRUPTED) from None


def wrapped(paragraph: str) -> str:
    """Prose in lines that fit a terminal; a table, which has its own lines, as it is."""
    return paragraph if "\n" in paragraph else textwrap.fill(paragraph, 80, break_on_hyphens=False)


def check_writable(*paths: Path | None, figure: Path | None = None) -> None:
    """Refuse a file that could not be written, before the evaluations are spent."""
    if figure is not None and figure.suffix.lower() not in FIGURES:
        refuse(f"--figure {figure}: end its name in one of {', '.join(FIGURES)}.")
    for path in (*paths, figure):
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            problem = (
                "is a folder; name a file"
                if path.is_dir()
                else f"needs the folder {path.parent}; make it first"
            )
            refuse(f"{path} {problem}.")


def finish(result: Result, json: Path | None, figure: Path | None, report: Path | None = None) -> NoReturn:
    """Print the answer, write the files asked for, and end with the code that fits."""
    typer.echo("\n\n".join(wrapped(paragraph) for paragraph in result.summary().split("\n\n")))
    if json is not None:  # first: whatever else goes wrong, this has it all
        result.to_json(json)
    if figure is not None:
        from modelodds.plots import probabilities_figure

        probabilities_figure(result).savefig(figure, dpi=150)
    if report is not None:
        result.report(report)
    files = (("figure", figure), ("result", json), ("report", report))
    written = [f"{what} {path}" for what, path in files if path is not None]
    if written:
        typer.echo(f"\nWritten: {', '.join(written)}")
    nothing = len(result.evaluations) > 0 and (result.evaluations["status"] == "failed").all()
    raise typer.Exit(FAILED if nothing else STATUS_CODES.get(result.status, OK))
