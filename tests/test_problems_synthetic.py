"""The paper's synthetic task: its likelihoods, its data and its stored evidences, by other routes."""

import csv
from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import RBF, Matern

from modelodds.errors import ProblemError
from modelodds.model import Model
from modelodds.problems import load
from modelodds.problems.synthetic import NOISE, candidates, dataset
from modelodds.problems.truth import FOLDER

Array = NDArray[np.float64]


def rows() -> list[dict[str, str]]:
    """What is stored."""
    with (FOLDER / "synthetic.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def log_joint(model: Model, theta: Array) -> Array:
    """Log of likelihood times prior density at ``theta`` (n, d)."""
    return np.asarray(model.log_likelihood(theta)) + model.prior.log_density_theta(theta)


@pytest.mark.parametrize("d", [1, 3, 5])
def test_likelihoods_are_those_of_gaussian_processes(d: int) -> None:
    inputs, y = dataset(d, 7)
    assert inputs.shape == (5 * d, d) and y.shape == (5 * d,)
    theta = np.random.default_rng(0).normal(size=(700, d))  # more than one chunk
    for model in candidates(d, 7):
        found = model.log_likelihood(theta)
        assert found.shape == (700,) and model.vectorized
        for i in (0, 511, 512, 699):
            scale = np.exp(theta[i])
            kernel = RBF(scale) if model.name == "squared_exponential" else Matern(scale, nu=2.5)
            covariance = kernel(inputs) + NOISE**2 * np.eye(len(y))
            exact = stats.multivariate_normal.logpdf(y, np.zeros(len(y)), covariance)
            assert found[i] == pytest.approx(exact, abs=1e-6, rel=1e-9)


def test_likelihoods_survive_the_far_ends_of_the_prior() -> None:
    for model in candidates(2, 0):
        assert np.all(np.isfinite(model.log_likelihood(np.array([[-1e4, -1e4], [1e4, 1e4], [-1e4, 1e4]]))))


@pytest.mark.parametrize("seed", [0, 8, 41])
@pytest.mark.parametrize("d", [1, 2])
def test_stored_truth_by_the_trapezoid_rule(d: int, seed: int) -> None:
    problem = load(f"synthetic-{d}", seed)
    step = {1: 0.001, 2: 0.05}[d]
    for model, stored in zip(problem.models, problem.log_evidence, strict=True):
        axis = model.prior.to_theta(np.zeros(d))[0] + np.arange(-8.0, 8.0, step)  # eight of the prior's sd
        theta = np.stack(np.meshgrid(*[axis] * d), axis=-1).reshape(-1, d)
        found = special.logsumexp(log_joint(model, theta)) + d * np.log(step)
        assert abs(found - stored) < 4 * problem.error + 1e-6  # the stored ones have six digits
        assert problem.error < 1e-4


@pytest.mark.parametrize(("d", "seed"), [(3, 0), (4, 5)])
def test_stored_truth_by_draws_from_the_prior(d: int, seed: int) -> None:
    problem = load(f"synthetic-{d}", seed)
    centre = problem.models[0].prior.to_theta(np.zeros(d))
    for model, stored in zip(problem.models, problem.log_evidence, strict=True):
        found = []
        for s in range(8):
            u = qmc.Sobol(d, rng=np.random.default_rng(s)).random(2**12)
            found.append(special.logsumexp(model.log_likelihood(centre + special.ndtri(u))) - np.log(2**12))
        error = np.std(found, ddof=1) / np.sqrt(8)
        assert error < 0.05
        assert abs(np.mean(found) - stored) < 4 * error


def test_stored_truths_give_the_probability_to_a_thousandth() -> None:
    """Three standard errors of z_1, with equal prior probabilities, for every dataset of the experiment."""
    evidence = {(r["problem"], r["seed"], r["model"]): r for r in rows()}
    for d in range(1, 6):
        for seed in (*range(100), *range(200, 215)):  # the paper's hundred, and those kept apart
            one, other = (
                evidence[f"synthetic-{d}", str(seed), model] for model in ("squared_exponential", "matern52")
            )
            z = special.expit(float(one["log_evidence"]) - float(other["log_evidence"]))
            error = np.hypot(float(one["error"]), float(other["error"]))
            assert 0 < 3 * z * (1 - z) * error <= 1e-3, (d, seed)


def test_every_truth_is_stored_once() -> None:
    counts = Counter((r["problem"], r["seed"], r["model"]) for r in rows())
    assert set(counts.values()) == {1}
    assert len(counts) == 5 * 2 * 115


def test_datasets_are_frozen_by_their_seed() -> None:
    for one, again, other in zip(dataset(2, 3), dataset(2, 3), dataset(2, 4), strict=True):
        assert np.array_equal(one, again) and not np.allclose(one, other)
    inputs, y = dataset(2, 0)  # what the stored truths were computed for
    assert inputs[0] == pytest.approx([0.025540150666, 0.743307414364], abs=1e-9)
    assert y[[0, -1]] == pytest.approx([-0.164125803670, 2.055598072471], abs=1e-9)


def test_the_task_is_neither_even_nor_decided() -> None:
    for d in range(1, 6):
        z = np.array([special.expit(np.subtract(*load(f"synthetic-{d}", s).log_evidence)) for s in range(20)])
        assert z.std() > 0.04 and 0.1 < np.mean(z > 0.5) < 1.0 and z.mean() < 0.9


def test_a_dataset_without_stored_truth_says_how_to_get_it() -> None:
    with pytest.raises(ProblemError, match="--seeds 100"):
        load("synthetic-2", 100)
