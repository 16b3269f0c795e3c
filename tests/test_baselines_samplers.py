"""Prior Monte Carlo, nested sampling and tempered sequential Monte Carlo against known evidences.

What all methods keep (budget, seed, record, failures) is in test_baselines.py.
"""

import sys

import numpy as np
import pytest
from scipy import stats

from example_models import half, half_log_evidence, null
from modelodds import Model, Prior
from modelodds.baselines import METHODS, annealed, monte_carlo
from modelodds.errors import OptionError
from modelodds.problems import load

# The largest error of the log-odds: three times its root mean square over ten seeds, where that is largest.
WITHIN = {"monte_carlo": 1.3, "quasi_monte_carlo": 0.6, "nested": 0.6, "annealed": 2.5}
BUDGET = {"regression-2": 4000, "plane": 1000, "tails-2": 1000}
PRIOR_DRAWS = ["monte_carlo", "quasi_monte_carlo"]


def bowl(width: float) -> Model:
    """A Gaussian likelihood of height one, over two standard normal parameters."""
    return Model(
        "bowl",
        lambda theta: float(-0.5 * (theta**2).sum() / width**2),
        {"x": stats.norm(), "y": stats.norm()},
    )


def bowl_log_evidence(width: float) -> float:
    return float(-np.log1p(width**-2))


@pytest.mark.parametrize("name", BUDGET)
@pytest.mark.parametrize("method", WITHIN)
def test_known_odds_are_found_within_what_is_claimed(method: str, name: str) -> None:
    problem = load(name, 0)
    budget = 1000 if method == "nested" else BUDGET[name]
    result = METHODS[method](problem.models, budget, 1)
    error, sd = result.log_bayes_factor(*result.names)
    error -= problem.log_evidence[0] - problem.log_evidence[1]
    assert len(result.evaluations) == budget
    assert abs(error) < min(4 * sd, WITHIN[method])


@pytest.mark.parametrize("method", WITHIN)
def test_likelihoods_of_zero_and_models_without_parameters(method: str) -> None:
    models = [Model("half", half, {"a": stats.norm(), "b": stats.norm()}), null("null", -1.5)]
    result = METHODS[method](models, 800, 0)
    error = result.log_evidence["half"] - half_log_evidence()
    assert result.n_evaluations == {"half": 799, "null": 1} or method == "nested"
    assert abs(error) < 4 * result.log_evidence_sd["half"] and abs(error) < 0.6
    assert result.log_evidence["null"] == -1.5 and result.log_evidence_sd["null"] == 0.0
    draws = result.posterior("half", 500)
    assert (draws["a"] >= 0).all()
    variance = 1.0 / (1.0 + 1.0 / 0.09)
    mean, sd = variance * 0.3 / 0.09, np.sqrt(variance)
    assert draws["a"].mean() == pytest.approx(stats.truncnorm.mean(-mean / sd, np.inf, mean, sd), abs=0.12)
    assert (result.posterior("null", 5)["x"] == 0.0).all()


@pytest.mark.parametrize("method", WITHIN)
def test_no_global_generator_is_touched(method: str) -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002  the point is to look at it
    METHODS[method]([bowl(0.5)], 150, 0)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("method", WITHIN)
def test_a_likelihood_that_says_little_is_no_trouble(method: str) -> None:
    """The prior is the posterior, nearly: nested sampling is done exploring at once."""
    result = METHODS[method]([bowl(3.0)], 500, 0)
    error = result.log_evidence["bowl"] - bowl_log_evidence(3.0)
    assert abs(error) < min(4 * result.log_evidence_sd["bowl"], 0.1)


@pytest.mark.parametrize("method", PRIOR_DRAWS)
def test_prior_draws_do_not_depend_on_the_budget(method: str) -> None:
    models = load("tails-2", 0).models
    long = METHODS[method](models, 500, 3)
    for n in (110, 300):
        short = METHODS[method](models, n, 3)
        row = long.history.set_index("n_evaluations").loc[n]
        for name in short.names:
            assert row[f"log_evidence[{name}]"] == short.log_evidence[name]
            assert row[f"log_evidence_sd[{name}]"] == short.log_evidence_sd[name]
        np.testing.assert_array_equal(
            long.evaluations["log_likelihood"][:n], short.evaluations["log_likelihood"]
        )


def test_draws_outside_the_support_count_towards_the_mean() -> None:
    """A uniform joint prior on a triangle: its reference density covers more, and no call is made there."""

    def sample(n: int, rng: np.random.Generator) -> np.ndarray:
        u = rng.random((n, 2))
        return np.where(u.sum(1, keepdims=True) > 1, 1 - u, u)

    def log_density(theta: np.ndarray) -> float:
        return float(np.log(2.0)) if (theta >= 0).all() and theta.sum() <= 1 else -np.inf

    prior = Prior.from_density(log_density, sample, ["x", "y"])
    model = Model("triangle", lambda theta: float(np.log(theta.sum())), prior)  # E[x + y] = 2/3
    for method in WITHIN:
        result = METHODS[method]([model], 400, 0)
        error = result.log_evidence["triangle"] - np.log(2 / 3)
        assert abs(error) < min(4 * result.log_evidence_sd["triangle"], 0.3), method


def test_sobol_points_beat_random_ones() -> None:
    errors = {
        quasi: [
            monte_carlo.run([bowl(0.5)], 128, seed, quasi).log_evidence["bowl"] - bowl_log_evidence(0.5)
            for seed in range(6)
        ]
        for quasi in (False, True)
    }
    assert np.std(errors[True]) < 0.5 * np.std(errors[False])


def test_what_few_draws_carry_is_not_believed() -> None:
    """Ten dimensions, a peak far narrower than the prior: forty draws are nowhere near it."""
    rng = np.random.default_rng(0)
    claimed = []
    for _ in range(20):
        log_weight = -0.5 * (rng.standard_normal((40, 10)) ** 2).sum(1) / 0.1**2
        mean, variance = monte_carlo.log_mean(log_weight, 10)
        truth = -5 * np.log1p(0.1**-2)
        assert mean < truth - 30
        claimed.append(abs(mean - truth) / np.sqrt(variance))
    assert np.median(claimed) < 1.0 and max(claimed) < 3.0


def test_log_mean_of_equal_and_of_missing_weights() -> None:
    assert monte_carlo.log_mean(np.full(10, -3.0), 2) == (-3.0, 0.0)
    assert np.isnan(monte_carlo.log_mean(np.full(10, -np.inf), 2)).all()
    assert np.isnan(monte_carlo.log_mean(np.array([0.0, -1.0]), 2)).all()


def test_the_temperature_rises_to_half_the_particles() -> None:
    log_f = np.append(-1e6 * np.arange(50.0), -np.inf)
    rise = annealed.next_rise(log_f, 1.0)
    weight = np.exp(rise * log_f)
    assert weight.sum() ** 2 / (weight**2).sum() == pytest.approx(25.0)
    assert annealed.next_rise(1e-9 * log_f, 0.7) == 0.7


def test_ladders_that_differ_say_so() -> None:
    def ladder(size: int, log_evidence: float) -> annealed.Ladder:
        return annealed.Ladder(size, log_evidence, 0.01, np.zeros((1, 1)), np.ones(1))

    assert annealed.pooled([ladder(10, -5.0), ladder(20, -5.0)]) == pytest.approx((-5.0, 0.01 * 5 / 9))
    mean, variance = annealed.pooled([ladder(10, -9.0), ladder(20, -5.0)])
    assert mean == pytest.approx(np.log((np.exp(-9) + 2 * np.exp(-5)) / 3)) and variance > 4.0
    assert np.isnan(annealed.pooled([])).all()


def test_an_unfinished_ladder_says_nothing() -> None:
    result = METHODS["annealed"](load("tails-2", 0).models, 40, 0)
    assert set(result.log_evidence_sd.values()) == {1000.0}


def test_nested_sampling_asks_for_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nautilus", None)
    with pytest.raises(OptionError, match=r"pip install 'modelodds\[bench\]'"):
        METHODS["nested"]([bowl(0.5)], 50, 0)
