"""The uncertainty we print, on a small scale: `modelodds leaderboard` has the large one."""

import numpy as np
import pytest
from scipy import special, stats

from modelodds import Model, compare
from modelodds.experiments.curves import Pair
from modelodds.learner import DOUBT, MOVED, SLACK, Learner
from modelodds.method import Method
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


def learnt(n_nodes: int = 4096, n: int = 12) -> Learner:
    """A learner of a skewed peak in two dimensions, brought up to date."""
    model = Model(
        "skewed", lambda t: float(-np.exp(t[0]) - 3.0 * t[1] ** 2), dict.fromkeys("ab", stats.norm())
    )
    made = Learner(model, Method(n_nodes=n_nodes), np.random.default_rng(3))
    for i, x in enumerate(np.random.default_rng(4).standard_normal((n, 2))):
        made.ask(i, x)
        made.tell(i, float(model.log_likelihood(x)), 0.0)
    made.update(n)
    return made


def test_few_nodes_know_their_own_error() -> None:
    """What a claim has of the nodes is the scatter of the evidence over other sets of so many nodes."""
    few, many = learnt(64), learnt(8192)
    (_, error), (_, least) = few.followers.quadrature(), many.followers.quadrature()
    assert error > 10 * least > 0.0
    assert few.evidence.variance >= few.evidence.fixed >= 0.999 * error
    scatter = []
    for seed in range(40):
        scatter.append(few.evidence_at(few.seen.nodes.like(np.random.default_rng(seed))).mean)
    assert 0.2 < 2.0 * np.sqrt(error) / np.std(scatter) < 5.0  # of four sets together


def test_an_estimate_that_moves_is_not_believed_at_once() -> None:
    made = learnt()
    settled = made.evidence
    made._track = {11: settled.mean - 3.0}
    made.update(12)
    assert made.evidence.variance == pytest.approx(MOVED * 4.5 + settled.fixed)  # 3 nats, in one of two
    open_to = settled.variance - settled.fixed
    assert made.evidence.variance - made.evidence.fixed == pytest.approx(open_to)  # it draws no evaluations
    made.update(100)  # long ago by now
    assert made.evidence == pytest.approx(settled)


def test_what_is_hoped_for_beyond_the_estimate_is_a_doubt() -> None:
    made = learnt()
    before, seen = made.evidence, made.seen
    more = float(special.logsumexp(seen.log_mass) - special.logsumexp(seen.log_estimate))
    assert more < SLACK  # well explored: no doubt at first
    made.followers.seen = seen._replace(log_mass=seen.log_mass + SLACK - more + 1.5)
    made.update(12)
    assert made.evidence.variance == pytest.approx(before.variance + (1.5 * DOUBT) ** 2)
    assert made.evidence.mean == before.mean
    open_to = before.variance - before.fixed
    assert made.evidence.variance - made.evidence.fixed == pytest.approx(open_to)  # it draws no evaluations
