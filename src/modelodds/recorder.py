"""Writes what a run does to its ledger, and brings a run back from there.

A run is resumed by doing it again: the session is asked and told in the order on record, and comes to the
very state it was in, random generators included. Nothing is evaluated twice. Where that cannot be (another
version, another machine, whose last bits differ), the session is made anew from the evaluations on record.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import warnings
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from modelodds._version import __version__
from modelodds.errors import LedgerError, PriorError
from modelodds.evaluate import Outcome
from modelodds.identity import describe, differences, method_differences
from modelodds.journal import Entry, Journal, read
from modelodds.ledger import Ledger, Path, recorded
from modelodds.model import Model
from modelodds.session import Query, Session, as_generator

if TYPE_CHECKING:
    from modelodds.method import Method
    from modelodds.result import Result


class Recorder:
    """Writes what a run does to its ledger, or to nowhere if it has none.

    ``begin`` gives the session as it was when the run was last on record. ``waiting`` are then the outcomes
    that it was not told yet, and ``unanswered`` the queries whose evaluations were lost with the process.
    """

    def __init__(self, ledger: Path | Ledger | None) -> None:
        self.ledger = ledger if isinstance(ledger, Ledger) or ledger is None else Ledger(ledger)
        self.waiting: dict[int, Outcome] = {}
        self.unanswered: list[Query] = []
        self.attempts: dict[int, int] = {}  # failed ones of what is unanswered
        self._journal = None if self.ledger is None else Journal(self.ledger.path)
        self._noted = 0  # rows of the session's history that are on record

    # ------------------------------------------------------------------ the beginning

    def begin(
        self, models: tuple[Model, ...], method: Method, rng: int | np.random.Generator, budget: int
    ) -> Session:
        """The run's session: a new one, or as the ledger has it."""
        if self._journal is None:
            return Session(models, method, rng, budget=budget)
        entries = self._journal.contents.entries
        if not entries:
            session = self._first(models, method, rng, budget)
        else:
            self._check(entries[0].details, models, method, rng)
            session = self._again(entries, models, method)
        self._noted = len(session.history)
        self._journal.append(
            Entry("open", host=_host(), detail=_json({"pid": os.getpid(), "budget": budget}))
        )
        return session

    def _first(
        self, models: tuple[Model, ...], method: Method, rng: int | np.random.Generator, budget: int
    ) -> Session:
        assert self._journal is not None and self.ledger is not None
        generator = as_generator(rng)
        settings = {
            "version": __version__,
            "models": describe(models),
            "method": asdict(method),
            "seed": None if isinstance(rng, np.random.Generator) else int(rng),
            "generator": _plain(generator.bit_generator.state),
            "budget": budget,
            "study": dict(self.ledger.study),
        }
        session = Session(models, method, rng, budget=budget)
        reused = [entry for path in self.ledger.reused for entry in _usable(path, models)]
        entries = [replace(entry, query=_add(session, entry).id) for entry in reused]
        self._journal.append(Entry("run", detail=_json(settings)), *entries)
        return session

    def _check(
        self,
        settings: dict[str, Any],
        models: tuple[Model, ...],
        method: Method,
        rng: int | np.random.Generator,
    ) -> None:
        found = differences(settings["models"], describe(models))
        found += method_differences(settings["method"], method)
        if not isinstance(rng, np.random.Generator) and settings["seed"] not in (None, int(rng)):
            found.append(f"its seed was {settings['seed']}, now {int(rng)}")
        if found:
            assert self.ledger is not None
            raise LedgerError(
                f"{self.ledger.path} is of another run: {'; '.join(found)}. Name another ledger; the "
                "evaluations of this one can serve it: "
                f"ledger=Ledger('new.db', reuse={str(self.ledger.path)!r}), or --reuse."
            )

    def _again(self, entries: list[Entry], models: tuple[Model, ...], method: Method) -> Session:
        """The session after all that is on record."""
        assert self._journal is not None
        first = max((i for i, e in enumerate(entries) if e.kind == "adopt"), default=0)
        try:
            session = self._replayed(entries, first, models, method)
        except _Diverged as parting:
            warnings.warn(
                f"{self._journal.path}: {parting}, as happens with another version or machine. All "
                "evaluations on record are used, but the run goes on in its own way.",
                stacklevel=4,
            )
            self._journal.append(Entry("adopt", reason=str(parting)))
            session = self._adopted(entries, models, method)
        return session

    def _replayed(
        self, entries: list[Entry], first: int, models: tuple[Model, ...], method: Method
    ) -> Session:
        """Do it again, from the start or from where the session was last made anew."""
        session = (
            self._adopted(entries[:first], models, method) if first else _fresh(entries[0], models, method)
        )
        asked: dict[int, Query] = {}
        for entry in entries[first:]:
            match entry.kind:
                case "reuse":
                    _add(session, entry)
                case "ask":
                    query = _ask_again(session, entry)
                    asked[query.id] = query
                case "retry":
                    self.attempts[int(entry.query or 0)] = self.attempts.get(int(entry.query or 0), 0) + 1
                case "outcome":
                    self.waiting[int(entry.query or 0)] = recorded(entry)
                case "tell":
                    session.tell(int(entry.query or 0), self.waiting.pop(int(entry.query or 0)))
                    del asked[int(entry.query or 0)]
                case "belief":
                    session.belief()
        self.unanswered = [query for query in asked.values() if query.id not in self.waiting]
        return session

    def _adopted(self, entries: list[Entry], models: tuple[Model, ...], method: Method) -> Session:
        """A session made from the outcomes on record alone."""
        session = _fresh(entries[0], models, method)
        asked = {e.query: e for e in entries if e.kind == "ask"}
        for entry in entries:
            if entry.kind == "reuse":
                _add(session, entry)
            elif entry.kind == "outcome":
                about = asked[entry.query]
                with contextlib.suppress(PriorError):  # on an edge that rounding has moved
                    _add(session, replace(entry, model=about.model, theta=about.theta), asked=True)
        session.number_from(1 + max([int(e.query or 0) for e in asked.values()], default=-1))
        self.waiting, self.unanswered, self.attempts = {}, [], {}
        return session

    # ------------------------------------------------------------------ as it goes

    def ask(self, session: Session, query: Query) -> None:
        """A query is about to be evaluated."""
        if self._journal is not None:
            self._note_beliefs(session)
            names = next(m for m in session.models if m.name == query.model).prior.names
            theta = _json(dict(zip(names, query.theta.tolist(), strict=True)))
            state = _json({"generators": session.generators()})
            self._journal.append(Entry("ask", query.id, query.model, theta, detail=state))

    def outcome(self, query: Query, outcome: Outcome, again: bool = False) -> None:
        """An evaluation came back; ``again`` if it failed and is made once more."""
        if self._journal is not None:
            entry = Entry(
                "retry" if again else "outcome",
                query.id,
                log_likelihood=outcome.value,
                standard_error=outcome.standard_error,
                status=outcome.status,
                reason=outcome.reason,
                seconds=outcome.seconds,
                started=_time(outcome.started),
                ended=_time(outcome.ended),
                host=outcome.host,
            )
            self._journal.append(entry)

    def tell(self, query: int) -> None:
        """The session was told."""
        if self._journal is not None:
            self._journal.later(Entry("tell", query))

    def check(self, session: Session) -> None:
        """The session was looked at by the stopping rule."""
        if self._journal is not None:
            self._note_beliefs(session)

    def _note_beliefs(self, session: Session) -> None:
        assert self._journal is not None
        for row in session.history[self._noted :]:
            self._journal.later(Entry("belief", detail=_json(row)))
        self._noted = len(session.history)

    # ------------------------------------------------------------------ the end

    def end(self, result: Result) -> None:
        """Keep the result."""
        if self._journal is not None:
            from modelodds.storage import encode

            kept = {f.name: getattr(result, f.name) for f in fields(result)}
            history = kept["history"].to_dict("records")
            for row in history[self._noted :]:
                self._journal.later(Entry("belief", detail=_json(row)))
            self._noted = len(history)
            self._journal.append(Entry("close", status=result.status, reason=result.message, host=_host()))
            text = json.dumps({name: encode(value) for name, value in kept.items()}, allow_nan=False)
            self._journal.keep_result(text)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *error: object) -> None:
        if self._journal is not None:
            self._journal.close()


class _Diverged(Exception):
    """A session that does not ask what it asked before."""


def _fresh(run: Entry, models: tuple[Model, ...], method: Method) -> Session:
    settings = run.details
    state = settings["generator"]
    generator: Any = settings["seed"]
    if generator is None:
        kind = getattr(np.random, state["bit_generator"], None)
        if kind is None:
            raise LedgerError(f"its random generator, {state['bit_generator']}, is none of NumPy's.")
        generator = np.random.Generator(kind())
        generator.bit_generator.state = _arrays(state)
    return Session(models, method, generator, budget=int(settings["budget"]))


def _plain(state: Any) -> Any:
    """A generator's state with lists in place of arrays."""
    if isinstance(state, Mapping):
        return {key: _plain(value) for key, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray | np.generic) else state


def _arrays(state: Any) -> Any:
    """Inverse of `_plain`."""
    if isinstance(state, dict):
        return {key: _arrays(value) for key, value in state.items()}
    return np.array(state, dtype=np.uint64) if isinstance(state, list) else state


def _ask_again(session: Session, entry: Entry) -> Query:
    query = next(iter(session.ask()), None)
    if query is None or query.id != entry.query or query.model != entry.model:
        raise _Diverged(f"query {entry.query} would not be asked again")
    theta = list(json.loads(entry.theta or "{}").values())
    if query.theta.tolist() != theta or session.generators() != entry.details.get("generators"):
        raise _Diverged(f"query {entry.query} would be asked at another point")
    return query


def _add(session: Session, entry: Entry, asked: bool = False) -> Query:
    names = next(m for m in session.models if m.name == entry.model).prior.names
    theta = json.loads(entry.theta or "{}")
    return session.add(str(entry.model), [theta[name] for name in names], recorded(entry), asked=asked)


def _usable(path: Path, models: tuple[Model, ...]) -> list[Entry]:
    """Evaluations of another ledger that these models can use."""
    entries = read(path).entries
    if not entries:
        raise LedgerError(f"{path} holds no run yet, so there is nothing to reuse.")
    by_name = {m.name: m for m in models}
    asked = {e.query: e for e in entries if e.kind in ("ask", "reuse")}
    found = []
    for entry in entries:
        if entry.kind not in ("outcome", "reuse") or entry.status != "ok":
            continue
        about = asked[entry.query]
        model = by_name.get(str(about.model))
        if model is not None and _inside(model, json.loads(about.theta or "{}"), path):
            found.append(
                replace(
                    entry,
                    kind="reuse",
                    model=about.model,
                    theta=about.theta,
                    at="",
                    detail=_json({"from": str(path)}),
                )
            )
    return found


def _inside(model: Model, theta: dict[str, float], path: Path) -> bool:
    if set(theta) != set(model.prior.names):
        raise LedgerError(
            f"{path} has a model {model.name!r} of other parameters: {', '.join(theta) or 'none'}, not "
            f"{', '.join(model.prior.names) or 'none'}. Give one of the two another name."
        )
    point = np.array([theta[name] for name in model.prior.names])
    try:
        model.prior.to_x(point)
    except PriorError:
        return False
    return bool(np.isfinite(model.prior.log_density_theta(point)))


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=True)


def _time(seconds: float) -> str | None:
    if not np.isfinite(seconds):
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _host() -> str:
    return socket.gethostname()
