"""``modelodds report`` and ``modelodds watch``: a result as a page."""

from pathlib import Path
from typing import Annotated

import typer

from modelodds.cli.ending import check_writable, plain_errors, refuse

Source = Annotated[
    Path, typer.Argument(metavar="FILE", help="A saved result (.json) or the ledger of a run (.db).")
]


def report(
    file: Source,
    out: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="Where to write it; FILE with .html otherwise.")
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="What to head it with.")] = None,
) -> None:
    """Write the report of a result: one HTML file that needs no network."""
    target = out or file.with_suffix(".html")
    check_writable(target)
    with plain_errors():
        from modelodds.report import load

        written = load(file).report(target, title)
    typer.echo(f"Written: report {written}")


def watch(
    file: Source,
    port: Annotated[int, typer.Option(metavar="N", help="Port on this machine; 0 takes a free one.")] = 8642,
    browser: Annotated[bool, typer.Option(help="Open it in a browser.")] = True,
) -> None:
    """Show the report of a run on this machine, kept up to date while the run goes on."""
    with plain_errors():
        from modelodds.report.live import Watched, server

        watched = Watched(file)
    try:
        serving = server(watched, port)
    except OSError as error:
        refuse(f"port {port} cannot be used ({error.strerror}); choose another with --port, or --port 0.")
    address = f"http://{serving.server_address[0]!s}:{serving.server_address[1]}/"
    typer.echo(f"Watching {file} at {address} (Ctrl-C ends it)")
    if browser:
        import webbrowser

        webbrowser.open(address)
    try:
        serving.serve_forever()
    except KeyboardInterrupt:
        typer.echo("")
    finally:
        serving.server_close()
