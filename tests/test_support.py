"""Belief on where a likelihood is positive."""

import numpy as np
import pytest
from numpy.typing import NDArray

from example_gp import covariance64, predict64
from modelodds.support import SPEC, Support, Works

Array = NDArray[np.float64]


def told(x: Array, positive: NDArray[np.bool_]) -> Support:
    support = Support(x.shape[1])
    for point, inside in zip(x, positive, strict=True):
        support.tell(point, bool(inside))
    return support


def half_plane(n: int, seed: int = 0) -> tuple[Support, Array]:
    """Support x_0 > 0, seen at ``n`` points."""
    x = np.random.default_rng(seed).normal(size=(n, 2))
    return told(x, x[:, 0] > 0), x


NODES = np.random.default_rng(1).normal(size=(2048, 2))


def mass(support: Support, likelihood: Array | float = 1.0) -> Array:
    """Shares of equally weighted nodes in the evidence."""
    return likelihood * np.exp(support.log_probability(NODES))


def test_all_is_inside_until_a_zero_was_seen() -> None:
    support = told(NODES[:10], np.ones(10, dtype=bool))
    assert not support.bounded
    np.testing.assert_array_equal(support.log_probability(NODES), 0.0)
    assert not Support(2).bounded


def test_probabilities_follow_the_labels() -> None:
    support, x = half_plane(40)
    assert support.bounded
    p = np.exp(support.log_probability(x))
    assert np.all((p > 0.5) == (x[:, 0] > 0))
    p = np.exp(support.log_probability(NODES))
    assert np.all((p >= 0) & (p <= 1))
    assert np.mean((p > 0.5) == (NODES[:, 0] > 0)) > 0.9
    assert p[NODES[:, 0] > 1].min() > 0.5 > p[NODES[:, 0] < -1].max()


def test_the_boundarys_share_of_the_variance_shrinks_with_looks() -> None:
    supports = [half_plane(n)[0] for n in (10, 40, 160)]
    shares = [support.variance(NODES, mass(support)) for support in supports]
    assert shares[0] > shares[1] > shares[2] > 0
    scaled = supports[1].variance(NODES, 7.0 * mass(supports[1]))
    assert scaled == pytest.approx(shares[1], rel=1e-9)  # the mass need not be normalised
    inside = mass(supports[1], np.exp(-0.5 * ((NODES[:, 0] - 1.5) / 0.2) ** 2))
    assert supports[1].variance(NODES, inside) < 0.2 * shares[1]  # a likelihood well inside has no boundary


def test_the_share_is_what_draws_of_the_support_say() -> None:
    """Var log a over supports {f > 0}, f drawn from its Gaussian process; linearised, so for a small one."""
    support, _ = half_plane(160)
    nodes = NODES[:600]
    p = np.exp(support.log_probability(nodes))
    gp = support._gp
    mean = np.asarray(predict64(spec=SPEC, gp=gp, x=nodes)[0])
    cov = np.asarray(covariance64(spec=SPEC, gp=gp, a=nodes, b=nodes))
    factor = np.linalg.cholesky(cov + 1e-9 * np.eye(600))
    draws = mean[:, None] + factor @ np.random.default_rng(2).normal(size=(600, 4000))
    np.testing.assert_allclose((draws > 0).mean(1), p, atol=4 * 0.5 / np.sqrt(4000))
    brute = np.log((draws > 0).mean(0)).var()
    # Coins of two nodes correlate less than f does: (2/pi) asin r at p = 1/2 and less elsewhere, so the
    # belief is cautious, by no more than a factor of a few.
    found = support.variance(nodes, p)
    assert brute < found < 6 * brute


def test_proposals_look_at_the_boundary_where_the_mass_is() -> None:
    support, _ = half_plane(40)
    share = mass(support, np.exp(-0.5 * ((NODES[:, 1] - 0.5) / 0.3) ** 2))
    found = support.propose(NODES, share, [])
    assert abs(found.x[0]) < 0.7 and abs(found.x[1] - 0.5) < 1.0
    assert 0 < found.score <= 1 and found.variance == pytest.approx(support.variance(NODES, share), rel=1e-9)
    assert np.any(np.all(found.x == NODES, axis=1))
    p = float(np.exp(support.log_probability(found.x[None])[0]))
    assert 0.1 < p < 0.9  # not where the label is known


def test_pending_looks_are_not_repeated_and_change_nothing() -> None:
    support, _ = half_plane(20)
    before = support.log_probability(NODES)
    pending: list[Array] = []
    variances = []
    for _ in range(4):
        found = support.propose(NODES, mass(support), pending)
        variances.append(found.variance)
        pending.append(found.x)
    distance = np.linalg.norm(np.array(pending)[:, None] - np.array(pending)[None], axis=2)
    assert distance[~np.eye(4, dtype=bool)].min() > 0.05
    assert variances[-1] < variances[0]
    np.testing.assert_array_equal(support.log_probability(NODES), before)


def test_labels_that_contradict_each_other_are_survived() -> None:
    x = np.repeat(np.random.default_rng(0).normal(size=(10, 2)), 2, axis=0)
    support = told(x, np.arange(20) % 2 == 0)
    np.testing.assert_allclose(np.exp(support.log_probability(x)), 0.5, atol=0.05)
    assert np.isfinite(support.variance(NODES, mass(support)))
    assert np.isfinite(support.propose(NODES, mass(support), []).score)


def failing(x: Array, worked: NDArray[np.bool_]) -> Works:
    works = Works(x.shape[1])
    for point, good in zip(x, worked, strict=True):
        works.tell(point, bool(good))
    return works


def test_nothing_is_held_back_until_something_failed() -> None:
    assert failing(NODES[:10], np.ones(10, dtype=bool)).promising(NODES).all()
    assert failing(NODES[:10], np.zeros(10, dtype=bool)).promising(NODES).all()  # there is nowhere to go


def test_points_beyond_an_edge_where_evaluations_fail_are_not_asked_for() -> None:
    x = np.random.default_rng(0).normal(size=(40, 2))
    works = failing(x, x[:, 0] < 0.8)
    deep, fine = NODES[NODES[:, 0] > 1.2], NODES[NODES[:, 0] < -0.5]
    assert not works.promising(deep).any()
    assert works.promising(fine).mean() > 0.8
    assert works.promising(NODES, room=1.0).sum() > works.promising(NODES).sum()
    assert works.promising(deep, room=1.0).mean() < 0.1


def test_failures_by_chance_seldom_hold_anything_back() -> None:
    rng = np.random.default_rng(0)
    kept = [failing(x, rng.random(40) > 0.2).promising(NODES).all() for x in rng.normal(size=(60, 40, 2))]
    assert np.mean(kept) > 0.7
