"""The application itself: ``modelodds --version``, ``modelodds --help``."""

from typing import Annotated

import typer

from modelodds._version import __version__

app = typer.Typer(
    help="Which of several models the data favour, in few evaluations of expensive likelihoods.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Begin with `modelodds demo`; `modelodds COMMAND --help` says what a command does.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"modelodds {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Which of several models the data favour, in few evaluations of expensive likelihoods."""
