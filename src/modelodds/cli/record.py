"""``modelodds status``, ``modelodds evaluations`` and ``modelodds salvage``: what a ledger holds."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modelodds.cli.ending import plain_errors, wrapped
from modelodds.verdict import LOST, align, plus_minus

if TYPE_CHECKING:
    from modelodds.ledger import Standing

OUT = {"running": "under way", "stopped": "cut short"}  # what is asked for and not answered; by status

Run = Annotated[Path, typer.Argument(metavar="RUN", help="The ledger of a run, also while it is running.")]


def status(
    run: Run, as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False
) -> None:
    """Say where a run stands: running or ended, evaluations, failures, and the odds so far."""
    with plain_errors():
        from modelodds.ledger import standing

        now = standing(run)
    if as_json:
        import json
        from dataclasses import asdict

        typer.echo(json.dumps(asdict(now), indent=1))
    else:
        typer.echo(describe(now))


def describe(now: "Standing") -> str:
    """A standing in words and a table."""
    done, failed = sum(now.done.values()), sum(now.failed.values())
    counts = [f"{done} of {now.budget} evaluations"]
    counts += [f"{failed} failed"] if failed else []
    counts += [f"{now.retries} tried again"] if now.retries else []
    counts += [f"{now.out} {OUT.get(now.status, 'not waited for')}"] if now.out else []
    counts += [f"{now.reused} more reused"] if now.reused else []
    lines = [
        f"{now.path}: {', '.join(counts)}.",
        wrapped(now.message),
        f"Began {_moment(now.began)}; last heard of {_moment(now.last)}.",
        "",
    ]
    order = sorted(now.names, key=lambda name: -now.probabilities.get(name, 0.0))
    columns = {"model": order, "evaluations": [str(now.done[name]) for name in order]}
    if failed:
        columns["failed"] = [str(now.failed[name]) for name in order]
    return "\n".join([*lines, align(columns | _odds(now, order))])


def _odds(now: "Standing", order: list[str]) -> dict[str, list[str]]:
    """Probabilities and log-evidences, as far as there are any."""
    if not now.probabilities:
        return {"probability": ["…"] * len(order), "log-evidence": ["…"] * len(order)}
    pairs = [(now.log_evidence[name], now.log_evidence_sd[name]) for name in order]
    return {
        "probability": [f"{now.probabilities[name]:.4f}" for name in order],
        "log-evidence": ["unknown" if sd > LOST else plus_minus(mean, sd, 2) for mean, sd in pairs],
    }


def _moment(text: str) -> str:
    return f"{text[:10]} {text[11:19]} UTC"


def evaluations(
    run: Run,
    csv: Annotated[bool, typer.Option("--csv", help="As comma-separated values.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, one object per evaluation.")] = False,
) -> None:
    """List every evaluation of a run: model, parameters, value, status, times, host.

    \b
    modelodds evaluations run.db
    modelodds evaluations run.db --csv > evaluations.csv
    """  # noqa: D301 - \b keeps the examples' lines apart
    with plain_errors():
        from modelodds.ledger import evaluations as table

        found = table(run)
    if csv:
        typer.echo(found.to_csv(index=False), nl=False)
    elif as_json:
        import json

        rows = [{name: _plain(v) for name, v in row.items()} for row in found.to_dict("records")]
        typer.echo(json.dumps(rows, indent=1, allow_nan=False))
    else:
        shown = found.drop(columns=["started", "ended", "host"])
        typer.echo(shown.to_string(index=False, na_rep=""))


def _plain(value: object) -> object:
    """A cell as strict JSON has it: null for what is not there, infinities as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def salvage(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A damaged ledger; it is not changed.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Where to copy what is intact.")],
) -> None:
    """Copy what is intact of a damaged ledger to a new one, from which the run goes on."""
    with plain_errors():
        from modelodds.ledger import salvage as copy

        n = copy(run, new)
    typer.echo(f"{n} evaluations of {run} are intact, and now in {new}.")
