"""From a script for another library to a table of probabilities: at most five lines, and the right answer."""

import difflib
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

EXAMPLES = Path(__file__).parents[1] / "examples"
MOST_CHANGED = 5

Array = NDArray[np.float64]


def changed(before: str, after: str) -> int:
    """Lines removed or lines added, whichever are more; empty ones and the title do not count."""
    old, new = ([line for line in text.splitlines()[1:] if line.strip()] for text in (before, after))
    diff = [line[0] for line in difflib.ndiff(old, new)]
    return max(diff.count("-"), diff.count("+"))


def test_counting() -> None:
    assert changed('"""T."""\na\nb\nc\n', '"""U."""\na\n\nb\nc\n') == 0
    assert changed('"""T."""\na\nb\nc\n', '"""U."""\nx\ny\nb\n') == 2


@pytest.mark.parametrize("library", ["pymc", "dynesty"])
def test_five_lines_are_enough(library: str) -> None:
    before, after = ((EXAMPLES / f"{library}_{when}.py").read_text() for when in ("before", "after"))
    assert "modelodds" not in before.split('"""', 2)[2] and "print(compare(" in after
    assert 0 < changed(before, after) <= MOST_CHANGED


@pytest.mark.parametrize("library", ["pymc", "dynesty"])
def test_the_guide_shows_these_lines(library: str) -> None:
    page = (EXAMPLES.parent / "docs/guides/coming.md").read_text(encoding="utf-8")
    shown = next(
        block for block in re.findall(r"```diff\n(.*?)```", page, re.DOTALL) if f"from_{library}" in block
    )
    before, after = (
        (EXAMPLES / f"{library}_{when}.py").read_text().splitlines() for when in ("before", "after")
    )
    for sign, these, others in (("-", before, after), ("+", after, before)):
        lines = [line[1:] for line in shown.splitlines() if line.startswith(sign)]
        assert lines == [line for line in these[1:] if line not in others]


def ran(name: str, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    """What a script defines, and what it prints."""
    found = runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return found, capsys.readouterr().out


def grid_log_evidence(log_likelihood: Callable[..., Array], *axes: Array) -> float:
    """Mean over a grid of points that are equally probable beforehand; the data come last."""
    values = log_likelihood(*(a[..., None] for a in np.meshgrid(*axes, indexing="ij")))
    return float(special.logsumexp(values) - np.log(values.size))


def told(text: str, model: str) -> float:
    """The probability that the printed table has for a model."""
    row = next(line for line in text.splitlines() if line.startswith(f"{model} ") and "±" in line)
    return float(row.split()[1])


def test_the_script_that_was_dynestys(capsys: pytest.CaptureFixture[str]) -> None:
    found, text = ran("dynesty_after.py", capsys)
    u, t = (np.arange(200) + 0.5) / 200, found["t"]

    def log_evidence(curve: Callable[[Array], Array]) -> float:
        return grid_log_evidence(
            lambda height, rate: stats.norm.logpdf(found["y"], height * curve(rate), 0.1).sum(-1),
            5 * u,
            10 ** (2 * u - 1),
        )

    log_odds = log_evidence(lambda rate: 1 / (1 + rate * t)) - log_evidence(lambda rate: np.exp(-rate * t))
    assert told(text, "hyperbolic") == pytest.approx(np.exp(log_odds), rel=0.2)
    assert told(text, "exponential") == 1.0


@pytest.mark.filterwarnings("default")  # PyMC's own
def test_the_script_that_was_pymcs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pymc", reason="PyMC is not installed", exc_type=ImportError)
    found, text = ran("pymc_after.py", capsys)
    axis = stats.norm(0, 2).ppf((np.arange(200) + 0.5) / 200)
    sign = 2 * found["failed"] - 1

    def log_likelihood(intercept: Array, slope: Array | float = 0.0) -> Array:
        return -np.logaddexp(0, -sign * (intercept + slope * found["temperature"])).sum(-1)

    chance, cold = (grid_log_evidence(log_likelihood, *[axis] * d) for d in (1, 2))
    assert told(text, "cold") == pytest.approx(special.expit(cold - chance), abs=0.01)
