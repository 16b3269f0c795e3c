"""Priors: the map to internal coordinates and back, its density, its draws, and what is refused."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from modelodds.errors import PriorError
from modelodds.prior import Prior

SQRT3 = np.sqrt(3.0)

NORMAL = {
    "normal": stats.norm(2, 3),
    "half-normal": stats.halfnorm(scale=2),
    "beta": stats.beta(2, 5),
    "gamma": stats.gamma(2, scale=3),
    "log-normal": stats.lognorm(1.2),
    "Student-t": stats.t(4, loc=-1),
}
BOX = {
    "uniform": stats.uniform(-1, 4),
    "arcsine": stats.beta(0.5, 0.5),
    "truncated normal": stats.truncnorm(-1, 2, loc=3),
}
COMPONENTS = NORMAL | BOX

component = pytest.mark.parametrize("component", COMPONENTS.values(), ids=COMPONENTS.keys())


def sobol(d: int, log2_n: int = 10) -> np.ndarray:
    return stats.qmc.Sobol(d, rng=np.random.default_rng(1)).random_base2(log2_n)


# --- components ---


@pytest.mark.parametrize("name", COMPONENTS)
def test_kind_of_coordinate(name):
    upper = SQRT3 if name in BOX else np.inf
    np.testing.assert_array_equal(Prior({"a": COMPONENTS[name]}).bounds, [[-upper], [upper]])


@component
def test_round_trip(component):
    prior = Prior({"a": component})
    x = np.linspace(*np.clip(prior.bounds[:, 0], -5, 5), 101)[:, None]
    np.testing.assert_allclose(prior.to_x(prior.to_theta(x)), x, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", NORMAL)
def test_round_trip_far_out(name):
    prior = Prior({"a": NORMAL[name]})
    x = np.linspace(-6, 6, 25)[:, None]
    # scipy's half-normal ppf goes through (1 + q) / 2, whose rounding is worth 1e-8 at x = -6.
    tolerance = 2e-8 if name == "half-normal" else 1e-9
    np.testing.assert_allclose(prior.to_x(prior.to_theta(x)), x, rtol=0, atol=tolerance)


@component
def test_change_of_variables(component):
    """Density of theta is density of x times |dx / dtheta|."""
    prior = Prior({"a": component})
    theta = component.ppf(np.linspace(0.02, 0.98, 25))[:, None]
    h = 1e-5 * component.std()
    slope = (prior.to_x(theta + h) - prior.to_x(theta - h))[:, 0] / (2 * h)
    # A central difference errs by h^2 (truncation) and 1e-16 / h (rounding), both far below 1e-5.
    np.testing.assert_allclose(
        prior.log_density(prior.to_x(theta)) + np.log(slope), prior.log_density_theta(theta), atol=1e-5
    )
    np.testing.assert_allclose(prior.log_density_theta(theta), component.logpdf(theta[:, 0]), atol=1e-12)


@component
def test_from_unit_draws_from_the_prior(component):
    prior = Prior({"a": component})
    x, log_weight = prior.from_unit(sobol(1))
    distance = stats.kstest(prior.to_theta(x)[:, 0], component.cdf).statistic
    assert distance < 2 / 1024  # Sobol: 1 / n, not 1 / sqrt(n)
    np.testing.assert_array_equal(log_weight, np.zeros(1024))
    np.testing.assert_allclose([x.mean(), x.var()], [0, 1], atol=0.01)


@component
def test_theta_stays_finite_and_in_the_support(component):
    prior = Prior({"a": component})
    theta = prior.to_theta(np.linspace(-8, 8, 65)[:, None])[:, 0]
    lower, upper = component.support()
    assert np.isfinite(theta).all() and (theta >= lower).all() and (theta <= upper).all()
    assert (np.diff(theta) >= 0).all()


def test_heavy_tails_stay_finite():
    prior = Prior({"cauchy": stats.cauchy(), "wide": stats.lognorm(200)})
    assert np.isfinite(prior.to_theta([[8.0, 8.0], [-8.0, -8.0]])).all()


def test_from_unit_is_finite_at_the_corners_of_the_cube():
    prior = Prior({"a": stats.norm(), "b": stats.uniform()})
    x, _ = prior.from_unit([[0.0, 0.0], [1.0, 1.0]])
    assert np.isfinite(x).all() and np.isfinite(prior.log_density(x)).all()


def test_limits_stop_at_hard_ends():
    """A density that vanishes at its end, and one that goes on, are to be looked for all the way."""
    hard = {"halfnorm": stats.halfnorm(), "expon": stats.expon(loc=3), "cauchy": stats.halfcauchy(scale=9)}
    soft = {"norm": stats.norm(5, 2), "lognorm": stats.lognorm(2.0), "gamma": stats.gamma(2), "t": stats.t(3)}
    np.testing.assert_array_equal(Prior(hard).limits(7.0), [[-2.0] * 3, [7.0] * 3])
    np.testing.assert_array_equal(Prior(soft).limits(7.0), [[-7.0] * 4, [7.0] * 4])
    upside_down = Prior.from_transform(lambda u: [3.0 - stats.expon.isf(u[0]), u[1], u[2]], ["a", "b", "c"])
    np.testing.assert_array_equal(upside_down.limits(7.0), [[-7.0, -SQRT3, -SQRT3], [2.0, SQRT3, SQRT3]])
    np.testing.assert_array_equal(Prior({"a": 0.5, "b": stats.uniform()}).limits(7.0), [[-SQRT3], [SQRT3]])


def test_limits_of_a_joint_density(correlated):
    np.testing.assert_array_equal(correlated.limits(6.0), [[-6.0, -6.0], [6.0, 6.0]])


def test_log_density_outside_the_box():
    prior = Prior({"a": stats.uniform(), "b": stats.norm()})
    inside, outside = prior.log_density([[SQRT3, 0.0], [SQRT3 + 1e-9, 0.0]])
    assert inside == pytest.approx(-np.log(2 * SQRT3) - 0.5 * np.log(2 * np.pi))
    assert outside == -np.inf


def test_log_density_theta_outside_the_support():
    assert Prior({"a": stats.halfnorm()}).log_density_theta([-1.0]) == -np.inf


def test_fixed_parameters_keep_their_place():
    prior = Prior({"a": 2, "b": stats.norm(), "c": np.float64(-1.5), "d": stats.uniform()})
    assert prior.names == ("a", "b", "c", "d") and prior.fixed == {"a": 2.0, "c": -1.5} and prior.dim == 2
    theta = prior.to_theta([[0.5, 0.0]])
    np.testing.assert_allclose(theta, [[2.0, 0.5, -1.5, 0.5]])
    np.testing.assert_allclose(prior.to_x(theta), [[0.5, 0.0]], atol=1e-12)
    assert prior.log_density_theta(theta)[0] == pytest.approx(stats.norm.logpdf(0.5))
    assert repr(prior) == "Prior(a=2, b, c=-1.5, d)"
    with pytest.raises(PriorError, match="'a' is fixed at 2, but theta has 3"):
        prior.to_x([3.0, 0.5, -1.5, 0.5])


@pytest.mark.parametrize("components", [{}, {"a": 1.0}])
def test_nothing_to_fit(components):
    prior = Prior(components)
    nothing = np.zeros((3, 0))
    assert prior.dim == 0 and prior.bounds.shape == (2, 0)
    assert prior.to_theta(nothing).tolist() == [list(components.values())] * 3
    assert prior.to_x(prior.to_theta(nothing)).shape == (3, 0)
    x, log_weight = prior.from_unit(nothing)
    assert x.shape == (3, 0) and log_weight.tolist() == [0, 0, 0]
    assert (
        prior.log_density(nothing).tolist()
        == prior.log_density_theta(prior.to_theta(nothing)).tolist()
        == [0, 0, 0]
    )


@given(
    x=st.lists(st.tuples(st.floats(-5, 5), st.floats(-SQRT3, SQRT3)), min_size=1, max_size=5),
    loc=st.floats(-10, 10),
    log_scale=st.floats(-3, 3),
)
@settings(max_examples=60, deadline=None)
def test_round_trip_is_independent_of_location_scale_and_batch_shape(x, loc, log_scale):
    scale = np.exp(log_scale)
    prior = Prior({"n": stats.norm(loc, scale), "fixed": 1.0, "u": stats.uniform(loc, scale)})
    points = np.array(x)[:, None, :]
    theta = prior.to_theta(points)
    assert theta.shape == (len(x), 1, 3)
    np.testing.assert_allclose(theta[..., 0], loc + scale * points[..., 0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(prior.to_x(theta), points, atol=1e-9)
    np.testing.assert_array_equal(theta[0, 0], prior.to_theta(points[0, 0]))


@pytest.mark.parametrize(
    ("theta", "message"),
    [([-0.1], r"'a' = -0.1 lies outside its prior's support \[0, 1\]"), ([np.nan], "'a' = nan lies outside")],
)
def test_to_x_refuses_points_outside_the_support(theta, message):
    with pytest.raises(PriorError, match=message):
        Prior({"a": stats.uniform()}).to_x(theta)


def test_wrong_width():
    prior = Prior({"a": stats.norm(), "b": 1.0})
    with pytest.raises(PriorError, match=r"x has shape \(3,\); its last axis must have length 1"):
        prior.to_theta(np.zeros(3))
    with pytest.raises(PriorError, match=r"theta has shape \(\); its last axis must have length 2"):
        prior.to_x(0.0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # scipy warns while making the distribution itself
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: stats.poisson(3), "'a' is discrete (stats.poisson)"),
        (lambda: stats.poisson, "'a' is discrete (stats.poisson)"),
        (lambda: stats.norm, "'a' has no parameters yet; call the distribution, as in stats.norm(...)"),
        (lambda: stats.norm(0, np.inf), "'a' is improper"),
        (lambda: stats.norm(np.nan, 1), "'a' is improper"),
        (lambda: stats.norm(0, -1), "give it finite parameters and a positive scale"),
        (lambda: stats.uniform(-np.inf, np.inf), "'a' is improper"),
        (lambda: stats.norm(1e20, 1), "puts all its mass on 1e+20; to fix the parameter, give the number"),
        (lambda: stats.norm([0, 1], 1), "has parameters of shape (2,)"),
        (lambda: stats.multivariate_normal([0, 0]), "'a' is multivariate; give one component per parameter"),
        (lambda: (0, 1), "'a' is the pair (0, 1); for a uniform between them write stats.uniform(0, 1 - 0)"),
        (lambda: True, "'a' is True; give a number to fix the parameter"),
        (lambda: np.True_, "'a' is True; give a number to fix the parameter"),
        (lambda: "normal", "'a' is a str; give a frozen scipy.stats distribution"),
        (lambda: np.nan, "'a' is fixed at nan; a fixed parameter needs a finite number"),
        (lambda: np.inf, "'a' is fixed at inf"),
    ],
)
def test_unusable_component(make, message):
    with pytest.raises(PriorError) as error:
        Prior({"a": make()})
    assert message in str(error.value)
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize(
    ("components", "message"),
    [
        ({"": stats.norm()}, "parameter names must be non-empty strings, not ''"),
        ({3: stats.norm()}, "parameter names must be non-empty strings, not 3"),
        ([stats.norm()], "Prior takes a dictionary from names to distributions"),
        (np.sqrt, "a function goes to Prior.from_transform"),
    ],
)
def test_unusable_dictionary(components, message):
    with pytest.raises(PriorError) as error:
        Prior(components)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "names is empty"),
        (["a", "a"], "the name 'a' is given twice"),
        ("ab", "names must be a list of strings"),
        (3, "names must be a list of strings"),
        (["a", " "], "non-empty strings"),
    ],
)
def test_unusable_names(names, message):
    with pytest.raises(PriorError, match=message):
        Prior.from_transform(lambda u: u, names)
    with pytest.raises(PriorError, match=message):
        Prior.from_density(stats.norm.logpdf, lambda n, rng: rng.normal(size=(n, 1)), names)


# --- transforms ---


def separable(u):
    return [10 * u[0] - 5, stats.norm.ppf(u[1]), -np.exp(u[2])]


def in_place(u):
    u[0] = 10 * u[0] - 5
    u[1] = stats.norm.ppf(u[1])
    u[2] = -np.exp(u[2])
    return u


def hierarchical(u):
    scale = 1 + 2 * u[0]
    return np.array([scale, scale * stats.norm.ppf(u[1])])


@pytest.mark.parametrize("prior_transform", [separable, in_place])
def test_transform_round_trip_and_kinds(prior_transform):
    prior = Prior.from_transform(prior_transform, ["a", "b", "c"])
    np.testing.assert_array_equal(prior.bounds[1], [SQRT3, np.inf, np.inf])
    x = np.array([[0.3, -2.0, 1.0], [-SQRT3, 4.0, -3.0], [SQRT3, 0.0, 0.0]])
    kept = x.copy()
    theta = prior.to_theta(x)
    np.testing.assert_array_equal(x, kept)
    u = np.column_stack([0.5 + x[:, 0] / np.sqrt(12), stats.norm.cdf(x[:, 1:])])
    np.testing.assert_allclose(theta, [separable(row) for row in u])
    np.testing.assert_allclose(prior.to_x(theta), x, atol=1e-9)


def test_transform_from_unit_is_the_transform():
    prior = Prior.from_transform(hierarchical, ["scale", "value"])
    u = sobol(2, 6)
    x, log_weight = prior.from_unit(u)
    np.testing.assert_allclose(prior.to_theta(x), [hierarchical(row) for row in u], rtol=1e-9)
    np.testing.assert_array_equal(log_weight, np.zeros(64))
    np.testing.assert_array_equal(prior.bounds[1], [SQRT3, np.inf])


def test_transform_that_mixes_parameters_has_no_inverse():
    prior = Prior.from_transform(hierarchical, ["scale", "value"])
    with pytest.raises(PriorError, match="has no inverse"):
        prior.to_x(prior.to_theta([0.0, 0.0]))
    with pytest.raises(PriorError, match="does not give the density of theta"):
        prior.log_density_theta([2.0, 0.0])


def test_transform_that_folds_has_no_inverse():
    prior = Prior.from_transform(lambda u: (u - 0.5) ** 2, ["a"])
    with pytest.raises(PriorError, match="has no inverse"):
        prior.to_x([0.1])


def test_transform_by_quantiles_of_half_distributions_stays_finite():
    prior = Prior.from_transform(lambda u: stats.halfnorm.ppf(u), ["noise"])
    x, _ = prior.from_unit(np.array([[0.0], [1.0]]))
    theta = prior.to_theta(x)
    assert np.isfinite(theta).all() and theta[0, 0] < 1e-12 and theta[1, 0] > 7.9


def test_transform_with_a_constant_parameter():
    prior = Prior.from_transform(lambda u: [u[0], 7.0], ["a", "b"])
    np.testing.assert_allclose(prior.to_theta([0.0, 1.0]), [0.5, 7.0])
    with pytest.raises(PriorError, match="has no inverse"):
        prior.to_x([0.5, 7.0])


def test_transform_inverse_out_of_reach():
    prior = Prior.from_transform(separable, ["a", "b", "c"])
    with pytest.raises(
        PriorError, match="'a' = 6 is not reached by prior_transform, which goes from -5 to 5"
    ):
        prior.to_x([6.0, 0.0, -2.0])


@pytest.mark.parametrize(
    ("prior_transform", "message"),
    [
        (lambda u: u[:1], "returned shape (1,), expected (2,): one parameter for each of the names a, b"),
        (lambda u: 3.0, "returned shape (), expected (2,)"),
        (lambda u: None, "returned shape (), expected (2,)"),
        (lambda u: [u[0], np.nan], "returned nan for 'b'"),
        (lambda u: [u[0], np.inf if u[1] > 0.99 else u[1]], "returned inf for 'b'"),
        (lambda u: u[2], "prior_transform failed at u = "),
        (lambda u: ["x", "y"], "ValueError: could not convert string to float"),
        (lambda u, v: u, "TypeError"),
        (lambda u: np.random.default_rng().random(2), "gave two answers at one point"),
        (3, "prior_transform must be a function, not a int"),
    ],
)
def test_unusable_transform(prior_transform, message):
    with pytest.raises(PriorError) as error:
        Prior.from_transform(prior_transform, ["a", "b"])
    assert message in str(error.value)


# --- densities ---

MEAN = np.array([100.0, -2.0])
COV = np.array([[400.0, 1.8], [1.8, 0.01]])  # correlation 0.9, scales 20 and 0.1
CORRELATED = stats.multivariate_normal(MEAN, COV)
ALPHA = np.array([2.0, 3.0, 4.0])


def draw_correlated(n, rng):
    return rng.multivariate_normal(MEAN, COV, size=n)


def log_dirichlet(theta):
    """Two shares of a whole; the third is what is left."""
    shares = np.append(theta, 1 - theta.sum())
    return stats.dirichlet.logpdf(shares, ALPHA) if (shares > 0).all() else -np.inf


def draw_dirichlet(n, rng):
    return rng.dirichlet(ALPHA, size=n)[:, :2]


@pytest.fixture(scope="module")
def correlated():
    return Prior.from_density(CORRELATED.logpdf, draw_correlated, ["a", "b"])


@pytest.fixture(scope="module")
def shares():
    return Prior.from_density(log_dirichlet, draw_dirichlet, ["a", "b"])


def test_density_whitens(correlated):
    x = correlated.to_x(draw_correlated(20_000, np.random.default_rng(5)))
    # Errors of 4096 whitening draws, 1 / 64, and of a correlation from them; three of each.
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=3 / 64)
    np.testing.assert_allclose(np.cov(x.T), np.eye(2), atol=3 * np.sqrt(2) / 64)
    np.testing.assert_array_equal(correlated.bounds, [[-np.inf, -np.inf], [np.inf, np.inf]])


def test_density_round_trip(correlated):
    x = np.random.default_rng(0).normal(size=(3, 4, 2))
    np.testing.assert_allclose(correlated.to_x(correlated.to_theta(x)), x, atol=1e-10)


def test_density_change_of_variables(correlated):
    x = np.random.default_rng(0).normal(size=(5, 2))
    jacobian = correlated.to_theta(np.eye(2)) - correlated.to_theta(np.zeros(2))  # the map is affine
    log_det = np.log(abs(np.linalg.det(jacobian)))
    theta = correlated.to_theta(x)
    np.testing.assert_allclose(correlated.log_density_theta(theta), CORRELATED.logpdf(theta), rtol=1e-12)
    np.testing.assert_allclose(correlated.log_density(x), CORRELATED.logpdf(theta) + log_det, rtol=1e-9)


@pytest.mark.parametrize(
    ("fixture", "mean"),
    [("correlated", MEAN), ("shares", ALPHA[:2] / ALPHA.sum())],
    ids=["normal", "simplex"],
)
def test_density_weights_give_prior_moments(fixture, mean, request):
    prior = request.getfixturevalue(fixture)
    x, log_weight = prior.from_unit(sobol(2, 12))
    np.testing.assert_allclose(log_weight, prior.log_density(x) - prior.log_reference(x))
    assert logsumexp(log_weight) - np.log(4096) == pytest.approx(0, abs=0.02)
    weight = np.exp(log_weight) / np.exp(log_weight).sum()
    spread = (
        np.sqrt(np.diag(COV))
        if fixture == "correlated"
        else draw_dirichlet(999, np.random.default_rng(0)).std()
    )
    # A plain Monte Carlo sum would err by spread / sqrt(n) or so; quasi-Monte Carlo by less.
    assert (abs(weight @ prior.to_theta(x) - mean) < 2 * spread / 64).all()


def test_density_outside_the_simplex(shares):
    assert shares.log_density_theta([[0.7, 0.7], [0.2, 0.3]])[0] == -np.inf
    assert shares.log_density(shares.to_x([[0.7, 0.7]]))[0] == -np.inf
    assert np.isfinite(shares.log_density(shares.to_x([[0.2, 0.3]])))[0]


def test_density_of_one_parameter_may_return_an_array_of_one():
    prior = Prior.from_density(stats.norm(3, 2).logpdf, lambda n, rng: rng.normal(3, 2, size=(n, 1)), ["a"])
    assert prior.log_density_theta([3.0]) == pytest.approx(stats.norm(3, 2).logpdf(3))


def normal_draws(n, rng):
    return rng.normal(size=(n, 2))


def log_normal(theta):
    return stats.norm.logpdf(theta).sum()


@pytest.mark.parametrize(
    ("log_density", "sample", "message"),
    [
        (lambda t: log_normal(t) + 3, normal_draws, "subtract 3"),
        (lambda t: -np.sum(t**2) / 2, normal_draws, "integrates to 6.28"),
        (lambda t: np.nan, normal_draws, "log_density is nan at theta"),
        (lambda t: np.inf, normal_draws, "log_density is inf at theta"),
        (lambda t: t, normal_draws, "log_density failed at theta"),
        (lambda t: 1 / 0, normal_draws, "ZeroDivisionError: division by zero"),
        (lambda t: -np.inf if t[0] > 0 else log_normal(t), normal_draws, "the two must describe one prior"),
        (log_normal, lambda n, rng: rng.normal(size=n), "returned shape (4096,), expected (4096, 2)"),
        (log_normal, lambda n, rng: np.full((n, 2), np.nan), "draws that are not finite"),
        (log_normal, lambda n: None, "sample failed: TypeError"),
        (log_normal, lambda n, rng: np.repeat(rng.normal(size=(n, 1)), 2, axis=1), "degenerate"),
        (log_normal, lambda n, rng: rng.normal(size=(n, 2)) * [1, 0], "'b' is the same in every draw"),
        (None, normal_draws, "log_density must be a function, not a NoneType"),
        (log_normal, 3, "sample must be a function, not a int"),
    ],
)
def test_unusable_density(log_density, sample, message):
    with pytest.raises(PriorError) as error:
        Prior.from_density(log_density, sample, ["a", "b"])
    assert message in str(error.value)


def test_density_and_draws_far_apart():
    far = stats.multivariate_normal([1e6, 1e6])
    with pytest.raises(PriorError, match=r"integrates to 0 .* it and sample must agree"):
        Prior.from_density(lambda t: max(far.logpdf(t), -1e300), normal_draws, ["a", "b"])


# --- all kinds ---


@pytest.mark.parametrize("kind", ["components", "transform", "density"])
def test_pickle(kind, correlated):
    priors = {
        "components": Prior({"a": stats.norm(), "b": 2.0, "c": stats.uniform()}),
        "transform": Prior.from_transform(separable, ["a", "b", "c"]),
        "density": correlated,
    }
    prior = priors[kind]
    copy = pickle.loads(pickle.dumps(prior))
    u = sobol(prior.dim, 3)
    assert copy.names == prior.names and copy.fixed == prior.fixed
    np.testing.assert_array_equal(copy.to_theta(copy.from_unit(u)[0]), prior.to_theta(prior.from_unit(u)[0]))
    np.testing.assert_array_equal(
        copy.log_density(copy.from_unit(u)[0]), prior.log_density(prior.from_unit(u)[0])
    )
