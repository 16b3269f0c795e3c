"""Session: ask / tell / fail / result, the whole method on one screen.

Ask: the initial design first; then each model's best point under the acquisition, and among these the one
that tells most about the posterior model probabilities. Tell: the observation goes to its model's learner,
which brings surrogate, nodes and evidence up to date when they are next needed. Points that are out for
evaluation count as pending, so a batch is asked for by asking again.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modelodds._version import __version__
from modelodds.acquisition import ACQUISITIONS, Rivals
from modelodds.belief import Belief
from modelodds.coupling import Coupling
from modelodds.design import design, design_sizes, thrift
from modelodds.diagnostics.examine import examine
from modelodds.errors import ModelError, OptionError, PriorError, QueryError
from modelodds.evaluate import Outcome, read_value
from modelodds.evidence import Evidence
from modelodds.family import Family
from modelodds.learner import Learner
from modelodds.log import Log
from modelodds.method import PRESETS, Method, resolve_method
from modelodds.model import Model, check_models
from modelodds.precision import make_room, one_blas_thread
from modelodds.result import Result
from modelodds.settings import settings

Array = NDArray[np.float64]

KEPT_DRAWS = 2000  # posterior draws of each model in a result


@dataclass(frozen=True, eq=False)
class Query:
    """One evaluation to be made.

    Attributes
    ----------
    id : int
        Its number in the session, from 0.
    model : str
        Name of the model.
    theta : array, shape (p,)
        Where to evaluate its log-likelihood.
    """

    id: int
    model: str
    theta: Array


class Session:
    """A comparison whose evaluations you make yourself.

    Parameters
    ----------
    models : iterable of Model
        The candidates.
    method : str or Method
        ``"default"``, ``"paper"``, or a ``Method(...)``.
    rng : int or numpy.random.Generator
        The same seed and the same values give the same queries, bit for bit.
    budget : int, optional
        How many evaluations there will be in all; the initial design then takes no more than half of them.

    Examples
    --------
    >>> session = Session(models)  # doctest: +SKIP
    >>> for query in session.ask(4):  # doctest: +SKIP
    ...     session.tell(query, my_likelihoods[query.model](query.theta))
    >>> session.result().probabilities  # doctest: +SKIP
    """

    def __init__(
        self,
        models: Iterable[Model],
        method: str | Method = "default",
        rng: int | np.random.Generator = 0,
        budget: int | None = None,
    ) -> None:
        self.models = check_models(models)
        self.method = resolve_method(method)
        _check_rule(self.method, len(self.models))
        make_room()
        self.seed = int(rng) if isinstance(rng, int | np.integer) else None
        self.overhead_seconds = 0.0
        self.standing: Belief | None = None  # where the comparison stood when it last had to know
        self._log_prior = np.log([m.prior_probability for m in self.models])
        self._log_prior -= np.log(np.exp(self._log_prior).sum())
        generator = as_generator(rng)
        seeds = generator.integers(2**63, size=(len(self.models), 3))
        self._learners = [
            Learner(m, self.method, np.random.default_rng(s[:1]), share)
            for m, s, share in zip(self.models, seeds, thrift(self.models, self.method), strict=True)
        ]
        sides = [learner.side for learner in self._learners]
        for i, learner in enumerate(self._learners):
            learner.family = Family(sides[i], [*sides[:i], *sides[i + 1 :]]) or None
        self._coupling = Coupling(self._learners, self.method) if self.method.coupled else None
        self._report_seeds = [int(s[1]) for s in seeds]
        sizes = design_sizes(self.models, self.method, budget)
        quasi = self.method.design == "quasi"
        self._design = [
            design(m, n, quasi, int(s[2])) for m, n, s in zip(self.models, sizes, seeds, strict=True)
        ]
        self._design_size = sum(sizes)
        self.n_added = 0  # evaluations that were made elsewhere
        self._queries: dict[int, Query] = {}
        self._next_id = 0
        self._asked = [0] * len(self.models)
        self._log = Log(self.models)
        self._history: list[dict[str, float]] = []
        self._beliefs: dict[int, Belief] = {}  # by how many evaluations there were
        self._started = time.monotonic()

    # ------------------------------------------------------------------ ask

    def ask(self, n: int = 1) -> list[Query]:
        """The next ``n`` evaluations to make; fewer, or none, where nothing is left to learn."""
        with self._at_work():
            return [query for _ in range(n) if (query := self._ask_one()) is not None]

    def _ask_one(self) -> Query | None:
        chosen = self._from_design() or self._from_acquisition()
        if chosen is None:
            return None
        i, x = chosen
        query = Query(self._next_id, self.models[i].name, self.models[i].prior.to_theta(x))
        self._learners[i].ask(query.id, x)
        self._asked[i] += 1
        self._queries[query.id] = query
        self._next_id += 1
        return query

    def _from_design(self) -> tuple[int, Array] | None:
        """The model with most of its initial design still to come, and its next point."""
        left = [
            0 if learner.settled else len(d) for learner, d in zip(self._learners, self._design, strict=True)
        ]
        i = int(np.argmax(left))
        return (i, self._design[i].pop(0)) if left[i] else None

    def _from_acquisition(self) -> tuple[int, Array] | None:
        """The most informative point of all models' spaces (eqs. 16-17)."""
        open_ones = [i for i, learn in enumerate(self._learners) if not (learn.settled or learn.given_up)]
        active = [i for i in open_ones if self._learners[i].known]
        blind = self._least_tried([i for i in open_ones if i not in active], alone=not active)
        if blind is not None or not active:
            return blind
        self._update()
        rule, costs = self._rule(), self._costs()
        if self.in_design:  # with some of it out, evidences are mere guesses
            return self._in_turn(rule, active)
        for i in sorted(active, key=lambda i: costs[i]):  # cheap summits are hints to all
            step = self._learners[i].uphill(self._next_id, self._learners)
            if step is not None:
                return i, step
        if self.method.allocation == "in_turn":
            return self._in_turn(rule, active)
        return self._best(rule, active, costs)

    def _least_tried(self, models: list[int], alone: bool) -> tuple[int, Array] | None:
        """Of models without a finite value yet, one more look where the prior says, in turn with the rest."""
        if not models:
            return None
        tries = {i: len(self._learners[i].out) + len(self._learners[i].barren) for i in models}
        i = min(tries, key=lambda i: tries[i])
        return (i, self._prior_point(i)) if alone or tries[i] * len(self.models) <= self._next_id else None

    def _in_turn(self, rule: str, active: list[int]) -> tuple[int, Array]:
        """The best point of the model that was asked least."""
        i = min(active, key=lambda i: self._asked[i])
        return i, self._learners[i].propose(rule).x

    def _best(self, rule: str, active: list[int], costs: Array) -> tuple[int, Array]:
        """The best of all models' best points, for what it costs."""
        if self._coupling is not None and self.joined:
            rivals = self._rivals(pending=False)
            return self._coupling.choose(rule, active, rivals.mean, rivals.variance, costs)
        proposals = {i: self._learners[i].propose(rule) for i in active}
        best = np.array([proposals[i].score if i in proposals else 0.0 for i in range(len(self.models))])
        values = ACQUISITIONS[rule].across(best, self._rivals()) / costs
        i = max(active, key=lambda i: values[i])
        return i, proposals[i].x

    def _costs(self) -> Array:
        """What an evaluation of each model costs, (k,)."""
        if self.method.costs == "ignored":
            return np.ones(len(self.models))
        if self.method.costs == "given":
            return np.array([m.cost for m in self.models])
        return self._log.seconds()

    def _rule(self) -> str:
        if self.method.acquisition != "auto":
            return self.method.acquisition
        return "log_odds" if len(self.models) <= 2 else "variance"

    def _rivals(self, pending: bool = True) -> Rivals:
        """Evidences as the acquisition compares them; with ``pending``, points that are out count as back."""
        learners, belief = self._learners, self._belief([learner.evidence for learner in self._learners])
        return Rivals(
            belief.mean + self._log_prior,
            np.array(
                [
                    max(sd**2 - learner.evidence.fixed, 1e-12) * (learner.remaining if pending else 1.0)
                    for sd, learner in zip(belief.sd, learners, strict=True)
                ]
            ),
            np.array([learner.surrogate.observations.best for learner in learners]),
        )

    def _prior_point(self, i: int) -> Array:
        return design(self.models[i], 1, False, int(self._learners[i].rng.integers(2**63)))[0]

    # ------------------------------------------------------------------ tell

    def tell(self, query: Query | int, value: Any, seconds: float = np.nan) -> None:
        """The log-likelihood at a query: a number, or (number, standard error). NaN and +inf are failures."""
        outcome = value if isinstance(value, Outcome) else read_value(value)
        if outcome.status == "failed":
            self.fail(query, outcome.reason, outcome.seconds or seconds)
            return
        query = self._take(query)
        with self._at_work():
            self._learner(query).tell(query.id, outcome.value, outcome.standard_error**2)
        self._note(query, outcome, outcome.seconds or seconds)

    def fail(self, query: Query | int, reason: str, seconds: float = np.nan) -> None:
        """Say that a query gave no value, and why; the session goes on around it."""
        query = self._take(query)
        self._learner(query).fail(query.id)
        self._note(query, Outcome("failed", reason=str(reason)), seconds)

    def add(
        self, model: str, theta: ArrayLike, value: Any, seconds: float = np.nan, asked: bool = False
    ) -> Query:
        """Take in an evaluation that was made elsewhere; its model's initial design shrinks by one.

        Parameters
        ----------
        model : str
            Name of the model.
        theta : array, shape (p,)
            Where it was evaluated, inside the prior.
        value, seconds
            As for :meth:`tell`.
        asked
            Whether it counts as one that the session asked for.
        """
        names = [m.name for m in self.models]
        if model not in names:
            raise ModelError(f"there is no model {model!r}; the models are {', '.join(names)}")
        i = names.index(model)
        prior, theta = self.models[i].prior, np.array(theta, dtype=float)
        if theta.shape != (len(prior.names),):
            raise PriorError(
                f"theta has {theta.size} numbers; model {model!r} has {len(prior.names)}: "
                f"{', '.join(prior.names)}"
            )
        if not np.isfinite(prior.log_density_theta(theta)):
            raise PriorError(f"theta = {theta.tolist()} is not inside the prior of model {model!r}")
        query = Query(self._next_id, model, theta)
        self._learners[i].ask(query.id, prior.to_x(theta))
        self._queries[query.id] = query
        self._next_id += 1
        self.tell(query, value, seconds)
        self.n_added += not asked
        self._asked[i] += 1
        if self._design[i]:
            self._design[i].pop()
            self._design_size -= not asked
        return query

    def number_from(self, number: int) -> None:
        """Give the next query this number, if it is not below that anyway."""
        self._next_id = max(self._next_id, number)

    def generators(self) -> dict[str, Any]:
        """The state of every model's random generator, by name: plain numbers and strings."""
        return {learner.model.name: learner.rng.bit_generator.state for learner in self._learners}

    def _take(self, query: Query | int) -> Query:
        number = query.id if isinstance(query, Query) else query
        if number not in self._queries:
            state = "was answered already" if number in range(self._next_id) else "was never asked"
            raise QueryError(f"Query {number} {state}; open queries: {sorted(self._queries) or 'none'}.")
        return self._queries.pop(number)

    def _learner(self, query: Query) -> Learner:
        return self._learners[[m.name for m in self.models].index(query.model)]

    def _note(self, query: Query, outcome: Outcome, seconds: float) -> None:
        self._log.note(query.id, self._learner(query).model, query.theta, outcome, seconds)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Our own computing: timed, and on one BLAS thread."""
        start = time.perf_counter()
        with one_blas_thread():
            yield
        self.overhead_seconds += time.perf_counter() - start

    # ------------------------------------------------------------------ what is known

    @property
    def n_evaluations(self) -> int:
        """Evaluations answered so far, failures and what was added included."""
        return len(self._log)

    @property
    def n_made(self) -> int:
        """Evaluations answered so far that the session asked for."""
        return len(self._log) - self.n_added

    @property
    def n_failures(self) -> int:
        """Evaluations that gave no value."""
        return self._log.n_failures

    @property
    def in_design(self) -> bool:
        """Whether the initial design is still being evaluated."""
        return self.n_made < self._design_size

    @property
    def settled(self) -> bool:
        """Whether every evidence is known exactly."""
        return all(learner.settled for learner in self._learners)

    @property
    def joined(self) -> bool:
        """Whether models share a surrogate at present (``coupling.py``)."""
        return self._coupling is not None and bool(self._coupling.active)

    @property
    def elapsed(self) -> float:
        """Seconds since the session began."""
        return time.monotonic() - self._started

    @property
    def log_prior(self) -> Array:
        """Log prior probabilities of the models, (k,)."""
        return self._log_prior

    @property
    def history(self) -> list[dict[str, float]]:
        """The belief whenever it was formed, as :attr:`Result.history` has it."""
        return self._history

    def settled_belief(self) -> Belief | None:
        """Where the comparison stands, once the initial design and every climb are done; None before."""
        climbing = any(learner.climbing for learner in self._learners)
        return None if self.in_design or climbing else self.belief()

    def beliefs(self, n: int) -> list[Belief | None]:
        """Where it stood since ``n`` evaluations ago, oldest first, as far as that was looked at.

        The first is where it stood when the last ``n`` evaluations began; None if that is not known.
        """
        before = self.n_evaluations - n + 1
        first = max((i for i in self._beliefs if i <= before), default=None)
        since = [b for i, b in self._beliefs.items() if i > before]
        return [None if first is None else self._beliefs[first], *since]

    def counts(self) -> dict[str, int]:
        """Evaluations answered so far, per model."""
        return self._log.counts()

    def belief(self) -> Belief:
        """Where the comparison stands."""
        with self._at_work():
            return self._update()

    def _update(self) -> Belief:
        """Bring every learner up to date and note where the comparison stands."""
        if self._coupling is not None:
            self._coupling.release()
            for learner in self._learners:
                learner.learn()
            self._coupling.update()
        for learner in self._learners:
            learner.update(self.n_evaluations)
        self.standing = belief = self._belief([learner.evidence for learner in self._learners])
        if self._log and (not self._history or self._history[-1]["n_evaluations"] < self.n_evaluations):
            self._history.append(belief.row(self.n_evaluations, [m.name for m in self.models]))
            self._beliefs[self.n_evaluations] = belief
        return belief

    def _belief(self, evidences: list[Evidence]) -> Belief:
        joint = self._coupling.covariance if self._coupling is not None and self.joined else None
        return Belief.of(evidences, self._log_prior, joint)

    def result(self, status: str = "open", message: str = "The session is still open.") -> Result:
        """The answer so far; with a calibrated method, its quadrature is done anew on fresh nodes."""
        import pandas as pd

        with self._at_work():
            self._update()
            seeded = zip(self._learners, self._report_seeds, strict=True)
            reports = [learner.report(KEPT_DRAWS, seed) for learner, seed in seeded]
            belief = self._belief([report.evidence for report in reports])
            told = zip(self._learners, reports, self._report_seeds, strict=True)
            examined = [examine(learner, report, self._rule(), seed) for learner, report, seed in told]
        return Result.build(
            names=[m.name for m in self.models],
            prior_probabilities=np.exp(self._log_prior),
            log_evidence_mean=belief.mean,
            log_evidence_cov=belief.cov,
            draws={m.name: report.draws for m, report in zip(self.models, reports, strict=True)},
            parameters={m.name: m.prior.names for m in self.models},
            evaluations=self._log.table(),
            history=pd.DataFrame(self._history),
            status=status,
            message=message,
            method=next((name for name, m in PRESETS.items() if m == self.method), repr(self.method)),
            version=__version__,
            seed=self.seed,
            overhead_seconds=self.overhead_seconds,
            diagnostics={m.name: kept for m, kept in zip(self.models, examined, strict=True) if kept},
            settings=settings(self.models, self.method),
        )


def _check_rule(method: Method, n_models: int) -> None:
    rule = ACQUISITIONS.get(method.acquisition)
    if rule is not None and rule.n_models not in (None, n_models):
        raise OptionError(
            f"acquisition={method.acquisition!r} is for {rule.n_models} models, not {n_models}; "
            "use 'log_odds' or 'variance' for any number."
        )


def as_generator(rng: int | np.random.Generator) -> np.random.Generator:
    """The generator of a seed, or the one given."""
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer | np.random.Generator):
        raise OptionError(
            f"rng must be an integer seed or a numpy.random.Generator, not {type(rng).__name__}."
        )
    if isinstance(rng, int | np.integer) and rng < 0:
        raise OptionError(f"rng={rng} is no seed; use 0 or more.")
    return np.random.default_rng(rng)
