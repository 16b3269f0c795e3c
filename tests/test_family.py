"""Models that differ in how many exchangeable parts they have, looked at as one."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from modelodds import Model, Session
from modelodds.family import Family
from modelodds.hints import Side
from modelodds.precision import jit64
from modelodds.surrogate.exchange import FAR
from modelodds.surrogate.fit import hyper_prior, unflatten
from modelodds.surrogate.gp import Spec, prior_covariance
from modelodds.surrogate.means import basis

Array = NDArray[np.float64]
N = stats.norm


def bump(a: Array) -> Array:
    """What a part adds: nothing but loss, save around 1 and -1.5."""
    return np.asarray(-4.0 + 12.0 * np.exp(-20.0 * (a - 1.0) ** 2) + 9.0 * np.exp(-20.0 * (a + 1.5) ** 2))


def parts(k: int, name: str = "a") -> Model:
    names = [f"{name}{i}" for i in range(1, k + 1)]
    return Model(
        f"{k} of {name}",
        lambda theta: float(bump(theta).sum()),
        dict.fromkeys(names, N()),
        exchangeable=[(n,) for n in names] if k > 1 else (),
    )


def told(*models: Model) -> list[Side]:
    """Models of one part know it well, others little."""
    made = Session(list(models))
    rng = np.random.default_rng(0)
    for model in models:
        xs = np.linspace(-2.5, 2.5, 26)[:, None] if model.dim == 1 else rng.normal(size=(8, model.dim))
        for x in xs:
            made.add(model.name, x, float(bump(x).sum()))
    made.belief()
    return [learner.side for learner in made._learners]


def test_what_one_part_knows_two_know() -> None:
    one, two = told(parts(1), parts(2))
    alone, family = two.surrogate, Family(two, [one])
    x = np.array([[1.0, -1.5], [1.0, 1.0], [-1.5, 0.0], [2.0, -2.0]])
    truth = bump(x).sum(1) - alone.observations.best
    (mean, variance), (own, own_variance) = family.predict(x), alone.straight(x)
    assert bool(family)
    assert np.abs(mean - truth).max() < 0.25 * np.abs(own - truth).max()
    assert (variance < own_variance).all()
    assert np.argmax(mean) == np.argmax(truth)
    assert (np.abs(mean - truth) < 4.0 * np.sqrt(variance)).all()


def test_what_two_parts_know_one_knows() -> None:
    made = Session([parts(1), parts(2)])
    for x in (-2.0, 0.0, 2.0):
        made.add("1 of a", np.array([x]), float(bump(np.array([x])).sum()))
    grid = np.linspace(-2.5, 2.5, 26)
    for a, b in zip(grid, np.roll(grid, 11), strict=True):
        made.add("2 of a", np.array([a, b]), float(bump(np.array([a, b])).sum()))
    made.belief()
    one, two = (learner.side for learner in made._learners)
    mean, _ = Family(one, [two]).predict(grid[:, None])
    assert abs(grid[int(np.argmax(mean))] - 1.0) < 0.15
    assert abs(one.surrogate.observations.best_x[0] - 1.0) > 0.9  # what it saw itself


def test_a_family_has_the_same_parts() -> None:
    two = told(parts(2))[0]
    assert not Family(two, [])
    assert not Family(two, told(parts(1, "b")))
    assert bool(Family(two, told(parts(3))))
    assert not Family(told(parts(1))[0], told(parts(1)))  # nothing to be exchanged
    half = Model("half", lambda t: 0.0, {"u1": N(), "v1": N(), "u2": N()})
    whole = Model(
        "whole",
        lambda t: 0.0,
        dict.fromkeys(("u1", "v1", "u2", "v2"), N()),
        exchangeable=[("u1", "v1"), ("u2", "v2")],
    )
    sides = [learner.side for learner in Session([half, whole])._learners]
    assert not Family(sides[1], sides[:1])  # it lacks part of a part
    wide = Model("wide", lambda t: 0.0, {"a1": N(0, 2)})
    assert not Family(two, [learner.side for learner in Session([wide])._learners])  # another prior


@pytest.mark.parametrize("kernel", ["matern52", "squared_exponential"])
def test_an_absent_part_varies_with_no_other(kernel: str) -> None:
    spec = Spec(kernel, "full_quadratic", ((0,), (1,)))
    hyper = unflatten(hyper_prior(spec, 2, True).loc, 2, 0, spec.blocks)
    covariance = jit64(prior_covariance, ("spec",))
    one, two = np.array([[0.4, FAR], [FAR, 0.4], [-1.0, FAR]]), np.array([[0.4, 9.0], [0.4, -9.0]])
    found = np.asarray(covariance(spec=spec, hyper=hyper, a=one, b=two))
    scale = np.exp(2.0 * hyper.log_amplitude)
    np.testing.assert_allclose(found[0], scale / 2.0, rtol=1e-4)  # by the part that both have
    np.testing.assert_allclose(found[0], found[1])
    columns = np.asarray(jit64(basis, ("mean", "blocks"))("full_quadratic", hyper.mean, one, spec.blocks))
    np.testing.assert_allclose(columns[0, 1:] / columns[2, 1:], [-0.4, 0.16], rtol=1e-12)


def test_no_evaluation_is_spent_where_the_family_sees_nothing() -> None:
    """Both models say that a part near 2 loses hundreds of nats; few points of two parts were seen."""

    def cliff(theta: Array) -> float:
        return float(-300.0 * (np.asarray(theta) > 1.0).sum() - (np.asarray(theta) ** 2).sum())

    one = Model("one", cliff, {"a1": N()})
    two = Model("two", cliff, dict.fromkeys(("a1", "a2"), N()), exchangeable=[("a1",), ("a2",)])
    made = Session([one, two], rng=0)
    for a in np.linspace(-3.0, 3.0, 41):
        made.add("one", np.array([a]), cliff(np.array([a])))
    for a, b in [(0.0, 0.5), (-1.0, 0.2), (0.6, -0.4), (1.5, 0.0), (-0.5, 2.5), (0.1, -1.2), (0.8, 0.7)]:
        made.add("two", np.array([a, b]), cliff(np.array([a, b])))
    made.belief()
    learner = made._learners[1]
    assert learner.family is not None
    x, wanted = learner.seen.nodes.x, learner._wanted()
    lost = (x > 1.3).any(1) & (x < 2.5).all(1)
    assert lost.sum() > 100
    assert wanted[lost].sum() < 1e-3 * wanted.sum()
    kept = (x < 0.8).all(1) & (x > -2.0).all(1)
    np.testing.assert_allclose(wanted[kept], learner.seen.mass[kept], rtol=0.05)


def test_leaps_go_to_a_part_that_the_smaller_model_has_seen() -> None:
    """One part knows both bumps; the points of two parts have met the higher one alone."""

    def add(theta: Array) -> float:  # either bump counts once
        first, second = np.exp(-20.0 * (theta - 1.0) ** 2), np.exp(-20.0 * (theta + 1.5) ** 2)
        return float(500.0 * first.max() + 300.0 * second.max() - 100.0 * len(theta))

    one = Model("one", add, {"a1": N()})
    two = Model("two", add, dict.fromkeys(("a1", "a2"), N()), exchangeable=[("a1",), ("a2",)])
    made = Session([one, two], rng=3)
    for a in np.linspace(-3.0, 3.0, 41):
        made.add("one", np.array([a]), add(np.array([a])))
    for a, b in [(1.0, 0.0), (0.9, 2.0), (-0.5, 0.8), (0.3, -0.3), (1.1, 0.9), (2.2, 0.2), (-0.6, 0.1)]:
        made.add("two", np.array([a, b]), add(np.array([a, b])))
    made.belief()
    learner = made._learners[1]
    step = learner.climb._leap_step(learner._known(made._learners))
    assert step is not None
    assert sorted(step.x) == pytest.approx([-1.5, 1.0], abs=0.2)
    learner.family = None
    alone = learner.climb._leap_step(learner._known(made._learners))
    assert alone is None or min(alone.x) != pytest.approx(-1.5, abs=0.2)
