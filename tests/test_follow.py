"""Nodes that follow the mass: they neither lose what is known nor what may be."""

import numpy as np
import pytest
from scipy import special, stats

from modelodds import Model
from modelodds.follow import Followers, Seen
from modelodds.learner import Learner
from modelodds.method import Method
from modelodds.nodes import Mixture, effective_size

WIDTH = 0.03
CENTRE = np.array([0.7, -0.4])


def needle(theta: np.ndarray) -> float:
    """A narrow peak in a prior that is hundreds of nats below it, up and down."""
    away = ((theta - CENTRE) ** 2).sum()
    return float(np.logaddexp(-0.5 * away / WIDTH**2, -400.0 + 150.0 * np.sin(3.0 * theta).sum()))


@pytest.fixture(scope="module")
def learner() -> Learner:
    """One that has seen the needle well, and little of the rest."""
    rng = np.random.default_rng(0)
    near = CENTRE + WIDTH * rng.standard_normal((14, 2))
    made = Learner(Model("needle", needle, dict.fromkeys("ab", stats.norm())), Method(), rng)
    for i, x in enumerate(np.vstack([rng.standard_normal((16, 2)), near])):
        made.ask(i, x)
        made.tell(i, needle(x), 0.0)
        made.update(i + 1)
    return made


def test_a_known_peak_has_its_nodes_while_the_rest_is_unknown(learner: Learner) -> None:
    nodes = learner.seen.nodes.x
    near = (np.abs(nodes - CENTRE) < 4.0 * WIDTH).all(1).mean()
    assert near > 0.2
    assert effective_size(learner.seen.log_estimate) > 0.05 * len(nodes)


def test_the_evidence_of_a_known_peak_is_known(learner: Learner) -> None:
    truth = 2.0 * np.log(WIDTH) + np.log(2.0 * np.pi) + stats.norm.logpdf(CENTRE).sum()
    assert learner.evidence.mean == pytest.approx(truth, abs=0.3)


def seen(learner: Learner, log_mass: np.ndarray, log_estimate: np.ndarray) -> Seen:
    return learner.seen._replace(log_mass=log_mass, log_estimate=log_estimate)


def test_nodes_that_have_lost_the_peak_are_refused(learner: Learner) -> None:
    followers: Followers = learner.followers
    kept, n = followers.seen, len(followers.seen.log_mass)
    even = np.full(n, -np.log(n))
    try:
        followers._take_if_better(seen(learner, even, even + special.logsumexp(kept.log_estimate) - 30.0))
        assert followers.seen is kept  # all of them count, but for an evidence 30 nats lower
        better = seen(learner, even, even + special.logsumexp(kept.log_estimate))
        followers._take_if_better(better)
        assert followers.seen is better
    finally:
        followers.seen = kept


def test_what_few_nodes_say_is_no_reason_to_keep_them(learner: Learner) -> None:
    followers, kept = learner.followers, learner.followers.seen
    n = len(kept.log_mass)
    one, even = np.where(np.arange(n) < 2, 0.0, -np.inf), np.full(n, -np.log(n))
    try:
        followers.seen = seen(learner, one, one)
        better = seen(learner, even, even - 1.5)
        followers._take_if_better(better)
        assert followers.seen is better
    finally:
        followers.seen = kept


def test_a_mixture_of_mixtures_has_their_mean_density() -> None:
    rng = np.random.default_rng(1)
    parts = [
        Mixture(np.array([0.3, 0.7]), rng.standard_normal((2, 2)), np.stack([s * np.eye(2)] * 2))
        for s in (0.5, 2.0)
    ]
    x = rng.standard_normal((50, 2))
    mean = np.mean([np.exp(part.log_density(x)) for part in parts], axis=0)
    assert np.exp(Mixture.of(parts).log_density(x)) == pytest.approx(mean)


def test_copies_of_nodes_are_averaged_as_integrals(learner: Learner, monkeypatch: pytest.MonkeyPatch) -> None:
    """One set that has missed the mass makes the integral a quarter smaller, not its log hundreds."""
    followers = learner.followers
    values = iter([0.0, 0.0, 0.0, -300.0])
    monkeypatch.setattr(followers, "_log_integral", lambda nodes, mean, variance: next(values))
    monkeypatch.setattr(followers, "_copied", None)
    assert followers.quadrature()[0] == pytest.approx(np.log(0.75))


def test_nodes_of_the_prior_do_not_move() -> None:
    rng = np.random.default_rng(2)
    model = Model("needle", needle, dict.fromkeys("ab", stats.norm()))
    made = Learner(model, Method(nodes="prior"), rng)
    for i, x in enumerate(rng.standard_normal((8, 2))):
        made.ask(i, x)
        made.tell(i, needle(x), 0.0)
    made.update(8)
    assert made.seen.nodes.mixture is None


@pytest.mark.parametrize("exchangeable", [False, True])
def test_nodes_are_sent_to_a_peak_that_none_has_met(exchangeable: bool) -> None:
    """So narrow that the prior has one node in a million there; the climb has found it, in either order."""
    width, centre = 0.002, np.array([0.7, -0.4])

    def peak(theta: np.ndarray) -> float:
        hills = [-0.5 * ((theta - c) ** 2).sum() / width**2 for c in (centre, centre[::-1])]
        return float(special.logsumexp([*(hills if exchangeable else hills[:1]), -60.0 - (theta**2).sum()]))

    groups = [("a",), ("b",)] if exchangeable else []
    model = Model("peak", peak, dict.fromkeys("ab", stats.norm()), exchangeable=groups)
    rng = np.random.default_rng(1)
    made = Learner(model, Method(), rng)
    near = centre + width * rng.standard_normal((14, 2))
    for i, x in enumerate(np.vstack([rng.standard_normal((12, 2)), near])):
        made.ask(i, x)
        made.tell(i, peak(x), 0.0)
        if i in (11, 25):
            made.update(i + 1)
    truth = np.log(2.0 * np.pi * width**2) + stats.norm.logpdf(centre).sum() + exchangeable * np.log(2.0)
    nodes = made.seen.nodes
    on_nodes = special.logsumexp(nodes.log_weight + np.array([peak(x) for x in nodes.x]))
    assert on_nodes == pytest.approx(truth, abs=0.05)  # whatever the surrogate thinks in between
    assert abs(made.evidence.mean - truth) < 0.1 + 4.0 * np.sqrt(made.evidence.variance)
