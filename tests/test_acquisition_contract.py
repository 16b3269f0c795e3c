"""What every acquisition must do, whatever it computes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from example_gp import PLAIN, condition64, example_view, make_data, make_hyper, make_view, observed, predict64
from modelodds.acquisition import ACQUISITIONS, Aux, Rivals, View
from modelodds.precision import jit64
from modelodds.propose import propose
from modelodds.surrogate.gp import Spec

Array = NDArray[np.float64]

SMOOTH = PLAIN._replace(kernel="squared_exponential")
BOUNDS = np.array([[-3.0, -3.0], [3.0, 3.0]])

pytestmark = pytest.mark.parametrize("rule", ACQUISITIONS)


def _scores(x: jax.Array, view: View, rule: str, spec: Spec = PLAIN) -> tuple[Aux, jax.Array]:
    acquisition = ACQUISITIONS[rule]
    aux = acquisition.prepare(spec, view)
    return aux, acquisition.within(spec, view, aux, x)


scores = jit64(_scores, static=("rule", "spec"))
slopes = jit64(jax.grad(lambda x, view, rule: jnp.sum(_scores(x, view, rule)[1])), static=("rule",))


def candidates(view: View, seed: int = 3) -> Array:
    """36 points: the 12 observed ones, 12 of the nodes, 12 of neither kind."""
    others = np.random.default_rng(seed).uniform(-2, 2, size=(12, 2))
    return np.vstack([observed(view), np.asarray(view.x)[:12], others])


def rivals(k: int) -> Rivals:
    rng = np.random.default_rng(k)
    return Rivals(rng.normal(size=k), rng.uniform(0.05, 1.0, k), rng.normal(size=k))


def test_scores_are_one_finite_number_per_point(rule: str) -> None:
    view = example_view()
    aux, found = scores(candidates(view), view, rule=rule)
    assert found.shape == (36,) and found.dtype == np.float64
    assert aux.variance.shape == () and float(aux.variance) > 0
    assert np.all(np.isfinite(found))
    assert np.ptp(np.asarray(found)) > 0  # a constant would pass all else


def test_slopes_are_finite_even_on_observations_and_nodes(rule: str) -> None:
    view = example_view()
    found = np.asarray(slopes(candidates(view), view, rule=rule))
    assert found.shape == (36, 2)
    assert np.all(np.isfinite(found))
    assert np.abs(found[24:]).max() > 1e-3  # and not cut off where the search needs them


def test_scores_do_not_depend_on_the_company(rule: str) -> None:
    """Each point has its own score: the order and the neighbours change nothing."""
    view = example_view()
    points = candidates(view)
    _, forward = scores(points, view, rule=rule)
    _, backward = scores(points[::-1], view, rule=rule)
    # What is left of 1 on an observation, 1e-6, keeps nine digits.
    np.testing.assert_allclose(np.asarray(backward)[::-1], forward, rtol=1e-7, atol=1e-10)


def test_same_input_gives_the_same_bits(rule: str) -> None:
    view = example_view()
    points = candidates(view)
    np.testing.assert_array_equal(*(np.asarray(scores(points, view, rule=rule)[1]) for _ in range(2)))
    fresh = type(ACQUISITIONS[rule])()
    k = ACQUISITIONS[rule].n_models or 3
    best = np.array([0.3, 0.8, 0.5])[:k]
    for _ in range(2):
        np.testing.assert_array_equal(
            ACQUISITIONS[rule].across(best, rivals(k)), fresh.across(best, rivals(k))
        )


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_any_number_of_models_is_compared_and_nothing_is_changed(rule: str, k: int) -> None:
    if ACQUISITIONS[rule].n_models not in (None, k):
        pytest.skip("for two models only: the session says so")
    best, belief = np.linspace(0.2, 0.9, k), rivals(k)
    kept = best.copy()
    found = ACQUISITIONS[rule].across(best, belief)
    assert found.shape == (k,)
    assert np.all(np.isfinite(found))
    np.testing.assert_array_equal(best, kept)
    for part, original in zip(belief, rivals(k), strict=True):
        np.testing.assert_array_equal(part, original)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_a_better_point_makes_its_model_better_and_no_other(rule: str, k: int) -> None:
    """The factorisation that lets the search go model by model (eqs. 16-17)."""
    if ACQUISITIONS[rule].n_models not in (None, k):
        pytest.skip("for two models only: the session says so")
    best, belief = np.linspace(0.2, 0.9, k), rivals(k)
    before = ACQUISITIONS[rule].across(best, belief)
    for i in range(k):
        after = ACQUISITIONS[rule].across(best + 0.05 * np.eye(k)[i], belief)
        assert after[i] > before[i]
        np.testing.assert_array_equal(np.delete(after, i), np.delete(before, i))


def test_noise_never_makes_a_point_more_attractive(rule: str) -> None:
    quiet, noisy = example_view(noise=0.0), example_view(noise=0.5)
    points = candidates(quiet)
    difference = np.asarray(scores(points, noisy, rule=rule)[1]) - np.asarray(
        scores(points, quiet, rule=rule)[1]
    )
    assert np.all(difference <= 0)


@pytest.mark.parametrize("seed", range(4))
def test_observed_points_are_never_preferred(rule: str, seed: int) -> None:
    view = example_view(seed=seed)
    points = candidates(view)
    aux, found = scores(points, view, rule=rule)
    assert float(aux.variance) > 1e-4  # there is something left to learn, well above the nugget of 1e-6
    found = np.asarray(found)
    assert found[:12].max() < found[12:].max()
    assert np.sort(found)[-12:].min() > found[:12].max()  # a third of the candidates beats every observation


def converged_view() -> View:
    """A smooth function on a grid so dense that the evidence is known to 1e-3: below the nugget."""
    axis = np.linspace(-2, 2, 5)
    x = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    hyper = make_hyper(SMOOTH, np.array([3.0, 3.0]), 1.5)
    gp = condition64(spec=SMOOTH, hyper=hyper, data=make_data(x, -0.1 * (x**2).sum(1), size=32))
    nodes = np.clip(np.random.default_rng(0).normal(size=(64, 2)), -1.8, 1.8)
    return make_view(gp, nodes, np.full(64, 1 / 64))


def test_observed_points_tell_nothing_more_once_all_is_known(rule: str) -> None:
    """The nugget is float64's, not the likelihood's: a second evaluation would return the same number."""
    if not ACQUISITIONS[rule].is_share:
        pytest.skip("a log-variance, not a share of one: nothing to bound")
    view = converged_view()
    aux, found = scores(observed(view), view, rule=rule, spec=SMOOTH)
    assert float(aux.variance) < 1e-6
    assert np.asarray(found).max() < 0.01


def test_pending_and_known_points_are_not_proposed(rule: str) -> None:
    view = example_view()
    found = propose(rule, PLAIN, view, candidates(view), BOUNDS)
    variance = np.asarray(predict64(spec=PLAIN, gp=view.gp, x=found.x[None])[1])[0]
    assert variance > 1e-3  # a thousand times what is left on an observation
    assert np.linalg.norm(found.x - observed(view), axis=1).min() > 0.01


@pytest.mark.parametrize("seed", range(3))
def test_proposal_is_at_least_as_good_as_any_candidate_and_in_bounds(rule: str, seed: int) -> None:
    view = example_view(seed=seed)
    points = candidates(view)
    aux, found = scores(points, view, rule=rule)
    proposal = propose(rule, PLAIN, view, points, BOUNDS)
    assert proposal.score >= np.max(np.asarray(found)) - 1e-9  # two compiled programs round differently
    assert np.all((proposal.x >= BOUNDS[0]) & (proposal.x <= BOUNDS[1]))
    assert proposal.variance == pytest.approx(float(aux.variance), rel=1e-9)
    assert np.any(np.all(points == proposal.candidate, axis=1))
    again = propose(rule, PLAIN, view, points, BOUNDS)
    np.testing.assert_array_equal(again.x, proposal.x)
    _, at = scores(np.tile(proposal.x, (36, 1)), view, rule=rule)
    assert float(at[0]) == pytest.approx(proposal.score, rel=1e-7)


def test_an_ignorant_surrogate_still_has_a_best_point(rule: str) -> None:
    """Amplitudes of 60 nats are within the bounds of the log-space fit, with which any rule may go."""
    view = example_view(60.0)
    points = candidates(view)
    _, found = scores(points, view, rule=rule)
    assert np.all(np.isfinite(found))
    assert np.argmax(found) >= 12
