"""compare(): what it promises, on models whose evidences are known in closed form."""

import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console
from scipy import integrate, stats

from example_models import (
    CENTRES,
    N,
    bell,
    gap,
    gaussian,
    half,
    half_log_evidence,
    log_evidence,
    null,
)
from modelodds import Model, Prior, compare
from modelodds.acquisition import ACQUISITIONS
from modelodds.errors import BudgetError, ModelError, OptionError
from modelodds.method import Method, resolve_method
from modelodds.problems.regression import regression
from modelodds.result import Result
from modelodds.session import Session
from modelodds.stopping import Never

Array = NDArray[np.float64]

BUDGET = 24
EXACT = 5e-3  # nats: what a quadratic log-likelihood may be off by after a dozen evaluations of one parameter


def run(models: list[Model], **options: Any) -> Result:
    return compare(models, **{"budget": BUDGET, "progress": False, "stop": Never(), **options})


def pair() -> list[Model]:
    return [gaussian("a"), gaussian("b")]


def identical(a: Result, b: Result) -> bool:
    """Whether two runs agree to the last bit in all but their timings."""
    timeless = [r.evaluations.drop(columns="seconds") for r in (a, b)]
    return (
        a.log_evidence == b.log_evidence
        and a.log_evidence_sd == b.log_evidence_sd
        and a.probabilities == b.probabilities
        and timeless[0].equals(timeless[1])
        and a.history.equals(b.history)
        and all(np.array_equal(a.draws[name], b.draws[name]) for name in a.names)
    )


@pytest.fixture(scope="module")
def two() -> Result:
    """Two Gaussian models, seed 0."""
    return run(pair())


# ---------------------------------------------------------------------- the answer


def test_two_models(two: Result) -> None:
    for name in ("a", "b"):
        error = two.log_evidence[name] - log_evidence(name)
        assert abs(error) < EXACT and abs(error) < 4 * two.log_evidence_sd[name]
    odds = np.exp(gap("a", "b"))
    assert two.probabilities["a"] == pytest.approx(odds / (1 + odds), abs=EXACT)
    assert sum(two.probabilities.values()) == pytest.approx(1.0, abs=1e-12)
    assert two.best == "a" and two.status == "budget" and "budget" in two.message
    assert sum(two.n_evaluations.values()) == BUDGET == len(two.evaluations)
    assert set(two.evaluations["status"]) == {"ok"} and (two.evaluations["seconds"] > 0).all()
    assert two.method == "default" and two.seed == 0


def test_one_model() -> None:
    alone = run([gaussian("a")], budget=12)
    assert alone.probabilities == {"a": 1.0} and alone.probability_sd == {"a": 0.0}
    assert alone.log_evidence["a"] == pytest.approx(log_evidence("a"), abs=EXACT)


def test_three_models() -> None:
    three = run([gaussian(name) for name in "abc"], budget=36)
    weight = np.exp([log_evidence(name) for name in "abc"])
    np.testing.assert_allclose(list(three.probabilities.values()), weight / weight.sum(), atol=EXACT)
    for i, name in enumerate("abc"):
        assert three.table()["log_evidence"][name] == pytest.approx(np.log(weight[i]), abs=EXACT)


def test_likelihoods_that_no_quadratic_fits() -> None:
    """Logistic tails and two modes, against quadrature; the claimed standard deviation covers the error."""

    def tails(theta: Array) -> float:
        return float(-2.0 * np.logaddexp(0.0, -6.0 * theta[0]) + np.log1p(-0.9 * np.tanh(theta[0]) ** 2))

    def modes(theta: Array) -> float:
        return float(np.logaddexp(*(N.logpdf(theta[0], [-1.0, 1.2], 0.3))))

    result = run([Model("t", tails, {"x": N()}), Model("m", modes, {"x": N()})], budget=60)
    for name, f in {"t": tails, "m": modes}.items():
        density = lambda x, f=f: np.exp(f([x]) + N.logpdf(x))  # noqa: E731
        truth = np.log(integrate.quad(density, -9, 9, points=[-1, 0, 1.2], limit=400)[0])
        error = abs(result.log_evidence[name] - truth)
        assert error < 0.02 and error < 4 * result.log_evidence_sd[name], name


@pytest.mark.parametrize("seed", [0, 1])
def test_conjugate_regression(seed: int) -> None:
    """A small version of `modelodds leaderboard`."""
    problem = regression(2, seed)
    result = run(list(problem.models), budget=60, rng=seed)
    mean, sd = result.log_bayes_factor(*result.names)
    error = mean - (problem.log_evidence[0] - problem.log_evidence[1])
    assert abs(error) <= 0.02 and abs(error) <= 4 * sd


def test_the_papers_method_is_roughly_right() -> None:
    result = run(pair(), method="paper", budget=30)
    assert result.method == "paper" and result.status == "budget"
    told = [result.history[f"log_evidence[{name}]"].iloc[-1] for name in result.names]
    assert list(result.log_evidence.values()) == told  # as it stands, on the nodes that were searched
    # A Matern-3/2 surrogate of fifteen points each: hundredths of a nat.
    assert result.log_bayes_factor("a", "b")[0] == pytest.approx(gap("a", "b"), abs=0.3)


# ---------------------------------------------------------------------- the same seed


def test_the_same_seed_gives_the_same_bits(two: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    assert identical(two, run(pair()))
    assert identical(two, run(pair(), rng=np.random.default_rng(0)))
    for terminal in (True, False):  # nor does it matter who looks on
        shown = io.StringIO()
        console = Console(file=shown, force_terminal=terminal, width=100)
        monkeypatch.setattr("modelodds.progress.Console", lambda console=console, **_: console)
        assert identical(two, run(pair(), progress=True))
        assert f"{BUDGET}/{BUDGET} evaluations" in shown.getvalue() or terminal
        assert shown.getvalue()


def test_another_seed_gives_another_run_and_the_same_answer(two: Result) -> None:
    other = run(pair(), rng=1)
    assert not other.evaluations["x"].equals(two.evaluations["x"])
    assert other.log_evidence != two.log_evidence
    assert other.log_evidence == pytest.approx(two.log_evidence, abs=EXACT)


def test_no_global_generator_is_used(two: Result) -> None:
    np.random.seed(7)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # type: ignore[index]  # noqa: NPY002
    assert identical(two, run(pair()))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # type: ignore[index]  # noqa: NPY002


def test_the_users_jax_keeps_its_precision(two: Result) -> None:
    seen = []

    def log_likelihood(theta: Array) -> Any:
        x = jnp.asarray(theta)
        seen.append(x.dtype)
        return -0.5 * jnp.sum(x**2)

    assert two.status == "budget"  # a comparison was made in this process
    assert jnp.ones(1).dtype == jnp.float32
    result = run([Model("jax", log_likelihood, {"x": N()})], budget=12)
    assert set(seen) == {jnp.dtype("float32")}
    assert jnp.ones(1).dtype == jnp.float32
    # The likelihood itself is in single precision; exp(-x^2/2) over a standard normal prior is 1/sqrt 2.
    assert result.log_evidence["jax"] == pytest.approx(-0.5 * np.log(2), abs=EXACT)


# ---------------------------------------------------------------------- symmetries


def test_prior_probabilities_shift_the_odds_by_their_log_ratio() -> None:
    tilted = run([gaussian("a", probability=0.2), gaussian("b", probability=0.8)])
    mean, sd = tilted.log_bayes_factor("a", "b")
    assert tilted.log_odds("a", "b") == pytest.approx((mean + np.log(0.2 / 0.8), sd), abs=1e-12)
    odds = np.exp(gap("a", "b")) / 4
    assert tilted.probabilities["a"] == pytest.approx(odds / (1 + odds), abs=EXACT)


@pytest.mark.parametrize("shift", [-1e6, 1e4])
def test_a_constant_in_every_log_likelihood_changes_no_probability(two: Result, shift: float) -> None:
    shifted = run([gaussian("a", shift), gaussian("b", shift)])
    assert shifted.probabilities == pytest.approx(two.probabilities, abs=1e-3)
    assert shifted.log_evidence["a"] - shift == pytest.approx(log_evidence("a"), abs=EXACT)


def test_far_apart_is_far_apart() -> None:
    apart = run([gaussian("a"), gaussian("b", -1e4)])
    assert apart.probabilities == pytest.approx({"a": 1.0, "b": 0.0}, abs=1e-12)
    assert apart.log_bayes_factor("a", "b")[0] == pytest.approx(gap("a", "b") + 1e4, abs=EXACT)


def test_the_order_of_the_models_does_not_matter(two: Result) -> None:
    turned = run(pair()[::-1])
    assert turned.names == ["b", "a"]
    mean, sd = two.log_bayes_factor("a", "b")
    other, other_sd = turned.log_bayes_factor("a", "b")
    assert abs(mean - other) < 4 * np.hypot(sd, other_sd)


def test_a_duplicated_model_splits_its_probability(two: Result) -> None:
    twin = Model("twin", bell(*CENTRES["a"]), {"x": N()})
    three = run([*pair(), twin], budget=36)
    odds = np.exp(gap("a", "b"))
    expected = {"a": odds / (2 * odds + 1), "b": 1 / (2 * odds + 1), "twin": odds / (2 * odds + 1)}
    assert three.probabilities == pytest.approx(expected, abs=EXACT)


# ---------------------------------------------------------------------- likelihoods that misbehave


def broken(value: Any) -> Callable[[Array], Any]:
    """Model a's log-likelihood, but ``value`` above 0.9, which has a thirteenth of the posterior."""

    def log_likelihood(theta: Array) -> Any:
        if theta[0] < 0.9:
            return bell(*CENTRES["a"])(theta)
        if isinstance(value, Exception):
            raise value
        return value

    return log_likelihood


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (ZeroDivisionError("integrator gave up"), "ZeroDivisionError: integrator gave up"),
        (np.nan, "the log-likelihood is nan"),
        (np.inf, "the log-likelihood is inf"),
        (1 + 2j, "complex"),
        (np.zeros(3), "has shape (3,)"),
        (None, "None (does the function return its result?)"),
        ("-1.0", "the str '-1.0'"),
    ],
    ids=str,
)
def test_failures_are_recorded_and_the_run_goes_on(value: Any, reason: str) -> None:
    result = run([Model("broken", broken(value), {"x": N()}), gaussian("b")])
    assert result.status == "budget" and len(result.evaluations) == BUDGET
    failed = result.evaluations[result.evaluations["status"] == "failed"]
    assert 1 <= len(failed) <= 6  # the design's, and few more: the search goes around them
    assert all(reason in text for text in failed["reason"])
    assert (failed["x"] >= 0.9).all() and failed["log_likelihood"].isna().all()
    assert result.n_failures == {"broken": len(failed), "b": 0}
    # The surrogate goes on through where nothing came back, and a Gaussian is what it takes it for.
    assert result.log_evidence["broken"] == pytest.approx(log_evidence("a"), abs=0.05)


def fails(theta: Array) -> float:
    raise RuntimeError("never works")


def test_too_many_failures_end_the_run() -> None:
    result = run([Model("f", fails, {"x": N()})], budget=60)
    assert result.status == "failures" and "too many evaluations failed" in result.message
    assert result.n_failures == {"f": 21}  # more than twenty, and more than half
    assert result.log_evidence_sd["f"] >= 1000


def test_likelihood_zero_over_half_the_prior() -> None:
    for seed in (0, 1):
        result = run([Model("half", half, {"a": N(), "b": N()})], budget=100, rng=seed)
        error = result.log_evidence["half"] - half_log_evidence()
        assert abs(error) <= 0.05 and abs(error) <= 4 * result.log_evidence_sd["half"]
        assert not result.n_failures["half"]  # -inf is a fact
        assert (result.draws["half"][:, 0] < 0).mean() < 0.02  # the boundary is known, if not to the last bit


def zero(theta: Array) -> float:
    return -np.inf


@pytest.mark.parametrize("others", ["a", "ab"])
def test_likelihood_zero_everywhere_for_one_model(others: str) -> None:
    models = [Model("zero", zero, {"x": N()}), *map(gaussian, others)]
    result = run(models, budget=12 * len(models))
    share = sum(result.n_evaluations.values()) / len(models)
    assert result.n_evaluations["zero"] <= share + 1  # it was looked for in turn with the rest ...
    assert result.log_evidence_sd["zero"] >= 1000  # ... and all that is known is where it is not
    for name in others:
        assert result.n_evaluations[name] >= share - 2
        assert result.log_evidence[name] == pytest.approx(log_evidence(name), abs=EXACT)


# ---------------------------------------------------------------------- no free parameters


def test_a_null_model_costs_one_evaluation() -> None:
    result = run([gaussian("a"), null("null", -2.0)])
    assert result.n_evaluations == {"a": BUDGET - 1, "null": 1}
    assert result.log_evidence["null"] == -2.0 and result.log_evidence_sd["null"] == 0.0
    assert result.posterior("null", 10)["x"].eq(0.0).all()


def test_null_models_alone_are_settled_at_once() -> None:
    result = run([null("n", -2.0), null("m", -3.0)])
    assert result.status == "settled" and result.n_evaluations == {"n": 1, "m": 1}
    assert result.log_bayes_factor("n", "m") == (1.0, 0.0)


@pytest.mark.parametrize("method", ["default", "paper"])
def test_a_null_model_of_likelihood_zero_is_ruled_out(method: str) -> None:
    result = run([gaussian("a"), null("null", -np.inf)], method=method)
    assert result.n_evaluations == {"a": BUDGET - 1, "null": 1}
    assert result.log_evidence["null"] == -np.inf
    assert result.probabilities == {"a": 1.0, "null": 0.0}


def test_a_null_model_that_fails_does_not_eat_the_budget() -> None:
    result = run([gaussian("a"), null("null", np.nan)])
    assert result.status == "budget"
    assert result.n_evaluations == {"a": BUDGET - 3, "null": 3} and result.n_failures["null"] == 3
    assert result.log_evidence["a"] == pytest.approx(log_evidence("a"), abs=EXACT)
    assert result.log_evidence_sd["null"] >= 1000
    alone = run([null("null", np.nan)])
    assert alone.status == "failures" and alone.n_failures == {"null": 3}


# ---------------------------------------------------------------------- kinds of likelihoods and priors


def test_noisy_likelihoods() -> None:
    rng = np.random.default_rng(5)

    def noisy(theta: Array) -> tuple[float, float]:
        return bell(*CENTRES["a"])(theta) + 0.2 * rng.normal(), 0.2

    result = run([Model("noisy", noisy, {"x": N()}), gaussian("b")], budget=48)
    error = result.log_evidence["noisy"] - log_evidence("a")
    sd = result.log_evidence_sd["noisy"]
    assert abs(error) < 4 * sd and 0.2 / np.sqrt(48) < sd < 0.2  # no better than all of them at one point
    assert result.n_evaluations["noisy"] > 30  # the exact one needs few
    assert set(result.evaluations["standard_error"]) == {0.0, 0.2}


def test_vectorized_likelihoods_are_the_same(two: Result) -> None:
    shapes = set()

    def rows(theta: Array) -> Array:
        shapes.add(theta.shape)
        return N.logpdf(theta, *CENTRES["a"]).sum(1)

    result = run([Model("a", rows, {"x": N()}, vectorized=True), gaussian("b")])
    assert shapes == {(1, 1)}
    assert identical(result, two)


def test_a_unit_cube_transform_as_nested_samplers_have_it() -> None:
    def prior_transform(u: Array) -> Array:
        u[0] = N.ppf(u[0])  # dynesty's own examples write into their argument
        return u

    def loglike(theta: Array) -> float:
        value = bell(*CENTRES["a"])(theta)
        theta[:] = np.nan  # and so may this
        return value

    result = run([Model("a", loglike, Prior.from_transform(prior_transform, ["x"])), gaussian("b")])
    assert result.log_bayes_factor("a", "b")[0] == pytest.approx(gap("a", "b"), abs=EXACT)
    assert result.evaluations["x"].notna().all()


def test_a_joint_prior_known_by_density_and_draws() -> None:
    joint = stats.multivariate_normal([1.0, -1.0], [[1.0, 0.6], [0.6, 2.0]])
    prior = Prior.from_density(joint.logpdf, lambda n, rng: joint.rvs(n, random_state=rng), ["x", "y"])
    result = run([Model("joint", bell(0.4, 0.5), prior)], budget=40)
    truth = stats.multivariate_normal.logpdf([0.4, 0.4], joint.mean, joint.cov + 0.25 * np.eye(2))
    # The prior's normalisation and the nodes' reference are by draws: the quadrature's own error counts here.
    error = abs(result.log_evidence["joint"] - truth)
    assert error < 0.02 and error < 4 * result.log_evidence_sd["joint"]


def test_bounded_priors() -> None:
    prior = {"x": stats.uniform(0, 2), "s": stats.expon()}
    result = run([Model("box", lambda t: float(N.logpdf(1.2, t[0], 0.2 + t[1])), prior)], budget=40)
    density = lambda s, x: np.exp(N.logpdf(1.2, x, 0.2 + s) - s) / 2  # noqa: E731
    truth = np.log(integrate.dblquad(density, 0, 2, 0, 40)[0])
    error = abs(result.log_evidence["box"] - truth)
    assert error < 0.02 and error < 4 * result.log_evidence_sd["box"]


# ---------------------------------------------------------------------- budget, batches, stopping


@pytest.mark.parametrize(("budget", "batch"), [(6, 1), (13, 1), (21, 4), (8, 100)])
def test_the_budget_is_used_and_never_exceeded(budget: int, batch: int) -> None:
    calls = []

    def counted(theta: Array) -> float:
        calls.append(theta.copy())
        return bell(*CENTRES["a"])(theta)

    result = run(
        [Model("a", counted, {"x": N()}), Model("b", counted, {"x": N()})], budget=budget, batch=batch
    )
    assert len(calls) == budget == len(result.evaluations)
    np.testing.assert_array_equal(np.ravel(calls), result.evaluations["x"])
    assert result.status == "budget"


def test_too_small_a_budget_says_how_many_it_takes() -> None:
    with pytest.raises(BudgetError, match="budget=5 is too small: these 2 models need at least 6"):
        run(pair(), budget=5)
    for budget in (0, -1, 2.5, True, None, "many"):
        with pytest.raises(BudgetError, match="budget must be a whole number"):
            run(pair(), budget=budget)
    with pytest.raises(BudgetError, match="batch must be a whole number"):
        run(pair(), batch=0)


def test_a_stopping_rule_ends_the_run() -> None:
    seen = []

    def enough(session: Session) -> bool:
        seen.append(session.n_evaluations)
        return session.n_evaluations >= 14 and bool(session.belief().sd.max() < 0.1)

    result = run(pair(), stop=enough, budget=60)
    assert result.status == "stop" and "stopping rule" in result.message
    assert seen == list(range(1, len(result.evaluations) + 1)) and 14 <= seen[-1] < 20


def test_threads_and_batches() -> None:
    with ThreadPoolExecutor(4) as executor:
        results = [run(pair(), batch=4, executor=executor) for _ in range(2)]
    assert identical(*results)  # in the order asked, whoever finishes first
    assert identical(results[0], run(pair(), batch=4))
    assert results[0].log_bayes_factor("a", "b")[0] == pytest.approx(gap("a", "b"), abs=EXACT)


def test_a_pool_that_breaks_is_a_failure_of_the_evaluation() -> None:
    class Broken(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            return super().submit(fails, np.zeros(1))

    with Broken(1) as executor:
        result = run([gaussian("a")], budget=5, executor=executor)
    assert set(result.evaluations["reason"]) == {"RuntimeError: never works"}


@pytest.mark.parametrize("at", [1, 5, 16])
def test_an_interrupt_keeps_what_is_known(at: int) -> None:
    calls = []

    def interrupted(theta: Array) -> float:
        calls.append(1)
        if len(calls) == at:
            raise KeyboardInterrupt
        return bell(*CENTRES["a"])(theta)

    result = run([Model("a", interrupted, {"x": N()}), Model("b", interrupted, {"x": N()})])
    assert result.status == "interrupted" and "interrupted" in result.message
    assert len(result.evaluations) == at - 1
    assert result.log_evidence_sd["a"] >= 1000 or result.log_evidence["a"] == pytest.approx(
        log_evidence("a"), abs=4 * result.log_evidence_sd["a"] + EXACT
    )


# ---------------------------------------------------------------------- options


@pytest.mark.parametrize(
    "option", [{"initial": "4"}, {"initial": -1}, {"n_nodes": 1e4}, {"initial_extra": None}]
)
def test_numbers_of_a_method_are_numbers(option: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(option))):
        Method(**option)


def test_unknown_options_name_the_known_ones() -> None:
    with pytest.raises(OptionError, match="method='best' is not known; use one of default, paper"):
        run(pair(), method="best")
    with pytest.raises(OptionError, match="method must be a preset's name or a Method, not dict"):
        run(pair(), method={"kernel": "matern32"})
    with pytest.raises(OptionError, match="choose one of " + ", ".join(ACQUISITIONS)):
        Method(acquisition="entropy")
    with pytest.raises(OptionError, match="Method has no option 'kernal'; it has kernel, mean"):
        resolve_method("default", kernal="matern32")
    with pytest.raises(TypeError, match="kernal"):
        Method(kernal="matern32")  # type: ignore[call-arg]
    with pytest.raises(OptionError, match="executor must have a submit method"):
        run(pair(), executor=4)
    with pytest.raises(OptionError, match="ledger must be a file's path or a Ledger, not a int"):
        run(pair(), ledger=3)
    with pytest.raises(OptionError, match="failures must be a Failures"):
        run(pair(), failures=3)
    with pytest.raises(ModelError, match="two models are called 'a'"):
        run([gaussian("a"), gaussian("a")])


@pytest.mark.parametrize("acquisition", ACQUISITIONS)
def test_every_acquisition_finds_the_answer(acquisition: str) -> None:
    result = run(pair(), method=Method(acquisition=acquisition))
    assert result.log_bayes_factor("a", "b")[0] == pytest.approx(gap("a", "b"), abs=EXACT)
    assert f"acquisition='{acquisition}'" in result.method
