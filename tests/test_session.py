"""Ask, tell, fail: what a session promises to those who run the evaluations themselves."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from example_models import bell, gap, gaussian, log_evidence, null
from modelodds import Model, Session
from modelodds.errors import BudgetError, ModelOddsError, OptionError, PriorError, QueryError
from modelodds.evaluate import evaluate
from modelodds.method import Method
from modelodds.session import Query


def pair() -> list[Model]:
    return [gaussian("a"), gaussian("b")]


def answer(session: Session, queries: list[Query]) -> None:
    """Tell the queries' values, in the order given."""
    models = {model.name: model for model in session.models}
    for query in queries:
        session.tell(query, evaluate(models[query.model], query.theta))


def running(rng: Any = 0, n: int = 14) -> Session:
    """A session past its initial design of six points for each of the two models."""
    session = Session(pair(), rng=rng)
    for _ in range(n):
        answer(session, session.ask())
    return session


def same(a: list[Query], b: list[Query]) -> bool:
    """Whether the queries agree to the last bit."""
    return [(q.id, q.model, *q.theta) for q in a] == [(q.id, q.model, *q.theta) for q in b]


# ---------------------------------------------------------------------- the contract


def test_queries_are_numbered_from_zero_and_name_their_model() -> None:
    session = Session(pair())
    queries = [*session.ask(3), *session.ask(), *session.ask(2)]
    assert [q.id for q in queries] == list(range(6))
    assert {q.model for q in queries} == {"a", "b"}
    assert all(q.theta.shape == (1,) and np.isfinite(q.theta).all() for q in queries)
    assert session.n_evaluations == 0 and session.in_design


def test_a_query_is_answered_once_and_only_if_asked() -> None:
    session = Session(pair())
    first, second = session.ask(2)
    session.tell(first, -1.0)
    with pytest.raises(QueryError, match=r"Query 0 was answered already; open queries: \[1\]"):
        session.tell(first, -1.0)
    with pytest.raises(QueryError, match="answered already"):
        session.fail(0, "late")
    with pytest.raises(QueryError, match="Query 7 was never asked"):
        session.tell(7, -1.0)
    session.tell(second.id, -2.0)  # by number
    with pytest.raises(QueryError, match="open queries: none"):
        session.tell(1, -2.0)
    assert issubclass(QueryError, ModelOddsError) and issubclass(QueryError, KeyError)
    assert session.n_evaluations == 2 and session.n_failures == 0
    table = session.result().evaluations
    assert table["id"].tolist() == [0, 1] and table["log_likelihood"].tolist() == [-1.0, -2.0]
    assert table["x"].tolist() == [first.theta[0], second.theta[0]]


def test_failures_are_on_record_and_not_asked_for_again() -> None:
    session = running()
    before = session.belief()
    [query] = session.ask()
    session.fail(query, "the licence server is down", seconds=2.5)
    assert (session.n_evaluations, session.n_failures) == (15, 1)
    after = session.belief()
    np.testing.assert_array_equal(after.mean, before.mean)  # nothing was learnt
    row = session.result().evaluations.iloc[-1]
    assert row["status"] == "failed" and row["reason"] == "the licence server is down"
    assert row["seconds"] == 2.5 and np.isnan(row["log_likelihood"])
    following = session.ask(4)
    distances = [np.abs(q.theta - query.theta).max() for q in following if q.model == query.model]
    assert min(distances, default=1.0) > 1e-3


def test_a_region_that_always_fails_stops_being_asked_though_it_matters() -> None:
    session, beyond = Session([gaussian("a")], rng=0), []
    for _ in range(40):
        [query] = session.ask()
        beyond.append(query.theta[0])
        if beyond[-1] > 0.0:
            session.fail(query, "does not converge")
        else:
            session.tell(query, gaussian("a").log_likelihood(query.theta))
    late = np.array(beyond[-20:])
    assert (late > 0.2).sum() == 0 and (late > 0.0).sum() <= 4  # only its edge is still looked at


@pytest.mark.parametrize("value", [np.nan, np.inf, 1j, None, "-1.0", [1.0, 2.0, 3.0], (-1.0, -0.1)], ids=str)
def test_what_is_no_log_likelihood_counts_as_a_failure(value: Any) -> None:
    session = Session(pair())
    [query] = session.ask()
    session.tell(query, value)
    assert session.n_failures == 1
    assert "the log-likelihood" in session.result().evaluations["reason"][0] or value == (-1.0, -0.1)


def test_bad_seeds_and_budgets_say_what_to_change() -> None:
    for rng in (True, None, "0", 1.5):
        with pytest.raises(OptionError, match="rng must be an integer seed or a numpy"):
            Session(pair(), rng=rng)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="rng=-1 is no seed; use 0 or more"):
        Session(pair(), rng=-1)
    with pytest.raises(BudgetError, match="budget=5 is too small: these 2 models need at least 6"):
        Session(pair(), budget=5)
    assert sum(session_design(budget=6)) == 6  # the least that will do


def session_design(budget: int) -> list[int]:
    session = Session(pair(), budget=budget)
    names = []
    while session.in_design:
        queries = session.ask()
        names += [q.model for q in queries]
        answer(session, queries)
    return [names.count("a"), names.count("b")]


def test_the_initial_design_takes_at_most_half_of_a_known_budget() -> None:
    method = Method()
    full = method.initial_points(1)
    assert session_design(budget=4 * full) == [full, full]
    assert sum(session_design(budget=3 * full)) <= 1.5 * full


# ---------------------------------------------------------------------- batches


def test_points_of_a_batch_differ_and_leave_the_belief_alone() -> None:
    session = running()
    before = session.belief()
    queries = session.ask(4)
    assert len(queries) == 4
    for name in ("a", "b"):
        theta = np.sort([q.theta[0] for q in queries if q.model == name])
        assert np.diff(theta).min(initial=1.0) > 1e-3
    pending = session.belief()
    for part in ("mean", "sd", "probabilities", "probability_sd"):
        np.testing.assert_array_equal(getattr(pending, part), getattr(before, part))
    answer(session, queries[::-1])  # answers may come in any order
    after = session.belief()
    assert not np.array_equal(after.mean, before.mean)
    table = session.result().evaluations
    assert table["id"].tolist()[-4:] == [q.id for q in queries[::-1]]


def test_what_is_out_counts_when_models_are_compared() -> None:
    """With several out at any time, there is never a moment at which all is in."""
    session, out = Session(pair()[:1]), []
    for _ in range(12):
        out += session.ask(4 - len(out))
        answer(session, [out.pop(0)])
    (learner,) = session._learners
    learner.propose("log_odds")
    assert len(learner.out) == 3 and 0.0 < learner.remaining < 0.9


def test_models_are_asked_in_turn_while_some_of_the_design_is_out() -> None:
    wild = Model("wild", lambda theta: float(-1e4 * theta[0] ** 4), pair()[0].prior)
    session = Session([pair()[0], wild])
    design = 2 * Method().initial_points(1)
    queries = session.ask(design)
    answer(session, queries[: design // 2])
    more = session.ask(6)
    assert session.in_design and sum(q.model == "a" for q in more) == 3
    assert not any(learner.climb.out for learner in session._learners)


def test_more_can_be_asked_for_than_the_design_has_before_anything_is_told() -> None:
    session = Session(pair())
    queries = session.ask(20)
    assert len(queries) == 20
    assert len({(q.model, q.theta[0]) for q in queries}) == 20
    assert abs(sum(q.model == "a" for q in queries) - 10) <= 1


def test_a_batch_does_not_ask_twice_for_what_has_one_answer() -> None:
    session = Session([null("n", -1.0)])
    queries = session.ask(4)
    assert [q.id for q in queries] == [0]
    session.tell(queries[0], -1.0)
    assert session.ask(4) == [] and session.settled


# ---------------------------------------------------------------------- the same seed


def test_the_same_seed_and_values_give_the_same_queries() -> None:
    asked = [running(rng).ask(2) for rng in (3, 3, np.random.default_rng(3), np.int64(3))]
    assert all(same(asked[0], other) for other in asked[1:])
    assert not same(asked[0], running(4).ask(2))


def test_a_result_on_the_way_changes_nothing() -> None:
    plain, curious = running(), running()
    first, second = curious.result(), curious.result()
    assert first.log_evidence == second.log_evidence  # fresh nodes, but always the same ones
    assert same(plain.ask(2), curious.ask(2))
    assert first.status == "open" and "still open" in first.message


# ---------------------------------------------------------------------- what is known


def test_belief_and_result_are_right_and_agree() -> None:
    session = running()
    belief = session.belief()
    assert session.standing is belief
    result = session.result()
    truth = np.array([log_evidence("a"), log_evidence("b")])
    # A Gaussian likelihood is what the surrogate's mean can be: 1e-3, far below a nat, is left of it.
    np.testing.assert_allclose(belief.mean, truth, atol=3e-3)
    np.testing.assert_allclose(list(result.log_evidence.values()), truth, atol=3e-3)
    assert np.all(np.abs(belief.mean - truth) < 4 * belief.sd)
    assert belief.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    assert result.log_bayes_factor("a", "b")[0] == pytest.approx(gap("a", "b"), abs=3e-3)
    assert session.counts() == result.n_evaluations and sum(session.counts().values()) == 14
    assert result.seed == 0 and running(np.random.default_rng(0)).result().seed is None


def test_nothing_is_claimed_before_anything_is_known() -> None:
    session = Session(pair())
    belief = session.belief()
    np.testing.assert_allclose(belief.probabilities, 0.5, atol=1e-9)
    assert np.all(belief.sd >= 1000) and np.all(belief.probability_sd > 0.45)
    assert session.result().probabilities == pytest.approx({"a": 0.5, "b": 0.5})


def test_posterior_draws_are_the_posteriors() -> None:
    draws = running().result().posterior("a", 2000)["x"]
    # Prior N(0, 1) times N(0.3; x, 0.5): mean 0.24, variance 0.2. 2000 draws err by sqrt(0.2 / 2000) = 0.01.
    assert draws.mean() == pytest.approx(0.24, abs=0.04)
    assert draws.std() == pytest.approx(np.sqrt(0.2), abs=0.03)


def test_a_wild_extrapolation_does_not_take_all_posterior_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    session = running()
    learner = session._learners[0]
    predict = learner.surrogate.predict

    def wild(x: Any) -> Any:
        mean, variance = (np.array(part) for part in predict(x))
        mean[np.argmax(np.abs(x).sum(axis=1))] = 1e3  # nats above the best observation
        return mean, variance

    monkeypatch.setattr(learner.surrogate, "predict", wild)
    draws = learner.report(500, seed=0).draws
    assert len(np.unique(draws, axis=0)) > 400


def test_fixed_parameters_come_with_every_query() -> None:
    model = Model("m", bell(0.0, 1.0), {"x": stats.norm(), "k": 2.0, "y": stats.uniform(3, 1)})
    for query in Session([model]).ask(5):
        assert query.theta.shape == (3,) and query.theta[1] == 2.0 and 3 <= query.theta[2] <= 4


def test_an_evaluation_with_too_many_numbers_is_refused_with_the_names() -> None:
    session = Session([gaussian("a")])
    with pytest.raises(PriorError, match="theta has 2 numbers; model 'a' has 1: x"):
        session.add("a", [0.0, 1.0], 0.0)
