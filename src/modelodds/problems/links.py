"""Three link functions for the Spector data: logistic, probit and complementary log-log regression.

Spector and Mazzeo (1980) recorded whether 32 students of economics did well in a course (GRADE), and asked
whether a new way of teaching (PSI) had helped, given their marks (GPA) and a test of what they knew before
(TUCE). The data come with statsmodels, which is imported only when they are needed.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from modelodds.model import Model
from modelodds.prior import Prior
from modelodds.problems.base import Family, Problem
from modelodds.problems.truth import stored

Array = NDArray[np.float64]


def links() -> Problem:
    """The three regressions; their evidences are all but equal."""
    models = tuple(spector_models())
    return Problem("links", models, *stored("links", 0, models), "importance sampling")


def spector_models() -> list[Model]:
    """The three regressions, with priors that say the same about the chance of a good grade.

    A coefficient means something different under each link: where the chance is 1/2, one unit of the linear
    predictor moves it by 1/4 in logistic regression and by φ(0) = 0.40 in probit. With one prior for all, the
    odds would compare the priors' widths rather than the links. So the logistic regression gets normal(0,
    1.5) for every coefficient (a score one standard deviation up, or PSI, takes an even chance to somewhere
    between 5 % and 95 %), and the others the same divided by how much steeper their curve is where the chance
    is 1/2. The intercept is centred there too: at 0, for cloglog at log log 2.
    """
    x, y = spector_data()
    by_name = {  # name: (log-likelihood of the linear predictor, slope of the chance at 1/2, predictor there)
        "logistic": (logistic, 1 / 4, 0.0),
        "probit": (probit, 1 / np.sqrt(2 * np.pi), 0.0),
        "cloglog": (cloglog, np.log(2) / 2, np.log(np.log(2))),
    }

    def regression(name: str) -> Model:
        log_chance, slope, even = by_name[name]
        sd = 1.5 * (1 / 4) / slope
        prior = Prior(
            {"intercept": stats.norm(even, sd)} | {c: stats.norm(0, sd) for c in ("GPA", "TUCE", "PSI")}
        )
        return Model(name, _of_coefficients(log_chance, x, y), prior, vectorized=True)

    return [regression(name) for name in by_name]


def spector_data() -> tuple[Array, Array]:
    """Design matrix (32, 4): ones, GPA and TUCE standardised, PSI as 0 or 1; and GRADE (32,) as 0 or 1."""
    from statsmodels.datasets import spector

    data = spector.load_pandas().data
    scores = data[["GPA", "TUCE"]].to_numpy(dtype=float)
    scores = (scores - scores.mean(axis=0)) / scores.std(axis=0)
    return np.column_stack([np.ones(len(data)), scores, data["PSI"]]), data["GRADE"].to_numpy(dtype=float)


def _of_coefficients(
    log_chance: Callable[[Array, Array], Array], x: Array, y: Array
) -> Callable[[Array], Array]:
    def of_coefficients(theta: Array) -> Array:
        return np.asarray(log_chance(theta @ x.T, y).sum(axis=-1))

    return of_coefficients


def logistic(eta: Array, y: Array) -> Array:
    """Log of the chance of ``y``, 0 or 1; that of 1 is 1 / (1 + exp(−eta))."""
    return np.asarray(-np.logaddexp(0.0, (1 - 2 * y) * eta))


def probit(eta: Array, y: Array) -> Array:
    """Log of the chance of ``y``, 0 or 1; that of 1 is Φ(eta)."""
    return np.asarray(special.log_ndtr((2 * y - 1) * eta))


def cloglog(eta: Array, y: Array) -> Array:
    """Log of the chance of ``y``, 0 or 1; that of 1 is 1 − exp(−exp(eta))."""
    hazard = np.exp(eta)
    return np.where(y == 1, np.log(-np.expm1(-hazard)), -hazard)


FAMILY = Family(
    "links",
    "logistic, probit or complementary log-log regression of the Spector data (4 coefficients each)",
    lambda size, seed: links(),
    seeded=False,
    candidates=lambda size, seed: tuple(spector_models()),
)
