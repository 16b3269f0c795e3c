"""When to stop: rules that combine with ``|`` and ``&``, each saying in words why it was met.

>>> rule = LogOddsKnown(0.1) & BestIsBest(0.95) | WallTime(3600)
>>> rule
(LogOddsKnown(sd=0.1, patience=1) & BestIsBest(p=0.95)) | WallTime(seconds=3600)

A rule looks at the session after every batch of evaluations, past the initial design; ``budget`` always holds
beside it. Any function of the session can take a rule's place.
"""

import ast
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from modelodds.correlated import best_probability
from modelodds.errors import OptionError

if TYPE_CHECKING:
    from modelodds.belief import Belief
    from modelodds.session import Session


ROUGH = 0.25  # nats: of log-odds known no better than this, large as they are, there is more to learn


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


def _number(rule: Rule, name: str, least: float, most: float = np.inf, whole: bool = False) -> None:
    """Refuse a rule's number that makes no sense."""
    value, kinds = getattr(rule, name), (int, np.integer) if whole else (int, float, np.integer, np.floating)
    if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
        what = "a whole number" if whole else "a number"
        limits = f"of {least:g} or more" if np.isinf(most) else f"from {least:g} to {most:g}"
        raise OptionError(f"{type(rule).__name__} needs {what} {limits} for {name}, not {value!r}.")


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

    def __post_init__(self) -> None:
        _number(self, "n", 1, whole=True)

    def check(self, session: "Session") -> str | None:
        """Whether so many were made."""
        return f"{self.n} evaluations were made" if session.n_evaluations >= self.n else None


@dataclass(frozen=True)
class WallTime(Rule):
    """Stops when the session has lasted ``seconds``; evaluations under way are waited for."""

    seconds: float

    def __post_init__(self) -> None:
        _number(self, "seconds", 0.0)

    def check(self, session: "Session") -> str | None:
        """Whether the time is up."""
        return f"{self.seconds:g} seconds have passed" if session.elapsed >= self.seconds else None


@dataclass(frozen=True)
class LogOddsKnown(Rule):
    """Stops when the log-odds of the two most probable models are known to a standard deviation ``sd``.

    Log-odds that are large need only be known to the share ``relative`` of themselves, and to a quarter of a
    nat. ``patience`` is the number of evaluations in a row for which that must have been so.
    """

    sd: float = 0.1
    patience: int = 1
    relative: float = 0.0

    def __post_init__(self) -> None:
        _number(self, "sd", 0.0)
        _number(self, "patience", 1, whole=True)
        _number(self, "relative", 0.0)

    def check(self, session: "Session") -> str | None:
        """Whether they are."""
        belief = session.settled_belief()
        if belief is None or len(belief.mean) < 2:
            return None
        a, b = np.argsort(-belief.probabilities, kind="stable")[:2]
        within = f"{self.sd:g} nats"
        for then in session.beliefs(self.patience):
            if then is None:
                return None
            location, sd = then.mean + session.log_prior, then.log_odds_sd(a, b)
            if sd > max(self.sd, min(self.relative * abs(location[a] - location[b]), ROUGH)):
                return None
            within = within if sd <= self.sd else f"{100 * self.relative:g} % of themselves"
        pair = f"{session.models[a].name} against {session.models[b].name}"
        return f"the log-odds of {pair} are known to within {within}{_held(self.patience)}"


@dataclass(frozen=True)
class EvidenceKnown(Rule):
    """Stops when the log-evidence of every model is known to a standard deviation ``sd``.

    ``patience`` is the number of evaluations in a row for which that must have been so. It is a rule for one
    model; to choose between several, their odds will do, in fewer evaluations.
    """

    sd: float = 0.1
    patience: int = 1

    def __post_init__(self) -> None:
        _number(self, "sd", 0.0)
        _number(self, "patience", 1, whole=True)

    def check(self, session: "Session") -> str | None:
        """Whether they are."""
        if session.settled_belief() is None:
            return None
        if any(b is None or (np.diag(b.cov) > self.sd**2).any() for b in session.beliefs(self.patience)):
            return None
        one = f"the log-evidence of {session.models[0].name} is" if len(session.models) == 1 else ""
        return f"{one or 'all log-evidences are'} known to within {self.sd:g} nats{_held(self.patience)}"


@dataclass(frozen=True)
class ProbabilityKnown(Rule):
    """Stops when the probability of the most probable model is known to ``within`` (two standard deviations).

    ``patience`` is the number of evaluations in a row for which that must have been so.
    """

    within: float = 0.01
    patience: int = 1

    def __post_init__(self) -> None:
        _number(self, "within", 0.0, 1.0)
        _number(self, "patience", 1, whole=True)

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

    def __post_init__(self) -> None:
        _number(self, "p", 0.0, 1.0)

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

    def __post_init__(self) -> None:
        _number(self, "n", 1, whole=True)

    def check(self, session: "Session") -> str | None:
        """Whether they have not."""
        belief, beliefs = session.settled_belief(), session.beliefs(self.n + 1)
        then = beliefs[0]
        if belief is None or len(belief.mean) < 2 or then is None:
            return None
        a, b = np.argsort(-belief.probabilities, kind="stable")[:2]
        now, before = (x.log_odds_sd(a, b) for x in (belief, then))
        return f"{self.n} evaluations have not made the odds any surer" if now > 0.9 * before else None


SETTLED = ProbabilityKnown(within=0.01, patience=10) & LogOddsKnown(sd=0.01, patience=10, relative=0.01)
"""What ends a run that is not told otherwise: there is next to nothing left to learn.

Whoever needs no more than a decision can stop far earlier: ``BestIsBest(0.99)``, ``ProbabilityKnown()``.
"""


def settled(n_models: int) -> Rule:
    """What ends a run of so many models that is not told otherwise: one has no odds."""
    return SETTLED if n_models > 1 else EvidenceKnown(sd=0.01, patience=10)


def rule(text: str) -> Rule:
    """The rule that a text stands for, such as ``"BestIsBest(0.99) | WallTime(3600)"``."""
    try:
        found = _built(ast.parse(text.strip(), mode="eval").body)
    except OptionError:  # a rule, whose numbers make no sense
        raise
    except (SyntaxError, ValueError, TypeError, RecursionError):
        found = None
    if found is None:
        raise OptionError(
            f"{text!r} is no stopping rule. Rules are {', '.join(RULES)}, each with its numbers in brackets, "
            "such as BestIsBest(0.99) | WallTime(3600)."
        )
    return found


RULES = {
    made.__name__: made
    for made in (
        BestIsBest,
        ProbabilityKnown,
        LogOddsKnown,
        EvidenceKnown,
        NoProgress,
        WallTime,
        Budget,
        Never,
    )
}


def _built(node: ast.expr) -> Rule | None:
    """The rule of a parsed text; None where it says anything but rules."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd):
        first, second = _built(node.left), _built(node.right)
        if first is None or second is None:
            return None
        return first | second if isinstance(node.op, ast.BitOr) else first & second
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in RULES:
        return None
    numbers = [ast.literal_eval(argument) for argument in node.args]
    named = {str(k.arg): ast.literal_eval(k.value) for k in node.keywords}
    return RULES[node.func.id](*numbers, **named)
