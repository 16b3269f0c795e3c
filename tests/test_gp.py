"""Conditioning against dense algebra and scikit-learn; padding, pending points and what enters as data."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from example_gp import (
    PLAIN,
    covariance64,
    dense_kernel,
    dense_posterior,
    make_data,
    make_hyper,
    posterior,
    predict64,
    surface,
)
from modelodds.learner import Learner
from modelodds.method import Method
from modelodds.model import Model
from modelodds.prior import Prior
from modelodds.surrogate.fit import _value_and_grad, hyper_prior
from modelodds.surrogate.gp import NUGGET, RELATIVE_NUGGET, Spec
from modelodds.surrogate.kernels import KERNELS
from modelodds.surrogate.means import MEANS
from modelodds.surrogate.observations import BUCKETS, SHAPE, Observations
from modelodds.surrogate.squash import Squash
from modelodds.surrogate.surrogate import Surrogate

Array = NDArray[np.float64]
SPECS = [Spec(kernel, mean) for kernel in KERNELS for mean in MEANS]
LENGTHSCALE, AMPLITUDE = np.array([0.8, 1.3]), 1.5


def problem(seed: int = 0, n: int = 20) -> tuple[Array, Array, Array, Array, Array]:
    """Observations x, y, noise and two sets of points to predict at."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, surface(x), rng.uniform(1e-3, 1e-2, n), rng.normal(size=(9, 2)), rng.normal(size=(7, 2))


# ---------------------------------------------------------------------- conditioning


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.kernel}-{spec.mean}")
def test_conditioning_is_that_of_the_dense_system(spec: Spec) -> None:
    """For ``full_quadratic`` the dense kernel is K + H H^T: basis functions or wider kernel, it is one GP."""
    x, y, noise, a, b = problem()
    hyper = make_hyper(spec, LENGTHSCALE, AMPLITUDE)
    found = posterior(spec=spec, hyper=hyper, data=make_data(x, y, noise, 32), a=a, b=b)
    expected = dense_posterior(spec, hyper, make_data(x, y, noise), a, b)
    # The dense system with H H^T (entries of 1e4, noise 1e-3) has a condition number near 1e8: 1e-16 x 1e8 of
    # its own 1e4 is lost there. Without a basis it is near 1e4 and both are good to 1e-11.
    tolerance = 1e-5 if spec.mean == "full_quadratic" else 1e-9
    for name, value, reference in zip(found._fields, found, expected, strict=True):
        np.testing.assert_allclose(value, reference, rtol=1e-6, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(
    "spec",
    [Spec("matern32", "constant"), Spec("matern52", "full_quadratic")],
    ids=lambda spec: f"{spec.kernel}-{spec.mean}",
)
def test_padding_changes_nothing(spec: Spec) -> None:
    x, y, noise, a, b = problem()
    hyper = make_hyper(spec, LENGTHSCALE, AMPLITUDE)
    data = make_data(x, y, noise, 32)
    padded = posterior(spec=spec, hyper=hyper, data=data, a=a, b=b)
    bare = posterior(spec=spec, hyper=hyper, data=make_data(x, y, noise), a=a, b=b)
    for value, reference in zip(padded, bare, strict=True):
        # The same numbers in another order of blocks inside LAPACK: rounding times a condition number of 1e4.
        np.testing.assert_allclose(value, reference, rtol=1e-9, atol=1e-10)
    padding = np.asarray(data.mask) == 0
    garbage = data._replace(
        x=np.where(padding[:, None], 3.7, data.x),
        y=np.where(padding, -1e3, data.y),
        noise=np.where(padding, 9.0, data.noise),
    )
    for value, reference in zip(
        posterior(spec=spec, hyper=hyper, data=garbage, a=a, b=b), padded, strict=True
    ):
        np.testing.assert_array_equal(value, reference)  # what stands in the padding is never read


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_chosen_at_run_time_is_the_one_of_that_name(kernel: str) -> None:
    x, y, noise, a, b = problem()
    data, hyper = make_data(x, y, noise, 32), make_hyper(PLAIN, LENGTHSCALE, AMPLITUDE)
    named = posterior(spec=Spec(kernel, "constant"), hyper=hyper, data=data, a=a, b=b)
    chosen = hyper._replace(kernel=list(KERNELS).index(kernel))
    found = posterior(spec=Spec("any", "constant"), hyper=chosen, data=data, a=a, b=b)
    for value, reference in zip(found, named, strict=True):
        np.testing.assert_allclose(value, reference, rtol=1e-9, atol=1e-10)  # rounding x condition number 1e4


@pytest.mark.parametrize("log_b", [0.0, 6.0, 14.0])
def test_basis_functions_survive_a_sharp_likelihood(log_b: float) -> None:
    """Coefficients of e^14 = 1e6 nats: the variance left on an observation is still the nugget's."""
    spec = Spec("matern52", "full_quadratic")
    x, _, _, _, _ = problem()
    y = -0.5 * np.exp(log_b) * (x**2).sum(1)
    hyper = make_hyper(spec, LENGTHSCALE, AMPLITUDE)._replace(mean=np.array([log_b]))
    found = posterior(spec=spec, hyper=hyper, data=make_data(x, y, 0.0, 32), a=x, b=x)
    np.testing.assert_array_less(found.variance, 1.1 * (NUGGET + RELATIVE_NUGGET * AMPLITUDE**2))
    # A quadratic is in the span of the basis, so the residuals are a fraction of the nugget, plus rounding of
    # y.
    np.testing.assert_allclose(found.mean, y, rtol=1e-9, atol=5e-3)


def test_exact_observations_are_interpolated_within_the_nugget() -> None:
    x, y, _, _, _ = problem()
    hyper = make_hyper(PLAIN, LENGTHSCALE, AMPLITUDE)
    found = posterior(spec=PLAIN, hyper=hyper, data=make_data(x, y, 0.0, 32), a=x, b=x)
    # The nugget counts as noise of variance 1e-6, so that 5 of its standard deviations bound every residual
    # here.
    assert np.abs(np.asarray(found.mean) - y).max() < 5e-3
    np.testing.assert_array_less(found.variance, 1.03 * NUGGET)  # plus RELATIVE_NUGGET x 1.5^2


@pytest.mark.parametrize("kernel", KERNELS)
def test_conditioning_matches_scikit_learn(kernel: str) -> None:
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    kernels = gaussian_process.kernels
    x, y, noise, a, _ = problem()
    shape = {
        "matern32": kernels.Matern(LENGTHSCALE, nu=1.5),
        "matern52": kernels.Matern(LENGTHSCALE, nu=2.5),
        "squared_exponential": kernels.RBF(LENGTHSCALE),
    }[kernel]
    spec = Spec(kernel, "constant")
    hyper = make_hyper(spec, LENGTHSCALE, AMPLITUDE)
    level = float(hyper.mean[0])
    reference = gaussian_process.GaussianProcessRegressor(
        kernels.ConstantKernel(AMPLITUDE**2) * shape,
        alpha=noise + NUGGET + RELATIVE_NUGGET * AMPLITUDE**2,
        optimizer=None,
    ).fit(x, y - level)
    mean, cov = reference.predict(a, return_cov=True)
    found = posterior(spec=spec, hyper=hyper, data=make_data(x, y, noise, 32), a=a, b=a)
    np.testing.assert_allclose(found.mean, mean + level, rtol=1e-8, atol=1e-9)  # condition number 1e4
    np.testing.assert_allclose(found.covariance, cov, atol=1e-9)
    constant = -0.5 * len(y) * np.log(2 * np.pi)  # which log_marginal leaves out
    assert float(found.log_marginal) + constant == pytest.approx(
        reference.log_marginal_likelihood_value_, rel=1e-9
    )


def test_log_marginal_is_a_gaussian_density() -> None:
    x, y, noise, a, b = problem()
    spec = Spec("squared_exponential", "full_quadratic")
    hyper = make_hyper(spec, LENGTHSCALE, AMPLITUDE)
    cov = dense_kernel(spec, hyper, x, x) + np.diag(noise + NUGGET + RELATIVE_NUGGET * AMPLITUDE**2)
    expected = stats.multivariate_normal(np.zeros(len(x)), cov).logpdf(y) + 0.5 * len(x) * np.log(2 * np.pi)
    found = posterior(spec=spec, hyper=hyper, data=make_data(x, y, noise, 32), a=a, b=b)
    assert float(found.log_marginal) == pytest.approx(expected, rel=1e-6)  # the dense system's 1e8, as above


# ---------------------------------------------------------------------- pending points


@pytest.fixture(scope="module")
def surrogate() -> Surrogate:
    surrogate = Surrogate(2, Method(kernel="matern52", mean="constant"))
    x = np.random.default_rng(5).normal(size=(14, 2))
    for point, y in zip(x, surface(x), strict=True):
        surrogate.tell(point, float(y) - 1e5, 0.0)
    surrogate.update()
    return surrogate


def cov(surrogate: Surrogate, a: Array, b: Array, gp: Any = None) -> Array:
    return np.asarray(covariance64(spec=surrogate.spec, gp=gp or surrogate.gp, a=a, b=b))


def test_pending_points_leave_the_mean_and_downdate_the_covariance(surrogate: Surrogate) -> None:
    a, pending = (
        np.random.default_rng(6).normal(size=(9, 2)),
        np.array([[0.4, -0.3], [1.5, 1.0], [-1.2, 0.8]]),
    )
    gp = surrogate.with_pending(pending)
    before, _ = surrogate.predict(a)
    after, _ = predict64(spec=surrogate.spec, gp=gp, x=a)
    # y = -1e5 + ... and back costs 1e-16 x 1e5; solving amplifies it by the inverse of the variance there,
    # 1e3.
    np.testing.assert_allclose(after, before, atol=1e-7)
    variance = np.exp(2 * float(surrogate.gp.hyper.log_amplitude))
    nugget = NUGGET + RELATIVE_NUGGET * variance
    expected, to = cov(surrogate, a, a), cov(surrogate, a, pending)
    own = cov(surrogate, pending, pending)
    exact = expected - to @ np.linalg.solve(own + nugget * np.eye(3), to.T)
    np.testing.assert_allclose(cov(surrogate, a, a, gp), exact, atol=1e-8 * variance)
    assert np.all(np.diag(cov(surrogate, a, a, gp)) <= np.diag(expected) + 1e-9 * variance)
    # A batch: one point after the other and without the nugget: equal up to the nugget's share of
    # the variances at the pending points.
    step, rest = expected, cov(surrogate, pending, pending)
    cross = to
    for j in range(3):
        step = step - np.outer(cross[:, j], cross[:, j]) / rest[j, j]
        cross, rest = (
            cross - np.outer(cross[:, j], rest[j]) / rest[j, j],
            rest - np.outer(rest[:, j], rest[j]) / rest[j, j],
        )
    share = nugget / np.linalg.eigvalsh(own)[0]
    np.testing.assert_allclose(cov(surrogate, a, a, gp), step, atol=share * variance)
    assert share < 1e-2  # or the comparison would be empty


def test_pending_points_of_low_likelihood_get_the_noise_they_would_get_when_told(
    surrogate: Surrogate,
) -> None:
    far = np.array([[6.0, -6.0]])
    mean, _ = surrogate.predict(far)
    noise = (SHAPE * (-mean[0] - Squash.none(2).followed)) ** 2
    assert (
        mean[0] < -Squash.none(2).followed
    )  # the fitted level is that low, or there would be nothing to test
    found = surrogate.with_pending(far).data
    # -1e5 and back leaves 1e-11 on a gap of 0.4 nats.
    assert np.asarray(found.noise)[14] == pytest.approx(noise, rel=1e-8)


# ---------------------------------------------------------------------- what enters as data


def test_values_enter_relative_to_the_best() -> None:
    observations = Observations(np.zeros((3, 2)), np.array([-1e5 - 4.0, -1e5, -1e5 - 997.0]), np.zeros(3))
    assert observations.best == -1e5
    np.testing.assert_array_equal(
        np.asarray(observations.data(shaped_noise=False).y)[:3], [-4.0, 0.0, -997.0]
    )
    assert Observations.empty(2).best == -np.inf


def test_likelihoods_of_zero_never_reach_the_surrogate() -> None:
    learner = Learner(
        Model("m", lambda theta: -np.inf, Prior({"a": stats.norm()})), Method(), np.random.default_rng(0)
    )
    for query, y in enumerate([-np.inf, -3.0, -np.inf, -1000.0]):
        learner.ask(query, np.array([query / 2]))
        learner.tell(query, y, 0.0)
        assert learner.known == (query > 0)
    np.testing.assert_array_equal(learner.surrogate.observations.y, [-3.0, -1000.0])


def test_shaped_noise_starts_beyond_the_gap_and_grows_with_it() -> None:
    edge = Squash.none(2).followed
    gap = np.array([0.0, edge - 1e-9, edge + 10.0, edge + 30.0])
    observations = Observations(np.zeros((4, 2)), -5.0 - gap, np.array([0.0, 0.0, 0.2, 0.0]))
    shaped = np.asarray(observations.data(shaped_noise=True).noise)[:4]
    np.testing.assert_allclose(shaped, [0.0, 0.0, 0.2 + (10 * SHAPE) ** 2, (30 * SHAPE) ** 2], rtol=1e-12)
    np.testing.assert_array_equal(
        np.asarray(observations.data(shaped_noise=False).noise)[:4], [0.0, 0.0, 0.2, 0.0]
    )
    above = observations.data(shaped_noise=True, best=-5.0 + 7.0)  # relative to another zero
    np.testing.assert_allclose(np.asarray(above.y)[:4], -7.0 - gap, rtol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 32, 33, 4096, 4097])
def test_data_are_padded_to_the_next_bucket(n: int) -> None:
    data = Observations(np.ones((n, 2)), np.ones(n), np.zeros(n)).data(shaped_noise=True, best=1.0)
    size = next((b for b in BUCKETS if b >= n), n)
    assert data.x.shape == (size, 2)
    assert data.y.shape == data.noise.shape == data.mask.shape == (size,)
    assert np.asarray(data.mask).sum() == n


# ---------------------------------------------------------------------- gradients of the fit


@pytest.mark.parametrize(
    ("spec", "log_space"),
    [
        (Spec("matern52", "full_quadratic"), True),
        (Spec("squared_exponential", "quadratic"), True),
        (Spec("matern32", "constant"), False),
        (Spec("matern52", "quadratic"), False),
    ],
    ids=str,
)
def test_gradients_of_both_objectives_match_finite_differences(spec: Spec, log_space: bool) -> None:
    x, y, noise, _, _ = problem()
    data, prior = make_data(x, y - y.max(), noise, 32), hyper_prior(spec, 2, log_space)
    hyper = make_hyper(spec, LENGTHSCALE, 0.9)
    vector = np.concatenate([hyper.log_lengthscale, [hyper.log_amplitude], hyper.mean])

    def value_and_grad(point: Array) -> tuple[Array, Array]:
        return _value_and_grad(point, 0, data, prior.loc, prior.scale, spec=spec, log_space=log_space)

    value, grad = value_and_grad(vector)
    h = 1e-5
    for j in range(len(vector)):
        step = h * np.eye(len(vector))[j]
        slope = (float(value_and_grad(vector + step)[0]) - float(value_and_grad(vector - step)[0])) / (2 * h)
        # Rounding of the value (condition number 1e5) over h, 1e-16 x 1e5 x |value| / 1e-5, and h^2 of
        # curvature.
        assert float(grad[j]) == pytest.approx(slope, rel=1e-5, abs=1e-6 * (1 + abs(float(value)))), j
