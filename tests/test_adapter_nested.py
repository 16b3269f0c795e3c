"""Arguments as dynesty, UltraNest, nautilus and bilby take them."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from modelodds import Model, compare
from modelodds.adapters import from_bilby, from_dynesty, from_nautilus, from_ultranest
from modelodds.errors import ModelError, PriorError

Array = NDArray[np.float64]


def evidence_of(model: Model, budget: int = 60) -> tuple[float, float]:
    result = compare([model], budget=budget, progress=False)
    return result.log_evidence[model.name], result.log_evidence_sd[model.name]


def test_dynestys_parameters_may_be_counted_or_named() -> None:
    def transform(u: Array) -> Array:
        return 20.0 * u - 10.0

    assert from_dynesty("m", np.sum, transform, 3).parameters == ("x0", "x1", "x2")
    named = from_dynesty("m", np.sum, transform, ["a", "b"])
    assert named.parameters == ("a", "b") and named.log_likelihood(np.array([1.0, 2.0])) == 3.0


def test_dynestys_extra_arguments() -> None:
    def scaled(x: Array, width: float, shift: float = 0.0) -> float:
        return float(stats.norm.logpdf(x[0], shift, width))

    def transform(u: Array, low: float, high: float = 1.0) -> Array:
        return low + (high - low) * u

    model = from_dynesty(
        "m", scaled, transform, ["x"], logl_args=(0.5,), logl_kwargs={"shift": 1.0},
        ptform_args=(-5.0,), ptform_kwargs={"high": 5.0}, prior_probability=2.0,
    )  # fmt: skip
    assert model.prior_probability == 2.0 and model.parameters == ("x",)
    mean, sd = evidence_of(model, 20)
    assert abs(mean + np.log(10.0)) < max(4 * sd, 0.01)


@pytest.mark.parametrize("vectorized", [False, True])
def test_ultranest_either_way(vectorized: bool) -> None:
    def log_likelihood(theta: Array) -> Any:
        return -0.5 * (((theta - 0.5) / 0.1) ** 2).sum(axis=-1)

    def transform(cube: Array) -> Array:
        return cube * 2.0 - 1.0

    model = from_ultranest("box", ["a", "b"], log_likelihood, transform, vectorized=vectorized)
    mean, sd = evidence_of(model, 30)
    exact = np.log(2 * np.pi * 0.01 / 4)
    assert model.vectorized is vectorized and abs(mean - exact) < max(4 * sd, 0.01)


def test_nautilus_fixed_and_tied_parameters() -> None:
    nautilus = pytest.importorskip("nautilus")
    prior = nautilus.Prior()
    prior.add_parameter("a", dist=(-5, +5))
    prior.add_parameter("b", dist=stats.norm(loc=0, scale=2.0))
    prior.add_parameter("c", dist=1.5)
    prior.add_parameter("d", dist="a")
    seen: list[dict[str, float]] = []

    def likelihood(values: dict[str, float]) -> float:
        seen.append(dict(values))
        return 0.0

    model = from_nautilus("m", prior, likelihood)
    assert model.parameters == ("a", "b", "c") and model.dim == 2
    model.log_likelihood(np.array([0.5, 2.0, 1.5]))
    assert seen == [{"a": 0.5, "b": 2.0, "c": 1.5, "d": 0.5}]
    with pytest.raises(ModelError, match=r"takes a nautilus\.Prior"):
        from_nautilus("m", 3, likelihood)


@pytest.mark.filterwarnings("default")
def test_bilbys_likelihoods_of_either_kind() -> None:
    bilby = pytest.importorskip("bilby", reason="bilby is not installed", exc_type=ImportError)
    priors = {"m": bilby.core.prior.Uniform(0, 5, "m"), "c": 0.5}
    time, data = np.arange(3.0), np.array([0.4, 1.4, 2.7])

    class Old(bilby.Likelihood):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__(parameters={"m": None, "c": None})

        def log_likelihood(self) -> float:
            line = self.parameters["m"] * time + self.parameters["c"]
            return float(stats.norm.logpdf(data, line).sum())

    new = bilby.likelihood.GaussianLikelihood(time, data, lambda time, m, c: m * time + c, 1.0)
    for likelihood in (Old(), new):
        model = from_bilby("line", likelihood, priors)
        assert model.parameters == ("m",)
        expected = stats.norm.logpdf(data, 1.1 * time + 0.5).sum()
        assert model.log_likelihood(np.array([1.1])) == pytest.approx(expected)
        assert model.prior.to_theta(np.zeros((1, 1)))[0, 0] == pytest.approx(2.5)
    with pytest.raises(PriorError, match="is a Constraint"):
        from_bilby("m", new, priors | {"m2": bilby.core.prior.Constraint(0, 1, "m2")})
