"""Parts of a model that can be exchanged for each other."""

from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from modelodds import Model, Prior, Session, compare
from modelodds.errors import ModelError
from modelodds.identity import describe, differences
from modelodds.method import Method
from modelodds.precision import jit64
from modelodds.surrogate.exchange import exchanged, members, slots
from modelodds.surrogate.fit import fit, hyper_prior, unflatten
from modelodds.surrogate.gp import Data, Spec, condition, predict, prior_covariance, prior_variance
from modelodds.surrogate.kernels import KERNELS
from modelodds.surrogate.means import basis, n_basis

Array = NDArray[np.float64]

covariance64 = jit64(prior_covariance, ("spec",))
variance64 = jit64(prior_variance, ("spec",))
basis64 = jit64(basis, ("mean", "blocks"))
condition64 = jit64(condition, ("spec",))
predict64 = jit64(predict, ("spec",))

PAIR = Spec("any", "full_quadratic", ((1, 2), (4, 3)))  # column 0 is common
N = stats.norm


def hyper(spec: Spec, d: int, seed: int = 0, kernel: int = 1) -> Any:
    prior = hyper_prior(spec, d, True)
    vector = prior.loc + 0.3 * np.random.default_rng(seed).normal(size=prior.loc.size)
    return unflatten(vector, d, kernel, spec.blocks)


def swapped(x: Array) -> Array:
    return x[:, [0, 4, 3, 2, 1]]


# ---------------------------------------------------------------------- the covariance


def test_columns_of_parts_and_their_length_scales() -> None:
    np.testing.assert_array_equal(members(PAIR.blocks, 5), [[0, 1, 2], [0, 4, 3]])
    np.testing.assert_array_equal(slots(PAIR.blocks, 5), [0, 1, 2, 2, 1])
    np.testing.assert_array_equal(slots((), 3), [0, 1, 2])
    assert n_basis("full_quadratic", 5, PAIR.blocks) == n_basis("full_quadratic", 3)


def test_every_order_of_parts() -> None:
    np.testing.assert_array_equal(exchanged(PAIR.blocks, 5), [[0, 1, 2, 3, 4], [0, 4, 3, 2, 1]])
    np.testing.assert_array_equal(exchanged((), 3), [[0, 1, 2]])
    orders = exchanged(((0,), (2,), (1,)), 4)
    assert {tuple(o) for o in orders} == {(*o, 3) for o in permutations(range(3))}


def test_covariance_is_the_formula_written_out() -> None:
    h, rng = hyper(PAIR, 5), np.random.default_rng(1)
    a, b = rng.normal(size=(4, 5)), rng.normal(size=(3, 5))
    scale, rho = np.exp(np.asarray(h.log_lengthscale)), np.exp(float(h.log_rho))
    k = list(KERNELS.values())[1]

    def r2(x: Array, y: Array, columns: Any, other: Any) -> float:
        return float((((x[list(columns)] - y[list(other)]) / scale[list(columns)]) ** 2).sum())

    expected = np.zeros((4, 3))
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            rest = r2(x, y, [0], [0])
            alone = [rest + r2(x, y, one, two) for one in PAIR.blocks for two in PAIR.blocks]
            whole = [
                rest + sum(r2(x, y, one, two) for one, two in zip(PAIR.blocks, order, strict=True))
                for order in permutations(PAIR.blocks)
            ]
            value = sum(float(k(np.array(r))) for r in alone) / 2
            value += rho**2 * sum(float(k(np.array(r))) for r in whole) / 2
            expected[i, j] = np.exp(2 * float(h.log_amplitude)) * value
    np.testing.assert_allclose(covariance64(spec=PAIR, hyper=h, a=a, b=b), expected, rtol=1e-6)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10_000), kernel=st.integers(0, len(KERNELS) - 1), parts=st.integers(2, 4))
def test_covariance_is_one_whatever_the_parts(seed: int, kernel: int, parts: int) -> None:
    """Positive semi-definite, its diagonal as told, not changed by a permutation."""
    spec = Spec("any", "full_quadratic", tuple((1 + 2 * i, 2 + 2 * i) for i in range(parts)))
    d, rng = 1 + 2 * parts, np.random.default_rng(seed)
    x, h = rng.normal(size=(12, d)), hyper(spec, d, seed, kernel)
    found = np.asarray(covariance64(spec=spec, hyper=h, a=x, b=x))
    assert np.linalg.eigvalsh(found).min() > -1e-9 * found.max()
    np.testing.assert_allclose(np.diag(found), variance64(spec=spec, hyper=h, x=x), rtol=1e-6)
    order = rng.permutation(parts)
    moved = x[:, [0, *np.array(spec.blocks)[order].ravel()]]
    np.testing.assert_allclose(covariance64(spec=spec, hyper=h, a=moved, b=x), found, rtol=1e-6)
    functions = basis64(mean=spec.mean, hyper=h.mean, x=x, blocks=spec.blocks)
    np.testing.assert_allclose(
        basis64(mean=spec.mean, hyper=h.mean, x=moved, blocks=spec.blocks), functions, rtol=1e-9, atol=1e-9
    )


def test_predictions_know_the_permutation_and_the_sum() -> None:
    """From points of two parts a fit learns what one part adds, and so predicts pairs it has never seen."""
    rng = np.random.default_rng(0)
    x, new = rng.normal(size=(60, 5)), rng.normal(size=(200, 5))

    def one(common: Array, part: Array) -> Array:
        return np.asarray(3.0 * np.cos(3.0 * part[:, 0] + common) - part[:, 1] ** 2)

    def both(points: Array) -> Array:
        return one(points[:, 0], points[:, [1, 2]]) + one(points[:, 0], points[:, [4, 3]])

    error = {}
    for spec in (PAIR, PAIR._replace(blocks=())):
        data = Data(x, both(x), np.zeros(60), np.ones(60))
        gp = condition64(spec=spec, hyper=fit(spec, data, True, kernels=(1,)).hyper(5), data=data)
        mean, _ = predict64(spec=spec, gp=gp, x=new)
        error[spec.blocks] = float(np.sqrt(np.mean((np.asarray(mean) - both(new)) ** 2)))
        if spec.blocks:
            np.testing.assert_allclose(predict64(spec=spec, gp=gp, x=swapped(new))[0], mean, atol=1e-6)
    assert error[PAIR.blocks] < 0.6 * error[()]


# ---------------------------------------------------------------------- models


def bumps(theta: Array) -> float:
    """Two narrow parts, in any order."""
    near = [float(-0.5 * ((t - 0.7) / 0.15) ** 2) for t in theta]
    return 4.0 * float(np.exp(near[0]) + np.exp(near[1]))


def twins(**changes: Any) -> Model:
    given: dict[str, Any] = {"exchangeable": [("a",), ("b",)]} | changes
    return Model("two", bumps, Prior({"a": N(), "b": N()}), **given)


def test_blocks_are_positions_among_the_free_parameters() -> None:
    prior = {"a2": N(), "fixed": 1.0, "b1": N(2, 1), "a1": N(), "b2": N(2, 1)}
    model = Model("m", lambda theta: 0.0, prior, exchangeable=[("a1", "b1"), ("a2", "b2")])  # type: ignore[arg-type]
    assert model.blocks == ((2, 1), (0, 3)) and model.exchangeable == (("a1", "b1"), ("a2", "b2"))
    assert hash(model) != hash(replace(model, exchangeable=()))


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ("ab", "must be groups of names"),
        (5, "must be groups of names .* not 5"),
        (None, "must be groups of names .* not None"),
        ([5, 6], "must be groups of names"),
        ([(1,), (2,)], "must be groups of names"),
        ([([],), ([],)], "must be groups of names"),
        (["a", "b"], "must be groups of names"),
        ([("a",)], "must be 2 to 4 groups"),
        ([("a",), ("b", "c")], "must be 2 to 4 groups"),
        ([(), ()], "must be 2 to 4 groups"),
        ([("a",), ("a",)], "names 'a' twice"),
        ([("a",), ("z",)], "names 'z', which is not a free parameter"),
        ([("a",), ("k",)], "names 'k', which is not a free parameter"),
        ([("a",), ("c",)], "a and c must have the same prior to change places"),
    ],
)
def test_bad_groups_say_what_to_change(groups: Any, words: str) -> None:
    prior = Prior({"a": N(), "b": N(), "c": N(1, 1), "k": 1.0})
    with pytest.raises(ModelError, match=words):
        Model("m", lambda theta: 0.0, prior, exchangeable=groups)


def test_surrogates_heed_it_where_the_method_can() -> None:
    def blocks(method: Method) -> Any:
        return Session([twins()], method=method)._learners[0].surrogate.spec.blocks

    assert blocks(Method()) == blocks(Method(coupling="shared")) == ((0,), (1,))
    assert blocks(Method(mean="constant")) == blocks(Method(mean="constant", coupling="shared")) == ()


def test_models_with_exchangeable_parts_are_not_joined() -> None:
    """A sum over parts serves them better than a share in another model's surrogate would."""
    one = Model("one", lambda theta: -8.0 * (theta[0] - 0.7) ** 2, Prior({"a": N()}))
    three = Model("three", lambda theta: -8.0 * ((theta - 0.7) ** 2).sum(), Prior({"a": N(), "c": N()}))

    def groups(*models: Model, **options: Any) -> Any:
        coupling = Session(models, method=Method(coupling="shared", **options))._coupling
        return [group.sharing.members for group in coupling.groups] if coupling else None

    assert groups(one, twins()) == []
    assert groups(one, twins(), three) == [(0, 2)]
    assert groups(one, twins(), three, mean="constant") == [(0, 1, 2)]


def test_groups_may_come_from_an_iterator() -> None:
    assert twins(exchangeable=iter([("a",), ("b",)])).blocks == ((0,), (1,))


def test_a_pair_that_is_told_of_needs_fewer_evaluations() -> None:
    grid = stats.norm.ppf((np.arange(400) + 0.5) / 400)
    part = 4.0 * np.exp(-0.5 * ((grid - 0.7) / 0.15) ** 2)
    truth = 2.0 * np.log(np.mean(np.exp(part)))
    other = Model("one", lambda theta: 0.0, Prior({"a": N()}))
    error = {}
    for groups in ([("a",), ("b",)], ()):
        result = compare([twins(exchangeable=groups), other], budget=30, rng=0, progress=False)
        error[bool(groups)] = abs(result.log_evidence["two"] - truth)
    assert error[True] < 0.1 and error[True] < error[False] / 3


def test_a_ledger_of_other_groups_is_told_apart() -> None:
    then, now = describe((twins(exchangeable=()),)), describe((twins(),))
    assert "its exchangeable parameters were [], now [['a'], ['b']]" in " ".join(differences(then, now))
    del then[0]["exchangeable"]  # a ledger from before there were any
    assert differences(then, describe((twins(exchangeable=()),))) == []
