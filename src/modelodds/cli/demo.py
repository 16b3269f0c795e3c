"""``modelodds demo``: the link function that suits the Spector data.

Spector and Mazzeo (1980) recorded whether 32 students of economics did well in a course (GRADE), and asked
whether a new way of teaching (PSI) had helped, given their marks (GPA) and a test of what they knew before
(TUCE). Logistic, probit and complementary log-log regression are all in use for such data. Which of them do
these data favour?
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modelodds.cli.ending import check_writable, finish, plain_errors, refuse

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from modelodds.model import Model

    Array = NDArray[np.float64]

BUDGET = 150
INTRODUCTION = """\
32 students of economics: did a new way of teaching (PSI) help them to a good
grade, given their marks (GPA) and what they knew before (TUCE)? Logistic,
probit and complementary log-log (cloglog) regression can all say, with 4
coefficients each. Which of the three do the data favour? {budget} evaluations.
Data: Spector and Mazzeo (1980), as statsmodels has them.
"""
NO_DATA = "the demo's data come with statsmodels, which is not installed: pip install 'modelodds[demo]'"


def demo(
    budget: Annotated[int, typer.Option(help="Most evaluations to make, of all models together.")] = BUDGET,
    seed: Annotated[int, typer.Option(help="Same seed, same run.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the figure and the result.")] = Path("."),
    method: Annotated[
        str, typer.Option(help="default, or paper: Chai et al. (2019) to the letter.")
    ] = "default",
) -> None:
    """Compare three regressions of real data, in less than a minute."""
    json, figure = out / "modelodds-demo.json", out / "modelodds-demo.png"
    check_writable(json, figure)
    with plain_errors():
        from modelodds.comparison import compare

        try:
            models = spector_models()
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] != "statsmodels":
                raise
            refuse(NO_DATA)
        typer.echo(INTRODUCTION.format(budget=budget))
        result = compare(models, budget=budget, method=method, rng=seed)
    finish(result, json, figure)


def spector_models() -> list[Model]:
    """The three regressions, with priors that say the same about the chance of a good grade.

    A coefficient means something different under each link: where the chance is 1/2, one unit of the linear
    predictor moves it by 1/4 in logistic regression and by φ(0) = 0.40 in probit. With one prior for all, the
    odds would compare the priors' widths rather than the links. So the logistic regression gets normal(0,
    1.5) for every coefficient (a score one standard deviation up, or PSI, takes an even chance to somewhere
    between 5 % and 95 %), and the others the same divided by how much steeper their curve is where the chance
    is 1/2. The intercept is centred there too: at 0, for cloglog at log log 2.
    """
    import numpy as np
    from scipy import stats

    from modelodds.model import Model
    from modelodds.prior import Prior

    x, y = spector_data()
    links = {  # name: (log-likelihood of the linear predictor, slope of the chance at 1/2, predictor there)
        "logistic": (_logistic, 1 / 4, 0.0),
        "probit": (_probit, 1 / np.sqrt(2 * np.pi), 0.0),
        "cloglog": (_cloglog, np.log(2) / 2, np.log(np.log(2))),
    }

    def regression(name: str) -> Model:
        log_likelihood, slope, even = links[name]
        sd = 1.5 * (1 / 4) / slope
        prior = Prior(
            {"intercept": stats.norm(even, sd)} | {c: stats.norm(0, sd) for c in ("GPA", "TUCE", "PSI")}
        )
        return Model(name, _of_coefficients(log_likelihood, x, y), prior)

    return [regression(name) for name in links]


def spector_data() -> tuple[Array, Array]:
    """Design matrix (32, 4): ones, GPA and TUCE standardised, PSI as 0 or 1; and GRADE (32,) as 0 or 1."""
    import numpy as np
    from statsmodels.datasets import spector

    data = spector.load_pandas().data
    scores = data[["GPA", "TUCE"]].to_numpy(dtype=float)
    scores = (scores - scores.mean(axis=0)) / scores.std(axis=0)
    return np.column_stack([np.ones(len(data)), scores, data["PSI"]]), data["GRADE"].to_numpy(dtype=float)


def _of_coefficients(
    log_likelihood: Callable[[Array, Array], Array], x: Array, y: Array
) -> Callable[[Array], float]:
    def of_coefficients(theta: Array) -> float:
        return float(log_likelihood(x @ theta, y).sum())

    return of_coefficients


def _logistic(eta: Array, y: Array) -> Array:
    import numpy as np

    return -np.logaddexp(0.0, (1 - 2 * y) * eta)


def _probit(eta: Array, y: Array) -> Array:
    from scipy.special import log_ndtr

    log_chance: Array = log_ndtr((2 * y - 1) * eta)
    return log_chance


def _cloglog(eta: Array, y: Array) -> Array:
    """Chance of 1: 1 − exp(−exp(eta))."""
    import numpy as np

    hazard = np.exp(eta)
    return np.where(y == 1, np.log(-np.expm1(-hazard)), -hazard)
