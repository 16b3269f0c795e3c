"""compare(): session, evaluations, stopping and progress in one call."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np

from modelodds.errors import BudgetError, OptionError
from modelodds.evaluate import Outcome, evaluate
from modelodds.method import Method
from modelodds.model import Model
from modelodds.result import Result
from modelodds.session import Query, Session
from modelodds.stopping import SETTLED, Rule

if TYPE_CHECKING:
    from modelodds.progress import Progress

FAILURES = (20, 0.5)  # more failures than this, and than this share of all evaluations, end a run

MESSAGES = {
    "budget": "Stopped: the budget of evaluations is spent.",
    "stop": "Stopped: the stopping rule was met.",
    "settled": "Stopped: every evidence is known exactly.",
    "failures": "Stopped: too many evaluations failed; see the reasons in result.evaluations.",
    "interrupted": "Stopped: interrupted; this is the result so far.",
}


def compare(
    models: Iterable[Model],
    budget: int = 200,
    stop: Rule | Callable[[Session], bool] | None = None,
    method: str | Method = "default",
    batch: int = 1,
    executor: Executor | None = None,
    ledger: None = None,
    rng: int | np.random.Generator = 0,
    progress: bool = True,
) -> Result:
    """Which of several models the data favour, within a budget of likelihood evaluations.

    Parameters
    ----------
    models : iterable of Model
        The candidates.
    budget : int
        Most evaluations to make, of all models together, failures included.
    stop : Rule or callable, optional
        When to end early: rules of :mod:`modelodds.stopping`, combined with ``|`` and ``&``, or a function
        that is called with the :class:`Session` after each batch. Left out, the run ends when the answer is
        settled: probabilities and log-odds known to within 0.01. ``stop=Never()`` spends the budget.
    method : str or Method
        ``"default"``, ``"paper"``, or a ``Method(...)``.
    batch : int
        Evaluations asked for at a time; more than one is of use with an executor.
    executor : concurrent.futures.Executor, optional
        Runs the evaluations of a batch, in threads or processes.
    ledger : None
        Reserved for runs on record; this version keeps the evaluations in the result alone.
    rng : int or numpy.random.Generator
        The same seed gives the same run, bit for bit, on one machine.
    progress : bool
        Show how it goes: a live view on a terminal, plain lines in a log.

    Returns
    -------
    Result
    """
    from modelodds.progress import Progress  # rich is not needed to import modelodds

    _check(budget, batch, executor, ledger)
    session = Session(models, method, rng, budget=budget)
    with Progress(session, budget, progress) as view:
        try:
            status, message = _run(session, budget, stop, batch, executor, view)
        except KeyboardInterrupt:
            status, message = "interrupted", MESSAGES["interrupted"]
    return session.result(status, message)


def _run(
    session: Session,
    budget: int,
    stop: Rule | Callable[[Session], bool] | None,
    batch: int,
    executor: Executor | None,
    view: "Progress",
) -> tuple[str, str]:
    """Status and message."""
    while session.n_evaluations < budget:
        queries = session.ask(min(batch, budget - session.n_evaluations))
        if not queries:
            return _ended("settled" if session.settled else "failures")
        for query, outcome in _evaluations(session, queries, executor):
            session.tell(query, outcome)
            view.update()
        if session.n_failures > max(FAILURES[0], FAILURES[1] * session.n_evaluations):
            return _ended("failures")
        rule = SETTLED if stop is None else stop
        reason = rule.check(session) if isinstance(rule, Rule) else rule(session)
        if reason:
            status = "settled" if stop is None else "stop"
            return status, f"Stopped: {reason}." if isinstance(reason, str) else MESSAGES["stop"]
    return _ended("budget")


def _ended(status: str) -> tuple[str, str]:
    return status, MESSAGES[status]


def _evaluations(
    session: Session, queries: list[Query], executor: Executor | None
) -> Iterator[tuple[Query, Outcome]]:
    """Outcomes in the order of the queries."""
    models = {m.name: m for m in session.models}
    if executor is None:
        for query in queries:
            yield query, evaluate(models[query.model], query.theta)
        return
    futures = [executor.submit(evaluate, models[q.model], q.theta) for q in queries]
    for query, future in zip(queries, futures, strict=True):
        try:
            yield query, future.result()
        except Exception as error:  # the worker died, or the model could not be sent to it
            yield query, Outcome("failed", reason=f"{type(error).__name__}: {error}")


def _check(budget: Any, batch: Any, executor: Any, ledger: Any) -> None:
    for name, value in (("budget", budget), ("batch", batch)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise BudgetError(f"{name} must be a whole number of evaluations, 1 or more, not {value!r}.")
    if executor is not None and not hasattr(executor, "submit"):
        raise OptionError(
            f"executor must have a submit method, as concurrent.futures has; {executor!r} has none."
        )
    if ledger is not None:
        raise OptionError(
            "This version keeps no ledger: leave ledger=None and save the result with to_json()."
        )
