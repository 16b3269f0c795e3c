"""compare(): session, evaluations, stopping and progress in one call."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np

from modelodds.errors import BudgetError, OptionError
from modelodds.evaluate import Outcome
from modelodds.executors import Broken, Pool, pool
from modelodds.failures import Failures
from modelodds.ledger import Ledger
from modelodds.method import Method, resolve_method
from modelodds.model import Model, check_models
from modelodds.recorder import Recorder
from modelodds.result import Result
from modelodds.session import Query, Session
from modelodds.stopping import Rule, settled

if TYPE_CHECKING:
    from modelodds.progress import Progress

MESSAGES = {
    "budget": "Stopped: the budget of evaluations is spent.",
    "stop": "Stopped: the stopping rule was met.",
    "settled": "Stopped: every evidence is known exactly.",
    "failures": "Stopped: too many evaluations failed; see the reasons in result.evaluations.",
    "interrupted": "Stopped: interrupted; this is the result so far.",
    "broken": "Stopped: the executor broke: {reason}. This is the result so far.",
}


def compare(
    models: Iterable[Model],
    budget: int = 200,
    stop: Rule | Callable[[Session], bool] | None = None,
    method: str | Method = "default",
    batch: int = 1,
    executor: Executor | Any = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    rng: int | np.random.Generator = 0,
    progress: bool = True,
    failures: Failures | None = None,
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
        settled (``stopping.SETTLED``): next to nothing is left to learn. ``stop=Never()`` spends the budget.
    method : str or Method
        ``"default"``, ``"paper"``, or a ``Method(...)``.
    batch : int
        Evaluations asked for at a time. With an executor, 1 gives each worker its next point as soon as it is
        free; more wait until so many are free.
    executor : optional
        Anything with ``submit`` runs the evaluations: threads, processes (:class:`executors.Workers`), Dask's
        ``Client``, MPI's ``MPIPoolExecutor``. All its workers are kept busy.
    ledger : path or Ledger, optional
        Where every evaluation is kept. A run that is there already goes on where it was, whatever ended it,
        and no evaluation is made twice.
    rng : int or numpy.random.Generator
        The same seed gives the same run, bit for bit, on one machine.
    progress : bool
        Show how it goes: a live view on a terminal, plain lines in a log.
    failures : Failures, optional
        Retries, a timeout, and how many may fail.

    Returns
    -------
    Result
    """
    from modelodds.progress import Progress  # rich is not needed to import modelodds

    _check(budget, batch, stop, executor, ledger, failures)
    failures, models, method = failures or Failures(), check_models(models), resolve_method(method)
    with Recorder(ledger) as recorder:
        session = recorder.begin(models, method, rng, int(budget))
        workers = pool(models, int(batch), failures.timeout, executor)
        with Progress(session, budget, progress) as view:
            run = _Run(session, int(budget), stop, workers, recorder, failures, view)
            try:
                status, message = run.go()
            except KeyboardInterrupt:
                status, message = _ended("interrupted")
            except Broken as broken:
                status, message = "broken", MESSAGES["broken"].format(reason=broken)
            finally:
                workers.abandon()
            run.tell_all()
            result = session.result(status, message)
        recorder.end(result)
    return result


class _Run:
    """The loop: ask for as many points as there are free workers, tell what comes back."""

    def __init__(
        self,
        session: Session,
        budget: int,
        stop: Rule | Callable[[Session], bool] | None,
        workers: Pool,
        recorder: Recorder,
        failures: Failures,
        view: "Progress",
    ) -> None:
        self.session, self.budget, self.stop, self.view = session, budget, stop, view
        self.workers, self.recorder, self.failures = workers, recorder, failures
        self.waiting = recorder.waiting  # outcomes that the session was not told yet
        self.attempts = recorder.attempts  # failed ones of what is out

    def go(self) -> tuple[str, str]:
        """Status and message."""
        for query in self.recorder.unanswered:  # out when the process ended that began the run
            self.workers.submit(query)
        while True:
            if self._ready():
                self.tell_all()
                ended = self._ended()
                if ended is not None:
                    return ended
                if not self._ask() and self.workers.n_out == 0:
                    return _ended("settled" if self.session.settled else "failures")
            for query, outcome in self.workers.wait():
                self._receive(query, outcome)

    def _room(self) -> int:
        """Evaluations that the budget has left beyond those that are out."""
        return self.budget - self.session.n_made - len(self.waiting) - self.workers.n_out

    def _ready(self) -> bool:
        """Whether it is time to ask: a batch's worth of workers is free."""
        return self.workers.n_out == 0 or self.workers.free >= self.workers.batch

    def _ask(self) -> bool:
        """Give free workers their next points; whether there were any."""
        asked = False
        while self._room() > 0 and self._ready():
            for _ in range(min(self.workers.batch, self._room())):
                queries = self.session.ask()
                if not queries:
                    return asked
                self.recorder.ask(self.session, queries[0])
                self.workers.submit(queries[0])
                asked = True
        return asked

    def _receive(self, query: Query, outcome: Outcome) -> None:
        """Put on record what came back; try again what failed, if so configured."""
        again = outcome.status == "failed" and self.attempts.get(query.id, 0) < self.failures.retries
        self.recorder.outcome(query, outcome, again)
        if again:
            self.attempts[query.id] = self.attempts.get(query.id, 0) + 1
            self.workers.submit(query)
        else:
            self.waiting[query.id] = outcome

    def tell_all(self) -> None:
        """Tell the session what has come back, in the order asked."""
        for id in sorted(self.waiting):
            self.session.tell(id, self.waiting.pop(id))
            self.recorder.tell(id)
            self.view.update()

    def _ended(self) -> tuple[str, str] | None:
        """Status and message, if there is a reason to stop."""
        session = self.session
        if session.n_evaluations == 0:
            return None
        if self.failures.too_many(session.n_failures, session.n_evaluations):
            return _ended("failures")
        rule = settled(len(session.models)) if self.stop is None else self.stop
        reason = rule.check(session) if isinstance(rule, Rule) else rule(session)
        self.recorder.check(session)
        if reason:
            status = "settled" if self.stop is None else "stop"
            return status, f"Stopped: {reason}." if isinstance(reason, str) else MESSAGES["stop"]
        return _ended("budget") if session.n_made >= self.budget else None


def _ended(status: str) -> tuple[str, str]:
    return status, MESSAGES[status]


def _check(budget: Any, batch: Any, stop: Any, executor: Any, ledger: Any, failures: Any) -> None:
    for name, value in (("budget", budget), ("batch", batch)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise BudgetError(f"{name} must be a whole number of evaluations, 1 or more, not {value!r}.")
    if isinstance(stop, type):
        raise OptionError(f"stop is the class {stop.__name__}; give a rule, such as BestIsBest(0.99).")
    if isinstance(stop, type):
        raise OptionError(f"stop is the class {stop.__name__}; give a rule, such as BestIsBest(0.99).")
    if stop is not None and not (isinstance(stop, Rule) or callable(stop)):
        raise OptionError(
            "stop must be a rule, such as BestIsBest(0.99), or a function of the session that says when; "
            f"not a {type(stop).__name__}."
        )
    if executor is not None and not hasattr(executor, "submit"):
        raise OptionError(
            f"executor must have a submit method, as concurrent.futures has; {executor!r} has none."
        )
    if ledger is not None and not isinstance(ledger, str | os.PathLike | Ledger):
        raise OptionError(f"ledger must be a file's path or a Ledger, not a {type(ledger).__name__}.")
    if failures is not None and not isinstance(failures, Failures):
        raise OptionError(f"failures must be a Failures(...), not a {type(failures).__name__}.")
