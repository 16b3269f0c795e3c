"""Nodes: do their weights integrate what they should, and do they follow the mass."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special, stats

from modelodds.nodes import Mixture, Nodes, effective_size, seeded, systematic
from modelodds.prior import Prior

Array = NDArray[np.float64]

RNG = np.random.default_rng
JOINT_COV = np.array([[1.0, 0.7], [0.7, 1.0]])


def joint_prior() -> Prior:
    normal = stats.multivariate_normal([1.0, -1.0], JOINT_COV)
    return Prior.from_density(
        normal.logpdf, lambda n, rng: rng.multivariate_normal([1.0, -1.0], JOINT_COV, n), ["a", "b"]
    )


PRIORS = {
    "normal": Prior({"a": stats.norm(), "b": stats.norm(3.0, 2.0)}),
    "box": Prior({"a": stats.uniform(0, 1), "b": stats.uniform(-3, 5)}),
    "mixed": Prior({"a": stats.norm(), "b": stats.uniform(0, 1)}),
    "joint": joint_prior(),
}

MIXTURE = Mixture(
    np.array([0.7, 0.3]),
    np.array([[0.4, -0.3], [-0.8, 0.9]]),
    np.array([[[0.3, 0.0], [0.2, 0.2]], [[0.25, 0.0], [-0.1, 0.3]]]),
)


def integrals(nodes: Nodes) -> Array:
    """1, mean of theta (2,), second moments of theta around its mean (3,)."""
    weight, theta = np.exp(nodes.log_weight), nodes.prior.to_theta(nodes.x)
    mean = weight @ theta
    centred = theta - mean
    second = (weight[:, None] * centred).T @ centred
    return np.concatenate([[weight.sum()], mean, second[np.triu_indices(2)]])


EXACT = {
    "normal": [1, 0, 3, 1, 0, 4],
    "box": [1, 0.5, -0.5, 1 / 12, 0, 25 / 12],
    "mixed": [1, 0, 0.5, 1, 0, 1 / 12],
    "joint": [1, 1, -1, 1, 0.7, 1],
}


@pytest.mark.parametrize("name", PRIORS)
def test_prior_nodes_integrate_low_moments(name: str) -> None:
    nodes = Nodes.from_prior(PRIORS[name], 4096, RNG(0))
    if name != "joint":
        np.testing.assert_allclose(np.exp(nodes.log_weight), 1 / 4096, rtol=1e-12)
    # 4096 scrambled Sobol points: errors near 1/n x log n, largest for second moments of unbounded
    # coordinates (variances up to 4); the joint prior's weights against a t(5) reference cost another factor.
    np.testing.assert_allclose(integrals(nodes), EXACT[name], atol=0.01)


@pytest.mark.parametrize("name", PRIORS)
def test_mixture_nodes_integrate_the_same_moments(name: str) -> None:
    """A mixture far narrower than the prior leaves the prior share to carry most of these integrals."""
    estimates = []
    for seed in range(8):
        nodes = Nodes.from_prior(PRIORS[name], 4096, RNG(seed)).with_mixture(MIXTURE)
        assert nodes.x.shape == (4096, 2)
        estimates.append(integrals(nodes))
    mean, error = np.mean(estimates, 0), np.std(estimates, 0, ddof=1) / np.sqrt(8)
    # 6 standard errors of an 8-fold replication (Student's t with 7 degrees: 5e-4 each, 1 % for all 24
    # numbers), and 5e-4 for what all replicates share: the rounding of the components' counts, half a node of
    # 4096 each.
    np.testing.assert_array_less(np.abs(mean - EXACT[name]), 6 * error + 5e-4)
    assert error.max() < 0.02  # or the test would accept anything


@pytest.mark.parametrize("name", ["normal", "box", "joint"])
def test_mixture_nodes_integrate_a_narrow_likelihood(name: str) -> None:
    """Where the mixture sits: integral of N(x; mean, cov) pi(x) against a fine grid."""
    prior, centre = PRIORS[name], MIXTURE.mean[0]
    likelihood = stats.multivariate_normal(centre, MIXTURE.chol[0] @ MIXTURE.chol[0].T)
    axis = np.linspace(-1.7, 1.7, 121)
    grid = np.stack(np.meshgrid(centre[0] + axis, centre[1] + axis, indexing="ij"), -1).reshape(-1, 2)
    grid_prior = np.exp(prior.log_density(grid))
    exact = (likelihood.pdf(grid) * grid_prior).sum() * (axis[1] - axis[0]) ** 2
    nodes = Nodes.from_prior(prior, 4096, RNG(0)).with_mixture(MIXTURE)
    found = np.exp(special.logsumexp(nodes.log_weight + likelihood.logpdf(nodes.x)))
    # About 2000 of 4096 points count and they are evenly spread: well below 1/sqrt(2000) = 2 %. The box cuts
    # the grid's cells at its edge: another 0.1 %.
    assert found == pytest.approx(exact, rel=5e-3)


def test_log_density_of_the_mixture_is_that_of_student_t() -> None:
    x = RNG(0).normal(size=(20, 2))
    parts = [
        weight * stats.multivariate_t(mean, chol @ chol.T, df=6).pdf(x)
        for weight, mean, chol in zip(MIXTURE.weight, MIXTURE.mean, MIXTURE.chol, strict=True)
    ]
    np.testing.assert_allclose(MIXTURE.log_density(x), np.log(np.sum(parts, axis=0)), rtol=1e-12)


# ---------------------------------------------------------------------- effective size, resampling


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-600, 600), min_size=1, max_size=20), st.floats(-1e5, 1e5))
def test_effective_size_is_kish_and_does_not_see_a_shift(log_weight: list[float], shift: float) -> None:
    logs = np.array(log_weight)
    weight = special.softmax(logs)
    found = effective_size(logs)
    assert found == pytest.approx(1 / (weight**2).sum(), rel=1e-10)
    assert 1 - 1e-12 <= found <= len(logs) + 1e-9
    assert effective_size(logs + shift) == pytest.approx(found, rel=1e-9)  # 1e5 swallows the last 1e-11 nats


def test_effective_size_of_equal_of_one_and_of_no_weights() -> None:
    assert effective_size(np.full(7, -1e5)) == pytest.approx(7, rel=1e-14)
    assert effective_size(np.array([0.0, -np.inf, -np.inf])) == 1.0
    assert effective_size(np.full(3, -np.inf)) == 0.0


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0, 1e3) | st.just(0.0), min_size=1, max_size=30), st.integers(1, 200))
def test_systematic_counts_are_within_one_of_their_expectation(weights: list[float], n: int) -> None:
    weight = np.array(weights)
    if weight.sum() < 1e-3:
        weight = weight + 1.0
    index = systematic(weight, n)
    counts = np.bincount(index, minlength=len(weight))
    assert index.shape == (n,) and np.all(np.diff(index) >= 0)
    assert np.all(np.abs(counts - n * weight / weight.sum()) < 1 + 1e-9 * n)  # rounding of the cumulative sum
    assert not counts[weight == 0].any()


def test_systematic_averages_converge_as_one_over_n() -> None:
    """Unbiased up to the half-step offset: the mean of f over n draws is within its variation / n."""
    weight, f = RNG(0).exponential(size=50), np.sort(RNG(1).normal(size=50))
    exact = weight @ f / weight.sum()
    for n in (100, 1000, 10000):
        assert abs(f[systematic(weight, n)].mean() - exact) <= np.ptp(f) / n


# ---------------------------------------------------------------------- following the mass


def narrow(x: Array) -> Array:
    """Log-density of a Gaussian of width 0.05 and correlation 0.95, away from the prior's centre."""
    cov = 0.05**2 * np.array([[1.0, 0.95], [0.95, 1.0]])
    return stats.multivariate_normal([0.9, -0.4], cov).logpdf(x)


def test_refitting_raises_the_effective_size_on_a_narrow_correlated_target() -> None:
    prior = PRIORS["normal"]
    nodes = Nodes.from_prior(prior, 4096, RNG(0))
    sizes = [effective_size(nodes.log_weight + narrow(nodes.x))]
    for attempt in range(4):
        log_mass = nodes.log_weight + narrow(nodes.x)
        mass = np.exp(log_mass - log_mass.max())
        start = seeded(nodes.x, mass, 2, RNG(1)) if attempt == 0 else nodes.mixture
        assert start is not None
        nodes = nodes.with_mixture(start.refitted(nodes.x, mass))
        sizes.append(effective_size(nodes.log_weight + narrow(nodes.x)))
    assert sizes[0] < 40  # of 4096: the area is 0.05^2 x 0.3, and the prior's density there 0.1
    # Student-t with 6 degrees for a Gaussian, on three quarters of the nodes, would reach about 0.75 x 0.85.
    assert sizes[-1] > 0.5 * 4096
    centre = np.array([0.9, -0.4])
    exact = prior.log_density(centre[None])[0]  # the prior is flat over the target ...
    curvature = 0.5 * 0.05**2 * ((centre**2).sum() - 2 + 2 * 0.95 * centre.prod())  # ... to second order
    found = special.logsumexp(nodes.log_weight + narrow(nodes.x))
    assert found == pytest.approx(exact + curvature, abs=0.01)  # 2000 effective even points: 0.01 is generous


DEGENERATE = {
    "one dominates": (RNG(0).normal(size=(512, 2)), np.where(np.arange(512) == 3, 1.0, 1e-12)),
    "one counts": (RNG(0).normal(size=(512, 2)), (np.arange(512) == 3).astype(float)),
    "three count": (RNG(0).normal(size=(512, 2)), (np.arange(512) < 3).astype(float)),
    "all alike": (np.full((512, 2), 0.7), np.ones(512)),
    "on a line": (RNG(0).normal(size=(512, 1)) * np.ones(2), np.ones(512)),
}


def check(mixture: Mixture) -> None:
    assert mixture.weight.sum() == pytest.approx(1.0, rel=1e-12)
    assert np.all(np.isfinite(mixture.mean)) and np.all(np.isfinite(mixture.chol))
    nodes = Nodes.from_prior(PRIORS["normal"], 256, RNG(0)).with_mixture(mixture)
    assert not np.isnan(nodes.log_weight).any() and np.isfinite(special.logsumexp(nodes.log_weight))


@pytest.mark.parametrize("case", DEGENERATE)
def test_refitting_survives_degenerate_weights(case: str) -> None:
    x, weight = DEGENERATE[case]
    refitted = MIXTURE.refitted(x, weight, rounds=4)
    check(refitted)
    moved = np.abs(np.average(x, axis=0, weights=weight) - refitted.weight @ refitted.mean)
    # Expectation-maximisation keeps the pooled mean, but for a component of less than 1e-3 that was dropped.
    assert moved.max() <= 1e-3 * np.ptp(x) + 1e-12


@pytest.mark.parametrize("case", DEGENERATE)
def test_seeding_survives_degenerate_weights(case: str) -> None:
    x, weight = DEGENERATE[case]
    check(seeded(x, weight, 6, RNG(0)))


def test_seeding_is_silent_on_any_narrow_peak() -> None:
    """A peak that covers a handful of the nodes, as at a run's start: fewer points than components."""
    x = RNG(0).normal(size=(512, 2))
    for seed in range(30):
        centre = RNG(seed).normal(size=2)
        check(seeded(x, np.exp(-0.5 * (((x - centre) / 0.1) ** 2).sum(1)), 6, RNG(seed)))


EXCHANGED = ((0, 1), (2, 3))


def test_no_order_of_exchangeable_parts_is_lost() -> None:
    """A likelihood with a peak in either order of its parts, and a mixture that knows one of them."""
    prior = Prior({name: stats.norm() for name in "abcd"})
    peak, width = np.array([-0.8, 0.5, 0.9, -0.4]), 0.1
    mixture = Mixture(np.ones(1), peak[None], width * np.eye(4)[None])
    # The integral of N(x; peak, width^2) against the prior is N(peak; 0, 1 + width^2), whatever the order.
    exact = stats.norm(scale=np.sqrt(1.0 + width**2)).logpdf(peak).sum() + np.log(2.0)
    swapped = peak[[2, 3, 0, 1]]
    found, first = [], []
    for seed in range(8):
        nodes = Nodes.from_prior(prior, 4096, RNG(seed), EXCHANGED).with_mixture(mixture)
        likelihood = np.exp([stats.norm(p, width).logpdf(nodes.x).sum(1) for p in (peak, swapped)])
        mass = np.exp(nodes.log_weight) * likelihood
        found.append(np.log(mass.sum()))
        first.append(mass[0].sum() / mass.sum())
    assert np.abs(np.mean(found) - exact) < 0.01
    assert np.abs(np.mean(first) - 0.5) < 0.01  # and draws come in every order
    alone = Nodes.from_prior(prior, 4096, RNG(0)).with_mixture(mixture)
    weight = alone.log_weight + stats.norm(swapped, width).logpdf(alone.x).sum(1)
    assert effective_size(weight) < 30  # which a mixture of one order would leave to the prior's nodes


def test_nodes_in_order() -> None:
    prior = Prior({name: stats.norm() for name in "abcd"})
    nodes = Nodes.from_prior(prior, 64, RNG(0), EXCHANGED)
    ordered = nodes.in_order
    assert (ordered[:, 0] <= ordered[:, 2]).all()
    same = (ordered == nodes.x).all(1)
    np.testing.assert_array_equal(ordered[~same], nodes.x[~same][:, [2, 3, 0, 1]])
    assert 10 < same.sum() < 54
