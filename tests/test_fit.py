"""The search for hyperparameters: what it finds, what it never does, the paper's objective written out."""

import numpy as np
import pytest
from numpy.typing import NDArray

from example_gp import dense_correlation, make_data, make_hyper, surface
from modelodds.precision import jit64
from modelodds.surrogate.fit import (
    AMPLITUDE_BOUNDS,
    LENGTHSCALE_BOUNDS,
    _value_and_grad,
    fit,
    hyper_prior,
    log_marginal_original,
    n_hyper,
    start_points,
    unflatten,
)
from modelodds.surrogate.gp import RELATIVE_NUGGET, Data, Spec
from modelodds.surrogate.means import MEANS

Array = NDArray[np.float64]
PLAIN, PAPER = Spec("matern52", "constant"), Spec("matern32", "constant")

original = jit64(log_marginal_original, static=("spec",))


def loss(spec: Spec, data: Data, log_space: bool, vector: Array) -> float:
    prior = hyper_prior(spec, 2, log_space)
    value, _ = _value_and_grad(vector, 0, data, prior.loc, prior.scale, spec=spec, log_space=log_space)
    return float(value)


def gp_draw(lengthscale: Array, amplitude: float, level: float, seed: int) -> Data:
    """64 values of one function drawn from the prior itself, relative to the largest."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, size=(64, 2))
    r = np.sqrt((((x[:, None] - x[None]) / lengthscale) ** 2).sum(2))
    cov = amplitude**2 * dense_correlation("matern52", r) + 1e-6 * np.eye(64)
    return make_data(x, level + np.linalg.cholesky(cov) @ rng.normal(size=64))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_fit_recovers_the_hyperparameters_of_a_draw(seed: int) -> None:
    lengthscale, amplitude = np.array([0.7, 2.0]), 3.0
    data = gp_draw(lengthscale, amplitude, -6.0, seed)
    found = fit(PLAIN, data, log_space=True)
    truth = np.concatenate([np.log(lengthscale), [np.log(amplitude)], [-6.0]])
    # The most probable hyperparameters are at least as probable as the true ones.
    assert found.loss <= loss(PLAIN, data, True, truth)
    # A 4 x 4 square holds a dozen independent patches of the draw: log length-scales are known to about 0.2
    # and the log amplitude to about 0.3; three times that.
    np.testing.assert_allclose(found.vector[:2], truth[:2], atol=0.6)
    assert found.vector[2] == pytest.approx(truth[2], abs=0.9)


@pytest.fixture(scope="module")
def data() -> Data:
    x = np.random.default_rng(1).normal(size=(20, 2))
    y = surface(x)
    return make_data(x, y - y.max(), 1e-3, 32)


@pytest.mark.parametrize(("spec", "log_space"), [(PLAIN, True), (PAPER, False)], ids=["log", "original"])
@pytest.mark.parametrize("seed", range(4))
def test_warm_start_never_ends_worse_than_it_began(
    spec: Spec, log_space: bool, seed: int, data: Data
) -> None:
    prior = hyper_prior(spec, 2, log_space)
    rng = np.random.default_rng(seed)
    warm = np.clip(prior.loc + 0.7 * prior.scale * rng.normal(size=4), prior.lower, prior.upper)
    found = fit(spec, data, log_space, warm=warm, starts=0, max_iterations=30)
    assert found.loss <= loss(spec, data, log_space, warm)
    assert found.loss == pytest.approx(loss(spec, data, log_space, found.vector), rel=1e-12)


def test_more_starts_never_end_worse(data: Data) -> None:
    few, many = (fit(PLAIN, data, log_space=True, starts=n) for n in (1, 3))
    warm = fit(PLAIN, data, log_space=True, warm=few.vector, starts=0)
    assert many.loss <= few.loss
    assert warm.loss <= few.loss


def dense_original(spec: Spec, vector: Array, data: Data, noise_variance: Array) -> float:
    """Chai & Garnett 2018: Gaussian density of exp(y), mean mu, covariance mu mu' (exp K - 1) plus noise."""
    lengthscale, amplitude, level = np.exp(vector[:2]), np.exp(vector[2]), vector[3]
    r = np.sqrt((((data.x[:, None] - data.x[None]) / lengthscale) ** 2).sum(2))
    kernel = amplitude**2 * dense_correlation(spec.kernel, r)
    mu = np.exp(level + amplitude**2 / 2)
    nugget = RELATIVE_NUGGET * np.expm1(amplitude**2) + 1e-8
    cov = mu**2 * (np.expm1(kernel) + np.diag(noise_variance + nugget))
    residual = np.exp(data.y) - mu
    return -0.5 * residual @ np.linalg.solve(cov, residual) - 0.5 * np.linalg.slogdet(cov)[1]


VECTORS = [
    np.array([-0.3, 0.2, 0.0, -2.0]),
    np.array([0.5, 0.5, 0.6, -4.0]),
    np.array([-1.0, 0.0, -1.0, 0.5]),
]


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_original_space_objective_is_the_dense_gaussian_density(vector: Array, data: Data) -> None:
    real = np.asarray(data.mask) > 0
    bare = Data(*(np.asarray(part)[real] for part in data))._replace(noise=np.zeros(20))
    found = original(spec=PAPER, hyper=unflatten(vector, 2), data=data._replace(noise=np.zeros(32)))
    # exp(y) spans e^-10 to 1 around mu and the nugget is 1e-8: a condition number of 1e8 at worst.
    assert float(found) == pytest.approx(dense_original(PAPER, vector, bare, np.zeros(20)), rel=1e-6)


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_original_space_noise_is_that_of_a_noisy_log_likelihood(vector: Array, data: Data) -> None:
    """Var exp(g + e) = mu^2 (exp(s^2 + tau^2) - 1) for E exp(e) = 1; so has ``MutualInformation.within``."""
    real = np.asarray(data.mask) > 0
    noise = np.full(20, 0.3)
    bare = Data(*(np.asarray(part)[real] for part in data))._replace(noise=noise)
    found = original(spec=PAPER, hyper=unflatten(vector, 2), data=data._replace(noise=np.full(32, 0.3)))
    variance = np.exp(2 * vector[2])
    expected = dense_original(PAPER, vector, bare, np.exp(variance) * np.expm1(noise))
    assert float(found) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", ["constant", "noise", "cliff"])
@pytest.mark.parametrize(("spec", "log_space"), [(PLAIN, True), (PAPER, False)], ids=["log", "original"])
def test_fit_stays_in_its_bounds_and_finite(spec: Spec, log_space: bool, kind: str) -> None:
    """Data that pull hyperparameters towards an end: nothing to explain, nothing but noise, 1e5 nats."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 2))
    y = {"constant": np.zeros(20), "noise": rng.normal(size=20), "cliff": np.where(x[:, 0] > 0, 0.0, -1e5)}[
        kind
    ]
    found = fit(spec, make_data(x, y - y.max(), size=32), log_space)
    prior = hyper_prior(spec, 2, log_space)
    assert np.all((found.vector >= prior.lower) & (found.vector <= prior.upper))
    assert np.isfinite(found.loss) and found.loss < 1e12  # 1e12 stands for a Cholesky factor that broke down


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("d", [1, 3])
def test_prior_and_starts_have_one_entry_per_hyperparameter_within_bounds(mean: str, d: int) -> None:
    spec = Spec("matern52", mean)
    x = np.random.default_rng(0).normal(size=(5, d))
    data = make_data(x, -(x**2).sum(1), size=32)
    for log_space in (True, False):
        prior = hyper_prior(spec, d, log_space)
        assert all(part.shape == (d + 1 + n_hyper(mean, d),) for part in prior)
        points = start_points(spec, prior, data, 3)
        assert len({tuple(point) for point in points}) == 3
        for point in [prior.loc, *points]:
            assert np.all((point > prior.lower) & (point < prior.upper))
        np.testing.assert_allclose(np.exp(prior.lower[:d]), LENGTHSCALE_BOUNDS[0])
        assert np.exp(prior.upper[d]) <= AMPLITUDE_BOUNDS[1] * (1 + 1e-12)


def test_unflatten_is_the_order_of_the_prior() -> None:
    spec = Spec("matern52", "quadratic")
    hyper = make_hyper(spec, np.array([0.8, 1.3]), 1.5)
    vector = np.concatenate([hyper.log_lengthscale, [hyper.log_amplitude], hyper.mean])
    for part, expected in zip(unflatten(vector, 2), hyper, strict=True):
        np.testing.assert_array_equal(part, expected)
