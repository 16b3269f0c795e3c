"""Steps uphill: no model is given up for a slope's foot."""

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from modelodds import Model, Session
from modelodds.climb import FIRST, GROWTH, MISSES, SPEC, Climb, Known, Step
from modelodds.hints import NONE, Hints, hints
from modelodds.method import PRESETS, Method
from modelodds.session import Query

Array = NDArray[np.float64]

PRIOR = {name: stats.norm() for name in "abc"}
DESIGN = 2 * 3 + 4
WIDTH, SHOULDER, DEPTH, CENTRE = 0.05, 0.7, 60.0, 0.8


def peak(theta: Array) -> float:
    """A narrow peak, whose maximum is 0, on a broad shoulder far below."""
    squared = ((theta - CENTRE) ** 2).sum()
    return float(np.logaddexp(-0.5 * squared / WIDTH**2, -DEPTH - 0.5 * squared / SHOULDER**2))


def broad(theta: Array) -> float:
    """Better than all the initial design sees of the peak, and worse than the peak."""
    return float(-20.0 - 0.5 * (theta**2).sum())


LIKELIHOODS = {"peak": peak, "broad": broad}


def session(climb: bool = True, names: tuple[str, ...] = ("peak", "broad"), seed: int = 0) -> Session:
    models = [Model(name, LIKELIHOODS[name], PRIOR) for name in names]  # type: ignore[arg-type]
    return Session(models, Method(climb=climb, acquisition="variance", coupling="independent"), rng=seed)


def answer(session: Session, query: Query) -> float:
    value = LIKELIHOODS[query.model](query.theta)
    session.tell(query, value)
    return value


def past_design(climb: bool = True, names: tuple[str, ...] = ("peak",)) -> tuple[Session, float]:
    """A session whose initial design is done, and its best value."""
    made, best = session(climb, names), -np.inf
    while made.in_design:
        best = max(best, answer(made, made.ask()[0]))
    return made, best


def evaluations_to_the_top(climb: bool, seed: int) -> int:
    """Evaluations, of both models, after which the peak is known to within 3 nats of its maximum."""
    made = session(climb, seed=seed)
    for n in range(1, 70):
        (query,) = made.ask()
        if answer(made, query) > -3.0:
            return n
    return n


def test_a_narrow_peak_is_climbed_before_its_model_is_given_up() -> None:
    """The design sees the peak's shoulder alone, forty nats below what the rival has to offer."""
    best = past_design(names=("peak",))[1]
    assert best < -DEPTH + 1.0
    climbed, otherwise = (
        sum(evaluations_to_the_top(climb, seed) for seed in range(3)) for climb in (True, False)
    )
    assert climbed < 0.85 * otherwise


def test_the_paper_never_climbs() -> None:
    assert not PRESETS["paper"].climb and PRESETS["default"].climb
    made = Session([Model("broad", broad, PRIOR)], "paper")  # type: ignore[arg-type]
    while made.in_design:
        assert made.settled_belief() is None
        answer(made, made.ask()[0])
    assert made.settled_belief() is not None  # nothing to wait for


def steps_to_rest(made: Session, found: Callable[[Query], object]) -> int:
    """Steps until the climb is over, each of which finds what ``found`` says."""
    for n in range(sum(MISSES.values()) + 1):
        if made.settled_belief() is not None:
            return n
        (query,) = made.ask()
        assert made.settled_belief() is None  # a step is out
        value = found(query)
        if value is None:
            made.fail(query, "no luck")
        else:
            made.tell(query, value)
    raise AssertionError("the climb does not end")


def test_a_step_counts_as_climbing_until_it_comes_back() -> None:
    (made, best), rng = past_design(), np.random.default_rng(0)
    assert steps_to_rest(made, lambda query: best - 30.0 * rng.uniform()) >= MISSES["wide"]


def test_steps_that_gain_are_followed_by_others() -> None:
    made, best = past_design()
    for gain in 5.0 * np.arange(1, 6):
        made.tell(made.ask()[0], best + gain)
        assert made.settled_belief() is None
    assert steps_to_rest(made, lambda query: -np.inf) >= MISSES["wide"]  # likelihood zero is no gain


def test_a_noisy_gain_must_exceed_its_noise() -> None:
    made, _ = past_design()
    out = made._learners[0].climb.out
    assert steps_to_rest(made, lambda query: (out[query.id].before + 5.0, 2.5)) >= MISSES["wide"]


def hopeful() -> tuple[Session, float]:
    """A session whose first steps uphill have gained, and its best value."""
    made, best = past_design()
    for _ in range(3):
        best += 10.0
        made.tell(made.ask()[0], best)
    return made, best


def test_several_steps_are_out_at_once_and_each_has_its_own_to_tell() -> None:
    made, best = hopeful()
    queries, climb = made.ask(6), made._learners[0].climb
    steps = [q for q in queries if q.id in climb.out]
    assert 1 < len(steps) <= MISSES["wide"]
    gaps = [np.abs(a.theta - b.theta).max() for a in steps for b in steps if a is not b]
    assert min(gaps) > 0.01
    for query in queries:
        made.tell(query, best - 30.0)
    assert climb._misses == len(steps) % MISSES["wide"] and not climb.out


def test_a_miss_from_before_a_gain_is_none() -> None:
    made, best = hopeful()
    queries, climb = made.ask(6), made._learners[0].climb
    steps = [q for q in queries if q.id in climb.out]
    made.tell(steps[1], best + 10.0)
    made.tell(steps[0], best - 10.0)
    assert climb._misses == 0 and climb.going_on


def test_uphill_is_looked_again_as_the_session_grows() -> None:
    made, best = past_design()
    rng, steps = np.random.default_rng(0), []
    for _ in range(3 * DESIGN):
        (query,) = made.ask()
        steps += [query.id] if query.id in made._learners[0].climb.out else []
        made.tell(query, best - 30.0 * rng.uniform())  # erratic: there is always hope
    pauses = [(a, b) for a, b in itertools.pairwise(steps) if b > a + 1]
    assert steps[0] == DESIGN
    assert pauses and pauses[0][1] in [int(np.ceil(GROWTH * (pauses[0][0] + i))) for i in (1, 2)]


def test_a_better_hill_is_climbed_at_once() -> None:
    climb = Climb(np.array([[-7.0], [7.0]]), np.random.default_rng(0))
    climb.heard(-20.0, 0.0)
    climb.rest(query=10)
    climb.heard(-12.0, 0.0)  # more, but no other hill
    assert not climb.going_on and not climb.due(11)
    climb.heard(-1.0, 4.0)  # eleven nats more, give or take two
    assert not climb.going_on
    climb.heard(15.0, 4.0)
    assert climb.going_on and climb.due(11)


def test_no_step_goes_beyond_a_hard_end() -> None:
    """The likelihood is best at an end of the support, infinitely far away in a normal coordinate.

    Leaps may: they go to points of the prior, one at a time, and do not crawl on.
    """
    made = Session([Model("m", lambda t: float(-40.0 * t.sum()), {"a": stats.expon(), "b": stats.expon()})])
    prior, steps = made.models[0].prior, []
    while made.n_evaluations < 30:
        (query,) = made.ask()
        climb = made._learners[0].climb
        if query.id in climb.out and climb._phases[0] != "leap":
            steps.append(prior.to_x(query.theta))
        made.tell(query, -40.0 * query.theta.sum())
    assert len(steps) > 3
    reached = np.min(steps, axis=0)
    assert (reached >= -2.0 - 1e-9).all() and (reached < -1.5).any()


def test_steps_that_fail_do_not_block() -> None:
    made, _ = past_design()
    assert steps_to_rest(made, lambda query: None) >= MISSES["wide"]


def test_a_sharp_ridge_is_climbed() -> None:
    """Curved, and thirty times as long as wide: the model's own surrogate sees only cliffs."""

    def ridge(theta: Array) -> float:
        across = theta[1] - 0.5 * theta[0] ** 2, theta[2] - theta[0] * theta[1]
        return float(-0.5 * (((theta[0] - 1.0) / 0.3) ** 2 + (across[0] ** 2 + across[1] ** 2) / 0.01**2))

    made = Session([Model("ridge", ridge, PRIOR)])  # type: ignore[arg-type]
    values = []
    while len(values) < 40:
        (query,) = made.ask()
        values.append(ridge(query.theta))
        made.tell(query, values[-1])
    assert max(values[:DESIGN]) < -1000.0 and max(values) > -15.0


def test_an_excursion_finds_the_higher_of_two_modes() -> None:
    """Both lie aside from the prior's middle; the design's best observation is on the lower one's flank."""

    def modes(theta: Array) -> float:
        low, high = (((theta - centre) / 0.15) ** 2 for centre in (1.2, -1.3))
        return float(np.logaddexp(-0.5 * low.sum(), 15.0 - 0.5 * high.sum()))

    found = []
    for seed in range(2):
        made = Session([Model("modes", modes, PRIOR)], rng=seed)  # type: ignore[arg-type]
        values = []
        for _ in range(80):
            (query,) = made.ask()
            values.append(modes(query.theta))
            made.tell(query, values[-1])
        found.append(max(values) > 12.0)
    assert all(found)


def test_a_model_is_tried_where_one_that_shares_parameters_is_best() -> None:
    models = [
        Model(
            "small", lambda t: float(-50.0 * ((t - 0.7) ** 2).sum()), {"a": stats.norm(), "b": stats.norm()}
        ),
        Model("large", lambda t: float(-np.exp(3.0 * np.abs(t - 0.7)).sum()), PRIOR),  # type: ignore[arg-type]
    ]
    made = Session(models, rng=6)  # the small one's best is not where the large one's was tried before
    for _ in range(60):
        (query,) = made.ask()
        large = made._learners[1]
        if query.id in large.climb.out and large.climb._phases[0] == "hint":
            other = made._learners[0]
            assert (
                query.theta[:2].tolist()
                == other.model.prior.to_theta(other.surrogate.observations.best_x).tolist()
            )
            return
        made.tell(
            query, dict(zip(("small", "large"), models, strict=True))[query.model].log_likelihood(query.theta)
        )
    raise AssertionError("no hint was taken")


def test_a_resting_climb_tries_the_hint_of_a_model_that_found_far_more() -> None:
    climb = Climb(np.array([[-7.0], [7.0]]), np.random.default_rng(0))
    there, farther = np.array([2.0]), np.array([4.0])

    def told(theirs: float, x: Array) -> Known:
        return known(1.0)._replace(hints=Hints([x], theirs))

    climb._hint_step(told(-30.0, there))
    assert not climb.resting
    climb.rest(20)
    assert climb.resting
    assert climb.tip(told(-21.0, farther)) is None  # nine nats more
    assert climb.tip(told(-19.0, there)) is None  # it is the same
    assert climb.tip(told(-8.0, farther)) is farther
    assert climb.tip(told(-8.0, farther)) is None
    assert climb.resting  # until the hint has proved good
    climb.heard(-50.0, 0.0)
    climb.rest(30)
    climb.heard(-20.0, 0.0)
    assert not climb.resting


def test_any_of_another_models_parts_may_be_meant() -> None:
    line, depth = stats.norm(), stats.norm(0, 2)
    one = Model("one", lambda t: 0.0, {"a1": line, "b1": depth})
    parts = [("a1", "b1"), ("a2", "b2")]
    two = Model("two", lambda t: 0.0, {"a1": line, "b1": depth, "a2": line, "b2": depth}, exchangeable=parts)
    made = Session([one, two])
    first, second = made._learners
    made.add("one", np.array([0.3, 0.4]), -5.0)
    made.add("two", np.array([1.0, 2.0, -1.0, -2.0]), -3.0)
    made.add("two", np.array([0.0, 0.0, 0.0, 0.0]), -9.0)
    theta = [one.prior.to_theta(x).round(6).tolist() for x in hints(first.side, [second.side]).points]
    assert theta == [[1.0, 2.0], [-1.0, -2.0]]
    theta = [two.prior.to_theta(x).round(6).tolist() for x in hints(second.side, [first.side]).points]
    assert theta == [[0.3, 0.4, -1.0, -2.0], [0.3, 0.4, 1.0, 2.0]]  # in either one's place
    made.add("two", np.array([5.0, 5.0, 0.3, 0.4]), 0.0)
    assert hints(second.side, [first.side]).points == []  # it has it already


def test_one_parts_summits_may_be_the_parts_of_two() -> None:
    def line(theta: Array) -> float:
        return float(6.0 * np.exp(-8.0 * (theta[0] - 1.0) ** 2) + 4.0 * np.exp(-8.0 * (theta[0] + 1.0) ** 2))

    one = Model("one", line, {"a1": stats.norm()})
    two = Model(
        "two", lambda t: 0.0, dict.fromkeys(("a1", "a2"), stats.norm()), exchangeable=[("a1",), ("a2",)]
    )
    made = Session([one, two])
    for a in np.linspace(-2.0, 2.0, 9):
        made.add("one", np.array([a]), line(np.array([a])))
    made.add("two", np.array([1.0, 0.0]), 6.0)
    made.belief()
    first, second = made._learners
    assert [top["a1"] for top in first.side.summits(2)] == [1.0, -1.0]
    (x,) = hints(second.side, [first.side]).points
    assert two.prior.to_theta(x).round(6).tolist() == [1.0, -1.0]


def test_a_failed_step_is_tried_elsewhere() -> None:
    made, _ = past_design()
    (failed,) = made.ask()
    made.fail(failed, "no luck")
    assert made.settled_belief() is None
    (again,) = made.ask()
    assert not np.array_equal(again.theta, failed.theta)


class Wild:
    """A surrogate that knows nothing of one far point, and all of the others."""

    observations = SimpleNamespace(best=0.0, x=np.zeros((1, 1)))
    offset, squash = 0.0, SimpleNamespace(log_likelihood=lambda f: f)

    spec = SPEC

    def __init__(self, sd: float) -> None:
        self.sd = sd

    def straight(self, x: Array) -> tuple[Array, Array]:
        return np.full(len(x), -20.0), np.where(x[:, 0] > 2.0, self.sd, 1e-3) ** 2

    def predict(self, x: Array) -> tuple[Array, Array]:
        return self.straight(x)


def known(sd: float) -> Known:
    everywhere = np.array([[0.0], [1.0], [3.0]])
    wild: Any = Wild(sd)
    return Known(wild, [], lambda x: np.ones(len(x), dtype=bool), everywhere, NONE, wild.straight)


def test_a_leap_goes_where_a_gain_is_most_probable_if_one_can_be_expected() -> None:
    climb = Climb(np.array([[-7.0], [7.0]]), np.random.default_rng(0))
    step = climb._leap_step(known(20.0))
    assert step is not None
    assert step.x == pytest.approx([3.0])
    assert climb._leap_step(known(5.0)) is None  # four standard deviations


def test_leaps_cut_in_on_a_climb_that_promises_next_to_nothing_beside_them() -> None:
    climb = Climb(np.array([[-7.0], [7.0]]), np.random.default_rng(0))
    climb._phases = ["wide", "close"]
    assert climb._aside(known(400.0), promise=30.0) is None  # worth its while
    leap = climb._aside(known(400.0), promise=0.5)
    assert leap is not None
    assert leap.aside
    climb._strayed = True  # then it is the climb's turn
    assert climb._aside(known(400.0), promise=0.5) is None


def test_a_leap_aside_counts_for_no_miss_and_its_gain_for_a_new_start() -> None:
    climb = Climb(np.array([[-7.0], [7.0]]), np.random.default_rng(0))
    climb._phases, climb._misses, climb._radius = ["close", "leap"], 2, 0.01
    climb.out = {n: Step(np.zeros(1), before=0.0, promise=5.0, expected=0.0, aside=True) for n in (5, 6)}
    climb.told(5, -50.0)
    assert (climb._misses, climb._radius) == (2, 0.01)
    climb.told(6, 50.0)
    assert (climb._misses, climb._radius, climb._phases[0]) == (0, FIRST, "close")


def test_patience_runs_out_sooner_where_evaluations_are_dear() -> None:
    bounds = np.array([[-7.0] * 4, [7.0] * 4])
    climbs = [Climb(bounds, np.random.default_rng(0), patience=p) for p in (1.0, 0.5, 0.01)]
    for phase, most in {"wide": [3, 2, 1], "close": [5, 2, 1], "leap": [8, 4, 1], "hint": [1, 1, 1]}.items():
        for climb, n in zip(climbs, most, strict=True):
            climb._phases = [phase]
            assert climb._most_misses() == n


def test_leaps_change_one_exchangeable_part_in_turn() -> None:
    blocks, rng = ((0, 1), (3, 2)), np.random.default_rng(0)
    surrogate = SimpleNamespace(
        spec=SimpleNamespace(blocks=blocks),
        observations=SimpleNamespace(best_x=np.full(5, 9.0), best=0.0, x=np.full((1, 5), 9.0)),
    )
    known = SimpleNamespace(surrogate=surrogate, everywhere=rng.standard_normal((200, 5)))
    climb = Climb(np.array([[-7.0] * 5, [7.0] * 5]), rng)
    mixed = climb._one_part(known)  # type: ignore[arg-type]
    changed = mixed != 9.0
    for block in blocks:
        rows = changed[:, block[0]]
        assert 50 < rows.sum() < 150
        others = [j for j in range(5) if j not in block]
        assert changed[rows][:, list(block)].all() and not changed[rows][:, others].any()
    np.testing.assert_array_equal(mixed[changed], known.everywhere[changed])
