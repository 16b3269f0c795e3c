"""Steps uphill: no model is given up for a slope's foot."""

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from modelodds import Model, Session
from modelodds.learner import CLIMB_GROWTH, MISSES
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
    return Session(models, Method(climb=climb, acquisition="variance"), rng=seed)


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


def test_a_step_counts_as_climbing_until_it_comes_back() -> None:
    (made, best), rng = past_design(), np.random.default_rng(0)
    assert made.settled_belief() is None  # a step is due
    for _ in range(MISSES):
        (query,) = made.ask()
        assert made.settled_belief() is None  # and out
        made.tell(query, best - 30.0 * rng.uniform())  # erratic: there is always hope
    assert made.settled_belief() is not None  # so many steps without a gain: the climb is over


def test_steps_that_gain_are_followed_by_others() -> None:
    made, best = past_design()
    for gain in 5.0 * np.arange(1, MISSES + 2):
        made.tell(made.ask()[0], best + gain)
        assert made.settled_belief() is None
    for _ in range(MISSES):
        made.tell(made.ask()[0], -np.inf)  # likelihood zero is no gain
    assert made.settled_belief() is not None


def test_a_noisy_gain_must_exceed_its_noise() -> None:
    made, best = past_design()
    for gain in 5.0 * np.arange(1, MISSES + 1):
        made.tell(made.ask()[0], (best + gain, 2.5))
    assert made.settled_belief() is not None


def test_one_step_is_out_at_a_time() -> None:
    made, best = past_design()
    first, *others = made.ask(3)
    assert list(made._learners[0]._steps) == [first.id]
    for query in others:
        made.tell(query, best - 30.0)
    assert made.settled_belief() is None


def test_uphill_is_looked_again_as_the_session_grows() -> None:
    made, best = past_design()
    rng, steps = np.random.default_rng(0), []
    for _ in range(2 * DESIGN):
        (query,) = made.ask()
        steps += [query.id] if query.id in made._learners[0]._steps else []
        made.tell(query, best - 30.0 * rng.uniform())  # erratic: there is always hope
    first = list(range(DESIGN, DESIGN + MISSES))
    assert steps[:MISSES] == first
    assert steps[MISSES] == int(np.ceil(CLIMB_GROWTH * (first[-1] + 1)))


def test_steps_that_fail_do_not_block() -> None:
    made, _ = past_design()
    for _ in range(MISSES):
        assert made.settled_belief() is None
        made.fail(made.ask()[0], "no luck")
    assert made.settled_belief() is not None


def test_a_failed_step_is_tried_elsewhere() -> None:
    made, _ = past_design()
    (failed,) = made.ask()
    made.fail(failed, "no luck")
    assert made.settled_belief() is None
    (again,) = made.ask()
    assert not np.array_equal(again.theta, failed.theta)
