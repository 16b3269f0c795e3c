"""Moments of z against other ways to them, and the symmetries they must have."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit, roots_hermitenorm, softmax

from modelodds import odds

Array = NDArray[np.float64]
BELIEF = st.tuples(st.floats(-60, 60), st.just(0.0) | st.floats(0, 20), st.floats(-5, 0))


def columns(beliefs: list[tuple[float, float, float]]) -> Array:
    """Mean, sd and log prior, shape (3, k)."""
    return np.array(beliefs).T


def gauss_hermite(mean: float, sd: float, nodes: int = 200) -> tuple[float, float]:
    """E[z_1] and Var(z_1) for k=2, where the log-odds are N(mean, sd²)."""
    x, weight = roots_hermitenorm(nodes)
    z, weight = expit(mean + sd * x), weight / weight.sum()
    first = float(z @ weight)
    return first, float((z - first) ** 2 @ weight)


@pytest.mark.parametrize("sds", [(0.01, 0.0), (0.1, 0.3), (0.499, 0.501), (1.0, 2.0), (3.0, 0.2)])
@pytest.mark.parametrize("difference", [0.0, 0.7, -4.0, -15.0])
def test_two_models_match_gauss_hermite(difference: float, sds: tuple[float, float]) -> None:
    z, cov = odds.moments([difference, 0.0], sds, [0.0, 0.0])
    first, variance = gauss_hermite(difference, float(np.hypot(*sds)))
    # 200 nodes are themselves good to 1e-9 at sd 3; rounding leaves about 1e-15 of z² on a variance.
    assert z[0] == pytest.approx(first, rel=1e-8)
    assert cov[0, 0] == pytest.approx(variance, rel=1e-8, abs=1e-14 * first**2)


@pytest.mark.parametrize("sds", [(20.0, 1.0), (50.0, 0.0), (30.0, 40.0), (900.0, 0.1)])
def test_wide_beliefs_match_a_fine_sum(sds: tuple[float, float]) -> None:
    difference, sd = 12.0, float(np.hypot(*sds))
    x = np.linspace(-9, 9, 400_001)
    weight = np.exp(-0.5 * x**2)
    z = expit(difference + sd * x)
    first, second = (float(np.average(z**p, weights=weight)) for p in (1, 2))
    found, cov = odds.moments([difference, 0.0], sds, [0.0, 0.0])
    assert found[0] == pytest.approx(first, rel=1e-8)
    assert cov[0, 0] == pytest.approx(second - first**2, rel=1e-8)


@pytest.mark.parametrize("sd", [(0.3, 0.0, 0.2), (0.4, 0.8, 2.0), (3.0, 5.0, 1.0)])
def test_three_models_match_a_sum_over_all_three(sd: tuple[float, ...]) -> None:
    mean = np.array([0.4, -1.0, -6.0])
    x = np.linspace(-8.5, 8.5, 181)
    grid = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1).reshape(-1, 3)
    weight = np.exp(-0.5 * (grid**2).sum(axis=1))
    sample = softmax(mean + np.array(sd) * grid, axis=1)
    z, cov = odds.moments(mean, sd, np.zeros(3))
    np.testing.assert_allclose(z, np.average(sample, axis=0, weights=weight), rtol=1e-9)
    np.testing.assert_allclose(cov, np.cov(sample.T, aweights=weight, ddof=0), rtol=1e-9)


@pytest.mark.parametrize("scale", [0.1, 0.6, 2.0, 8.0])
def test_any_k_matches_monte_carlo(scale: float) -> None:
    rng = np.random.default_rng(0)
    mean, log_prior = rng.normal(size=5), np.log([0.4, 0.1, 0.1, 0.2, 0.2])
    sd = scale * np.array([1.0, 0.2, 0.5, 1.5, 0.0])
    n = 400_000
    sample = softmax(mean + log_prior + sd * rng.normal(size=(n, 5)), axis=1)
    z, cov = odds.moments(mean, sd, log_prior)
    error = sample.std(axis=0) / np.sqrt(n)
    np.testing.assert_array_less(np.abs(z - sample.mean(axis=0)), 5 * error)
    deviation = sample - sample.mean(axis=0)
    products = deviation[:, :, None] * deviation[:, None, :]
    error_cov = products.std(axis=0) / np.sqrt(n)
    np.testing.assert_array_less(np.abs(cov - products.mean(axis=0)), 5 * error_cov)


@given(st.lists(BELIEF, min_size=1, max_size=6), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_permuting_models_permutes_the_answer_exactly(beliefs: list[Any], random: Any) -> None:
    order = list(range(len(beliefs)))
    random.shuffle(order)
    z, cov = odds.moments(*columns(beliefs))
    z_permuted, cov_permuted = odds.moments(*columns([beliefs[i] for i in order]))
    np.testing.assert_array_equal(z_permuted, z[order])
    np.testing.assert_array_equal(cov_permuted, cov[np.ix_(order, order)])


@given(st.lists(BELIEF, min_size=1, max_size=6))
@settings(deadline=None, max_examples=60)
def test_moments_are_those_of_a_point_on_the_simplex(beliefs: list[Any]) -> None:
    z, cov = odds.moments(*columns(beliefs))
    assert z.sum() == pytest.approx(1.0, abs=1e-14)
    assert (z >= 0).all() and (np.diag(cov) <= z * (1 - z) + 1e-12).all()
    np.testing.assert_allclose(cov.sum(axis=1), 0.0, atol=1e-14)
    np.testing.assert_array_equal(cov, cov.T)
    assert np.linalg.eigvalsh(cov).min() > -1e-14


@given(st.lists(BELIEF, min_size=1, max_size=5), st.floats(-1e6, 1e6))
@settings(deadline=None, max_examples=40)
def test_a_common_shift_changes_nothing(beliefs: list[Any], shift: float) -> None:
    mean, sd, log_prior = columns(beliefs)
    before, after = odds.moments(mean, sd, log_prior), odds.moments(mean + shift, sd, log_prior)
    for one, other in zip(before, after, strict=True):  # a shift of 1e6 rounds the means by 1e-10
        np.testing.assert_allclose(one, other, atol=1e-8)


def test_without_uncertainty_z_is_softmax() -> None:
    location = np.array([0.3, -2.0, 1.0])
    z, cov = odds.moments(location, np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(z, softmax(location), rtol=1e-14)
    np.testing.assert_array_equal(cov, np.zeros((3, 3)))
    nearly, _ = odds.moments(location, [1e-9, 0.0, 0.0], np.zeros(3))  # the integrals, not the short cut
    np.testing.assert_allclose(nearly, softmax(location), rtol=1e-12)


def test_a_small_uncertainty_follows_the_delta_method() -> None:
    location, sd = np.array([0.3, -2.0, 1.0]), np.array([1e-3, 2e-3, 0.0])
    z = softmax(location)
    gradient = np.diag(z) - np.outer(z, z)
    _, cov = odds.moments(location, sd, np.zeros(3))
    np.testing.assert_allclose(cov, gradient @ np.diag(sd**2) @ gradient, rtol=1e-2, atol=1e-12)


def test_a_duplicated_model_shares_its_probability() -> None:
    z, _ = odds.moments([0.5, 0.5, 0.0], np.zeros(3), np.log([0.25, 0.25, 0.5]))
    whole, _ = odds.moments([0.5, 0.0], np.zeros(2), np.log([0.5, 0.5]))
    np.testing.assert_allclose(z, [whole[0] / 2, whole[0] / 2, whole[1]], rtol=1e-14)
    z, cov = odds.moments([0.5, 0.5, 0.0], [0.7, 0.7, 1.0], np.zeros(3))
    assert z[0] == z[1] and cov[0, 0] == cov[1, 1] and cov[0, 2] == cov[1, 2]


def test_prior_probabilities_act_as_evidence() -> None:
    tilted = odds.moments([0.0, 1.0], [0.4, 0.9], np.log([0.9, 0.1]))
    shifted = odds.moments([np.log(0.9), 1.0 + np.log(0.1)], [0.4, 0.9], [0.0, 0.0])
    np.testing.assert_array_equal(tilted[0], shifted[0])


def test_relative_accuracy_of_small_probabilities() -> None:
    sd = 0.3
    z, cov = odds.moments([0.0, -30.0], [0.0, sd], [0.0, 0.0])  # z_2 is all but log-normal
    assert z[1] == pytest.approx(np.exp(-30 + sd**2 / 2), rel=1e-11)
    variance = np.exp(-60 + sd**2) * np.expm1(sd**2)
    # 1e-30: the square of the rounding of the larger probability
    np.testing.assert_allclose(cov, variance * np.array([[1, -1], [-1, 1]]), rtol=1e-9, atol=1e-30)


def test_extremes() -> None:
    z, cov = odds.moments([0.0, -1e4, -np.inf, 1e4], [0.1, 2.0, 0.1, 3.0], np.zeros(4))
    np.testing.assert_array_equal(z, [0, 0, 0, 1])
    np.testing.assert_allclose(cov, 0.0, atol=1e-15)
    z, cov = odds.moments([0.0, 0.0], [1e8, 1e8], [0.0, 0.0])
    np.testing.assert_allclose(z, 0.5, rtol=1e-12)
    assert cov[0, 0] == pytest.approx(0.25, abs=1e-3)  # almost surely one of them has everything
    z, _ = odds.moments([-1e6, -1e6 + 1.0], [0.0, 0.0], [0.0, 0.0])
    assert z[1] == pytest.approx(expit(1.0), rel=1e-9)
    z, cov = odds.moments([-5.0], [2.0], [0.0])
    assert z[0] == 1.0 and cov[0, 0] == pytest.approx(0.0, abs=1e-15)


def test_log_odds_use_the_covariance_and_the_prior() -> None:
    mean, cov = [1.0, 3.0], [[0.5, 0.2], [0.2, 0.3]]
    found = odds.log_odds(mean, cov, np.log([0.8, 0.2]), 0, 1)
    assert found == pytest.approx((np.log(4.0) - 2.0, np.sqrt(0.4)))
    assert odds.log_odds(mean, cov, [0.0, 0.0], 1, 1) == (0.0, 0.0)


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("n", [1, 100, 512])
def test_draws_are_repeatable_log_evidences(k: int, n: int) -> None:
    belief = np.linspace(-1, 1, k), np.full(k, 0.5)
    log_a = odds.draws(*belief, n)
    assert log_a.shape == (n, k)
    assert np.isfinite(log_a).all()
    np.testing.assert_array_equal(log_a, odds.draws(*belief, n))


def test_draws_have_the_moments() -> None:
    mean, sd, log_prior = np.array([0.0, 1.0, 0.5]), np.array([1.0, 0.2, 2.0]), np.log([0.3, 0.3, 0.4])
    z, cov = odds.moments(mean, sd, log_prior)
    sample = softmax(odds.draws(mean + log_prior, sd, 4096), axis=1)
    # low-discrepancy draws err about as 1/n rather than 1/sqrt(n): 1e-3 is a quarter of the Monte Carlo error
    np.testing.assert_allclose(sample.mean(axis=0), z, atol=1e-3)
    np.testing.assert_allclose(np.cov(sample.T), cov, atol=1e-3)
