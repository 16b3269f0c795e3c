"""Acquisitions in full-matrix form: the independent ones if nothing correlates, else brute force."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from modelodds import correlated, odds
from modelodds.acquisition.coupled import COUPLED, odds_precision, stakes
from modelodds.acquisition.log_odds import rivalry
from modelodds.acquisition.mutual_information import posterior_weight
from modelodds.acquisition.variance import answerable
from modelodds.coupling import _worth_64

Array = NDArray[np.float64]

MEAN = np.array([0.4, 0.0, -0.7])
SHARES = np.array([0.1, 0.5, 0.95])  # squared correlations of observations with their own evidence


def worth(rule: str, mean: Array, cov: Array, pull: Array) -> Array:
    """What observations that pull by ``pull`` (m, k) are worth."""
    return np.asarray(_worth_64(rule=f"shared:{rule}", at_stake=stakes(mean, cov), pull=pull))


def random_covariance(k: int, seed: int, size: float = 0.5) -> Array:
    """A covariance matrix with correlations of all sizes."""
    root = np.random.default_rng(seed).normal(size=(k, k + 1))
    return size * root @ root.T / k


@pytest.mark.parametrize("i", [0, 1, 2])
def test_log_odds_without_correlations(i: int) -> None:
    """-1/2 log(1 - w_i rho^2)."""
    variance = np.array([0.3, 1.2, 0.05])
    pull = np.sqrt(SHARES * variance[i])[:, None] * np.eye(3)[i]
    expected = -0.5 * np.log1p(-rivalry(variance)[i] * SHARES)
    np.testing.assert_allclose(worth("log_odds", MEAN, np.diag(variance), pull), expected, rtol=1e-9)


@pytest.mark.parametrize("i", [0, 1, 2])
def test_mutual_information_without_correlations(i: int) -> None:
    """-1/2 E_z log(1 - w_i(z) rho^2), over the same draws of z."""
    variance = np.array([0.3, 0.2, 0.05])
    at = stakes(MEAN, np.diag(variance))
    weight = posterior_weight(np.asarray(at.log_a), MEAN, variance)[:, i]
    pull = np.sqrt(SHARES * np.expm1(variance[i]))[:, None] * np.eye(3)[i]
    expected = -0.5 * np.log1p(-weight[:, None] * SHARES).mean(axis=0)
    found = worth("mutual_information", MEAN, np.diag(variance), pull)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("i", [0, 1, 2])
def test_variance_without_correlations(i: int) -> None:
    """What log a_i is answerable for, times rho^2; both are sums over draws, theirs of 2^14."""
    variance = np.array([0.3, 1.2, 0.05])
    pull = np.sqrt(SHARES * variance[i])[:, None] * np.eye(3)[i]
    expected = answerable(MEAN, variance, 2**14)[i] * SHARES
    # 256 low-discrepancy draws in four dimensions: a few per cent.
    np.testing.assert_allclose(worth("variance", MEAN, np.diag(variance), pull), expected, rtol=0.08)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_information_about_the_odds_is_that_of_gaussian_conditioning(k: int) -> None:
    """Variance of an observation before and after all log-odds are known, by brute force."""
    cov = random_covariance(k, k)
    rng = np.random.default_rng(k)
    with_evidences, own = 0.3 * rng.normal(size=k), 2.0
    contrast = np.eye(k)[1:] - np.eye(k)[0]
    seen = contrast @ with_evidences
    after = own - seen @ np.linalg.solve(contrast @ cov @ contrast.T, seen)
    found = worth("log_odds", np.zeros(k), cov, with_evidences[None] / np.sqrt(own))
    np.testing.assert_allclose(found, 0.5 * np.log(own / after), rtol=1e-9)
    # The same in another form, the ray being that of ones.
    inverse, ones = np.linalg.inv(cov), np.ones(k)
    ray = inverse - np.outer(inverse @ ones, ones @ inverse) / (ones @ inverse @ ones)
    np.testing.assert_allclose(odds_precision(cov), ray, rtol=1e-6, atol=1e-8)


def test_what_moves_all_evidences_alike_is_worth_nothing() -> None:
    """It leaves the odds as they are, however much it tells of each evidence."""
    cov = np.full((3, 3), 0.8) + 0.1 * np.eye(3)
    alike, apart = np.full((1, 3), 0.5), np.array([[0.5, -0.2, 0.0]])
    for rule in ("log_odds", "variance"):
        assert worth(rule, MEAN, cov, alike)[0] < 1e-9
        assert worth(rule, MEAN, cov, apart)[0] > 1e-3


def test_mutual_information_with_correlations_is_the_full_matrix_formula() -> None:
    """L^T K^-1 L - (L^T K^-1 z)^2 / (z^T K^-1 z), entry by entry."""
    cov = random_covariance(3, 1, 0.1)
    at = stakes(MEAN, cov)
    rng = np.random.default_rng(2)
    pull = (np.linalg.cholesky(np.expm1(cov)) @ rng.normal(size=(3, 4))).T * 0.2
    k, z = np.expm1(cov), np.exp(np.asarray(at.log_a) - MEAN - 0.5 * cov.diagonal())
    expected = []
    for row in pull:
        onto = np.linalg.solve(k, row)
        left = onto @ row - (z @ onto) ** 2 / np.einsum("ni,ni->n", z @ np.linalg.inv(k), z)
        expected.append(-0.5 * np.log1p(-left).mean())
    found = worth("mutual_information", MEAN, cov, pull)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    # For small uncertainties it is the log-odds form: evidences are then Gaussian either way.
    small = 1e-4 * cov
    both = [worth(rule, MEAN, small, 1e-2 * pull) for rule in ("mutual_information", "log_odds")]
    np.testing.assert_allclose(*both, rtol=0.02)


def test_variance_with_correlations_is_what_a_small_observation_takes_away() -> None:
    """|J alpha|^2, J = diag(z) - z z^T, for small uncertainties."""
    cov = 1e-3 * random_covariance(3, 4)
    rng = np.random.default_rng(0)
    pull = (np.linalg.cholesky(cov) @ rng.normal(size=(3, 5))).T * 0.2
    z = special.softmax(MEAN)
    expected = ((pull @ (np.diag(z) - np.outer(z, z))) ** 2).sum(axis=1)
    np.testing.assert_allclose(worth("variance", MEAN, cov, pull), expected, rtol=0.1)


@pytest.mark.parametrize("rule", COUPLED)
def test_known_evidences_do_no_harm(rule: str) -> None:
    """A model without parameters has an evidence of no variance; one of likelihood zero, none at all."""
    cov = np.diag([0.5, 0.0, 0.3])
    cov[0, 2] = cov[2, 0] = 0.2
    mean = np.array([0.0, -np.inf, 0.5])
    found = worth(rule.removeprefix("shared:"), mean, cov, np.array([[0.3, 0.0, 0.1]]))
    assert np.isfinite(found).all() and (found > 0).all()


# ---------------------------------------------------------------------- probabilities


def by_draws(mean: Array, cov: Array) -> Array:
    rng = np.random.default_rng(0)
    return np.asarray(special.softmax(rng.multivariate_normal(mean, cov, size=400_000), axis=1))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [2, 3, 4])
def test_probabilities_of_correlated_evidences(k: int, seed: int) -> None:
    """Moments of z against draws; exact for two models, and for three if independent ones say the same."""
    cov, mean = random_covariance(k, seed), np.random.default_rng(seed).normal(size=k)
    z, z_cov = correlated.moments(mean, cov, np.zeros(k))
    drawn = by_draws(mean, cov)
    np.testing.assert_allclose(z, drawn.mean(axis=0), atol=5 * 0.5 / np.sqrt(len(drawn)))
    np.testing.assert_allclose(z_cov, np.cov(drawn.T), atol=2e-3)
    assert z.sum() == pytest.approx(1.0)
    best = int(np.argmax(mean))
    expected = (np.argmax(drawn, axis=1) == best).mean()  # the largest z is the largest log a
    assert correlated.best_probability(mean, cov, best) == pytest.approx(expected, abs=6e-3)


def test_independent_evidences_are_left_to_the_exact_sums() -> None:
    """Bit for bit; and what all share drops out."""
    sd, mean = np.array([0.3, 0.8, 0.1]), np.array([1.0, 0.5, 0.0])
    plain: Any = odds.moments(mean, sd, np.zeros(3))
    for found, expected in zip(correlated.moments(mean, np.diag(sd**2), np.zeros(3)), plain, strict=True):
        np.testing.assert_array_equal(found, expected)
    shared = np.diag(sd**2) + 5.0
    for found, expected in zip(correlated.moments(mean, shared, np.zeros(3)), plain, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)
