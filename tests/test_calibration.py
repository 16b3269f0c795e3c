"""The uncertainty we print, on a small scale: `modelodds leaderboard` has the large one."""

import numpy as np
import pytest
from scipy import special

from modelodds import compare
from modelodds.experiments.curves import Pair
from modelodds.problems import load

PROBLEMS = ("regression-2", "tails-2", "lumpy-2", "synthetic-1")
SEEDS = range(50, 53)
BUDGETS = (24, 40)


@pytest.fixture(scope="module")
def off() -> np.ndarray:
    """Errors of the log-odds in claimed standard deviations, early and late in runs on several problems."""
    found = []
    for name in PROBLEMS:
        for seed in SEEDS:
            problem = load(name, seed)
            pair = Pair.of(problem)
            for budget in BUDGETS:
                log_odds, sd = compare(problem.models, budget, rng=seed, progress=False).log_odds(
                    pair.first, pair.second
                )
                found.append(abs(log_odds - pair.log_odds) / np.hypot(sd, np.sqrt(2.0) * problem.error))
    return np.array(found)


def test_the_truth_is_inside_most_intervals(off: np.ndarray) -> None:
    assert (off <= special.ndtri(0.975)).mean() >= 0.85
    assert off.max() < 6.0


def test_intervals_are_not_wide_beyond_reason(off: np.ndarray) -> None:
    """Were claims ten times too large, the narrowest of intervals would hold nearly all the time."""
    assert (off <= special.ndtri(0.5 + 0.5 * 0.1)).mean() < 0.8
