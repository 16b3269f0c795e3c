"""The contract of Result: what it says, what it stores, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from example_result import example_evaluations, example_result
from modelodds import odds
from modelodds.errors import ResultError
from modelodds.result import Result
from modelodds.verdict import odds_text


def test_contract() -> None:
    r = example_result(mean=(-10.0, -9.0, -12.0), sd=(0.1, 0.2, 0.3))
    assert r.names == ["Bath", "York", "Ely"]
    assert sum(r.probabilities.values()) == pytest.approx(1.0)
    assert r.best == "York"
    assert r.log_evidence == {"Bath": -10.0, "York": -9.0, "Ely": -12.0}
    assert list(r.log_evidence_sd.values()) == pytest.approx([0.1, 0.2, 0.3])
    assert r.log_bayes_factor("Bath", "Ely") == pytest.approx((2.0, np.hypot(0.1, 0.3)))
    assert sum(r.n_evaluations.values()) == 50
    z, cov = odds.moments([-10.0, -9.0, -12.0], [0.1, 0.2, 0.3], np.log(np.ones(3) / 3))
    np.testing.assert_allclose(list(r.probabilities.values()), z)
    np.testing.assert_allclose(list(r.probability_sd.values()), np.sqrt(np.diag(cov)))
    assert r.status == "budget" and r.seed == 7 and "York" in repr(r)


def test_prior_probabilities_are_normalised_and_enter_the_odds_alone() -> None:
    r = example_result(prior_probabilities=[3, 1])
    np.testing.assert_allclose(r.prior_probabilities, [0.75, 0.25])
    assert r.log_bayes_factor("Bath", "York")[0] == pytest.approx(2.0)
    assert r.log_odds("Bath", "York")[0] == pytest.approx(2.0 + np.log(3.0))
    assert "include the prior probabilities" in r.summary()


def test_table_is_best_first_and_against_the_best() -> None:
    table = example_result(mean=(-10.0, -9.0, -1e4, -2e3)).table()
    assert list(table.index) == ["York", "Bath", "Wells", "Ely"]  # those of probability zero by log-evidence
    assert list(table.columns) == [
        *("probability", "probability_sd", "log_evidence", "log_evidence_sd", "log10_evidence"),
        *("log_bayes_factor", "log_bayes_factor_sd", "log10_bayes_factor", "evaluations", "failures"),
    ]
    assert table.loc["York", "log_bayes_factor"] == table.loc["York", "log_bayes_factor_sd"] == 0.0
    assert table.loc["Bath", "log10_bayes_factor"] == pytest.approx(-1.0 / np.log(10.0))
    assert table["evaluations"].sum() == 50


def test_failures_are_counted() -> None:
    r = example_result(failures=3)
    assert sum(r.n_failures.values()) == 3 == r.table()["failures"].sum()
    assert "of which 3 failed" in r.summary()
    assert "failed" not in example_result().summary()


def test_summary_of_a_clear_case() -> None:
    text = example_result().summary()
    assert text.startswith("Bath is favoured 7.4 : 1 over York (95 % interval 5.6 to 9.7).")
    assert "50 evaluations (Bath 23, York 27)." in text
    assert text.endswith("The budget of 50 evaluations is spent.")


def test_summary_of_one_model_gives_the_evidence_only() -> None:
    text = example_result(mean=[-3.2]).summary()
    assert "log-evidence of Bath is -3.20 ± 0.10" in text
    assert "favoured" not in text and "probability" not in text


def test_summary_of_many_models_gives_the_share_of_the_best() -> None:
    text = example_result(mean=(-10.0, -12.0, -11.0)).summary()
    assert "Bath is favoured 2.7 : 1 over Ely" in text
    assert "Probabilities of the 3 models: Bath 66 %, Ely 25 %, York 9 %." in text


def test_summary_of_huge_odds() -> None:
    assert (
        "favoured 10^8.7 : 1 over York (95 % interval 10^8.6 to 10^8.8)"
        in example_result((-10.0, -30.0)).summary()
    )
    assert "10^4342.9 : 1" in example_result((0.0, -1e4)).summary()
    assert "beyond any odds over York" in example_result((0.0, -np.inf), n=0).summary()


def test_summary_shows_the_digits_that_matter() -> None:
    assert "7.389 : 1 over York (95 % interval 7.388 to 7.391)" in example_result(sd=(1e-4, 0.0)).summary()
    assert "7.39 : 1 over York.\n" in example_result(sd=0.0).summary()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (0.0456, "0.046"),
        (9.96, "10"),
        (99.6, "100"),
        (1234.0, "1200"),
        (2e4, "10^4.3"),
        (1e-6, "10^-6.0"),
    ],
)
def test_odds_text(value: float, text: str) -> None:
    assert odds_text(float(np.log(value))) == text


def test_posterior_resamples_the_draws_by_name() -> None:
    r = example_result()
    few, many = r.posterior("York", 100), r.posterior("York", 5000, rng=np.random.default_rng(3))
    assert list(few.columns) == ["slope", "noise"] and len(few) == 100 and len(many) == 5000
    assert few["slope"].is_unique and set(many["slope"]) <= set(r.draws["York"][:, 0])
    pd.testing.assert_frame_equal(few, r.posterior("York", 100))


def test_posterior_keeps_fixed_parameters_and_models_without_any() -> None:
    fixed = np.column_stack([np.linspace(0, 1, 10), np.full(10, 2.5)])
    draws = {"Bath": np.empty((10, 0)), "York": fixed}
    r = example_result(draws=draws, parameters={"Bath": (), "York": ("slope", "offset")})
    assert (r.posterior("York", 7)["offset"] == 2.5).all()
    assert r.posterior("Bath", 7).shape == (7, 0)


def test_average_weighs_models_by_their_probability() -> None:
    r = example_result()
    slope = r.average(lambda _, theta: theta[0])
    z = r.probabilities
    assert slope == pytest.approx(sum(z[name] * r.draws[name][:, 0].mean() for name in r.names))
    assert r.average(lambda name, _: float(name == "York"), draws=10) == pytest.approx(z["York"])
    assert r.average(lambda _, theta: np.outer(theta[:1], [1, 2])).shape == (1, 2)


def test_average_passes_over_hopeless_models_without_draws() -> None:
    draws = {"Bath": np.ones((4, 1))}
    assert example_result((0.0, -100.0), draws=draws).average(lambda _, theta: theta[0]) == pytest.approx(1.0)
    with pytest.raises(ResultError, match="No posterior draws were kept for 'York'"):
        example_result(draws=draws).average(lambda _, theta: theta[0])


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    r = example_result()
    for ask in (lambda: r.log_bayes_factor("Bath", "Bth"), lambda: r.posterior("Bth", 10)):
        with pytest.raises(ResultError, match="no model named 'Bth'; the models are 'Bath', 'York'"):
            ask()


@pytest.mark.parametrize(
    "changes",
    [
        {"prior_probabilities": [1.0, 0.0]},
        {"prior_probabilities": [1.0]},
        {"log_evidence_mean": [0.0, np.nan]},
        {"log_evidence_mean": [-np.inf, -np.inf]},
        {"log_evidence_cov": np.diag([1.0, -1.0])},
        {"log_evidence_cov": np.ones(2)},
    ],
)
def test_beliefs_that_are_none_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ResultError):
        example_result(**changes)


def assert_same(one: Result, other: Result) -> None:
    """Equal in every field, bit for bit."""
    assert one.__dict__.keys() == other.__dict__.keys()
    for name, value in one.__dict__.items():
        match value:
            case pd.DataFrame():
                pd.testing.assert_frame_equal(value, other.__dict__[name], check_exact=True)
            case np.ndarray():
                assert (value.tobytes(), value.dtype) == (
                    other.__dict__[name].tobytes(),
                    other.__dict__[name].dtype,
                )
            case dict():
                assert value.keys() == other.__dict__[name].keys()
                assert all(np.array_equal(v, other.__dict__[name][k]) for k, v in value.items())
            case _:
                assert value == other.__dict__[name] and type(value) is type(other.__dict__[name])


@pytest.mark.parametrize("n", [50, 0])
def test_json_gives_back_every_bit(tmp_path: Path, n: int) -> None:
    evaluations = example_evaluations(["Bath", "York"], n, failures=min(n, 2))
    evaluations.loc[evaluations["id"] == 5, "log_likelihood"] = -np.inf
    r = example_result((-1 / 3, -np.inf), n=n, evaluations=evaluations, seed=None, overhead_seconds=0.1 + 0.2)
    r.to_json(tmp_path / "r.json")
    back = Result.from_json(tmp_path / "r.json")
    assert_same(r, back)
    assert back.summary() == r.summary()
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


def test_json_is_strict(tmp_path: Path) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    example_result(failures=2).to_json(tmp_path / "r.json")
    document = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"), parse_constant=refuse)
    assert document["format_version"] == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not JSON"),
        ("[]", "does not hold a result"),
        ('{"format": "modelodds-result", "format_version": 99}', "format version 99"),
        ('{"format": "modelodds-result", "format_version": 1, "fields": {}}', "missing or unknown fields"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "r.json").write_text(text, encoding="utf-8")
    with pytest.raises(ResultError, match=says):
        Result.from_json(tmp_path / "r.json")


def test_a_missing_file_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Result.from_json(tmp_path / "none.json")
