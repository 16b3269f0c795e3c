"""Log-likelihoods drawn together far below the best: the map, when it is chosen, and what comes of it."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special, stats

from modelodds.learner import Learner
from modelodds.method import Method
from modelodds.model import Model
from modelodds.surrogate.observations import SHAPE, Observations
from modelodds.surrogate.squash import SCALE, STEEPEST, Squash
from modelodds.surrogate.surrogate import AUTO, Surrogate

Array = NDArray[np.float64]
DIMENSIONS = st.integers(1, 12)
EDGE, FALL, CURVE = 0.5, 300.0, 0.3


def cliff(x: Array) -> Array:
    """A plateau for x_0 < 1/2, and then down by hundreds of nats."""
    return np.asarray(-FALL * np.maximum(x[..., 0] - EDGE, 0.0) - CURVE * x[..., 1] ** 2)


def cliff_log_evidence() -> float:
    """Under two standard normal priors."""
    grid = np.linspace(EDGE, 9.0, 100_001)
    beyond = np.exp(-FALL * (grid - EDGE) + stats.norm.logpdf(grid)).sum() * (grid[1] - grid[0])
    return float(np.log(special.ndtr(EDGE) + beyond) - 0.5 * np.log1p(2 * CURVE))


def gauss(x: Array) -> Array:
    return np.asarray(-5.0 * (x**2).sum(-1))


def surrogate(log_likelihood: object, n: int, seed: int = 0, method: Method | None = None) -> Surrogate:
    """After ``n`` draws of a standard normal prior in two dimensions."""
    x = np.random.default_rng(seed).standard_normal((n, 2))
    made = Surrogate(2, method or Method())
    made.observations = made.observations.add(x, log_likelihood(x))  # type: ignore[operator]
    made.update()
    return made


# ---------------------------------------------------------------------- the map


@given(d=DIMENSIONS, gap=st.floats(-50.0, 1e9))
def test_the_inverse_undoes_it(d: int, gap: float) -> None:
    for squash in (Squash.some(d), Squash.more(d), Squash.none(d)):
        squashed = squash(np.array(gap))
        assert float(squash.inverse(squashed)) == pytest.approx(gap, rel=1e-9, abs=1e-12)
        assert float(squash.log_likelihood(-squashed)) == pytest.approx(-gap, rel=1e-9, abs=1e-12)


@given(d=DIMENSIONS, gap=st.floats(-20.0, 1e4))
def test_the_slope_is_the_derivative(d: int, gap: float) -> None:
    squash, h = Squash.some(d), 1e-4
    found = float(squash.slope(np.array(gap)))
    ends = squash(np.array([gap - h, gap + h]))
    # s'' is at most 1 / scale, where it has a kink; rounding of s, at most 40, over h.
    assert found == pytest.approx((ends[1] - ends[0]) / (2 * h), abs=h / SCALE + 1e-8)
    assert 0.0 < found <= 1.0


@given(d=DIMENSIONS, gaps=st.tuples(st.floats(-20.0, 1e6), st.floats(1e-3, 1e6)))
def test_it_keeps_the_order_and_never_stretches(d: int, gaps: tuple[float, float]) -> None:
    squash, (low, step) = Squash.some(d), gaps
    rise = float(squash(np.array(low + step)) - squash(np.array(low)))
    assert 0.0 < rise <= step * (1 + 1e-9) + 1e-9


def test_near_the_best_it_changes_nothing_and_far_below_it_is_a_logarithm() -> None:
    squash = Squash.some(2)
    near = np.linspace(-3.0, squash.followed, 20)
    np.testing.assert_allclose(squash(near), near, rtol=1e-15)
    np.testing.assert_array_equal(squash.slope(near), 1.0)
    far = squash.followed + SCALE * np.expm1(np.array([1.0, 2.0, 5.0]))
    np.testing.assert_allclose(squash(far), squash.followed + SCALE * np.array([1.0, 2.0, 5.0]), rtol=1e-12)
    assert not squash.straight


@given(d=DIMENSIONS, gap=st.floats(-1e9, 1e9))
def test_without_squashing_f_is_y(d: int, gap: float) -> None:
    squash, at = Squash.none(d), np.array(gap)
    assert squash.straight
    assert (squash(at), squash.inverse(at), squash.log_likelihood(at), squash.slope(at)) == (gap, gap, gap, 1)


def test_astronomical_gaps_stay_finite() -> None:
    squash = Squash.some(2)
    beyond = squash.inverse(np.array([squash.followed + SCALE * STEEPEST, 1e6]))
    assert np.isfinite(beyond).all() and beyond[0] == beyond[1] > 1e20


# ---------------------------------------------------------------------- what enters as data


def test_values_and_noise_are_squashed_together() -> None:
    squash = Squash.some(2)
    gap = np.array([0.0, squash.followed, squash.followed + 3 * SCALE])
    seen = Observations(np.zeros((3, 2)), 100.0 - gap, np.array([0.2, 0.3, 0.8]))
    data = seen.data(shaped_noise=False, squash=squash)
    np.testing.assert_allclose(data.y[:3], -squash(gap))
    np.testing.assert_allclose(data.noise[:3], [0.2, 0.3, 0.8 / 4**2])  # the slope there is 1 / (1 + 3)
    shaped = seen.data(shaped_noise=True, squash=squash)
    extra = (SHAPE * SCALE * np.log(4)) ** 2  # of the gap as the surrogate sees it
    np.testing.assert_allclose(shaped.noise[:3], [0.2, 0.3, 0.8 / 4**2 + extra])


def test_noise_under_squashing_is_the_spread_of_squashed_values() -> None:
    squash, gap, sd = Squash.some(2), 40.0, 0.5
    values = squash(gap + sd * np.random.default_rng(0).standard_normal(100_000))
    data = Observations(np.zeros((2, 2)), np.array([0.0, -gap]), np.array([0.0, sd**2])).data(
        False, squash=squash
    )
    assert data.noise[1] == pytest.approx(values.var(), rel=0.02)


# ---------------------------------------------------------------------- which scale is chosen


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_cliff_is_squashed_and_a_gaussian_is_not(seed: int) -> None:
    assert surrogate(cliff, 24, seed).squash in (Squash.some(2), Squash.more(2))
    straight = surrogate(gauss, 24, seed)
    assert straight.observations.gap().max() > Squash.some(2).followed  # there was something to squash
    assert straight.squash == Squash.exact()


def test_the_most_probable_scale_is_chosen() -> None:
    """A bowl that turns into a cliff five nats down is squashed from there on; one of ten nats, later."""

    def bowl(x: Array, rim: float) -> Array:
        depth = 2.0 * (x**2).sum(-1)
        return np.asarray(-depth - np.expm1(np.maximum(depth - rim, 0.0)))

    chosen = {rim: surrogate(lambda x, rim=rim: bowl(x, rim), 60).squash for rim in (5.0, 10.0)}
    assert chosen == {5.0: Squash.more(2), 10.0: Squash.some(2)}


@pytest.mark.parametrize("function", [cliff, lambda x: -8.0 * np.abs(x).sum(-1)])
def test_both_kernels_contend_on_the_straight_scale(function: Callable[[Array], Array]) -> None:
    """Whether or not it is squashed elsewhere, and whether or not the straight scale wins in the end."""
    straight = Squash.none(2)
    made = surrogate(function, 30)
    assert made.observations.gap().max() > Squash.some(2).followed
    alone = [surrogate(function, 30, method=Method(kernel=name))._fits[straight].loss for name in AUTO]
    assert made._fits[straight].loss == pytest.approx(min(alone), abs=0.1)
    assert abs(alone[0] - alone[1]) > 1.0  # there was something to choose


def test_a_quadratic_is_followed_down_only_with_points_to_spare() -> None:
    few, enough = surrogate(gauss, 8), surrogate(gauss, 9)  # six coefficients and three to spare
    assert few.squash != Squash.exact() and enough.squash == Squash.exact()
    x = np.random.default_rng(9).normal(size=(20, 2))
    mean, _ = enough.predict(x)
    np.testing.assert_allclose(enough.offset + mean, gauss(x), atol=0.01)


def test_squashing_can_be_ruled_out() -> None:
    assert surrogate(cliff, 24, method=Method(squash="none")).squash.straight


def test_nothing_is_squashed_where_nothing_is_far_below() -> None:
    def shallow(x: Array) -> Array:
        return np.asarray(-7.0 * (x[..., 0] > 0.0))

    made = surrogate(shallow, 24)
    assert made.observations.gap().max() < Squash.some(2).followed and made.squash.straight


def test_a_squashed_surrogate_predicts_what_it_was_told() -> None:
    made = surrogate(cliff, 24)
    seen = made.observations
    near = seen.gap() < made.squash.followed
    mean, _ = made.predict(seen.x[near])
    np.testing.assert_allclose(made.offset + made.squash.log_likelihood(mean), seen.y[near], atol=0.05)


def test_a_pending_point_leaves_a_squashed_mean_as_it_is() -> None:
    made = surrogate(cliff, 24)
    before, variance = made.predict(np.array([[0.2, 0.1], [1.5, 0.0]]))
    made.gp = made.with_pending(np.array([[0.2, 0.1], [1.5, 0.0]]))
    after, left = made.predict(np.array([[0.2, 0.1], [1.5, 0.0]]))
    np.testing.assert_allclose(after, before, atol=1e-3)
    assert (left < variance).all()


def test_predictions_on_the_squashed_scale_are_judged_there() -> None:
    """A value hundreds of nats down is no surprise to a surrogate that put it there."""
    made = surrogate(cliff, 24)
    x = np.array([2.0, 0.0])
    mean, _ = made.predict(x[None])
    made.tell(x, made.offset + float(made.squash.log_likelihood(mean)[0]), 0.0)
    assert made._record == [pytest.approx(0.0, abs=1e-6)] and not made._surprised


# ---------------------------------------------------------------------- its evidence


def test_the_evidence_of_a_squashed_surrogate() -> None:
    model = Model("cliff", lambda theta: float(cliff(theta)), {"a": stats.norm(), "b": stats.norm()})
    rng = np.random.default_rng(0)
    points = rng.standard_normal((40, 2))
    learner = Learner(model, Method(), rng)
    for i, x in enumerate(points):
        learner.ask(i, x)
        learner.tell(i, float(cliff(x)), 0.0)
    learner.update(len(learner.surrogate.observations))
    assert not learner.surrogate.squash.straight
    error, sd = learner.evidence.mean - cliff_log_evidence(), np.sqrt(learner.evidence.variance)
    assert abs(error) < 0.1 and abs(error) < 4 * sd


def test_a_narrow_quadratic_is_found_from_afar() -> None:
    """Twenty points of the prior know a peak none of them is near: the nodes must go where it is."""
    centre, width = np.array([1.2, -0.8, 0.5, -1.0]), 0.03

    def narrow(x: Array) -> float:
        return float(-0.5 * ((x - centre) ** 2).sum() / width**2)

    model = Model("narrow", narrow, {name: stats.norm() for name in "abcd"})
    learner = Learner(model, Method(), np.random.default_rng(1))
    for i, x in enumerate(np.random.default_rng(2).standard_normal((20, 4))):
        learner.ask(i, x)
        learner.tell(i, narrow(x), 0.0)
    learner.update(20)
    shrunk = width**2 + 1.0
    exact = 4 * np.log(width) - 2 * np.log(shrunk) - 0.5 * (centre**2).sum() / shrunk
    assert learner.surrogate.squash == Squash.exact()
    assert learner.evidence.mean == pytest.approx(exact, abs=0.1)
