"""Bridge sampling: its identity, its error formula, its adaptive walk."""

import numpy as np
import pytest
from scipy import stats

from modelodds import Model, Prior
from modelodds.baselines.base import Meter
from modelodds.baselines.bridge import ROUGH, Bridge, bridge, run
from modelodds.baselines.walk import Walk, autocorrelation_time, shrunk_covariance
from modelodds.problems.nested import nested
from modelodds.problems.regression import regression


def normal_ratios(
    n: int, seed: int, scale: float = 1.3, log_a: float = -7.0
) -> tuple[np.ndarray, np.ndarray]:
    """log q / g for draws of both, q a normal density times e^log_a and g a normal ``scale`` as wide."""
    rng = np.random.default_rng(seed)
    q, g = stats.norm(0, 1), stats.norm(0.3, scale)
    posterior, proposed = q.rvs(n, random_state=rng), g.rvs(n, random_state=rng)
    return tuple(log_a + q.logpdf(v) - g.logpdf(v) for v in (posterior, proposed))  # type: ignore[return-value]


def test_bridge_finds_the_constant_with_the_error_it_claims() -> None:
    found = np.array([bridge(*normal_ratios(200, seed)) for seed in range(200)])
    error, claimed = found[:, 0] + 7.0, np.sqrt(found[:, 1])
    assert abs(error.mean()) < 4 * error.std() / np.sqrt(200)
    assert error.std() == pytest.approx(claimed.mean(), rel=0.15)


def test_bridge_is_exact_where_the_proposal_is_the_posterior() -> None:
    log_a, variance = bridge(np.full(50, 3.25), np.full(70, 3.25))
    assert log_a == pytest.approx(3.25, abs=1e-9) and variance == pytest.approx(0.0, abs=1e-12)


def test_bridge_moves_with_its_argument() -> None:
    posterior, proposed = normal_ratios(80, 1)
    a, v = bridge(posterior, proposed)
    b, w = bridge(posterior - 1e5, proposed - 1e5)
    assert b == pytest.approx(a - 1e5, abs=1e-6) and w == pytest.approx(v, rel=1e-6)


def test_bridge_solves_the_textbook_iteration() -> None:
    posterior, proposed = normal_ratios(300, 2)
    n_1 = len(posterior) / autocorrelation_time(posterior)
    s_1, s_2 = n_1 / (n_1 + 300), 300 / (n_1 + 300)
    l_1, l_2, r = np.exp(posterior + 7), np.exp(proposed + 7), 1.0
    for _ in range(200):
        r = (l_2 / (s_1 * l_2 + s_2 * r)).mean() / (1 / (s_1 * l_1 + s_2 * r)).mean()
    assert bridge(posterior, proposed)[0] == pytest.approx(np.log(r) - 7, abs=1e-8)


def test_bridge_without_overlap_says_it_does_not_know() -> None:
    rng = np.random.default_rng(0)
    _, variance = bridge(300 + rng.normal(size=50), -300 + rng.normal(size=50))
    assert np.sqrt(variance) > 100
    assert np.isnan(bridge(np.zeros(10), np.full(10, -np.inf))[0])


def test_autocorrelation_time_of_an_autoregression() -> None:
    rng, phi = np.random.default_rng(3), 0.8
    series = np.zeros(40_000)
    for t in range(1, len(series)):
        series[t] = phi * series[t - 1] + rng.normal()
    assert autocorrelation_time(series) == pytest.approx((1 + phi) / (1 - phi), rel=0.15)
    assert autocorrelation_time(rng.normal(size=10_000)) < 1.2


def test_walk_finds_a_thin_correlated_posterior() -> None:
    cov = np.array([[0.04, 0.0396], [0.0396, 0.04]])
    density = stats.multivariate_normal([1.5, 1.5], cov)
    model = Model("ridge", lambda t: density.logpdf(t), Prior({n: stats.norm(0, 3) for n in "ab"}))
    (target,) = Meter([model], 3000).targets()
    walk = Walk(target, np.random.default_rng(0))
    for _ in range(3000):
        walk.step()
    theta = target.theta(np.array([p.v for p in walk.kept]))[0]
    exact = np.linalg.inv(np.linalg.inv(cov) + np.eye(2) / 9)
    np.testing.assert_allclose(np.cov(theta.T), exact, rtol=0.4)
    assert 0.15 < walk.moves / len(walk.chain) < 0.5
    assert target.meter.spent == 3000


def test_shrunk_covariance_is_positive_definite_even_of_one_place() -> None:
    assert np.all(np.linalg.eigvalsh(shrunk_covariance(np.ones((5, 3)))) > 0)


def test_coverage_over_repeats() -> None:
    """Twenty runs of 600 calls: the truth is within the claims as often as they say, or nearly."""
    problem, errors = regression(2, 0), []
    truth = problem.log_evidence[0] - problem.log_evidence[1]
    for seed in range(20):
        mean, sd = run(problem.models, 600, seed).log_bayes_factor("polynomial", "cosine")
        errors.append((mean - truth) / sd)
    inside = np.abs(errors)
    assert (inside < 2).mean() >= 0.8 and (inside < 1).mean() >= 0.5
    assert np.std(errors) > 0.4  # nor are the claims empty


def test_many_models_and_exact_ones() -> None:
    problem = nested(3, 0)
    constant = Model("nothing", lambda t: -20.0, Prior({}))
    result = run([*problem.models, constant], 1500, 0)
    assert result.log_evidence["nothing"] == -20.0 and result.log_evidence_sd["nothing"] == 0.0
    assert result.n_evaluations["nothing"] == 1
    for model, truth in zip(problem.models, problem.log_evidence, strict=True):
        assert abs(result.log_evidence[model.name] - truth) < 4 * result.log_evidence_sd[model.name] + 0.05


def test_the_walk_tells_roughly_what_the_bridge_does_not() -> None:
    """A posterior of known constant: within its two nats of the truth, and only once the walk is there."""
    model = Model(
        "peak", lambda t: float(-8.0 * (t**2).sum()), Prior({n: stats.norm() for n in "abc"})
    )  # a normal integral: 17^(-3/2)
    sampler = Bridge(Meter([model], 1000).targets()[0], np.random.default_rng(0))
    assert np.isnan(sampler._by_walk()[0])
    while not sampler.fits:
        sampler.step()
    found, variance = sampler._by_walk()
    assert variance == ROUGH and abs(found + 1.5 * np.log(17.0)) < 2.0
