"""Reversible jump: detailed balance on cases solved by hand, its estimators against exact probabilities."""

import numpy as np
import pytest
from scipy import integrate, stats

from modelodds import Model, Prior
from modelodds.baselines.base import Meter
from modelodds.baselines.reversible_jump import ReversibleJump, acceptance, recycled, run, weighed
from modelodds.errors import OptionError
from modelodds.problems.nested import nested


def pair(prior_probability: float = 1.0) -> tuple[list[Model], float]:
    """y = 0.4 with unit noise: mean zero, or mean a ~ N(0, 2). Log-odds of the second by hand."""
    y = 0.4
    models = [
        Model("zero", lambda t: float(stats.norm.logpdf(y)), Prior({})),
        Model(
            "mean",
            lambda t: float(stats.norm.logpdf(y - t[0])),
            Prior({"a": stats.norm(0, 2)}),
            prior_probability,
        ),
    ]
    odds = stats.norm.logpdf(y, 0, np.sqrt(5)) - stats.norm.logpdf(y) + np.log(prior_probability)
    return models, float(odds)


def chain(models: list[Model], budget: int = 10**6, seed: int = 0) -> ReversibleJump:
    return ReversibleJump(Meter(models, budget).targets(), np.random.default_rng(seed))


def test_acceptance_ratio_by_hand() -> None:
    """From zero to mean a comes from its prior: rho is the likelihood ratio."""
    models, _ = pair(prior_probability=3.0)
    moves = chain(models)
    zero = moves.targets[0].at(np.empty(0))
    there, rho = moves.jump(0, zero, 1)
    a = moves.targets[1].theta(there.v)[0][0]
    by_hand = np.log(3.0) + stats.norm.logpdf(0.4 - a) - stats.norm.logpdf(0.4)
    assert rho == pytest.approx(by_hand, abs=1e-12)
    assert moves.jump(1, there, 0)[1] == pytest.approx(-rho, abs=1e-12)


def test_jumps_there_and_back_cancel() -> None:
    """Detailed balance: the ratio of a jump and that of its reverse are each other's inverse."""
    left = Model("l", lambda t: -0.5 * t @ t, Prior({"a": stats.norm(0, 1), "b": stats.gamma(2)}))
    right = Model("r", lambda t: -np.abs(t).sum(), Prior({"b": stats.uniform(0, 9), "a": stats.norm(1, 3)}))
    moves = chain([left, right], seed=4)
    for _ in range(20):
        here = moves.targets[0].at(moves.rng.normal(size=2))
        there, rho = moves.jump(0, here, 1)
        if np.isfinite(rho):
            back, other = moves.jump(1, there, 0)
            np.testing.assert_allclose(back.v, here.v, atol=1e-9)
            assert other == pytest.approx(-rho, abs=1e-9)
            # Identity in theta: by name, whatever the priors.
            theta, theta_there = moves.targets[0].theta(here.v)[0], moves.targets[1].theta(there.v)[0]
            np.testing.assert_allclose(theta_there, theta[::-1], atol=1e-9)
            q = [
                m.log_likelihood(t) + m.prior.log_density_theta(t)
                for m, t in ((left, theta), (right, theta_there))
            ]
            assert rho == pytest.approx(q[1] - q[0], abs=1e-9)


def test_parameters_are_paired_in_order_where_no_name_is_shared() -> None:
    left = Model("l", lambda t: 0.0, Prior({"a": stats.norm(), "b": stats.norm()}))
    right = Model("r", lambda t: 0.0, Prior({"c": stats.norm()}))
    moves = chain([left, right])
    here = moves.targets[0].at(np.array([0.7, -1.0]))
    there, rho = moves.jump(0, here, 1)
    assert there.v[0] == 0.7 and rho == pytest.approx(0.0, abs=1e-12)


def test_a_map_of_ones_own_with_its_jacobian() -> None:
    """b = exp(a): with |db/da| = b the two ways cancel, and the odds come out right."""
    left = Model("l", lambda t: float(stats.norm.logpdf(t[0], 0.3, 0.2)), Prior({"a": stats.norm()}))
    right = Model(
        "r", lambda t: float(stats.norm.logpdf(np.log(t[0]), 0.3, 0.2)), Prior({"b": stats.expon()})
    )
    maps = {
        ("l", "r"): lambda t, rng: (np.exp(t), float(t[0])),
        ("r", "l"): lambda t, rng: (np.log(t), float(-np.log(t[0]))),
    }
    moves = ReversibleJump(Meter([left, right], 100).targets(), np.random.default_rng(0), maps)
    here = moves.targets[0].at(np.array([0.4]))
    there, rho = moves.jump(0, here, 1)
    assert moves.targets[1].theta(there.v)[0][0] == pytest.approx(np.exp(0.4))
    assert moves.jump(1, there, 0)[1] == pytest.approx(-rho, abs=1e-9)
    exact = [
        integrate.quad(lambda a: np.exp(left.log_likelihood([a])) * stats.norm.pdf(a), -2, 2)[0],
        integrate.quad(lambda b: np.exp(right.log_likelihood([b])) * stats.expon.pdf(b), 0.3, 5)[0],
    ]
    mean, sd = run([left, right], 3000, 1, maps=maps).log_bayes_factor("r", "l")
    assert abs(mean - np.log(exact[1] / exact[0])) < 4 * sd and sd < 0.1


@pytest.mark.parametrize("estimator", ["recycled", "acceptance", "visits"])
def test_estimators_against_exact_odds(estimator: str) -> None:
    models, truth = pair(prior_probability=2.0)
    result = run(models, 4000, 0, estimator=estimator)
    mean, sd = result.log_odds("mean", "zero")
    assert abs(mean - truth) < 4 * sd and sd < 0.2


def test_coverage_over_repeats() -> None:
    """Fifteen chains of 600 calls through three nested models."""
    problem, off = nested(3, 0), []
    for seed in range(15):
        result = run(problem.models, 600, seed)
        for i, j in ((0, 1), (1, 2)):
            mean, sd = result.log_bayes_factor(result.names[i], result.names[j])
            off.append((mean - problem.log_evidence[i] + problem.log_evidence[j]) / sd)
    inside = np.abs(off)
    assert (inside < 2).mean() >= 0.8 and (inside < 1).mean() >= 0.45
    assert np.std(off) > 0.4


def test_recycling_beats_counting_visits() -> None:
    models, truth = pair()
    errors = {
        estimator: [
            abs(run(models, 200, s, estimator=estimator).log_odds("mean", "zero")[0] - truth)
            for s in range(12)
        ]
        for estimator in ("recycled", "acceptance", "visits")
    }
    assert np.mean(errors["recycled"]) < np.mean(errors["visits"])
    assert np.mean(errors["recycled"]) < 1.2 * np.mean(errors["acceptance"])


def test_estimators_need_both_directions_or_say_so() -> None:
    assert np.isnan(acceptance(np.array([0.1, 0.2]), np.array([]))[0])
    assert np.isnan(recycled(np.array([]), np.array([]))[0])
    log_odds, variance = recycled(np.array([-30.0, -20.0, -25.0]), np.array([]))
    assert log_odds < -20 and np.sqrt(variance) > 5


def test_two_estimates_as_one() -> None:
    assert weighed((1.0, 0.5), (3.0, 0.5)) == pytest.approx((2.0, 1.5))  # their disagreement counts
    assert weighed((1.0, 0.1), (2.0, 0.3))[0] == pytest.approx(1.25)
    assert weighed((np.nan, np.nan), (3.0, 0.5)) == (3.0, 0.5)
    mean, variance = weighed((1.0, 1e-9), (50.0, 4.0))
    assert mean == pytest.approx(1.0, abs=1e-6) and variance < 1e-5


def test_unknown_estimator() -> None:
    with pytest.raises(OptionError, match="recycled"):
        run(pair()[0], 10, estimator="guess")
