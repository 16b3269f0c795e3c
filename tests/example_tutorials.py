"""Models that other libraries' own documentation shows, written anew, in the form in which each takes them.

``benchmarks/adapters.py`` has every library compute their evidences by a long run of its own;
``tests/test_adapter_tutorials.py`` holds short runs of ours against what it found.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from example_schools import EFFECTS, ERRORS, SCHOOLS
from modelodds import Model, adapters

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Tutorial:
    """A page of a library's documentation, its models by name, and evaluations for ours.

    ``hard`` says why ours does not answer well in so few.
    """

    library: str
    page: str
    natives: Callable[[], dict[str, Any]]
    budget: int
    hard: str = ""

    def models(self) -> list[Model]:
        return [ADAPTERS[self.library](name, native) for name, native in self.natives().items()]


# How each library is handed a model, and which adapter takes it.
ADAPTERS: dict[str, Callable[[str, Any], Model]] = {
    "pymc": lambda name, model: adapters.from_pymc(model, name),
    "numpyro": lambda name, native: adapters.from_numpyro(native[0], name, **native[1]),
    "dynesty": lambda name, native: adapters.from_dynesty(name, *native),
    "ultranest": lambda name, native: adapters.from_ultranest(name, *native),
    "nautilus": lambda name, native: adapters.from_nautilus(name, *native),
    "bilby": lambda name, native: adapters.from_bilby(name, *native),
}


# PyMC


def pymc_coin() -> dict[str, Any]:
    """A hundred tosses, half of them heads, and two opinions of the coin."""
    import pymc as pm

    def coin(alpha: float, beta: float) -> Any:
        with pm.Model() as model:
            a = pm.Beta("a", alpha, beta)
            pm.Bernoulli("tosses", a, observed=np.repeat([1, 0], 50))
        return model

    return {"uniform": coin(1, 1), "fair": coin(30, 30)}


def pymc_regression() -> dict[str, Any]:
    """Two predictors, the second of which varies little; and the same without it."""
    import pymc as pm

    rng = np.random.default_rng(8927)
    first, second = rng.standard_normal(100), 0.2 * rng.standard_normal(100)
    y = 1.0 + first + 2.5 * second + rng.standard_normal(100)

    def regression(*predictors: Array) -> Any:
        with pm.Model() as model:
            alpha = pm.Normal("alpha", 0, 10)
            beta = pm.Normal("beta", 0, 10, shape=len(predictors))
            sigma = pm.HalfNormal("sigma", 1)
            mean = alpha + sum(beta[j] * x for j, x in enumerate(predictors))
            pm.Normal("y", mean, sigma, observed=y)
        return model

    return {"both": regression(first, second), "first": regression(first)}


def pymc_schools() -> dict[str, Any]:
    """Effects of coaching in eight schools: each its own, or one for all."""
    import pymc as pm

    with pm.Model(coords={"school": SCHOOLS}) as hierarchical:
        mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
        theta = pm.Normal("theta", mu, tau, dims="school")
        pm.Normal("effect", theta, ERRORS, observed=EFFECTS)
    with pm.Model() as pooled:
        pm.Normal("effect", pm.Normal("mu", 0, 5), ERRORS, observed=EFFECTS)
    return {"hierarchical": hierarchical, "pooled": pooled}


# NumPyro

# Divorce rate, marriage rate, median age at marriage in fifty states (WaffleDivorce, McElreath 2020).
DIVORCE = """
12.7 12.5 10.8 13.5 8.0 11.6 6.7 8.9 6.3 8.5 11.5 8.3 7.7 8.0 11.0 10.2 10.6 12.6 11.0 13.0 8.8 7.8 9.2 7.4
11.1 9.5 9.1 8.8 10.1 6.1 10.2 6.6 9.9 8.0 9.5 12.8 10.4 7.7 9.4 8.1 10.9 11.4 10.0 10.2 9.6 8.9 10.0 10.9
8.3 10.3
20.2 26.0 20.3 26.4 19.1 23.5 17.1 23.1 17.7 17.0 22.1 24.9 25.8 17.9 19.8 21.5 22.1 22.2 20.6 13.5 18.3
15.8 16.5 15.3 19.3 18.6 18.5 19.6 16.7 14.8 20.4 16.8 20.4 26.7 16.9 23.8 18.9 15.5 15.0 18.1 20.1 19.4
21.5 29.6 16.4 20.5 21.4 22.2 17.2 30.7
25.3 25.2 25.8 24.3 26.8 25.7 27.6 26.6 29.7 26.4 25.9 26.9 23.2 27.0 25.7 25.4 25.0 24.8 25.9 26.4 27.3
28.5 26.4 26.3 25.8 25.6 25.7 25.4 26.8 27.7 25.8 28.4 25.7 25.3 26.3 24.4 26.0 27.1 28.2 26.4 25.6 25.2
25.2 23.3 26.9 26.4 25.9 25.0 26.3 24.2
"""


def numpyro_divorce() -> dict[str, Any]:
    """Whether divorces go with how many marry, with how old they are, or with both."""
    import numpyro
    import numpyro.distributions as dist

    raw = np.array(DIVORCE.split(), dtype=float).reshape(3, 50)
    divorce, marriage, age = (raw - raw.mean(1, keepdims=True)) / raw.std(1, keepdims=True)

    def model(marriage: Array | None = None, age: Array | None = None, divorce: Array | None = None) -> None:
        mean = numpyro.sample("a", dist.Normal(0.0, 0.2))
        if marriage is not None:
            mean = mean + numpyro.sample("bM", dist.Normal(0.0, 0.5)) * marriage
        if age is not None:
            mean = mean + numpyro.sample("bA", dist.Normal(0.0, 0.5)) * age
        sigma = numpyro.sample("sigma", dist.Exponential(1.0))
        numpyro.sample("obs", dist.Normal(mean, sigma), obs=divorce)

    return {
        "marriage": (model, {"marriage": marriage, "divorce": divorce}),
        "age": (model, {"age": age, "divorce": divorce}),
        "both": (model, {"marriage": marriage, "age": age, "divorce": divorce}),
    }


# dynesty


def dynesty_normal() -> dict[str, Any]:
    """A normal distribution of strongly correlated coordinates in a wide box."""
    shape = stats.multivariate_normal(np.zeros(3), 0.05 * np.eye(3) + 0.95)
    return {"normal": (shape.logpdf, lambda u: 20.0 * u - 10.0, 3)}


def dynesty_line() -> dict[str, Any]:
    """A line through points whose errors are underestimated by a fraction; or are right as they are."""
    rng = np.random.default_rng(56101)
    x = np.sort(10 * rng.random(50))
    error = 0.1 + 0.5 * rng.random(50)
    truth = 4.294 - 0.9594 * x
    y = truth + np.abs(0.534 * truth) * rng.standard_normal(50) + error * rng.standard_normal(50)

    def scattered(theta: Array) -> float:
        m, b, log_f = theta
        line = m * x + b
        variance = error**2 + (line * np.exp(log_f)) ** 2
        return float(-0.5 * np.sum((y - line) ** 2 / variance + np.log(variance)))

    def exact(theta: Array) -> float:
        return scattered(np.append(theta, -np.inf))

    def transform(u: Array) -> Array:
        return np.array([5.5, 10.0, 11.0])[: len(u)] * u - np.array([5.0, 0.0, 10.0])[: len(u)]

    return {"scattered": (scattered, transform, ["m", "b", "ln f"]), "exact": (exact, transform, ["m", "b"])}


# UltraNest


def ultranest_sine() -> dict[str, Any]:
    """Fifty noisy values: a constant, or a sine of unknown amplitude, period and phase."""
    rng = np.random.default_rng(42)
    t = 5.0 * rng.random(50)

    def sine(b: float, a: float, period: float, phase: float) -> Array:
        return b + a * np.sin(2 * np.pi * (t / period + phase))

    y = sine(1.0, 0.9, 3.0, 0.0) + rng.standard_normal(50)

    def one(theta: Array) -> float:
        return float(-0.5 * np.sum((y - sine(*theta)) ** 2))

    def none(theta: Array) -> float:
        return float(-0.5 * np.sum((y - theta[0]) ** 2))

    def transform(u: Array) -> Array:
        return np.array([20 * u[0] - 10, 10 ** (3 * u[1] - 1), 10 ** (2 * u[2]), u[3]])

    return {"one": (["B", "A", "P", "phase"], one, transform), "none": (["B"], none, lambda u: 20 * u - 10)}


def ultranest_line() -> dict[str, Any]:
    """An emission line somewhere in a spectrum of a hundred noisy pixels; or none."""
    x = np.linspace(400.0, 800.0, 100)
    y = 20 * np.exp(-0.5 * ((x - 500) / 4.2) ** 2) + np.random.default_rng(1).standard_normal(100)

    def log_likelihood(theta: Array) -> float:
        location, amplitude, width = theta
        return float(-0.5 * np.sum((y - amplitude * np.exp(-0.5 * ((x - location) / width) ** 2)) ** 2))

    def transform(u: Array) -> Array:
        return np.array([400 + 400 * u[0], 10 ** (3 * u[1] - 1), 10 ** special.ndtri(u[2])])

    return {"line": (["location", "amplitude", "width"], log_likelihood, transform)}


# nautilus


def nautilus_normal() -> dict[str, Any]:
    """Three parameters, the first and the last of which are correlated."""
    import nautilus

    prior = nautilus.Prior()
    prior.add_parameter("a", dist=(-5, 5))
    prior.add_parameter("b", dist=(-5, 5))
    prior.add_parameter("c", dist=stats.norm(0, 2))
    shape = stats.multivariate_normal(np.zeros(3), [[1, 0, 0.9], [0, 1, 0], [0.9, 0, 1]])
    return {"normal": (prior, lambda values: shape.logpdf([values["a"], values["b"], values["c"]]))}


# bilby


def bilby_line() -> dict[str, Any]:
    """A line, drawn through a hundred points with errors of one, by bilby's own likelihood."""
    import bilby

    rng = np.random.default_rng(123)
    time = np.arange(0, 10, 0.1)
    sigma = rng.normal(1, 0.01, 100)
    data = 0.5 * time + 0.2 + rng.normal(0, sigma)
    likelihood = bilby.likelihood.GaussianLikelihood(time, data, lambda time, m, c: m * time + c, sigma)
    return {"line": (likelihood, {"m": bilby.prior.Uniform(0, 5), "c": bilby.prior.Uniform(-2, 2)})}


def bilby_polynomials() -> dict[str, Any]:
    """Polynomials of two to four positive coefficients through a noisy parabola."""
    import bilby

    time = np.linspace(0, 1, 100)
    data = np.polyval([1, 2, 3], time) + np.random.default_rng(123).standard_normal(100)

    class Polynomial(bilby.Likelihood):
        def log_likelihood(self, parameters: Any = None) -> float:
            curve = np.polyval([parameters[f"c{k}"] for k in range(len(parameters))], time)
            return float(stats.norm.logpdf(data, curve).sum())

    return {
        f"degree {n - 1}": (Polynomial(), {f"c{k}": bilby.prior.Uniform(0, 10) for k in range(n)})
        for n in range(2, 5)
    }


TUTORIALS: dict[str, Tutorial] = {
    "pymc-coin": Tutorial("pymc", "Bayes factors and marginal likelihood", pymc_coin, 40),
    "pymc-regression": Tutorial(
        "pymc",
        "Introductory overview: linear regression",
        pymc_regression,
        150,
        hard="the posterior is a tiny part of the prior, on a ridge along which the noise is unknown",
    ),
    "pymc-schools": Tutorial("pymc", "A primer on Bayesian methods: eight schools", pymc_schools, 150),
    "numpyro-divorce": Tutorial("numpyro", "Bayesian regression using NumPyro", numpyro_divorce, 120),
    "dynesty-normal": Tutorial("dynesty", "Crash course", dynesty_normal, 60),
    "dynesty-line": Tutorial("dynesty", "Examples: linear regression", dynesty_line, 200),
    "ultranest-sine": Tutorial(
        "ultranest", "Model comparison", ultranest_sine, 200, hard="a comb of periods and phases"
    ),
    "ultranest-line": Tutorial(
        "ultranest", "Basic usage", ultranest_line, 200, hard="a line as narrow as a pixel, anywhere"
    ),
    "nautilus-normal": Tutorial("nautilus", "Quickstart", nautilus_normal, 60),
    "bilby-line": Tutorial("bilby", "Linear regression", bilby_line, 40),
    "bilby-polynomials": Tutorial("bilby", "Occam factor", bilby_polynomials, 120),
}
