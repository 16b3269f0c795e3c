"""``modelodds status``, ``modelodds evaluations`` and ``modelodds salvage``: what a ledger holds."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modelodds.cli.ending import plain_errors

if TYPE_CHECKING:
    from modelodds.ledger import Standing

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
    counts += [f"{now.out} {'under way' if now.status == 'running' else 'cut short'}"] if now.out else []
    counts += [f"{now.reused} more reused"] if now.reused else []
    lines = [f"{now.path}: {', '.join(counts)}.", now.message]
    lines += [f"Began {_moment(now.began)}; last heard of {_moment(now.last)}.", ""]
    width = max(5, *map(len, now.names))
    lines.append(f"{'model':<{width}}  evaluations  probability  log-evidence")
    for name in sorted(now.names, key=lambda n: -now.probabilities.get(n, 0.0)):
        lines.append(f"{name:<{width}}  {now.done[name]:>11}  {_odds(now, name)}")
    return "\n".join(lines)


def _odds(now: "Standing", name: str) -> str:
    if not now.probabilities:
        return f"{'…':>11}  {'…':>12}"
    evidence = f"{now.log_evidence[name]:.2f} ± {now.log_evidence_sd[name]:.2f}"
    return f"{now.probabilities[name]:>11.3f}  {evidence:>12}"


def _moment(text: str) -> str:
    return f"{text[:10]} {text[11:19]} UTC"


def evaluations(
    run: Run,
    csv: Annotated[bool, typer.Option("--csv", help="As comma-separated values.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, one object per evaluation.")] = False,
) -> None:
    """List every evaluation of a run: model, parameters, value, status, times, host.

    For a file, send it there: modelodds evaluations run.db --csv > evaluations.csv
    """
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
