"""Beliefs on the evidence against quadrature and against joint draws of the Gaussian process itself."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, special, stats

from example_gp import PLAIN, covariance64, example_gp, predict64
from modelodds.evidence import (
    CAP,
    SUMMED,
    belief,
    log_expected,
    log_gaussian_variance,
    log_integrand,
    moment_variance,
    picked,
)
from modelodds.nodes import Nodes, systematic
from modelodds.precision import jit64
from modelodds.prior import Prior
from modelodds.surrogate.gp import GP
from modelodds.surrogate.squash import Squash

Array = NDArray[np.float64]

gaussian_variance64 = jit64(log_gaussian_variance, static=("spec",))
moment_variance64 = jit64(moment_variance, static=("spec",))
HERMITE, HERMITE_WEIGHT = special.roots_hermitenorm(80)
HERMITE_WEIGHT = HERMITE_WEIGHT / HERMITE_WEIGHT.sum()


class Case(NamedTuple):
    """A GP at 64 equally likely nodes: mean, covariance, and draws of all of them together."""

    gp: GP
    x: Array
    mean: Array
    cov: Array
    draws: Array


def case(amplitude: float, n_draws: int = 40_000) -> Case:
    gp, rng = example_gp(amplitude), np.random.default_rng(1)
    x = rng.normal(size=(64, 2))
    mean = np.asarray(predict64(spec=PLAIN, gp=gp, x=x)[0])
    cov = np.asarray(covariance64(spec=PLAIN, gp=gp, a=x, b=x))
    value, vector = np.linalg.eigh(cov)
    root = vector * np.sqrt(np.maximum(value, 0.0))
    half = rng.normal(size=(n_draws // 2, 64)) @ root.T
    both = np.concatenate([half, -half])  # antithetic: odd terms cancel exactly
    return Case(gp, x, mean, cov, mean + both)


@pytest.fixture(scope="module")
def small() -> Case:
    return case(0.35)


# ---------------------------------------------------------------------- the integrands


@pytest.mark.parametrize("v", [1e-12, 0.01, 1.0, 9.0])
def test_moment_integrand_matches_gauss_hermite(v: float) -> None:
    m = -1.3
    expected = np.log(HERMITE_WEIGHT @ np.exp(m + np.sqrt(v) * HERMITE))
    # 80 points integrate exp(3 x) to rounding: the next term is 3^160 / 160!.
    assert log_integrand("moment", np.array([m]), np.array([v]))[0] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("m", [-60.0, 1.0, 2.0, 7.0])
@pytest.mark.parametrize("v", [1e-12, 0.5, 9.0, 1e4])
def test_mean_integrand_is_the_mean_of_the_capped_log_likelihood(m: float, v: float) -> None:
    found = log_integrand("mean", np.array([m]), np.array([v]), cap=2.0)[0]
    t = np.linspace(-12, 12, 480_001)
    expected = np.average(np.minimum(m + np.sqrt(v) * t, 2.0), weights=np.exp(-0.5 * t**2))
    # The lattice cuts the kink: its step squared, 2.5e-9, times the standard deviation.
    assert found == pytest.approx(expected, abs=1e-8 * (1 + np.sqrt(v)))
    assert found <= min(m, 2.0) + 1e-9


def capped(m: float, v: float, cap: float) -> float:
    """log E[exp min(g, u)] = u + log(P(g > u) + integral of e^-t N(u - t) over t > 0), by quadrature."""
    normal = stats.norm(m, np.sqrt(v))
    centre = max(cap - m - v, 0.0)  # where e^-t N(u - t) is largest
    width = min(np.sqrt(v), 1.0 + centre)
    breaks = sorted({0.0, centre, *(np.clip(centre + width * np.arange(-12, 41, 2), 0.0, None))})
    pieces = [
        integrate.quad(lambda t: np.exp(-t + normal.logpdf(cap - t)), a, b, epsabs=0, epsrel=1e-12)[0]
        for a, b in itertools.pairwise(breaks)
    ]
    return cap + float(np.log(normal.sf(cap) + sum(pieces)))


@pytest.mark.parametrize("m", [-4.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("v", [0.01, 1.0, 16.0, 400.0])
def test_capped_integrand_matches_quadrature(m: float, v: float) -> None:
    found = log_integrand("capped", np.array([m]), np.array([v]), cap=2.0)[0]
    assert found == pytest.approx(capped(m, v, 2.0), abs=1e-10)  # what is cut off, 40 widths out, is e^-40


@pytest.mark.parametrize("m", [-14.0, -8.0, -4.0, 0.0])
@pytest.mark.parametrize("v", [1e-12, 0.05, 1.0, 4.0])
@pytest.mark.parametrize("squash", [Squash.none(2), Squash.some(2), Squash.more(2)])
def test_expected_likelihood_is_that_of_values_drawn_on_the_surrogates_scale(
    squash: Squash, v: float, m: float
) -> None:
    t = np.linspace(-12, 12, 240_001)
    values = np.exp(squash.log_likelihood(np.minimum(m + np.sqrt(v) * t, CAP)))
    expected = np.log(np.average(values, weights=np.exp(-0.5 * t**2)))
    # Sixteen points do not see the kinks at the cap and where squashing begins.
    assert log_expected(np.array([m]), np.array([v]), squash)[0] == pytest.approx(
        expected, abs=0.02 * v + 1e-6
    )


@pytest.mark.parametrize(("m", "expected"), [(-3.0, -3.0), (5.0, 2.0), (2.0, 2.0)])
def test_capped_integrand_without_variance_is_the_smaller_of_mean_and_cap(m: float, expected: float) -> None:
    found = log_integrand("capped", np.array([m]), np.array([1e-12]), cap=2.0)[0]
    assert found == pytest.approx(expected, abs=1e-6)  # at the kink it is lower by sd / sqrt(2 pi) = 4e-7


@pytest.mark.parametrize("m", [-500.0, -50.0, 0.0, 40.0])
def test_capped_integrand_survives_a_huge_variance(m: float) -> None:
    """v = 1e4: almost all of it is e^u P(g > u); what lies below adds e^u N(u; m, v) to leading order."""
    found = log_integrand("capped", np.array([m]), np.array([1e4]), cap=2.0)[0]
    normal = stats.norm(m, 100.0)
    assert 2.0 + normal.logsf(2.0) < found <= 2.0
    # Watson's lemma: the integral of e^-t N(u - t) is N(u) (1 + (u - m) / v + ...), the next term 1e-4 of it;
    # it is itself at most 5 % of the sum (at 5 standard deviations, the worst here).
    below = normal.pdf(2.0) * (1 + (2.0 - m) / 1e4)
    assert found == pytest.approx(2.0 + np.log(normal.sf(2.0) + below), abs=2e-4)


@settings(deadline=None, max_examples=100)
@given(st.floats(-700, 700), st.floats(1e-12, 1e4), st.floats(0, 20))
def test_capped_integrand_lies_below_the_cap_and_the_moment_and_above_the_certain_part(
    m: float, v: float, cap: float
) -> None:
    found = log_integrand("capped", np.array([m]), np.array([v]), cap=cap)[0]
    rounding = 1e-9 * (1 + abs(m) + v)
    assert found <= min(cap, m + v / 2) + rounding
    assert found >= min(m, cap) + np.log(0.5) - rounding  # half of the time g is at least m


# ---------------------------------------------------------------------- variances of the evidence


def test_variances_are_the_dense_double_sums(small: Case) -> None:
    weight = np.random.default_rng(2).dirichlet(np.ones(64))
    linear = gaussian_variance64(spec=PLAIN, gp=small.gp, x=small.x, weight=weight)
    # A kernel of 0.1 less projections of its size leaves 1e-3: nine digits and more.
    assert float(linear) == pytest.approx(weight @ small.cov @ weight, rel=1e-9)
    matched = moment_variance64(spec=PLAIN, gp=small.gp, x=small.x, weight=weight)
    assert float(matched) == pytest.approx(np.log1p(weight @ np.expm1(small.cov) @ weight), rel=1e-9)


def test_basis_functions_count_in_the_linear_variance() -> None:
    spec = PLAIN._replace(mean="full_quadratic")
    gp, x = example_gp(0.35, spec=spec), np.random.default_rng(1).normal(size=(64, 2))
    weight = np.full(64, 1 / 64)
    cov = np.asarray(covariance64(spec=spec, gp=gp, a=x, b=x))
    found = gaussian_variance64(spec=spec, gp=gp, x=x, weight=weight)
    assert float(found) == pytest.approx(weight @ cov @ weight, rel=1e-7)


@pytest.mark.parametrize("amplitude", [0.35, 1.0])
def test_moment_matching_gives_the_evidence_its_first_two_moments(amplitude: float) -> None:
    """Mean exp(m + v/2), covariance mu mu' (e^C - 1): as draws of exp(GP), summed over nodes, have them."""
    found = case(amplitude)
    variance = np.diag(found.cov)
    mu = np.exp(log_integrand("moment", found.mean, variance)) / 64
    evidence = np.exp(found.draws).sum(1) / 64
    n = len(evidence) / 2  # antithetic pairs are not independent
    assert evidence.mean() == pytest.approx(mu.sum(), abs=5 * evidence.std() / np.sqrt(n))
    relative = np.expm1(moment_variance64(spec=PLAIN, gp=found.gp, x=found.x, weight=mu / mu.sum()))
    square = (evidence / mu.sum() - 1) ** 2
    assert float(relative) == pytest.approx(square.mean(), abs=5 * square.std() / np.sqrt(n))
    assert square.std() / np.sqrt(n) < 0.05 * square.mean()  # 5 % of it, or five errors would mean nothing


def test_linear_variance_is_that_of_the_log_evidence_when_small(small: Case) -> None:
    weight = special.softmax(small.mean)
    linear = float(gaussian_variance64(spec=PLAIN, gp=small.gp, x=small.x, weight=weight))
    log_evidence = special.logsumexp(small.draws, axis=1)
    square = (log_evidence - log_evidence.mean()) ** 2
    error = square.std() / np.sqrt(len(square) / 2)
    # The linearisation leaves out terms of relative size v, the variance at the nodes that count.
    neglected = float(weight @ np.diag(small.cov)) * linear
    assert linear == pytest.approx(square.mean(), abs=5 * error + neglected)
    assert neglected < 0.1 * linear


# ---------------------------------------------------------------------- belief


def equal_nodes(x: Array) -> Nodes:
    """Nodes at ``x`` with equal weights, whatever prior they belong to."""
    prior = Prior({"a": stats.norm(), "b": stats.norm()})
    size = len(x)
    return Nodes(prior, x, x, x, np.ones(size), None, x, np.full(size, -np.log(size)))


def second_order(found: Case) -> float:
    weight = special.softmax(found.mean)
    return 0.5 * float(weight @ np.diag(found.cov) - weight @ found.cov @ weight)


def test_second_order_log_evidence_matches_the_mean_over_draws() -> None:
    """E log a - log sum w e^m, with the quadratic part of each draw as a control variate of known mean."""
    errors = []
    for amplitude in (0.5, 0.25):
        found = case(amplitude)
        weight, deviation = special.softmax(found.mean), found.draws - found.mean
        log_ratio = special.logsumexp(found.draws, axis=1) - special.logsumexp(found.mean)
        along = deviation @ weight
        quadratic = along + 0.5 * ((deviation**2) @ weight - along**2)
        rest = log_ratio - quadratic
        truth, error = second_order(found) + rest.mean(), rest.std() / np.sqrt(len(rest) / 2)
        assert second_order(found) == pytest.approx(truth, abs=0.2 * abs(truth))
        errors.append(abs(rest.mean()))
        assert error < 0.3 * abs(rest.mean())  # the draws resolve what is left ...
    # ... and that is of fourth order: half the amplitude leaves about a sixteenth, and certainly less than an
    # eighth.
    assert errors[1] < errors[0] / 8


def test_belief_is_log_evidence_and_variance_of_each_kind(small: Case) -> None:
    nodes, variance = equal_nodes(small.x), np.diag(small.cov)
    for kind in ("moment", "capped", "mean"):
        log_mass = log_integrand(kind, small.mean, variance) - np.log(64)
        log_a, weight = special.logsumexp(log_mass), special.softmax(log_mass)
        found = belief(kind, PLAIN, small.gp, nodes, small.mean, variance)
        if kind == "moment":
            spread = np.log1p(weight @ np.expm1(small.cov) @ weight)
            expected = log_a - spread / 2
        else:
            spread = weight @ small.cov @ weight
            expected = log_a + (0.5 * (weight @ variance - spread) if kind == "mean" else 0.0)
        # Double sums run over 1024 draws of nodes: each of 64 weights is off by at most two draws' worth.
        rounding = 128 / SUMMED * variance.max()
        assert found.variance == pytest.approx(spread, abs=rounding)
        assert found.mean == pytest.approx(expected, abs=rounding)
        # And exactly, over those same draws; the linear variance keeps nine digits, as above.
        index, share = picked(weight, np.sqrt(variance))
        drawn = np.bincount(index, share, minlength=64)
        if kind == "moment":
            spread = np.log1p(drawn @ np.expm1(small.cov) @ drawn)
            expected = log_a - spread / 2
        else:
            spread = drawn @ small.cov @ drawn
            expected = log_a + (0.5 * (weight @ variance - spread) if kind == "mean" else 0.0)
        assert found.variance == pytest.approx(spread, rel=1e-8)
        assert found.mean == pytest.approx(expected, rel=1e-9)


def test_second_order_heeds_the_scale(small: Case) -> None:
    nodes, variance, squash = equal_nodes(small.x), np.diag(small.cov), Squash.more(2)
    mean = small.mean - small.mean.max() - squash.followed - 1.0  # all of it squashed
    found = belief("mean", PLAIN, small.gp, nodes, mean, variance, squash=squash)
    log_likelihood = squash.log_likelihood(log_integrand("mean", mean, variance))
    weight, stretch = special.softmax(log_likelihood), 1.0 / squash.slope(-log_likelihood)
    first = special.logsumexp(log_likelihood) - np.log(64)
    more = weight @ (log_expected(mean, variance, squash) - log_likelihood)
    assert found.mean == pytest.approx(first + more - 0.5 * found.variance, rel=1e-9)
    # A log-normal would have half of the squared slope times the variance: the fall that steepens takes some.
    assert more < 0.95 * 0.5 * weight @ (stretch**2 * variance)


def test_no_node_that_stands_for_others_weighs_more_than_twice_its_share() -> None:
    rng = np.random.default_rng(3)
    mass, sd = special.softmax(3.0 * rng.normal(size=4096)), np.exp(4.0 * rng.normal(size=4096))
    index, weight = picked(mass, sd)
    assert weight.max() <= 2.0 / SUMMED
    assert weight.sum() == pytest.approx(1.0, abs=1e-2)
    assert weight @ sd[index] == pytest.approx(mass @ sd, rel=1e-2)  # by mass alone it is off by tenths
    assert abs(sd[systematic(mass, SUMMED)].mean() / (mass @ sd) - 1.0) > 0.02


def test_belief_moves_with_the_log_likelihood(small: Case) -> None:
    nodes, variance = equal_nodes(small.x), np.diag(small.cov)
    here, there = (belief("mean", PLAIN, small.gp, nodes, small.mean + s, variance) for s in (-350.0, -50.0))
    assert there.mean - here.mean == pytest.approx(300.0, abs=1e-10)
    assert there.variance == pytest.approx(here.variance, rel=1e-9)


def test_moment_belief_of_an_ignorant_surrogate_is_finite() -> None:
    """Amplitudes of 60 nats are within the log-space fit's bounds; ``estimate='moment'`` may go with it."""
    gp, x = example_gp(60.0), np.random.default_rng(1).normal(size=(64, 2))
    mean, variance = (np.asarray(part) for part in predict64(spec=PLAIN, gp=gp, x=x))
    found = belief("moment", PLAIN, gp, equal_nodes(x), mean, variance)
    assert np.isfinite(found.mean) and np.isfinite(found.variance)
