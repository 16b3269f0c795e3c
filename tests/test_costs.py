"""Models that cost more than others are evaluated less."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from modelodds import Model, Session, compare
from modelodds.errors import ModelError, OptionError
from modelodds.method import PRESETS, Method
from modelodds.stopping import Never

BUDGET = 28


def log_likelihood(theta: np.ndarray) -> float:
    """Two bumps, which take some learning."""
    return float(np.logaddexp(*stats.norm.logpdf(theta[0], [-1.0, 1.2], 0.35)))


def models(cost: float, second: Callable[..., Any] = log_likelihood) -> list[Model]:
    """Two models that differ in their cost alone."""
    return [
        Model("cheap", log_likelihood, {"x": stats.norm()}),
        Model("dear", second, {"x": stats.norm()}, cost=cost),
    ]


def design(candidates: list[Model], method: Method) -> dict[str, int]:
    """Initial evaluations of each model."""
    session = Session(candidates, method)
    while session.in_design:
        (query,) = session.ask()
        session.tell(query, -1.0)
    return session.counts()


def spent(cost: float, **options: Any) -> dict[str, int]:
    result = compare(models(cost), BUDGET, Never(), method=Method(**options), progress=False)
    return result.n_evaluations


# ---------------------------------------------------------------------- what a cost may be


@pytest.mark.parametrize("cost", [0, -1.0, np.nan, np.inf, "much", None, True, [1.0]])
def test_a_cost_is_a_finite_number_above_zero(cost: Any) -> None:
    with pytest.raises(ModelError, match=r"the cost of model 'dear' must be a finite number above 0, not "):
        models(cost)


def test_costs_are_one_unless_given_and_kept_as_floats() -> None:
    cheap, dear = models(3)
    assert (cheap.cost, dear.cost) == (1.0, 3.0) and type(dear.cost) is float
    assert models(np.float32(2.5))[1].cost == 2.5  # type: ignore[arg-type]


def test_ways_to_count_costs_are_named() -> None:
    with pytest.raises(OptionError, match="choose one of given, measured, ignored"):
        Method(costs="free")


# ---------------------------------------------------------------------- the initial design


@pytest.mark.parametrize(
    ("cost", "points"), [(1.0, 8), (2.0, 6), (4.0, 4), (1e6, 3), (0.25, 8)]  # 2 d + 4 points, at least d + 1
)  # fmt: skip
def test_the_design_of_a_dear_model_is_smaller_by_the_root_of_its_cost(cost: float, points: int) -> None:
    prior = {"x": stats.norm(), "y": stats.norm()}
    candidates = [replace(m, prior=prior) for m in models(cost)]  # type: ignore[arg-type]
    found = design(candidates, Method())
    assert found["dear"] == points
    assert found["cheap"] == (4 if cost < 1 else 8)  # the cheapest sets the standard
    for costs in ("ignored", "measured"):
        assert design(candidates, Method(costs=costs)) == {"cheap": 8, "dear": 8}


# ---------------------------------------------------------------------- the run


def test_a_dear_model_is_evaluated_less() -> None:
    given, ignored = spent(100.0), spent(100.0, costs="ignored")
    assert sum(given.values()) == sum(ignored.values()) == BUDGET
    assert 3 <= given["dear"] < ignored["dear"] - 2
    assert ignored == spent(1.0)  # the same run as of equal costs


def test_only_ratios_of_costs_count() -> None:
    pair = models(8.0)
    scaled = [replace(m, cost=1000.0 * m.cost) for m in pair]
    runs = [compare(m, 16, Never(), progress=False).evaluations for m in (pair, scaled)]
    assert runs[0]["x"].tolist() == runs[1]["x"].tolist()


def told(seconds: dict[str, float], costs: str, given: float = 1.0) -> dict[str, int]:
    """Evaluations of a session that was told how long each took."""
    session = Session(models(given), Method(costs=costs, climb=False))
    for _ in range(BUDGET):
        (query,) = session.ask()
        session.tell(query, log_likelihood(query.theta), seconds=seconds[query.model])
    return session.counts()


def test_measured_costs_are_the_seconds_told() -> None:
    slow = told({"cheap": 0.01, "dear": 10.0}, "measured")
    even = told({"cheap": 1.0, "dear": 1.0}, "measured")
    assert slow["dear"] < even["dear"] - 1
    assert told({"cheap": 0.01, "dear": 10.0}, "measured", given=1e-3) == slow  # what was given is not asked
    assert told({"cheap": 0.01, "dear": 10.0}, "given") == even  # and the other way round


def test_seconds_that_were_never_told_count_as_the_others() -> None:
    unknown = told({"cheap": np.nan, "dear": np.nan}, "measured")
    assert unknown == told({"cheap": 1.0, "dear": 1.0}, "measured")
    assert unknown == told({"cheap": np.nan, "dear": 5.0}, "measured")


def test_the_papers_method_ignores_costs() -> None:
    assert PRESETS["paper"].costs == "ignored"
    assert design(models(1e4), PRESETS["paper"]) == {"cheap": 5, "dear": 5}
