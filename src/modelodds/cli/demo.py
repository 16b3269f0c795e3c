"""``modelodds demo``: the link function that suits the Spector data.

Spector and Mazzeo (1980) recorded whether 32 students of economics did well in a course (GRADE), and asked
whether a new way of teaching (PSI) had helped, given their marks (GPA) and a test of what they knew before
(TUCE). Logistic, probit and complementary log-log regression are all in use for such data. Which of them do
these data favour? The models are in `problems/links.py`.
"""

from pathlib import Path
from typing import Annotated

import typer

from modelodds.cli.ending import check_writable, finish, plain_errors, refuse

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
    out: Annotated[Path, typer.Option(help="Folder for the figure, the result and the report.")] = Path("."),
    method: Annotated[
        str, typer.Option(help="default, or paper: the method of Chai et al. (2019).")
    ] = "default",
) -> None:
    """Compare three regressions of real data, in less than a minute."""
    json, figure, page = (out / f"modelodds-demo.{end}" for end in ("json", "png", "html"))
    check_writable(json, page, figure=figure)
    with plain_errors():
        from modelodds.comparison import compare
        from modelodds.problems.links import spector_models

        try:
            models = spector_models()
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] != "statsmodels":
                raise
            refuse(NO_DATA)
        typer.echo(INTRODUCTION.format(budget=budget))
        result = compare(models, budget=budget, method=method, rng=seed)
    finish(result, json, figure, page)
