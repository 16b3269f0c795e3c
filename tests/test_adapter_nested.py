"""What dynesty, UltraNest, nautilus and bilby show in their own documentation, against exact answers."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from modelodds import Model, compare
from modelodds.adapters import from_bilby, from_dynesty, from_nautilus, from_ultranest
from modelodds.errors import ModelError, PriorError

Array = NDArray[np.float64]

# dynesty's first example: a correlated normal in three dimensions, in a box from -10 to 10.
C = np.identity(3)
C[C == 0] = 0.95
Cinv = np.linalg.inv(C)
lnorm = -0.5 * (np.log(2 * np.pi) * 3 + np.log(np.linalg.det(C)))


def loglike(x: Array) -> float:
    return float(-0.5 * np.dot(x, np.dot(Cinv, x)) + lnorm)


def ptform(u: Array) -> Array:
    return 10.0 * (2.0 * u - 1.0)


def evidence_of(model: Model, budget: int = 60) -> tuple[float, float]:
    result = compare([model], budget=budget, progress=False)
    return result.log_evidence[model.name], result.log_evidence_sd[model.name]


def test_dynestys_first_example() -> None:
    model = from_dynesty("normal", loglike, ptform, 3)
    assert model.parameters == ("x0", "x1", "x2")
    mean, sd = evidence_of(model)
    assert abs(mean + 3 * np.log(20.0)) < max(4 * sd, 0.01)


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


def test_nautilus_first_example() -> None:
    nautilus = pytest.importorskip("nautilus")
    prior = nautilus.Prior()
    prior.add_parameter("a", dist=(-5, +5))
    prior.add_parameter("b", dist=(-5, +5))
    prior.add_parameter("c", dist=stats.norm(loc=0, scale=2.0))
    prior.add_parameter("d", dist=1.5)
    prior.add_parameter("e", dist="a")

    def likelihood(param_dict: dict[str, float]) -> float:
        assert param_dict["d"] == 1.5 and param_dict["e"] == param_dict["a"]
        x = [param_dict[key] for key in "abc"]
        return float(
            stats.multivariate_normal.logpdf(x, mean=np.zeros(3), cov=[[1, 0, 0.9], [0, 1, 0], [0.9, 0, 1]])
        )

    model = from_nautilus("normal", prior, likelihood)
    assert model.parameters == ("a", "b", "c", "d") and model.dim == 3
    mean, sd = evidence_of(model, 50)
    exact = -np.log(100.0) + stats.norm.logpdf(0.0, 0.0, np.sqrt(5.0))
    assert abs(mean - exact) < max(4 * sd, 0.01)
    with pytest.raises(ModelError, match=r"takes a nautilus\.Prior"):
        from_nautilus("m", 3, likelihood)


@pytest.mark.filterwarnings("default")
def test_bilbys_linear_regression() -> None:
    bilby = pytest.importorskip("bilby", reason="bilby is not installed", exc_type=ImportError)
    time = np.linspace(0, 10, 100)
    data = 0.5 * time + 0.2 + np.random.default_rng(0).normal(0, 1, 100)

    def line(time: Array, m: float, c: float) -> Array:
        return time * m + c

    likelihood = bilby.likelihood.GaussianLikelihood(time, data, line, 1.0)
    priors = {
        "m": bilby.core.prior.Uniform(0, 5, "m"),
        "c": bilby.core.prior.Uniform(-2, 2, "c"),
    }
    model = from_bilby("line", likelihood, priors)
    mean, sd = evidence_of(model, 40)
    m, c = np.meshgrid(np.linspace(0, 5, 4001), np.linspace(-2, 2, 801))
    chi = sum((y - m * t - c) ** 2 for t, y in zip(time, data, strict=True))
    log_like = -0.5 * chi - 50 * np.log(2 * np.pi)
    exact = np.log(np.exp(log_like - log_like.max()).mean()) + log_like.max()
    assert abs(mean - exact) < max(4 * sd, 0.02)
    with pytest.raises(PriorError, match="is a Constraint"):
        from_bilby("m", likelihood, priors | {"m2": bilby.core.prior.Constraint(0, 1, "m2")})
