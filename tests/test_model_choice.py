"""Targets for choosing between two models, and how they relate (all functions of the log-odds agree)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from modelodds import Method, Session
from modelodds.acquisition import ACQUISITIONS, Rivals
from modelodds.acquisition.model_choice import (
    binary_entropy,
    information_on_sign,
    variance_of_difference,
)
from modelodds.errors import OptionError
from modelodds.problems.nested import nested
from modelodds.problems.regression import regression

numbers = st.floats(-5.0, 5.0)
variances = st.floats(0.05, 4.0)
shares = st.floats(0.05, 0.95)


def rivals(mean: tuple[float, float], variance: tuple[float, float]) -> Rivals:
    return Rivals(np.array(mean), np.array(variance), np.zeros(2))


@given(
    mean=st.tuples(numbers, numbers), variance=st.tuples(variances, variances), best=st.tuples(shares, shares)
)
def test_every_function_of_the_log_odds_prefers_the_same_model(
    mean: tuple[float, float], variance: tuple[float, float], best: tuple[float, float]
) -> None:
    taken = np.array(variance) * np.array(best)
    if abs(taken[0] - taken[1]) < 0.02 * taken.max():
        return  # too close for the quadratures to tell
    choices = {
        rule: int(np.argmax(ACQUISITIONS[rule].across(np.array(best), rivals(mean, variance))))
        for rule in ("log_odds", "model_choice", "difference")
    }
    assert set(choices.values()) == {int(np.argmax(taken))}


def test_information_on_sign_by_draws() -> None:
    mean, variance, taken = 0.8, 1.5, np.array([0.3, 1.1])
    rng = np.random.default_rng(0)
    before = stats.bernoulli(stats.norm.cdf(mean / np.sqrt(variance))).entropy()
    for delta, found in zip(taken, information_on_sign(mean, variance, taken), strict=True):
        moved = mean + np.sqrt(delta) * rng.normal(size=400_000)
        after = stats.bernoulli(stats.norm.cdf(moved / np.sqrt(variance - delta))).entropy().mean()
        assert found == pytest.approx(before - after, abs=2e-3)
    assert information_on_sign(mean, variance, np.zeros(1))[0] == pytest.approx(0.0, abs=1e-12)


def test_variance_of_difference_by_draws() -> None:
    mean, variance, taken = 0.5, 2.0, np.array([0.7])
    rng = np.random.default_rng(1)
    moved = mean + np.sqrt(taken[0]) * rng.normal(size=4000)
    rest = np.sqrt(variance - taken[0]) * rng.normal(size=(1, 4000))
    after = np.tanh(0.5 * (moved[:, None] + rest)).mean(1)
    assert variance_of_difference(mean, variance, taken)[0] == pytest.approx(after.var(), rel=0.08)
    whole = np.tanh(0.5 * stats.norm(mean, np.sqrt(variance)).ppf((np.arange(20_000) + 0.5) / 20_000)).var()
    assert variance_of_difference(mean, variance, np.array([variance]))[0] == pytest.approx(whole, rel=1e-3)


def test_binary_entropy() -> None:
    assert binary_entropy(np.zeros(1))[0] == pytest.approx(np.log(2))
    np.testing.assert_allclose(binary_entropy(np.array([-3.0])), binary_entropy(np.array([3.0])))
    assert binary_entropy(np.array([40.0]))[0] == 0.0


def test_the_papers_form_weighs_absolute_variances() -> None:
    """Equal relative uncertainties: the log form is indifferent, the Gaussian asks the larger evidence."""
    even, ask = np.array([0.5, 0.5]), rivals((0.0, -3.0), (0.2, 0.2))
    log_form = ACQUISITIONS["model_choice"].across(even, ask)
    gaussian = ACQUISITIONS["model_choice_gaussian"].across(even, ask)
    assert log_form[0] == pytest.approx(log_form[1])
    assert gaussian[0] > 10 * max(gaussian[1], 0.0)


def test_the_papers_form_has_no_opinion_where_one_model_looks_far_better() -> None:
    """Its entropies are zero to the last bit; the log form still tells which evaluation would say more."""
    best, ask = np.array([0.2, 0.9]), rivals((0.0, -300.0), (1e-4, 1.0))
    assert ACQUISITIONS["model_choice_gaussian"].across(best, ask).max() < 1e-12
    values = ACQUISITIONS["model_choice"].across(best, ask)
    assert values[1] > values[0] > 0.0


@pytest.mark.parametrize("rule", ["model_choice", "difference"])
def test_sessions_that_target_functions_of_the_log_odds_are_the_same(rule: str) -> None:
    """Blackwell's order, seen in whole runs: evaluation by evaluation the same as for the log-odds."""
    models = regression(2, 1).models
    asked = []
    for acquisition in ("log_odds", rule):
        session = Session(models, Method(acquisition=acquisition, coupling="independent"), rng=3)
        for _ in range(24):
            (query,) = session.ask()
            likelihood = {m.name: m.log_likelihood for m in models}[query.model]
            session.tell(query, likelihood(query.theta))
            asked.append((acquisition, query.model, query.theta))
    first, second = ([a[1:] for a in asked if a[0] == rule_] for rule_ in ("log_odds", rule))
    assert [a[0] for a in first] == [a[0] for a in second]
    np.testing.assert_allclose([a[1] for a in first], [a[1] for a in second])


def test_for_two_models_only() -> None:
    with pytest.raises(OptionError, match="is for 2 models, not 3"):
        Session(nested(3, 0).models, Method(acquisition="model_choice"))
