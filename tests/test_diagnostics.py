"""Diagnostics: their figures against closed forms and brute force, their words against made-up troubles."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from example_models import CENTRES, bell, gaussian
from example_result import example_result
from modelodds import Model, Prior, Result, compare
from modelodds.diagnostics import (
    calibration,
    coverage,
    evaluations_to_halve,
    surrogates_table,
    to_prior_odds,
    to_widths,
)
from modelodds.method import Method
from modelodds.stopping import Never
from modelodds.surrogate.leave_one_out import leave_one_out
from modelodds.surrogate.surrogate import Surrogate, _condition, _predict

N = stats.norm


@pytest.fixture(scope="module")
def result() -> Result:
    """Two Gaussian models, one of them with two parameters and a bounded prior."""
    models = [
        Model("a", bell(*CENTRES["a"]), {"x": N()}),
        Model("b", bell(0.2, 0.6), {"u": stats.uniform(-3, 6), "v": N()}),
    ]
    return compare(models, budget=40, stop=Never(), progress=False)


@pytest.mark.parametrize("mean", ["full_quadratic", "constant"])
def test_leaving_one_out_is_fitting_without_it(mean: str) -> None:
    rng = np.random.default_rng(0)
    surrogate = Surrogate(2, Method(mean=mean, squash="none"))
    for x in rng.normal(size=(14, 2)):
        surrogate.tell(x, float(-np.sum(np.abs(x) ** 3) + 0.1 * np.sin(5 * x[0])), 0.0)
    surrogate.update()
    found, data = leave_one_out(surrogate.gp), surrogate.gp.data
    assert len(found.mean) == 14
    for i in (0, 5, 13):
        without = data._replace(mask=np.where(np.arange(len(data.mask)) == i, 0.0, np.asarray(data.mask)))
        without = without._replace(y=np.asarray(data.y) * np.asarray(without.mask))
        gp = _condition(spec=surrogate.spec, hyper=surrogate.gp.hyper, data=without)
        mean_i, variance = _predict(spec=surrogate.spec, gp=gp, x=np.asarray(data.x)[i : i + 1])
        noise = float(data.noise[i]) + 1e-6  # the nugget that every observation is given
        np.testing.assert_allclose(found.mean[i], float(mean_i[0]), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found.sd[i], np.sqrt(float(variance[0]) + noise), rtol=1e-3)


def test_a_widened_prior_has_the_evidence_it_would_have(result: Result) -> None:
    rows = to_widths(result).set_index(["model", "factor"])
    y, width = CENTRES["a"]
    for factor in (0.5, 2.0):
        exact = N.logpdf(y, 0.0, np.hypot(factor, width))
        row = rows.loc[("a", factor)]
        assert abs(row["log_evidence"] - exact) < max(4 * row["log_evidence_sd"], 0.01)
    wide, narrow = rows.loc[("b", 2.0), "log_evidence"], rows.loc[("b", 0.5), "log_evidence"]
    exact = [
        np.log(np.diff(N.cdf([-3 * f, 3 * f], 0.2, 0.6))[0] / (6 * f)) + N.logpdf(0.2, 0.0, np.hypot(f, 0.6))
        for f in (2.0, 0.5)
    ]
    np.testing.assert_allclose([wide, narrow], exact, atol=0.02)


def test_widened_priors_are_priors() -> None:
    prior = Prior({"a": N(1, 3), "b": stats.uniform(0, 2), "c": 5.0}).widened(2.0)
    x, log_weight = prior.from_unit(np.random.default_rng(0).uniform(size=(4000, 2)))
    assert prior.names == ("a", "b", "c") and prior.dim == 2
    np.testing.assert_allclose(x.std(0), 2.0, rtol=0.05)
    np.testing.assert_array_equal(log_weight, 0.0)
    grid = np.linspace(-12, 12, 801)
    mesh = np.stack(np.meshgrid(grid, grid), -1)
    total = np.exp(prior.log_density(mesh)).sum() * (grid[1] - grid[0]) ** 2
    assert total == pytest.approx(1.0, abs=0.01)
    theta = Prior({"a": N(1, 3)}).widened(2.0)
    np.testing.assert_allclose(theta.log_density_theta([[4.0]]), N(1, 6).logpdf(4.0))


def test_prior_odds_enter_as_bayes_says() -> None:
    r = example_result(sd=0.0)
    found = to_prior_odds(r, "York", [1.0, np.exp(2.0)])
    np.testing.assert_allclose(found, [1 / (1 + np.exp(2.0)), 0.5])


def test_a_healthy_run_gives_no_warning(result: Result) -> None:
    table = surrogates_table(result)
    assert list(table.index) == ["a", "b"]
    assert (table["within_2_sd"] > 0.9).all() and (table["typical_error"] < 0.05).all()
    assert (table["unexplored"] < 0.01).all() and (table["effective_nodes"] > 400).all()
    assert not [remark for remark in result.checks() if remark.level == "warning"]
    assert np.isfinite(calibration(result.diagnostics["a"])).all()


def test_pictures_are_kept(result: Result) -> None:
    a, b = result.diagnostics["a"], result.diagnostics["b"]
    assert list(a["slices"]) == ["x"] and list(b["slices"]) == ["u", "v"]
    line = a["slices"]["x"]
    peak = line["value"][np.argmax(line["mean"])]
    assert abs(peak - CENTRES["a"][0]) < 0.1 and line["mean"].shape == line["score"].shape
    assert "map" not in a and b["map"]["mean"].shape == (25, 25)
    assert np.ptp(b["map"]["first"], axis=0).max() == 0 == np.ptp(b["map"]["second"], axis=1).max()


def kept(**changes: Any) -> dict[str, Any]:
    """A surrogate's record without any trouble."""
    rng = np.random.default_rng(0)
    observed = -rng.uniform(0, 4, 20)
    return {
        "observed": observed,
        "left_out_mean": observed + 0.1 * rng.uniform(-1, 1, 20),
        "left_out_sd": np.full(20, 0.1),
        "followed": 7.5,
        "record": np.ones(20),
        "inflation": 1.0,
        "kernel": "matern52",
        "squashed": False,
        "at_bounds": [],
        "nodes": 4096,
        "effective_nodes": 2000.0,
        "unexplored": 0.0,
        "width_factors": np.array([0.5, 2.0]),
        "width_mean": np.array([-10.0, -10.5]),
        "width_sd": np.array([0.1, 0.1]),
    } | changes


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"left_out_sd": np.full(20, 0.01)}, "Bath predicts its own points poorly"),
        ({"unexplored": 0.4}, "40 % of the evidence of Bath comes from where"),
        ({"effective_nodes": 20.0}, "Only 20 of 4096 quadrature nodes count for Bath"),
        ({"at_bounds": ["length-scale of x at its lower limit"]}, "rougher than it can follow"),
        ({"left_out_mean": np.full(20, -2.0), "left_out_sd": np.full(20, 2.0)}, "points coarsely"),
    ],
)
def test_troubles_are_warned_of(changes: dict[str, Any], says: str) -> None:
    assert not [r for r in example_result(diagnostics={"Bath": kept()}).checks() if r.level == "warning"]
    assert "warning" not in example_result(diagnostics={"Bath": kept()}).summary()
    troubled = example_result(diagnostics={"Bath": kept(**changes)})
    found = troubled.checks()
    assert [remark.model for remark in found if remark.level == "warning"] == ["Bath"]
    assert says in found[0].text and troubled.summary().endswith(
        "1 warning: see result.checks(), or the report."
    )


def test_what_smooth_surrogates_have_at_their_bounds_is_noted_only() -> None:
    bounds = ["length-scale of x at its upper limit", "amplitude at its upper limit"]
    found = example_result(diagnostics={"Bath": kept(at_bounds=bounds)}).checks()
    assert [remark.level for remark in found] == ["note", "note"]
    assert "A narrower prior" in found[0].text and "a quadratic says nearly all" in found[1].text


def test_hopeless_models_are_noted_only() -> None:
    r = example_result((-10.0, -50.0), diagnostics={"York": kept(unexplored=0.4)})
    assert [remark.level for remark in r.checks()] == ["note"]


def test_verdicts_that_hang_by_a_thread_are_remarked_on() -> None:
    assert "known only to ± 1.4 nats" in example_result(sd=1.0).checks()[0].text
    close = example_result((-10.0, -10.2))
    assert "The lead of Bath is small: whoever thought York 1.2 times as probable" in close.checks()[0].text
    turned = example_result((-10.0, -10.2), diagnostics={"Bath": kept()})
    assert any("twice as wide" in r.text and "York would be" in r.text for r in turned.checks())
    unknown = example_result((-10.0, -10.2), diagnostics={"Bath": kept(width_sd=np.full(2, 29.0))})
    assert not any("as wide" in r.text for r in unknown.checks())  # the surrogate does not reach there
    assert "of the evaluations of Bath failed" in example_result(failures=10).checks()[0].text


def test_where_nothing_gave_a_value_that_is_all_that_is_said() -> None:
    def needs_two(theta: Any, other: Any) -> float:
        return 0.0

    for others in ([], [gaussian("b")]):
        result = compare([Model("a", needs_two, {"x": N()}), *others], budget=30, progress=False)
        warned = [remark.text for remark in result.checks() if remark.model != "b"]
        assert len(warned) == 1 and warned[0].startswith("No evaluation of a gave a value (TypeError")
        assert "say nothing about" in result.summary()


def test_how_many_more_comes_from_how_it_went() -> None:
    r = example_result(n=200)
    for name in r.names:  # sd falls as one over the square root of the evaluations
        r.history[f"log_evidence_sd[{name}]"] = r.history["n_evaluations"] ** -0.5
    n = evaluations_to_halve(r, "Bath")
    assert n is not None and abs(n / r.n_evaluations["Bath"] - 3.0) < 0.4
    r.history["log_evidence_sd[Bath]"] = 0.1
    assert evaluations_to_halve(r, "Bath") is None


def test_coverage_counts_only_what_is_followed() -> None:
    far = kept(
        observed=np.array([0.0, -1.0, -100.0]), left_out_mean=np.zeros(3), left_out_sd=np.ones(3) * 0.6
    )
    assert coverage(far) == (2, 0.5, 1.0)


def test_json_keeps_it_all_and_older_files_are_read(tmp_path: Path, result: Result) -> None:
    path = tmp_path / "r.json"
    result.to_json(path)
    back = Result.from_json(path)
    assert back.settings == result.settings
    np.testing.assert_array_equal(
        back.diagnostics["b"]["map"]["mean"], result.diagnostics["b"]["map"]["mean"]
    )
    assert back.checks() == result.checks()
    document = json.loads(path.read_text(encoding="utf-8"))
    del document["fields"]["diagnostics"], document["fields"]["settings"]
    path.write_text(json.dumps(document), encoding="utf-8")
    assert Result.from_json(path).diagnostics == {}
    assert Result.from_json(path).probabilities == result.probabilities


def test_settings_say_what_was_run(result: Result) -> None:
    assert result.settings["priors"]["b"] == {"u": "uniform(-3, 6)", "v": "norm()"}
    assert {"modelodds", "Python", "numpy", "jax"} <= result.settings["versions"].keys()
    assert result.settings["method"]["kernel"] == "auto"
