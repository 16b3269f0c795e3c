"""The peers as their users run them; each is tested where it is installed.

BOBE lives in an environment of its own (see src/modelodds/baselines/peers/bobe.py); run this file there, too.
"""

import logging
import random
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

from modelodds import Model, Prior, Result
from modelodds.baselines import METHODS
from modelodds.baselines.base import Meter
from modelodds.baselines.peers import base, bobe, dynesty, nautilus, pyvbmc
from modelodds.baselines.peers.space import Space, _ends
from modelodds.errors import BudgetError, OptionError
from modelodds.problems import load

# In nats: three times the claim (dynesty 0.06, nautilus 0.01). The surrogates claim too little: for them
# it is about five times the largest error of a few seeds (PyVBMC 0.005, BOBE 0.02).
TOLERANCE = {"pyvbmc": 0.025, "dynesty": 0.19, "nautilus": 0.03, "bobe": 0.1}
PEERS = [name for name, entry in METHODS.items() if entry.peer]


class Counted:
    """A Gaussian likelihood that counts its calls, and may fail in one corner and be zero in another."""

    def __init__(self, mean: float, troubled: bool = False) -> None:
        self.mean, self.troubled, self.calls = mean, troubled, 0

    def __call__(self, theta: np.ndarray) -> float:
        self.calls += 1
        if self.troubled and theta[0] > 0.6:
            raise ValueError("the simulator crashed")
        if self.troubled and theta[0] < -0.6:
            return -np.inf
        return float(stats.norm.logpdf(theta, self.mean, 0.5).sum())


def compared(method: str, budget: int, troubled: bool = False) -> tuple[Result, list[Counted]]:
    """Two free parameters, one, and none."""
    likelihoods = [Counted(0.3, troubled), Counted(-0.2), Counted(0.1)]
    priors = [
        Prior({"a": stats.norm(), "b": stats.norm()}),
        Prior({"a": stats.norm(), "c": 0.5}),
        Prior({"c": 1.0}),
    ]
    models = [Model(f"m{i}", f, p) for i, (f, p) in enumerate(zip(likelihoods, priors, strict=True))]
    return METHODS[method](models, budget, 0), likelihoods


def wide() -> tuple[list[Model], float]:
    """Two models of little information, for which nested sampling takes few calls, and their log-odds."""
    priors = [
        Prior({"a": stats.uniform(-1, 2), "b": stats.uniform(-1, 2)}),
        Prior({"a": stats.uniform(-1, 2)}),
    ]
    models = [Model(f"m{i}", lambda theta: float(-theta @ theta), p) for i, p in enumerate(priors)]
    return models, float(np.log(np.sqrt(np.pi) / 2 * special.erf(1.0)))


@pytest.mark.parametrize("method", PEERS)
@pytest.mark.parametrize("budget", [1, 2, 7, 10])
def test_a_budget_too_small_is_kept_and_ignorance_is_said(method: str, budget: int) -> None:
    pytest.importorskip(METHODS[method].peer)
    result, likelihoods = compared(method, budget)
    calls = [f.calls for f in likelihoods]
    assert sum(calls) <= budget and list(result.n_evaluations.values()) == calls
    assert result.log_bayes_factor("m0", "m1")[1] > 100
    assert result.history["n_evaluations"].iloc[-1] == sum(calls)
    assert calls[2] == 1 and result.log_evidence_sd["m2"] == 0.0
    assert result.log_evidence["m2"] == pytest.approx(stats.norm.logpdf(1.0, 0.1, 0.5))


@pytest.mark.parametrize("method", PEERS)
@pytest.mark.parametrize("budget", [0, -3, 2.5, True])
def test_impossible_budgets(method: str, budget: float) -> None:
    with pytest.raises(BudgetError, match="whole number"):
        compared(method, budget)  # type: ignore[arg-type]


def test_pyvbmc_on_a_regression() -> None:
    pytest.importorskip("pyvbmc")
    state = np.random.get_state()[1].copy()  # type: ignore[index,union-attr]  # noqa: NPY002
    problem = load("regression-1", 0)
    result = METHODS["pyvbmc"](problem.models, 111, 0)
    assert len(result.evaluations) <= 111 and result.method == "pyvbmc" and result.seed == 0
    first, second = result.names
    error = result.log_bayes_factor(first, second)[0] - np.subtract(*problem.log_evidence)
    assert abs(error) < TOLERANCE["pyvbmc"]
    # The curve: ignorant before the first iterations, then one row for each.
    counts = result.history["n_evaluations"]
    assert counts.is_monotonic_increasing and counts.is_unique and counts.iloc[-1] == len(result.evaluations)
    assert counts.iloc[0] == 19 and result.history[f"log_evidence_sd[{second}]"].iloc[0] == 1000
    assert result.history[f"log_evidence[{first}]"].iloc[-1] == result.log_evidence[first]
    np.testing.assert_array_equal(state, np.random.get_state()[1])  # type: ignore[index]  # noqa: NPY002


def test_pyvbmc_goes_around_failures_and_zeros() -> None:
    pytest.importorskip("pyvbmc")
    result, likelihoods = compared("pyvbmc", 41, troubled=True)
    assert sum(f.calls for f in likelihoods) <= 41
    failed = result.evaluations[result.evaluations["status"] == "failed"]
    zero = np.isneginf(result.evaluations["log_likelihood"])
    assert len(failed) + zero.sum() > 0 and (failed["a"] > 0.6).all()
    assert np.isfinite(list(result.log_evidence.values())).all()


def normal_density(theta: np.ndarray) -> float:
    return float(stats.norm.logpdf(theta, [1.0, -1.0], [1.0, 2.0]).sum())


def normal_draws(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal([1.0, -1.0], [1.0, 2.0], size=(n, 2))


def normal_transform(u: np.ndarray) -> np.ndarray:
    return stats.norm.ppf(u, [1.0, -1.0], [1.0, 2.0])


def test_peers_work_in_theta_where_the_prior_has_a_density_there() -> None:
    marginals = {"a": stats.norm(1.0, 1.0), "b": stats.uniform(0.0, 2.0), "c": 3.0}
    space = Space.of(Prior(marginals))
    np.testing.assert_allclose(space.hard, [[-np.inf, 0.0], [np.inf, 2.0]])
    np.testing.assert_allclose(space.plausible, [[1 - 0.99446, 0.32], [1 + 0.99446, 1.68]], atol=1e-5)
    np.testing.assert_allclose(space.theta(np.array([[0.1, 0.2]])), [[0.1, 0.2, 3.0]])
    assert space.log_prior(np.array([1.0, 1.0])) == pytest.approx(stats.norm.logpdf(0) - np.log(2))
    np.testing.assert_allclose(space.box(0.9), [[1 - 1.64485, 0.0], [1 + 1.64485, 2.0]], atol=1e-5)

    joint = Space.of(Prior.from_density(normal_density, normal_draws, ["a", "b"]))
    assert joint.natural and np.isinf(joint.hard).all()
    np.testing.assert_allclose(joint.plausible, [[0.0, -3.0], [2.0, 1.0]], atol=0.2)
    assert joint.log_prior(np.array([1.0, 2.0])) == pytest.approx(normal_density(np.array([1.0, 2.0])))
    np.testing.assert_allclose(joint.box(0.9), [[1 - 1.64, -1 - 3.29], [1 + 1.64, -1 + 3.29]], atol=0.4)

    cube = Space.of(Prior.from_transform(normal_transform, ["a", "b"]))
    assert not cube.natural
    np.testing.assert_allclose(cube.plausible, [[-1.0, -1.0], [1.0, 1.0]], atol=0.1)
    assert cube.log_prior(np.zeros(2)) == pytest.approx(-np.log(2 * np.pi))


def test_dynesty_on_wide_likelihoods(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("dynesty")
    models, truth = wide()
    result = METHODS["dynesty"](models, 20_000, 0)
    mean, sd = result.log_bayes_factor("m0", "m1")
    assert abs(mean - truth) < TOLERANCE["dynesty"] and 0.01 < sd < 0.2
    assert len(result.history) == 2 and len(result.evaluations) < 20_000
    assert capsys.readouterr() == ("", "")


def test_dynesty_says_nothing_before_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("dynesty")
    result, likelihoods = compared("dynesty", 2001, troubled=True)
    assert [f.calls for f in likelihoods] == [1000, 1000, 1]
    assert result.log_evidence_sd["m0"] == result.log_evidence_sd["m1"] == 1000
    assert capsys.readouterr() == ("", "")  # dynesty prints what a likelihood raises


def test_nautilus_on_one_parameter(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = pytest.importorskip("nautilus").Sampler
    # With its own 2000 live points and four networks this would take half a minute.
    monkeypatch.setattr(nautilus, "_sampler", lambda: partial(sampler, n_live=500, n_networks=0))
    models, truth = wide()  # of which the log-evidence of the second is the log-odds of the two
    result = METHODS["nautilus"](models[1:], 40_000, 0)
    assert abs(result.log_evidence["m1"] - truth) < TOLERANCE["nautilus"]
    assert result.log_evidence_sd["m1"] == pytest.approx(0.01, rel=0.1)  # its 10000 effective points
    assert len(result.history) == 1 and len(result.evaluations) < 40_000


def test_nautilus_says_nothing_before_its_end() -> None:
    pytest.importorskip("nautilus")
    result, likelihoods = compared("nautilus", 3001, troubled=True)
    assert [f.calls for f in likelihoods] == [1500, 1500, 1]
    assert result.log_evidence_sd["m0"] == result.log_evidence_sd["m1"] == 1000


def test_bobe_in_few_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("BOBE")
    monkeypatch.chdir(tmp_path)
    handlers, state = list(logging.getLogger().handlers), random.getstate()
    likelihood = Counted(0.3)
    result = METHODS["bobe"]([Model("m", likelihood, Prior({"a": stats.norm()}))], 9, 0)
    assert likelihood.calls == len(result.evaluations) == 8  # four to begin with, and twos
    truth = stats.norm.logpdf(0.3, 0, np.sqrt(1.25))
    assert result.log_evidence["m"] == pytest.approx(truth, abs=TOLERANCE["bobe"])
    assert logging.getLogger().handlers == handlers and random.getstate() == state
    assert not list(tmp_path.iterdir())


def test_bobe_claims_half_the_distance_between_its_bounds() -> None:
    model = Model("m", Counted(0.0), Prior({"a": stats.norm()}))
    gate, space = base.Gate(Meter([model], 9).targets()[0], 9), Space.of(model.prior)
    samples = {"x": np.array([[0.5], [0.9]]), "weights": np.array([0.5, 0.5]), "logl": np.zeros(2)}
    found = bobe._found(
        gate, space, {"logz": {"mean": -3.0, "upper": -2.5, "lower": -3.1}, "samples": samples}
    )
    assert found.stages[0].log_evidence == -3.0 and found.stages[0].sd == pytest.approx(0.3)
    assert not bobe._found(gate, space, {"logz": {}, "samples": samples}).stages


@pytest.mark.parametrize("module", [pyvbmc, bobe, dynesty, nautilus])
def test_what_is_missing_is_said(module: object, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("pyvbmc", "BOBE", "dynesty", "nautilus"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(OptionError, match="pip install"):
        module.run([Model("m", Counted(0.0), Prior({"a": stats.norm()}))], 100)  # type: ignore[attr-defined]


def test_the_calls_are_shared_equally() -> None:
    meter = Meter(
        [
            Model("a", Counted(0.0), Prior({"a": stats.norm()})),
            Model("none", Counted(0.0), Prior({"a": 0.0})),
            Model("b", Counted(0.0), Prior({"a": stats.norm()})),
        ],
        10,
    )
    assert [base.shares(meter, n) for n in (0, 1, 2, 4, 10)] == [
        [0, 0, 0],
        [0, 1, 0],
        [1, 1, 0],
        [2, 1, 1],
        [5, 1, 4],
    ]
    assert [base._total(meter, i, 3) for i in (0, 2)] == [6, 7]


def test_a_half_open_prior_ends_in_its_far_tail() -> None:
    assert np.isinf(_ends(stats.norm(0, 1))).all()
    low, high = _ends(stats.lognorm(0.5))
    assert low == 0.0 and high == pytest.approx(stats.lognorm(0.5).ppf(1 - 1e-9))
    np.testing.assert_array_equal(_ends(stats.uniform(2, 3)), [2.0, 5.0])
