"""What every method of the benchmark keeps: the budget, the seed, the record, the failures."""

import warnings

import numpy as np
import pytest
from scipy import stats

from modelodds import Model, Prior, Result
from modelodds.baselines import METHODS
from modelodds.errors import BudgetError
from modelodds.problems.regression import regression

BUDGET = 60
OWN = [name for name, entry in METHODS.items() if not entry.peer]  # the peers: tests/test_peers.py
BUDGET_FREE = [m for m in OWN if m.startswith(("bridge", "reversible", "monte", "quasi", "annealed"))]
OURS = ["default", "default_independent", "default_stopping", "paper", "round_robin", "round_robin_default"]


class Counted:
    """A likelihood that counts its calls, fails in one corner and is zero in another."""

    def __init__(self, mean: float, troubled: bool = False) -> None:
        self.mean, self.troubled, self.calls = mean, troubled, 0

    def __call__(self, theta: np.ndarray) -> float:
        self.calls += 1
        if self.troubled and theta[0] > 1.2:
            raise ValueError("the simulator crashed")
        if self.troubled and theta[0] < -1.5:
            return -np.inf
        return float(stats.norm.logpdf(theta, self.mean, 0.5).sum())


def compared(method: str, budget: int, seed: int = 0, troubled: bool = False) -> tuple[Result, list[Counted]]:
    likelihoods = [Counted(0.3, troubled), Counted(-0.2)]
    names = (("a", "b"), ("a",))
    models = [
        Model(f"m{i}", f, Prior({n: stats.norm() for n in names[i]})) for i, f in enumerate(likelihoods)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return METHODS[method](models, budget, seed), likelihoods


@pytest.mark.parametrize("method", OWN)
def test_a_run_keeps_its_budget_and_its_record(method: str) -> None:
    result, likelihoods = compared(method, BUDGET)
    calls = [f.calls for f in likelihoods]
    assert 0 < sum(calls) <= BUDGET and list(result.n_evaluations.values()) == calls
    assert len(result.evaluations) == sum(calls)
    assert result.history["n_evaluations"].is_monotonic_increasing
    assert result.history["n_evaluations"].iloc[-1] == sum(calls)
    assert sum(result.probabilities.values()) == pytest.approx(1.0)
    assert np.isfinite(list(result.log_evidence.values())).all()
    assert method in ("default_independent", result.method, f"{result.method}_stopping")
    assert result.seed == 0 and result.overhead_seconds >= 0
    mean, sd = result.log_bayes_factor("m0", "m1")
    truth = 2 * stats.norm.logpdf(0.3, 0, np.sqrt(1.25)) - stats.norm.logpdf(0.2, 0, np.sqrt(1.25))
    assert abs(mean - truth) < 4 * sd + 0.5


@pytest.mark.parametrize("method", [m for m in OWN if m not in OURS])  # those: tests/test_compare.py
def test_the_same_seed_gives_the_same_run(method: str) -> None:
    budget = 30
    one, other = (compared(method, budget)[0] for _ in range(2))
    np.testing.assert_array_equal(one.log_evidence_mean, other.log_evidence_mean)
    np.testing.assert_array_equal(one.evaluations["log_likelihood"], other.evaluations["log_likelihood"])


@pytest.mark.parametrize("method", [m for m in OWN if m not in OURS])
@pytest.mark.parametrize("budget", [1, 2, 7])
def test_tiny_budgets_are_kept_and_ignorance_is_said(method: str, budget: int) -> None:
    result, likelihoods = compared(method, budget)
    assert sum(f.calls for f in likelihoods) <= budget
    assert result.log_bayes_factor("m0", "m1")[1] > 0.3


@pytest.mark.parametrize("method", OWN)
def test_failures_and_zeros_are_gone_around(method: str) -> None:
    result, likelihoods = compared(method, 80, troubled=True)
    assert sum(f.calls for f in likelihoods) <= 80
    failed = result.evaluations[result.evaluations["status"] == "failed"]
    assert (failed["a"] > 1.2).all() and failed["reason"].str.contains("crashed").all()
    assert np.isfinite(list(result.log_evidence.values())).all()


@pytest.mark.parametrize("method", BUDGET_FREE)
def test_a_long_run_has_said_what_a_short_one_says(method: str) -> None:
    problem = regression(1, 0)
    long = METHODS[method](problem.models, 400, 5)
    for n in (104, 200, 304):
        row = long.history.set_index("n_evaluations").loc[n]
        short = METHODS[method](problem.models, n, 5)
        for name in short.names:
            assert row[f"log_evidence[{name}]"] == pytest.approx(short.log_evidence[name], abs=1e-12)
            assert row[f"log_evidence_sd[{name}]"] == pytest.approx(short.log_evidence_sd[name], rel=1e-9)


@pytest.mark.parametrize("method", OWN)
@pytest.mark.parametrize("budget", [0, -3, 2.5, True])
def test_impossible_budgets(method: str, budget: float) -> None:
    with pytest.raises(BudgetError, match="whole number"):
        compared(method, budget)  # type: ignore[arg-type]
