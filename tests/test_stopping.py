"""When a run stops: each rule, their combinations, and what ends a run that is not told otherwise."""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import special

from example_models import gaussian, log_evidence
from modelodds import compare, odds
from modelodds.belief import Belief
from modelodds.errors import OptionError
from modelodds.odds import best_probability
from modelodds.problems import Problem, load
from modelodds.result import Result
from modelodds.session import Session
from modelodds.stopping import (
    SETTLED,
    BestIsBest,
    Budget,
    EvidenceKnown,
    LogOddsKnown,
    Never,
    NoProgress,
    ProbabilityKnown,
    Rule,
    WallTime,
)
from modelodds.stopping import rule as from_text

EASY = "tails-2"


def belief(mean: tuple[float, ...], sd: tuple[float, ...], prior: tuple[float, ...] | None = None) -> Belief:
    z, cov = odds.moments(mean, sd, np.log(prior or [1.0] * len(mean)))
    return Belief(np.array(mean), np.array(sd), z, np.sqrt(np.diag(cov)))


class Fake:
    """As much of a session as a rule looks at; ``past`` are its beliefs, the newest last."""

    def __init__(self, *past: Belief | None, prior: tuple[float, ...] = (), elapsed: float = 0.0) -> None:
        self.past, self.elapsed, self.n_evaluations = past, elapsed, len(past)
        k = max((len(b.mean) for b in past if b is not None), default=0)
        self.models = [SimpleNamespace(name=name) for name in ("ann", "bob", "cy")[:k]]
        self.log_prior = np.log(prior or np.ones(max(1, k)))

    def settled_belief(self) -> Belief | None:
        return self.past[-1]

    def beliefs(self, n: int) -> list[Belief | None]:
        return [None] * (n - len(self.past)) + list(self.past[-n:])


def reason(rule: Rule, session: Fake) -> str | None:
    found = rule.check(session)  # type: ignore[arg-type]
    assert rule(session) == (found is not None)  # type: ignore[arg-type]
    return found


# ---------------------------------------------------------------------- each rule


def test_never_never_stops() -> None:
    assert reason(Never(), Fake(belief((0.0, -9.0), (0.0, 0.0)), elapsed=1e9)) is None


def test_budget_counts_evaluations() -> None:
    some = belief((0.0, 0.0), (1.0, 1.0))
    assert reason(Budget(3), Fake(some, some)) is None
    assert reason(Budget(3), Fake(some, some, some)) == "3 evaluations were made"


def test_wall_time_is_that_of_the_session() -> None:
    assert reason(WallTime(60), Fake(None, elapsed=59.9)) is None
    assert reason(WallTime(60), Fake(None, elapsed=60.0)) == "60 seconds have passed"
    session = Session(load(EASY).models)
    assert WallTime(0).check(session) and WallTime(3600).check(session) is None


def test_log_odds_known_is_of_the_two_most_probable_models() -> None:
    close = belief((0.0, -9.0, -1.0), (0.03, 5.0, 0.04))
    assert reason(LogOddsKnown(0.049), Fake(close)) is None
    assert reason(LogOddsKnown(0.051), Fake(close)) == (
        "the log-odds of ann against cy are known to within 0.051 nats"
    )
    assert reason(LogOddsKnown(9.0), Fake(belief((0.0,), (0.01,)))) is None  # one model has no odds


def test_large_log_odds_need_only_be_known_to_a_share_of_themselves() -> None:
    far = belief((0.0, -20.0), (0.08, 0.06))
    assert reason(LogOddsKnown(0.05), Fake(far)) is None
    assert reason(LogOddsKnown(0.05, relative=0.004), Fake(far)) is None
    text = "the log-odds of ann against bob are known to within 1 % of themselves"
    assert reason(LogOddsKnown(0.05, relative=0.01), Fake(far)) == text
    assert reason(LogOddsKnown(0.05, relative=0.01), Fake(belief((0.0, -9.0), (0.08, 0.06)))) is None
    vague = belief((0.0, -900.0), (0.3, 0.0))
    assert reason(LogOddsKnown(0.05, relative=0.01), Fake(vague)) is None  # a quarter of a nat is the most
    prior = (np.exp(11.0), 1.0)  # prior odds count: 11 and 9 are 20
    found = Fake(belief((0.0, -9.0), (0.08, 0.06), prior), prior=prior)
    assert reason(LogOddsKnown(0.05, relative=0.01), found) == text


def test_evidence_known_is_of_every_model() -> None:
    sure, unsure = belief((0.0, -1.0), (0.03, 0.04)), belief((0.0, -1.0), (0.03, 0.06))
    assert reason(EvidenceKnown(0.05), Fake(unsure)) is None
    assert reason(EvidenceKnown(0.05), Fake(sure)) == "all log-evidences are known to within 0.05 nats"
    assert reason(EvidenceKnown(0.05, patience=2), Fake(unsure, sure)) is None
    text = "the log-evidence of ann is known to within 0.1 nats (for 2 evaluations now)"
    assert reason(EvidenceKnown(0.1, patience=2), Fake(*2 * [belief((3.0,), (0.09,))])) == text
    assert reason(EvidenceKnown(9.0), Fake(belief((0.0,), (1.0,)), None)) is None


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: BestIsBest(99), "BestIsBest needs a number from 0 to 1 for p, not 99."),
        (lambda: LogOddsKnown(-1), "LogOddsKnown needs a number of 0 or more for sd, not -1."),
        (lambda: LogOddsKnown(float("nan")), "not nan"),
        (lambda: WallTime("1h"), "WallTime needs a number of 0 or more for seconds, not '1h'."),
        (lambda: Budget(2.5), "Budget needs a whole number of 1 or more for n, not 2.5."),
        (lambda: ProbabilityKnown(0.1, patience=0), "needs a whole number of 1 or more for patience, not 0."),
        (lambda: NoProgress(True), "not True"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused(make: Callable[[], Rule], says: str) -> None:
    with pytest.raises(OptionError, match=re.escape(says)):
        make()


def test_a_rule_as_text_says_what_is_wrong_with_its_numbers() -> None:
    with pytest.raises(OptionError, match="from 0 to 1 for p, not 99"):
        from_text("BestIsBest(99) | Never()")


def test_a_rule_as_text_is_that_rule() -> None:
    for made in (
        SETTLED,
        BestIsBest(0.99) & LogOddsKnown(0.2) | WallTime(3600),
        Never(),
        EvidenceKnown(sd=1),
    ):
        assert from_text(f" {made!r}") == made


@pytest.mark.parametrize(
    "text",
    [
        "",
        "BestIsBest",
        "Best(3)",
        "BestIsBest(p=a)",
        "Never(1)",
        "Never() + Never()",
        "Never() |",
        "1 | Never()",
        "Budget(__import__('os').getpid())",
        "().__class__",
        "Budget(*[1])",
        "Budget(n=1, m=2)",
        "Budget(**{})",
    ],
)
def test_a_text_that_is_no_rule_is_refused_with_those_there_are(text: str) -> None:
    with pytest.raises(OptionError, match=r"no stopping rule.*BestIsBest.*Never"):
        from_text(text)


def test_probability_known_is_of_the_most_probable_model() -> None:
    found = belief((-1.0, 0.0), (0.01, 0.01))
    width = 2 * found.probability_sd[1]
    assert reason(ProbabilityKnown(0.99 * width), Fake(found)) is None
    text = reason(ProbabilityKnown(1.01 * width), Fake(found))
    assert text is not None and text.startswith("the probability of bob, 0.73, is known to within 0.0")
    assert "evaluations" not in text


def test_patience_asks_for_evaluations_in_a_row() -> None:
    sure, unsure = belief((0.0, -1.0), (0.01, 0.01)), belief((0.0, -1.0), (1.0, 1.0))
    rule = ProbabilityKnown(0.01, patience=3)
    assert reason(rule, Fake(sure, sure)) is None  # too early to tell
    assert reason(rule, Fake(sure, unsure, sure, sure)) is None
    assert reason(rule, Fake(sure, None, sure, sure)) is None  # not known is not sure
    text = reason(rule, Fake(unsure, sure, sure, sure))
    assert text == "the probability of ann, 0.73, is known to within 0.01 (for 3 evaluations now)"


def test_best_is_best_takes_prior_probabilities_into_account() -> None:
    apart = belief((0.0, -3.0), (1.0, 1.0))  # two standard deviations of 1.41, and a bit
    sure = special.ndtr(3 / np.sqrt(2))
    assert reason(BestIsBest(sure + 1e-4), Fake(apart)) is None
    assert reason(BestIsBest(sure - 1e-4), Fake(apart)) == (
        "ann is the most probable model with probability 0.983"
    )
    prior = (0.01, 0.99)
    turned = belief((0.0, -3.0), (1.0, 1.0), prior)
    text = reason(BestIsBest(0.5), Fake(turned, prior=prior))
    expected = special.ndtr((np.log(99) - 3) / np.sqrt(2))
    assert text == f"bob is the most probable model with probability {expected:.4g}"


def test_no_progress_looks_at_the_odds_n_evaluations_ago() -> None:
    wide, same, better = (belief((0.0, -1.0), (s, s)) for s in (1.0, 0.95, 0.85))
    rule = NoProgress(2)
    assert reason(rule, Fake(wide, wide, same)) == "2 evaluations have not made the odds any surer"
    assert reason(rule, Fake(wide, wide, better)) is None
    assert reason(rule, Fake(wide, same)) is None  # there were not so many yet
    assert reason(rule, Fake(None, wide, same)) is None
    alone = belief((0.0,), (1.0,))
    assert reason(rule, Fake(alone, alone, alone)) is None


@pytest.mark.parametrize("rule", [LogOddsKnown(9.0), ProbabilityKnown(1.0), BestIsBest(0.0), NoProgress(1)])
def test_no_rule_on_beliefs_is_met_before_there_is_one(rule: Rule) -> None:
    easy = belief((0.0, -9.0), (1e-3, 1e-3))
    assert reason(rule, Fake(easy, easy)) is not None
    assert reason(rule, Fake(easy, None)) is None


# ---------------------------------------------------------------------- combined


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_either_is_or_and_both_is_and(first: bool, second: bool) -> None:
    a, b = Budget(1 if first else 99), WallTime(0 if second else 99)
    session = Fake(None)
    assert (a | b)(session) == (first or second)  # type: ignore[arg-type]
    assert (a & b)(session) == (first and second)  # type: ignore[arg-type]


def test_reasons_are_joined() -> None:
    a, b = Budget(1), WallTime(0)
    assert reason(a | b, Fake(None)) == "1 evaluations were made"
    assert reason(Never() | b, Fake(None)) == "0 seconds have passed"
    assert reason(a & b, Fake(None)) == "1 evaluations were made, and 0 seconds have passed"


def test_and_binds_tighter_than_or_and_repr_shows_it() -> None:
    a, b, c = Budget(1), Never(), WallTime(0)
    assert reason(a | b & c, Fake(None)) and not reason((a | b) & Never(), Fake(None))
    assert repr(a | b & c) == "Budget(n=1) | (Never() & WallTime(seconds=0))"
    assert repr((a | b) & c) == "(Budget(n=1) | Never()) & WallTime(seconds=0)"
    assert repr(a & b | c) == "(Budget(n=1) & Never()) | WallTime(seconds=0)"
    assert repr(a | b | c) == "Budget(n=1) | Never() | WallTime(seconds=0)"
    names = {rule.__name__: rule for rule in (Budget, Never, WallTime, ProbabilityKnown, LogOddsKnown)}
    for rule in (a | b & c, (a | b) & c, a & b | c, a & b & c, SETTLED | a):
        assert eval(repr(rule), {}, names) == rule


@pytest.mark.parametrize("other", [3, None, lambda session: True, "budget"])
@pytest.mark.parametrize("combine", [lambda a, b: a | b, lambda a, b: a & b], ids=["or", "and"])
def test_rules_combine_with_rules_alone(combine: Callable[[Any, Any], Any], other: Any) -> None:
    with pytest.raises(OptionError, match="combine with each other"):
        combine(Never(), other)


# ---------------------------------------------------------------------- in a run


def run(**options: Any) -> Result:
    return compare(load(EASY).models, **{"budget": 70, "progress": False, **options})


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load(EASY)


@pytest.fixture(scope="module")
def settled() -> Result:
    return run()


def test_a_run_ends_when_the_answer_is_settled(settled: Result, problem: Problem) -> None:
    assert settled.status == "settled" and len(settled.evaluations) < 70
    truth = special.expit(problem.log_evidence[1] - problem.log_evidence[0])
    assert settled.best == "cigar" and settled.probabilities["cigar"] == pytest.approx(truth, abs=0.01)
    assert settled.message == (
        f"Stopped: the probability of cigar, {settled.probabilities['cigar']:.2f}, is known to within 0.01, "
        "and the log-odds of cigar against student are known to within 0.01 nats "
        "(for 10 evaluations now)."
    )


def test_it_ends_as_soon_as_it_may(settled: Result) -> None:
    """Ten evaluations in a row within a hundredth of a nat, and not the ten before."""
    sd = settled.history[[f"log_evidence_sd[{name}]" for name in settled.names]].to_numpy()
    held = list(np.hypot(*sd.T) <= 0.01)
    assert all(held[-10:]) and not any(all(held[i - 10 : i]) for i in range(10, len(held)))


def test_never_spends_the_budget_and_begins_alike(settled: Result) -> None:
    n = len(settled.evaluations)
    spent = run(stop=Never(), budget=n + 4)
    assert spent.status == "budget" and len(spent.evaluations) == n + 4
    assert spent.message == "Stopped: the budget of evaluations is spent."
    np.testing.assert_array_equal(spent.evaluations["x0"][:n], settled.evaluations["x0"])


def test_a_rule_of_ones_own_ends_a_run_with_status_stop() -> None:
    by_rule = run(stop=Budget(20) & WallTime(0) | Never())
    assert by_rule.status == "stop" and len(by_rule.evaluations) == 20
    assert by_rule.message == "Stopped: 20 evaluations were made, and 0 seconds have passed."


def test_a_plain_function_is_a_rule() -> None:
    seen = []

    def enough(session: Session) -> bool:
        seen.append(session.n_evaluations)
        return session.n_evaluations == 18

    by_function = run(stop=enough)
    assert by_function.status == "stop" and by_function.message == "Stopped: the stopping rule was met."
    assert seen == list(range(1, 19))


def test_no_rule_on_beliefs_stops_a_run_inside_its_initial_design() -> None:
    early = run(stop=BestIsBest(0.0), budget=40)
    design = 2 * 8  # 2 d + 4 for each of two models in two dimensions
    assert early.status == "stop" and design <= len(early.evaluations) < 40


def test_a_rules_class_is_not_a_rule() -> None:
    with pytest.raises(OptionError, match="stop is the class Never; give a rule"):
        run(stop=Never)


def test_one_model_alone_is_settled_when_its_evidence_is_known() -> None:
    result = compare([gaussian("a")], budget=100, progress=False)
    assert result.status == "settled" and len(result.evaluations) < 40
    assert "the log-evidence of a is known to within 0.01 nats (for 10 evaluations now)" in result.message
    assert result.log_evidence["a"] == pytest.approx(log_evidence("a"), abs=0.02)


def test_batches_settle_too() -> None:
    batched = run(batch=4, budget=100)
    assert batched.status == "settled" and len(batched.evaluations) < 100


# ---------------------------------------------------------------------- the probability of being best


def test_best_probability_of_two_is_a_normal_probability() -> None:
    for gap, sd in [(0.3, (1.0, 0.7)), (2.0, (0.5, 1.5)), (-1.0, (0.0, 1.0)), (40.0, (3.0, 3.0))]:
        expected = special.ndtr(gap / np.hypot(*sd))
        assert best_probability([gap, 0.0], sd, 0) == pytest.approx(expected, abs=2e-5)


def test_best_probability_is_the_share_of_draws_that_it_wins() -> None:
    location, sd = np.array([0.2, -0.5, 1.0, 0.9]), np.array([1.0, 2.0, 0.6, 0.5])
    draws = np.random.default_rng(0).normal(location, sd, size=(400_000, 4))
    share = np.bincount(draws.argmax(1), minlength=4) / len(draws)
    found = [best_probability(location, sd, i) for i in range(4)]
    np.testing.assert_allclose(found, share, atol=4 * 0.5 / np.sqrt(len(draws)))
    assert sum(found) == pytest.approx(1.0, abs=1e-3)


def test_best_probability_of_evidences_known_exactly() -> None:
    assert best_probability([1.0, 0.0], [0.0, 0.0], 0) == pytest.approx(1.0)
    assert best_probability([0.0, 1.0], [0.0, 0.0], 0) == pytest.approx(0.0)
    assert best_probability([0.0, 0.0], [0.0, 0.0], 0) == pytest.approx(0.5)
    assert best_probability([0.0, -np.inf], [1.0, 0.0], 0) == pytest.approx(1.0)
    assert best_probability([0.0], [1.0], 0) == pytest.approx(1.0)


@pytest.mark.parametrize("sd", [0.0, 0.05])
def test_best_probability_against_a_rival_known_well(sd: float) -> None:
    for gap in np.linspace(-3.0, 3.0, 25):
        expected = special.ndtr(gap / np.hypot(1.0, sd))
        assert best_probability([gap, 0.0], [1.0, sd], 0) == pytest.approx(expected, abs=1e-3)
