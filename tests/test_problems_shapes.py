"""Shapes with known evidences, found again by another route than the one that gave them."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, linalg, stats

from modelodds.model import Model
from modelodds.problems import load, ring, rosenbrock
from modelodds.problems.truth import importance

Array = NDArray[np.float64]

NAMES = ("rosenbrock", "ring", "lumpy-2", "lumpy-7", "nested-2", "nested-8")


def midpoint(model: Model, low: float, high: float, n: int) -> tuple[float, Array, Array]:
    """Log-evidence, posterior mean and covariance in the plane, by the model's own functions on a grid."""
    edges = np.linspace(low, high, n + 1)
    axis = 0.5 * (edges[1:] + edges[:-1])
    theta = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    mass = np.exp(model.log_likelihood(theta) + model.prior.log_density_theta(theta))
    covariance = np.cov(theta.T, aweights=mass, bias=True)
    cell = (high - low) ** 2 / n**2
    return float(np.log(mass.sum() * cell)), np.average(theta, axis=0, weights=mass), covariance


@pytest.mark.parametrize("name", NAMES)
def test_every_problem_is_a_comparison_of_many_points_at_once(name: str) -> None:
    problem = load(name)
    assert len({model.name for model in problem.models}) == len(problem.log_evidence) >= 2
    for model in problem.models:
        theta = model.prior.to_theta(
            model.prior.from_unit(np.random.default_rng(0).uniform(size=(20, model.dim)))[0]
        )
        values = model.log_likelihood(theta)
        assert model.vectorized and values.shape == (20,) and np.all(np.isfinite(values))
        one_by_one = [model.log_likelihood(t[None])[0] for t in theta]
        assert values == pytest.approx(one_by_one, rel=1e-12)


@pytest.mark.parametrize("name", ["lumpy-3", "nested-4"])
def test_problems_are_frozen_by_their_seed(name: str) -> None:
    assert load(name, 3).log_evidence == load(name, 3).log_evidence != load(name, 4).log_evidence


@pytest.mark.parametrize("name", ["rosenbrock", "ring"])
def test_stored_evidences_are_what_the_models_say(name: str) -> None:
    """By a midpoint rule on the box; its h^2 at the edges is below 2e-5 here."""
    problem, edge = load(name), {"rosenbrock": 5.0, "ring": 2.0}[name]
    for model, stored in zip(problem.models, problem.log_evidence, strict=True):
        assert model.prior.to_theta(model.prior.bounds).T.tolist() == [[-edge, edge]] * 2
        assert midpoint(model, -edge, edge, 1000)[0] == pytest.approx(stored, abs=2e-5)


def test_rosenbrock_by_one_dimension_at_a_time() -> None:
    """Across the valley by the normal distribution function, along it by adaptive quadrature."""
    problem = load("rosenbrock")
    sd = np.sqrt(0.005)

    def along(x: float) -> float:
        across = stats.norm.cdf(5.0, x**2, sd) - stats.norm.cdf(-5.0, x**2, sd)
        return float(np.exp(-((1.0 - x) ** 2)) * across * sd * np.sqrt(2.0 * np.pi))

    valley = integrate.quad(along, -5.0, 5.0, points=[-np.sqrt(5.0), 1.0, np.sqrt(5.0)], epsabs=1e-12)[0]
    density = stats.multivariate_normal(rosenbrock.MEAN, rosenbrock.COVARIANCE)
    inside = density.cdf([5.0, 5.0], lower_limit=[-5.0, -5.0])
    volume = 2.0 * np.pi * np.sqrt(linalg.det(rosenbrock.COVARIANCE))
    found = np.log(np.array([valley, inside * volume]) / 100.0)
    assert found == pytest.approx(problem.log_evidence, abs=problem.error)
    assert found[0] == pytest.approx(-5.804, abs=5e-4)


def test_rosenbrock_is_matched_by_its_normal() -> None:
    _, mean, covariance = midpoint(load("rosenbrock").models[0], -5.0, 5.0, 1000)
    assert mean == pytest.approx(rosenbrock.MEAN, abs=6e-4)  # three digits are kept
    assert covariance == pytest.approx(rosenbrock.COVARIANCE, abs=6e-4)


def test_ring_in_polar_coordinates() -> None:
    """Closed forms; the ring ends seven widths short of the box."""
    problem, ratio = load("ring"), ring.RADIUS / ring.WIDTH
    radial = np.exp(-0.5 * ratio**2) + ratio * np.sqrt(2.0 * np.pi) * stats.norm.cdf(ratio)
    inside = np.diff(stats.norm.cdf([[-2.0], [2.0]], ring.CENTRE, ring.BLOB_SD), axis=0).prod()
    area = 2.0 * np.pi * np.array([ring.WIDTH**2 * radial, ring.BLOB_SD**2 * inside])
    assert np.log(area / 16.0) == pytest.approx(problem.log_evidence, abs=problem.error)


def test_ring_is_as_wide_as_its_blob() -> None:
    _, mean, covariance = midpoint(load("ring").models[0], -2.0, 2.0, 500)
    assert mean == pytest.approx(ring.CENTRE, abs=1e-6)
    assert covariance == pytest.approx(ring.BLOB_SD**2 * np.eye(2), abs=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_lumpy_by_quadrature(seed: int) -> None:
    """The grid's step of 0.04 is a fifth of the narrowest lump's width: exact to 1e-10 and less."""
    problem = load("lumpy-2", seed)
    found = [midpoint(model, -4.0, 5.0, 225)[0] for model in problem.models]
    assert found == pytest.approx(problem.log_evidence, abs=1e-6)


def test_smooth_has_the_moments_of_lumpy() -> None:
    """Those of the likelihood itself: the same grid, with the prior divided out."""
    axis = np.arange(-4.0, 5.0, 0.04)
    theta = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    lumpy, smooth = (np.exp(m.log_likelihood(theta)) for m in load("lumpy-2", 5).models)
    for power in (theta[:, 0], theta[:, 1], theta[:, 0] ** 2, theta.prod(1), theta[:, 1] ** 2):
        assert np.average(power, weights=lumpy) == pytest.approx(np.average(power, weights=smooth), abs=1e-6)
    assert not np.allclose(lumpy / lumpy.sum(), smooth / smooth.sum(), rtol=0.1)


@pytest.mark.parametrize("d", [4, 6])
def test_lumpy_by_importance_sampling(d: int) -> None:
    problem = load(f"lumpy-{d}", 1)
    for model, exact in zip(problem.models, problem.log_evidence, strict=True):
        found = importance(model, n_search=2**11, n_final=2**12, replicates=8)
        assert found.error < 0.01
        assert abs(found.log_evidence - exact) < 5 * found.error  # seven degrees of freedom: 1 in 600


@pytest.mark.parametrize(("k", "seed"), [(2, 0), (5, 1), (8, 2)])
def test_nested_by_bayes_rule_at_a_point(k: int, seed: int) -> None:
    """p(y) = p(y | w) p(w) / p(w | y), with the posterior from differences of the log-likelihood, exact for a
    quadratic."""
    problem = load(f"nested-{k}", seed)
    assert [model.dim for model in problem.models] == list(range(1, k + 1))
    for model, exact in zip(problem.models, problem.log_evidence, strict=True):
        p, unit = model.dim, np.eye(model.dim)
        ahead, behind = model.log_likelihood(unit), model.log_likelihood(-unit)
        pairs = model.log_likelihood((unit[:, None] + unit[None]).reshape(-1, p)).reshape(p, p)
        curve = pairs - ahead[:, None] - ahead[None] + model.log_likelihood(np.zeros((1, p)))
        precision = np.eye(p) - curve
        posterior = stats.multivariate_normal(
            linalg.solve(precision, 0.5 * (ahead - behind)), linalg.inv(precision)
        )
        at = posterior.mean + 0.1
        log_joint = model.log_likelihood(at[None])[0] + stats.norm.logpdf(at).sum()
        assert log_joint - posterior.logpdf(at) == pytest.approx(exact, abs=1e-7)


def test_nested_models_contain_each_other() -> None:
    models = load("nested-6", 0).models
    w = np.random.default_rng(0).normal(size=(5, 1))
    for smaller, larger in pairwise(models):
        assert larger.parameters[:-1] == smaller.parameters
        extended = np.column_stack([w, np.zeros(5)])
        assert larger.log_likelihood(extended) == pytest.approx(smaller.log_likelihood(w), rel=1e-12)
        w = np.column_stack([w, np.random.default_rng(larger.dim).normal(size=5)])


def test_nested_data_come_from_a_middle_degree() -> None:
    """Averaged over datasets, the log-evidence is highest for the model that made them."""
    log_evidence = np.array([load("nested-5", seed).log_evidence for seed in range(40)])
    assert log_evidence.mean(0).argmax() == 2
