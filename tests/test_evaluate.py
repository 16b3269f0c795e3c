"""One evaluation: what counts as a value, and what as a failure with which reason."""

import time
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from modelodds.evaluate import Outcome, evaluate, read_value
from modelodds.model import Model
from modelodds.prior import Prior

PRIOR = Prior({"a": stats.norm(), "b": stats.norm()})
THETA = np.array([1.0, 2.0])


@pytest.mark.parametrize(
    "raw",
    [
        -3.5,
        np.float32(-3.5),
        np.array(-3.5),
        np.array([-3.5]),
        [-3.5],
        (-3.5, 0),
        [-3.5, 0.0],
        (np.array([-3.5]), 0),
    ],
    ids=repr,
)
def test_numbers(raw):
    assert read_value(raw) == Outcome("ok", -3.5, 0.0)


def test_jax_scalars_and_integers_are_numbers():
    jnp = pytest.importorskip("jax.numpy")
    assert read_value(jnp.array(-2.0)) == read_value(np.int64(-2)) == read_value(-2) == Outcome("ok", -2.0)


@given(value=st.floats(allow_nan=False).filter(lambda v: v < np.inf), error=st.floats(0, 1e300))
def test_pair_is_read_exactly(value, error):
    assert read_value((value, error)) == Outcome("ok", value, error)


def test_likelihood_zero_is_a_value():
    assert read_value(-np.inf) == Outcome("ok", -np.inf)
    assert read_value((-np.inf, 0.5)) == Outcome("ok", -np.inf, 0.5)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (np.nan, "the log-likelihood is nan; expected a finite number, or -inf for likelihood zero"),
        (np.inf, "the log-likelihood is inf"),
        ((np.nan, 0.1), "the log-likelihood is nan"),
        (1 + 2j, "the log-likelihood is the complex (1+2j); expected a real number"),
        (np.array(1j), "the log-likelihood is a ndarray; expected a real number"),
        ("-3.5", "the log-likelihood is the str '-3.5'"),
        (None, "the log-likelihood is None (does the function return its result?)"),
        (True, "the log-likelihood is the bool True"),
        ({}, "the log-likelihood is a dict"),
        (np.ma.masked, "expected a real number"),
        (np.array([1.0, 2.0]), "the log-likelihood has shape (2,); expected a single number"),
        (np.array([[1.0]]), "the log-likelihood has shape (1, 1)"),
        ([], "the log-likelihood has shape (0,)"),
        ((1.0, 2.0, 3.0), "the log-likelihood has shape (3,)"),
        ([1.0, [2.0], 3.0], "the log-likelihood is a list that is not a number"),
        ((1.0, -0.1), "the standard error is -0.1; expected a finite number, 0 or more"),
        ((1.0, np.nan), "the standard error is nan"),
        ((1.0, np.inf), "the standard error is inf"),
        ((1.0, None), "the standard error is None"),
        ((1.0, [1.0, 2.0]), "the standard error has shape (2,)"),
    ],
)
def test_failures(raw, reason):
    outcome = read_value(raw)
    assert outcome.status == "failed" and reason in outcome.reason
    assert np.isnan(outcome.value) and outcome.standard_error == 0


def test_evaluate_passes_the_point_and_times_the_call():
    def slow(theta):
        time.sleep(0.02)
        return -theta[0] + 10 * theta[1]

    outcome = evaluate(Model("m", slow, PRIOR), THETA)
    assert outcome.status == "ok" and outcome.value == 19.0 and outcome.reason == ""
    assert 0.02 <= outcome.seconds < 5


def test_evaluate_gives_a_fresh_copy():
    def greedy(theta):
        theta *= 0
        return 0.0

    theta = THETA.copy()
    theta.flags.writeable = False
    assert evaluate(Model("m", greedy, PRIOR), theta).status == "ok"
    np.testing.assert_array_equal(theta, THETA)


@pytest.mark.parametrize("noisy", [False, True])
def test_vectorized(noisy):
    def log_likelihood(theta):
        assert theta.shape == (1, 2)
        values = theta @ [1.0, 10.0]
        return (values, 0.5 * np.ones(len(theta))) if noisy else values

    outcome = evaluate(Model("m", log_likelihood, PRIOR, vectorized=True), THETA)
    assert (outcome.status, outcome.value, outcome.standard_error) == ("ok", 21.0, 0.5 * noisy)


def test_exceptions_become_failures():
    outcome = evaluate(Model("m", lambda theta: 1 / 0, PRIOR), THETA)
    assert outcome.status == "failed" and outcome.reason == "ZeroDivisionError: division by zero"
    assert np.isnan(outcome.value) and outcome.seconds >= 0


def test_a_bad_theta_is_a_failure_too():
    assert evaluate(Model("m", lambda theta: 0.0, PRIOR), ["x", "y"]).reason.startswith("ValueError")


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_interrupts_pass_through(interrupt):
    def interrupted(theta):
        raise interrupt

    with pytest.raises(interrupt):
        evaluate(Model("m", interrupted, PRIOR), THETA)


@pytest.mark.parametrize("setting", ["warn", "raise"])
def test_numpy_warnings_are_not_failures(setting):
    model = Model("m", lambda theta: np.log(np.zeros(1)) - np.exp(1e3 * theta[:1]) * 0.0 ** theta[1], PRIOR)
    zero = Model("m", lambda theta: np.log(np.zeros(1)), PRIOR)
    with warnings.catch_warnings(), np.errstate(all=setting):
        warnings.simplefilter("error")
        assert evaluate(zero, THETA).value == -np.inf
        assert "nan" in evaluate(model, THETA).reason
