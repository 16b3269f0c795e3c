"""The acquisitions' formulas: the paper's own letters, brute force, symmetries, gradients, limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special

from example_gp import (
    PLAIN,
    condition64,
    covariance64,
    example_view,
    make_data,
    make_hyper,
    make_view,
    observed,
    predict64,
    surface,
)
from modelodds.acquisition import ACQUISITIONS, LogOdds, MutualInformation, Rivals, Variance, View
from modelodds.acquisition.base import FLOOR
from modelodds.acquisition.log_odds import rivalry
from modelodds.acquisition.mutual_information import posterior_weight
from modelodds.odds import draws, moments
from modelodds.precision import jit64
from modelodds.surrogate.gp import Spec
from modelodds.surrogate.observations import SHAPE

Array = NDArray[np.float64]


def _score(x: jax.Array, view: View, rule: str, spec: Spec) -> jax.Array:
    acquisition = ACQUISITIONS[rule]
    return acquisition.within(spec, view, acquisition.prepare(spec, view), x)


score = jit64(_score, static=("rule", "spec"))
score_slope = jit64(
    jax.grad(lambda x, view, rule, spec: jnp.sum(_score(x, view, rule, spec))), static=("rule", "spec")
)
prepare = jit64(
    lambda view, rule, spec: ACQUISITIONS[rule].prepare(spec, view).variance, static=("rule", "spec")
)


def rivals(mean: Array, variance: Array) -> Rivals:
    return Rivals(np.asarray(mean, float), np.asarray(variance, float), np.zeros(len(mean)))


# ---------------------------------------------------------------------- the paper, letter by letter


def letters(view: View, x: Array) -> tuple[Array, float, Array, float]:
    """L(x) (eq. 10), K (eq. 6), Sigma(x, x) of an observation and m, by sums over the nodes."""
    mean, variance = (np.asarray(part) for part in predict64(spec=PLAIN, gp=view.gp, x=view.x))
    mu = np.exp(mean + variance / 2)
    omega = view.weight / mu  # so that the view's weights are omega mu
    sigma = np.outer(mu, mu) * np.expm1(covariance64(spec=PLAIN, gp=view.gp, a=view.x, b=view.x))
    at_mean, at_variance = (np.asarray(part) for part in predict64(spec=PLAIN, gp=view.gp, x=x))
    at_mu = np.exp(at_mean + at_variance / 2)
    across = np.outer(at_mu, mu) * np.expm1(covariance64(spec=PLAIN, gp=view.gp, a=x, b=view.x))
    own = at_mu**2 * np.expm1(at_variance + FLOOR)  # what an exact observation is taken to be off by
    return across @ omega, float(omega @ sigma @ omega), own, float(omega @ mu)


def test_two_models_are_the_papers_equations_14_and_15() -> None:
    views = [example_view(0.6, seed=0), example_view(0.9, seed=1)]
    x = np.random.default_rng(7).normal(size=(6, 2))
    (l1, k1, sigma1, m1), (l2, k2, sigma2, m2) = (letters(view, x) for view in views)
    variance = np.array([float(prepare(view, rule="mutual_information", spec=PLAIN)) for view in views])
    mean = np.log([m1, m2]) - variance / 2
    a = np.exp(draws(mean, np.sqrt(variance), 512))
    z1 = a[:, 0] / a.sum(1)
    s1 = (z1 - 1) ** 2 * k1 + z1**2 * k2  # the text before eq. 9: the variance of b_1
    rho2 = [np.asarray(score(x, view, rule="mutual_information", spec=PLAIN)) for view in views]
    for i in range(len(x)):
        # eqs. 12-13 averaged over z_1 as eqs. 14-15 say
        first = 0.5 * np.log(sigma1[i]) - 0.5 * np.log(sigma1[i] - (z1 - 1) ** 2 * l1[i] ** 2 / s1).mean()
        second = 0.5 * np.log(sigma2[i]) - 0.5 * np.log(sigma2[i] - z1**2 * l2[i] ** 2 / s1).mean()
        best = np.array([rho2[0][i], rho2[1][i]])
        found = MutualInformation(512).across(best, rivals(mean, variance))
        # The same sums over nodes and draws; Sigma(x, x) of 1e-3 comes from a kernel of 1: nine digits.
        np.testing.assert_allclose(found, [first, second], rtol=1e-7)
    np.testing.assert_allclose(np.exp(variance) - 1, [k1 / m1**2, k2 / m2**2], rtol=1e-9)


@settings(deadline=None, max_examples=30)
@given(
    st.tuples(st.floats(-5, 5), st.floats(-5, 5)),
    st.tuples(st.floats(1e-4, 3), st.floats(1e-4, 3)),
    st.tuples(st.floats(-3, 3), st.floats(-3, 3)),
)
def test_weights_of_two_models_are_the_papers(
    mean: tuple[float, float], variance: tuple[float, float], step: tuple[float, float]
) -> None:
    mean_, variance_ = np.array(mean), np.array(variance)
    log_a = mean_ + np.sqrt(variance_) * np.array(step)
    z1 = special.softmax(log_a)[0]
    k1, k2 = np.exp(2 * mean_ + variance_) * np.expm1(variance_)  # variances of the two log-normals
    s1 = (z1 - 1) ** 2 * k1 + z1**2 * k2
    found = posterior_weight(log_a[None], mean_, variance_)[0]
    np.testing.assert_allclose(found, [(1 - z1) ** 2 * k1 / s1, z1**2 * k2 / s1], rtol=1e-9, atol=1e-14)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**16), st.integers(2, 5))
def test_weights_condition_the_evidences_on_their_ray(seed: int, k: int) -> None:
    """w_i = 1 - Var(a_i | z) / K_i, by conditioning N(m, diag K) on k - 1 linear constraints: a || z."""
    rng = np.random.default_rng(seed)
    mean, variance = rng.normal(size=k), rng.uniform(0.05, 1.0, k)
    log_a = mean + np.sqrt(variance) * rng.normal(size=k)
    z, big_k = special.softmax(log_a), np.exp(2 * mean + variance) * np.expm1(variance)
    constraint = np.linalg.svd(z[None])[2][1:]  # (k - 1, k) rows orthogonal to z
    gain = np.diag(big_k) @ constraint.T
    left = np.diag(big_k) - gain @ np.linalg.solve(constraint @ gain, gain.T)
    expected = 1 - np.diag(left) / big_k
    np.testing.assert_allclose(posterior_weight(log_a[None], mean, variance)[0], expected, atol=1e-9)


# ---------------------------------------------------------------------- brute force


def exact_information(mean: Array, sd: Array, rho: float, jacobian: bool = True) -> float:
    """I(z_1; l) for Gaussian evidences of two models and an l correlated with a_1 by rho, by quadrature.

    z is the direction phi of a = r (cos phi, sin phi), r of either sign, with density |r| N(a). Given phi,
    l is a mixture of Gaussians over r, whose entropy is a sum over a grid. Without the Jacobian |r|, r is
    Gaussian and so is l: the paper's b_1 = 0.
    """
    phi = np.linspace(-np.pi / 2, np.pi / 2, 2000, endpoint=False)
    direction = np.stack([np.cos(phi), np.sin(phi)], axis=1)
    precision = (direction**2 / sd**2).sum(1)
    centre = (direction * mean / sd**2).sum(1) / precision
    u = np.linspace(-8, 8, 161)
    r = centre[:, None] + u / np.sqrt(precision)[:, None]
    along = np.exp(-0.5 * u**2) * np.abs(r)
    density = np.exp(0.5 * centre**2 * precision - 0.5 * (mean**2 / sd**2).sum()) / np.sqrt(precision)
    weight = density * along.sum(1)
    keep = weight > 1e-8 * weight.max()
    weight, r, along = weight[keep] / weight[keep].sum(), r[keep], along[keep]
    given_z = along if jacobian else np.broadcast_to(np.exp(-0.5 * u**2), along.shape)
    given_z = given_z / given_z.sum(1, keepdims=True)
    grid = np.linspace(-9, 9, 301)
    entropy = np.empty(len(weight))
    for i, (radius, share) in enumerate(zip(r, given_z, strict=True)):
        shift = rho * (radius * direction[keep][i, 0] - mean[0]) / sd[0]
        p = np.exp(-0.5 * (grid[:, None] - shift) ** 2 / (1 - rho**2)) @ share
        p /= np.sqrt(2 * np.pi * (1 - rho**2))
        entropy[i] = -special.xlogy(p, p).sum() * (grid[1] - grid[0])
    return float(0.5 * np.log(2 * np.pi * np.e) - weight @ entropy)


@pytest.mark.parametrize(
    ("uncertainty", "exact", "dropped"),
    [(0.05, 0.3888, 0.0002), (0.20, 0.3972, 0.0039), (0.35, 0.4132, 0.0119)],
)
def test_formula_is_the_exact_information_less_the_jacobian(
    uncertainty: float, exact: float, dropped: float
) -> None:
    """Two models of equal evidence, one known to 5, 20, 35 % and one to 1/sqrt 2 of that; rho = 0.9."""
    mean, sd, rho = np.ones(2), uncertainty * np.array([1.0, np.sqrt(0.5)]), 0.9
    brute = exact_information(mean, sd, rho)
    without = exact_information(mean, sd, rho, jacobian=False)
    assert brute == pytest.approx(exact, abs=1e-4)  # the quadrature itself is stable to 1e-9
    assert brute - without == pytest.approx(dropped, abs=1e-4)  # what the Jacobian is worth
    variance = np.log1p(sd**2)
    found = MutualInformation(8192).across(np.array([rho**2, 0.0]), rivals(-variance / 2, variance))[0]
    # What is left beside the Jacobian: z drawn from log-normals instead of Gaussians, 4e-4 nats at 35 % (and
    # of second order, hence less below); 8192 Sobol draws add 1e-4 at most.
    assert found == pytest.approx(without, abs=5e-4)
    log_odds = LogOdds().across(np.array([rho**2, 0.0]), rivals(np.zeros(2), sd**2))[0]
    expected = -0.5 * np.log(1 - 2 / 3 * 0.81)  # 0.388, whatever the uncertainty
    assert log_odds == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("amplitude", "tolerance"), [(0.1, 1e-3), (0.5, 0.01)])
def test_rules_for_a_small_gp_match_brute_force(amplitude: float, tolerance: float) -> None:
    """Evidences and rho^2 from two GPs' nodes; the formulas against the exact information.

    The tolerance is the size of the Jacobian and of the linearisation: relative variances of the evidences,
    at most 1e-3 and 0.02 here, times information of 0.1 to 1 nats.
    """
    views = [example_view(amplitude, seed=0), example_view(0.7 * amplitude, seed=1)]
    x = np.random.default_rng(8).normal(size=(6, 2))
    letter = [letters(view, x) for view in views]
    m, k = np.array([part[3] for part in letter]), np.array([part[1] for part in letter])
    variance = np.log1p(k / m**2)
    rho2 = letter[0][0] ** 2 / (k[0] * letter[0][2])
    best = int(np.argmax(rho2))
    brute = exact_information(m, np.sqrt(k), float(np.sqrt(rho2[best])))
    for rule in ("mutual_information", "log_odds"):
        scores = np.asarray(score(x, views[0], rule=rule, spec=PLAIN))
        own = np.array([float(prepare(view, rule=rule, spec=PLAIN)) for view in views])
        value = ACQUISITIONS[rule].across(
            np.array([scores[best], 0.0]), rivals(np.log(m) - variance / 2, own)
        )[0]
        assert value == pytest.approx(brute, abs=tolerance), rule
    assert brute > 0.05  # far above the tolerance


# ---------------------------------------------------------------------- rho^2


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 2**16),
    lengthscale=st.floats(0.2, 5.0),
    amplitude=st.floats(0.1, 15.0),
    noise=st.sampled_from([0.0, 0.3]),
    rule=st.sampled_from(["mutual_information", "log_odds", "variance"]),
)
def test_squared_correlations_lie_between_zero_and_one(
    seed: int, lengthscale: float, amplitude: float, noise: float, rule: str
) -> None:
    rng = np.random.default_rng(seed)
    x, nodes = rng.normal(size=(12, 2)), rng.normal(size=(64, 2))
    hyper = make_hyper(PLAIN, lengthscale * np.array([1.0, 1.5]), amplitude)
    gp = condition64(spec=PLAIN, hyper=hyper, data=make_data(x, surface(x), size=32))
    view = make_view(gp, nodes, rng.dirichlet(np.ones(64)), noise)
    at = np.vstack([rng.normal(size=(10, 2)), x[:3], nodes[:3]])  # observed points and nodes among them
    found = np.asarray(score(at, view, rule=rule, spec=PLAIN))
    # By Cauchy-Schwarz; beside an observation variances of 1e-6 are left of up to 225, with 1e-7 of rounding.
    assert np.all((found >= 0) & (found <= 1 + 1e-6))


def test_squared_correlation_of_a_lone_node_with_itself_is_one_but_for_the_floor() -> None:
    view = example_view()
    variance = float(predict64(spec=PLAIN, gp=view.gp, x=view.x)[1][5])
    assert variance > 100 * FLOOR
    alone = view._replace(weight=np.eye(64)[5])
    for rule in ("mutual_information", "log_odds", "variance"):
        found = np.asarray(score(np.vstack([view.x[5:6], view.x[:15]]), alone, rule=rule, spec=PLAIN))
        expected = variance / (variance + FLOOR)
        if rule == "mutual_information":
            expected = np.expm1(variance) / np.expm1(variance + FLOOR)
        assert found[0] == pytest.approx(expected, abs=1e-9)
        assert found.argmax() in (0, 6)  # itself, first and as the sixth of the nodes


def test_noise_enters_the_denominator() -> None:
    x = np.random.default_rng(3).normal(size=(16, 2))
    quiet, noisy = example_view(), example_view(noise=0.5)
    variance = np.asarray(predict64(spec=PLAIN, gp=quiet.gp, x=x)[1]) + FLOOR

    def ratio(rule: str) -> Array:
        with_noise, without = (np.asarray(score(x, view, rule=rule, spec=PLAIN)) for view in (noisy, quiet))
        return with_noise / without

    # Noise (docs/method.md): tau^2 is added to C(x, x), of which variances of 1e-3 keep twelve digits.
    np.testing.assert_allclose(ratio("log_odds"), variance / (variance + 0.5), rtol=1e-9)
    np.testing.assert_allclose(
        ratio("mutual_information"), np.expm1(variance) / np.expm1(variance + 0.5), rtol=1e-9
    )


def test_shaped_noise_enters_where_the_mean_is_low() -> None:
    """What an observation will be given once it is made (observations.py) counts before it is made."""
    x, quiet = np.random.default_rng(3).normal(size=(16, 2)), example_view()
    mean, variance = (np.asarray(part) for part in predict64(spec=PLAIN, gp=quiet.gp, x=x))
    followed = float(-np.median(mean))
    shaped = quiet._replace(followed=np.array(followed))
    extra = (SHAPE * np.maximum(0.0, -mean - followed)) ** 2
    assert (extra > 0).sum() == 8
    found, without = (np.asarray(score(x, view, rule="log_odds", spec=PLAIN)) for view in (shaped, quiet))
    own = variance + FLOOR
    np.testing.assert_allclose(found / without, own / (own + extra), rtol=1e-9)  # twelve digits, as above


@pytest.mark.parametrize("rule", ACQUISITIONS)
def test_slopes_match_finite_differences(rule: str) -> None:
    spec, h = PLAIN, 1e-5  # the other kernels' slopes: test_kernels.py
    view = example_view(seed=2)._replace(box=np.array([0.0, 1.0]))
    x = np.random.default_rng(4).normal(size=(16, 2))
    distance = np.linalg.norm(x[:, None] - np.vstack([observed(view), view.x])[None], axis=2).min(1)
    assert distance.min() > 10 * h  # the kernel's third derivative jumps at every observation and node
    slope = np.asarray(score_slope(x, view, rule=rule, spec=spec))
    for j in range(2):
        step = h * np.eye(2)[j]
        up, down = (np.asarray(score(x + s, view, rule=rule, spec=spec)) for s in (step, -step))
        # Scores are of order 1 (logs of 1e-3 for uncertainty), known to 1e-12: 1e-7 after division by h, and
        # h^2 times third derivatives that reach 1e4 next to an observation.
        np.testing.assert_allclose(slope[:, j], (up - down) / (2 * h), rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------------- across models

BELIEFS = st.lists(
    st.tuples(st.floats(-20, 20), st.floats(1e-8, 25), st.floats(0, 1)), min_size=1, max_size=4
).map(lambda rows: np.array(rows).T)
RULES = ["mutual_information", "log_odds", "variance"]


@settings(deadline=None, max_examples=60)
@given(BELIEFS, st.sampled_from(RULES))
def test_information_is_finite_and_never_negative(beliefs: Array, rule: str) -> None:
    mean, variance, best = beliefs
    found = ACQUISITIONS[rule].across(best, rivals(mean, variance))
    assert found.shape == mean.shape
    assert np.all(np.isfinite(found)) and np.all(found >= 0)
    nothing = ACQUISITIONS[rule].across(np.zeros_like(best), rivals(mean, variance))
    np.testing.assert_array_equal(nothing, 0.0)


@settings(deadline=None, max_examples=30)
@given(BELIEFS, st.sampled_from(RULES), st.floats(-1e5, 1e5))
def test_a_common_shift_changes_nothing(beliefs: Array, rule: str, shift: float) -> None:
    mean, variance, best = beliefs
    here, there = (ACQUISITIONS[rule].across(best, rivals(mean + s, variance)) for s in (0.0, shift))
    np.testing.assert_allclose(there, here, rtol=1e-8, atol=1e-12)  # 1e5 swallows 1e-11 nats of the means


@pytest.mark.parametrize("rule", RULES)
def test_permuting_the_models_permutes_the_values(rule: str) -> None:
    mean, variance = np.array([0.0, -1.0, 0.5, -3.0]), np.array([0.5, 1.0, 0.2, 2.0])
    best, order = np.array([0.9, 0.5, 0.7, 0.8]), np.array([2, 0, 3, 1])
    here = ACQUISITIONS[rule].across(best, rivals(mean, variance))
    there = ACQUISITIONS[rule].across(best[order], rivals(mean[order], variance[order]))
    # log_odds is in closed form. The others average over 512 or 1024 Sobol points whose coordinates are the
    # models: their own error makes 0.3 % (mutual information) and 0.9 % (variance) here; three times the
    # larger.
    tolerance = 1e-12 if rule == "log_odds" else 0.03
    np.testing.assert_allclose(there, here[order], rtol=tolerance)


def test_rivalry_is_the_share_that_reaches_the_odds() -> None:
    np.testing.assert_allclose(rivalry(np.array([2.0, 1.0])), [2 / 3, 1 / 3], rtol=1e-14)
    np.testing.assert_allclose(rivalry(np.full(3, 0.7)), 2 / 3, rtol=1e-14)
    np.testing.assert_allclose(rivalry(np.array([0.0, 0.5])), [0.0, 1.0], atol=1e-14)  # a model known exactly
    assert rivalry(np.array([0.3])) == 1.0


def test_log_odds_is_the_information_of_the_gaussian_joint() -> None:
    """I(lambda; g) with Gaussian log-evidences, from determinants, for all k - 1 log-odds at once."""
    variance, rho = np.array([0.5, 1.5, 0.2]), 0.8
    contrast = np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0]])
    for i in range(3):
        cov = contrast @ np.diag(variance) @ contrast.T
        cross = contrast[:, i] * rho * np.sqrt(variance[i])  # with g of variance 1
        expected = -0.5 * np.log(1 - cross @ np.linalg.solve(cov, cross))
        best = np.where(np.arange(3) == i, rho**2, 0.0)
        assert LogOdds().across(best, rivals(np.zeros(3), variance))[i] == pytest.approx(expected, rel=1e-12)


def test_forms_for_z_and_for_log_odds_agree_as_uncertainties_vanish() -> None:
    best, gaps = np.array([0.8, 0.6]), []
    for sd in (0.3, 0.03):
        belief = rivals(np.array([0.4, -0.3]), sd**2 * np.array([1.0, 0.5]))
        gaps.append(
            np.abs(MutualInformation(4096).across(best, belief) - LogOdds().across(best, belief)).max()
        )
    # Second order in the standard deviation: a tenth of it leaves a hundredth, but for the draws' own error.
    assert gaps[0] < 0.02
    assert gaps[1] < gaps[0] / 30
    both = [example_view(1e-3, seed=0), example_view(1e-3, seed=1)]
    x = np.random.default_rng(9).normal(size=(16, 2))
    for view in both:  # inside a model: exp(C) - 1 is C to first order, C at most 1e-6 and the floor 1e-4
        forms = [np.asarray(score(x, view, rule=rule, spec=PLAIN)) for rule in RULES[:2]]
        np.testing.assert_allclose(forms[0], forms[1], rtol=FLOOR)


# ---------------------------------------------------------------------- the variance of z


def exact_reduction(mean: Array, variance: Array, i: int, rho: float) -> float:
    """Sum_j Var(E[z_j | o]), o correlated with log a_i by rho: what observing o takes off sum_j Var(z_j)."""
    nodes, weight = special.roots_hermitenorm(15)
    weight = weight / weight.sum()
    sd = np.sqrt(variance)
    left = np.where(np.arange(len(mean)) == i, sd * np.sqrt(1 - rho**2), sd)
    z = np.array(
        [moments(mean + np.eye(len(mean))[i] * sd[i] * rho * o, left, np.zeros(len(mean)))[0] for o in nodes]
    )
    return float((weight @ (z - weight @ z) ** 2).sum())


@pytest.mark.parametrize("i", range(3))
def test_variance_rule_is_the_expected_reduction_for_small_uncertainties(i: int) -> None:
    mean, rho, errors = np.array([0.3, 0.0, -1.2]), 0.7, []
    for sd in (0.4, 0.1):
        variance = sd**2 * np.array([1.0, 0.6, 1.4])
        found = Variance().across(np.full(3, rho**2), rivals(mean, variance))[i]
        errors.append(abs(found / exact_reduction(mean, variance, i, rho) - 1))
    # The softmax is linearised: relative errors of second order, a sixteenth of them at a quarter of the
    # standard deviation; 0.1^2 = 1 % is their scale, times a factor of 2 for the curvature of z.
    assert errors[1] < 0.02
    assert errors[1] < errors[0] / 4


def test_variance_rule_leaves_hopeless_models_alone() -> None:
    belief = rivals(np.array([0.0, -0.2, -30.0]), np.ones(3))
    found = Variance().across(np.full(3, 0.9), belief)
    assert found[2] < 1e-6 * found[:2].min()  # z_3 is near e^-30, and enters squared
    blind = LogOdds().across(np.full(3, 0.9), belief)
    np.testing.assert_allclose(blind, blind[0], rtol=1e-12)  # which is why the rule exists
