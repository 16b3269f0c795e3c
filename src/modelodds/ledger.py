"""Every evaluation ever made: where a run is kept, and what its file says.

How a run goes on from there is in ``recorder.py``, how the rows are kept in ``journal.py``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from modelodds.belief import IGNORANCE
from modelodds.errors import LedgerError
from modelodds.evaluate import Outcome
from modelodds.journal import Contents, Entry, read, salvage
from modelodds.lock import writer

if TYPE_CHECKING:
    import pandas as pd

    from modelodds.result import Result

__all__ = ["Ledger", "Standing", "evaluations", "load_result", "recorded", "salvage", "standing"]

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class Ledger:
    """Where a run is kept, for ``compare(..., ledger=...)``; a plain path does as well.

    Parameters
    ----------
    path
        The file. A run that is in it already goes on where it was.
    reuse
        Other ledgers, whose evaluations serve this run as far as they are of its models and inside their
        priors; they do not count towards its budget.
    study
        What to keep about how the run was started; plain JSON.
    """

    path: Path
    reuse: Path | Iterable[Path] = ()
    study: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reused(self) -> list[Path]:
        """The other ledgers as a list."""
        return [self.reuse] if isinstance(self.reuse, str | os.PathLike) else list(self.reuse)


@dataclass(frozen=True)
class Standing:
    """What a ledger says of its run now."""

    path: str
    names: list[str]
    status: str  # running, stopped (its process is gone), or why it ended
    message: str
    budget: int
    done: dict[str, int]  # evaluations answered, per model
    failed: dict[str, int]
    reused: int
    out: int  # asked for and not answered
    retries: int
    began: str
    last: str  # when something last happened
    probabilities: dict[str, float]  # empty before there are any
    log_evidence: dict[str, float]
    log_evidence_sd: dict[str, float]
    study: dict[str, Any]


def standing(path: Path) -> Standing:
    """What a ledger says of its run now, running or not, without evaluating or computing anything."""
    return _standing(path, _read_run(path))


def _standing(path: Path, contents: Contents) -> Standing:
    entries = contents.entries
    settings = entries[0].details
    names = [m["name"] for m in settings["models"]]
    asked = {e.query: str(e.model) for e in entries if e.kind == "ask"}
    outcomes = [e for e in entries if e.kind == "outcome"]
    done, failed = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for entry in outcomes:
        done[asked[entry.query]] += 1
        failed[asked[entry.query]] += entry.status == "failed"
    status, message = _status(path, entries)
    belief = next((e.details for e in reversed(entries) if e.kind == "belief"), {})
    opened = [e.details["budget"] for e in entries if e.kind == "open"]

    def column(label: str) -> dict[str, float]:
        return {name: belief[f"{label}[{name}]"] for name in names} if belief else {}

    return Standing(
        path=str(path),
        names=names,
        status=status,
        message=message,
        budget=opened[-1] if opened else settings["budget"],
        done=done,
        failed=failed,
        reused=sum(e.kind == "reuse" for e in entries),
        out=len(asked) - len(outcomes),
        retries=sum(e.kind == "retry" for e in entries),
        began=entries[0].at,
        last=entries[-1].at,
        probabilities=column("probability"),
        log_evidence=column("log_evidence"),
        log_evidence_sd=column("log_evidence_sd"),
        study=settings["study"],
    )


def _status(path: Path, entries: list[Entry]) -> tuple[str, str]:
    who = writer(path)
    if who is not None:
        return "running", f"Running: {who}."
    if entries[-1].kind == "close":
        return str(entries[-1].status), str(entries[-1].reason)
    return "stopped", "Stopped: its process is gone without a word; resume it to go on."


def _read_run(path: Path) -> Contents:
    contents = read(path)
    if not contents.entries:
        raise LedgerError(f"{path} holds no run yet.")
    return contents


def load_result(path: Path) -> Result:
    """The result of a ledger as it stands, whether its run has ended or not.

    A run that has ended comes with its full result. Of one that goes on, or was killed, the belief is the
    last on record, and there are no posterior draws.
    """
    from modelodds.result import Result
    from modelodds.storage import decode

    contents = _read_run(path)
    if contents.result is not None and contents.result_at == len(contents.entries):
        return Result(**{name: decode(value) for name, value in json.loads(contents.result).items()})
    import pandas as pd

    now, settings = _standing(path, contents), contents.entries[0].details
    known = bool(now.log_evidence)
    history = [e.details for e in contents.entries if e.kind == "belief"]
    return Result.build(
        names=now.names,
        prior_probabilities=[m["prior_probability"] for m in settings["models"]],
        log_evidence_mean=list(now.log_evidence.values()) if known else np.zeros(len(now.names)),
        log_evidence_cov=np.diag(
            np.square(list(now.log_evidence_sd.values()) or [IGNORANCE] * len(now.names))
        ),
        draws={},
        parameters={m["name"]: m["parameters"] for m in settings["models"]},
        evaluations=_table(contents.entries),
        history=pd.DataFrame(history),
        status=now.status,
        message=now.message,
        method=_method_name(settings["method"]),
        version=settings["version"],
        seed=settings["seed"],
    )


def _method_name(options: dict[str, Any]) -> str:
    from modelodds.method import PRESETS, Method

    try:
        method = Method(**options)
    except (TypeError, ValueError):  # of another version
        return str(options)
    return next((name for name, m in PRESETS.items() if m == method), repr(method))


def evaluations(path: Path) -> pd.DataFrame:
    """Every evaluation on record, as ``Result.evaluations`` has them, with start, end and host."""
    return _table(_read_run(path).entries, when=True)


def _table(entries: list[Entry], when: bool = False) -> pd.DataFrame:
    import pandas as pd

    asked = {e.query: e for e in entries if e.kind in ("ask", "reuse")}
    rows = []
    for entry in entries:
        if entry.kind in ("outcome", "reuse"):
            about, outcome = asked[entry.query], recorded(entry)
            row = {"id": entry.query, "model": about.model, **json.loads(about.theta or "{}")}
            row |= {
                "log_likelihood": outcome.value,
                "standard_error": outcome.standard_error,
                "status": outcome.status,
                "reason": outcome.reason,
                "seconds": outcome.seconds,
            }
            times = {"started": entry.started, "ended": entry.ended, "host": entry.host}
            rows.append(row | times if when else row)
    parameters = dict.fromkeys(name for m in entries[0].details["models"] for name in m["parameters"])
    last = ["log_likelihood", "standard_error", "status", "reason", "seconds"]
    columns = ["id", "model", *parameters, *last, *(["started", "ended", "host"] if when else [])]
    return pd.DataFrame(rows, columns=columns)


def recorded(entry: Entry) -> Outcome:
    """The outcome in a row of the journal."""
    return Outcome(
        "ok" if entry.status == "ok" else "failed",
        _number(entry.log_likelihood),
        float(entry.standard_error or 0.0),
        entry.reason or "",
        _number(entry.seconds),
    )


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)
