"""When to stop: rules that combine with ``|`` and ``&``, each saying in words why it was met.

>>> rule = LogOddsKnown(0.1) & BestIsBest(0.95) | WallTime(3600)
>>> rule
(LogOddsKnown(sd=0.1, patience=1) & BestIsBest(p=0.95)) | WallTime(seconds=3600)

A rule looks at the session after every batch of evaluations, past the initial design; ``budget`` always holds
beside it. Any function of the session can take a rule's place.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from modelodds.correlated import best_probability
from modelodds.errors import OptionError

if TYPE_CHECKING:
    from modelodds.belief import Belief
    from modelodds.session import Session


class Rule(ABC):
    """A reason to stop."""

    @abstractmethod
    def check(self, session: "Session") -> str | None:
        """Why to stop now, as the end of a sentence; None to go on."""

    def __call__(self, session: "Session") -> bool:
        """Whether to stop now."""
        return self.check(session) is not None

    def __or__(self, other: "Rule") -> "Rule":
        return Either(self, _rule(other))

    def __and__(self, other: "Rule") -> "Rule":
        return Both(self, _rule(other))


def _rule(other: object) -> Rule:
    if not isinstance(other, Rule):
        raise OptionError(f"Stopping rules combine with each other by | and &, not with {other!r}.")
    return other


@dataclass(frozen=True)
class Either(Rule):
    """Stops when one of two rules does."""

    first: Rule
    second: Rule

    def check(self, session: "Session") -> str | None:
        """The first reason there is."""
        return self.first.check(session) or self.second.check(session)

    def __repr__(self) -> str:
        return " | ".join(_bracketed(rule, Both) for rule in (self.first, self.second))


@dataclass(frozen=True)
class Both(Rule):
    """Stops when two rules do."""

    first: Rule
    second: Rule

    def check(self, session: "Session") -> str | None:
        """Both reasons, if there are both."""
        first, second = self.first.check(session), self.second.check(session)
        if not (first and second):
            return None
        _, held, since = second.rpartition(" (")
        return f"{first.removesuffix(held + since)}, and {second}"  # what holds for both is said once

    def __repr__(self) -> str:
        return " & ".join(_bracketed(rule, Either) for rule in (self.first, self.second))


def _bracketed(rule: Rule, kind: type[Rule]) -> str:
    return f"({rule!r})" if isinstance(rule, kind) else repr(rule)


@dataclass(frozen=True)
class Never(Rule):
    """Goes on until the budget is spent."""

    def check(self, session: "Session") -> str | None:
        """Nothing."""
        return None


@dataclass(frozen=True)
class Budget(Rule):
    """Stops after ``n`` evaluations."""

    n: int

    def check(self, session: "Session") -> str | None:
        """Whether so many were made."""
        return f"{self.n} evaluations were made" if session.n_evaluations >= self.n else None


@dataclass(frozen=True)
class WallTime(Rule):
    """Stops when the session has lasted ``seconds``; evaluations under way are waited for."""

    seconds: float

    def check(self, session: "Session") -> str | None:
        """Whether the time is up."""
        return f"{self.seconds:g} seconds have passed" if session.elapsed >= self.seconds else None


@dataclass(frozen=True)
class LogOddsKnown(Rule):
    """Stops when the log-odds of the two most probable models are known to a standard deviation ``sd``.

    ``patience`` is the number of evaluations in a row for which that must have been so.
    """

    sd: float = 0.1
    patience: int = 1

    def check(self, session: "Session") -> str | None:
        """Whether they are."""
        belief = session.settled_belief()
        if belief is None or len(belief.mean) < 2:
            return None
        a, b = np.argsort(-belief.probabilities, kind="stable")[:2]
        for then in session.beliefs(self.patience):
            if then is None or then.log_odds_sd(a, b) > self.sd:
                return None
        pair = f"{session.models[a].name} against {session.models[b].name}"
        return f"the log-odds of {pair} are known to within {self.sd:g} nats{_held(self.patience)}"


@dataclass(frozen=True)
class ProbabilityKnown(Rule):
    """Stops when the probability of the most probable model is known to ``within`` (two standard deviations).

    ``patience`` is the number of evaluations in a row for which that must have been so.
    """

    within: float = 0.01
    patience: int = 1

    def check(self, session: "Session") -> str | None:
        """Whether it is."""
        belief = session.settled_belief()
        if belief is None or not all(self._holds(b) for b in session.beliefs(self.patience)):
            return None
        best = int(np.argmax(belief.probabilities))
        name, p = session.models[best].name, belief.probabilities[best]
        return f"the probability of {name}, {p:.2f}, is known to within {self.within:g}{_held(self.patience)}"

    def _holds(self, belief: "Belief | None") -> bool:
        if belief is None:
            return False
        return bool(2.0 * belief.probability_sd[int(np.argmax(belief.probabilities))] <= self.within)


def _held(patience: int) -> str:
    return f" (for {patience} evaluations now)" if patience > 1 else ""


@dataclass(frozen=True)
class BestIsBest(Rule):
    """Stops when the most probable model is so with probability ``p``, whatever its odds."""

    p: float = 0.95

    def check(self, session: "Session") -> str | None:
        """Whether it is."""
        belief = session.settled_belief()
        if belief is None:
            return None
        best = int(np.argmax(belief.probabilities))
        sure = best_probability(belief.mean + session.log_prior, belief.cov, best)
        if sure < self.p:
            return None
        return f"{session.models[best].name} is the most probable model with probability {sure:.4g}"


@dataclass(frozen=True)
class NoProgress(Rule):
    """Stops when ``n`` evaluations have not lowered the standard deviation of the log-odds by a tenth."""

    n: int = 50

    def check(self, session: "Session") -> str | None:
        """Whether they have not."""
        belief, beliefs = session.settled_belief(), session.beliefs(self.n + 1)
        then = beliefs[0]
        if belief is None or len(belief.mean) < 2 or then is None:
            return None
        a, b = np.argsort(-belief.probabilities, kind="stable")[:2]
        now, before = (x.log_odds_sd(a, b) for x in (belief, then))
        return f"{self.n} evaluations have not made the odds any surer" if now > 0.9 * before else None


SETTLED = ProbabilityKnown(within=0.01, patience=10) & LogOddsKnown(sd=0.01, patience=10)
"""What ends a run that is not told otherwise: there is next to nothing left to learn.

Whoever needs no more than a decision can stop far earlier: ``BestIsBest(0.99)``, ``ProbabilityKnown()``.
"""
