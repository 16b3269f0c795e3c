"""The words of a verdict, case by case."""

import numpy as np
import pytest

from example_result import example_result
from modelodds.verdict import plus_minus, table_text, verdict


@pytest.mark.parametrize(
    ("mean", "sd", "says"),
    [
        ((0.0, -2.0), 0.1, "Bath is favoured 7.4 : 1 over York (95 % interval 5.6 to 9.7)."),
        (
            (0.0, -0.3),
            0.05,
            "Bath is favoured 1.3 : 1 over York (95 % interval 1.2 to 1.6): too small a lead",
        ),
        (
            (0.0, -0.1),
            0.1,
            "The data favour neither Bath nor York: the odds are 1.1 : 1 (95 % interval 0.84 to 1.5).",
        ),
        ((0.0, 0.0), 0.002, "The data favour neither Bath nor York: the odds are 1.0"),
        ((0.0, -0.02), 0.001, "The data favour neither Bath nor York"),
        (
            (0.0, -0.1),
            2.0,
            "do not tell Bath and York apart: the odds are 1.1 : 1 for Bath, but could well be anything",
        ),
        ((0.0, -0.1), 1000.0, "say nothing about the odds between Bath and York."),
    ],
)
def test_two_models(mean: tuple[float, float], sd: float, says: str) -> None:
    text = verdict(example_result(mean=mean, sd=sd))
    assert says in text
    assert ("favoured" in text) == ("is favoured" in says)
    assert ("More evaluations would narrow" in text) == ("do not tell" in says)


def test_an_even_match_with_unequal_priors_is_not_put_down_to_the_data_alone() -> None:
    text = verdict(example_result(mean=(0.0, -np.log(3.0)), prior_probabilities=[1, 3]))
    assert text.startswith("The data and the prior probabilities together favour neither Bath nor York")


def test_many_models_are_summed_up() -> None:
    text = verdict(example_result(mean=-np.arange(8.0)))
    assert "Bath 63 %, York 23 %, Ely 9 %, Wells 3 %, the other 4 together 2 %." in text
    assert "York under 0.5 %" in verdict(example_result(mean=(0.0, -9.0, -9.0)))


def test_the_reason_of_failures_is_given() -> None:
    assert "3 failed (ZeroDivisionError: division by zero)" in example_result(failures=3).summary()


def test_the_table_fits_a_terminal() -> None:
    lines = table_text(example_result(mean=(-1234.5, -1300.0, -1400.0))).splitlines()
    assert max(map(len, lines)) <= 80 and "failures" not in lines[0]


@pytest.mark.parametrize(
    ("mean", "sd", "says"),
    [
        (0.9554, 0.0221, "0.9554 ± 0.0221"),
        (0.99989, 8e-7, "0.9998900 ± 0.0000008"),
        (1.04e-4, 8e-7, "1.0e-04 ± 8.0e-07"),
    ],
)
def test_small_uncertainties_are_not_printed_as_none(mean: float, sd: float, says: str) -> None:
    assert plus_minus(mean, sd, 4) == says
