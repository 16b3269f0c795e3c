"""One GP over (model, x): against dense algebra; positive definite for any sharing; limits and evidences."""

from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from modelodds.errors import ModelError
from modelodds.group import Group, _original_between_64
from modelodds.learner import Learner
from modelodds.method import Method
from modelodds.model import Model
from modelodds.precision import jit64
from modelodds.prior import Prior
from modelodds.surrogate import coupled
from modelodds.surrogate.coupled import Coupled, CoupledData, CoupledHyper, CoupledSpec
from modelodds.surrogate.gp import NUGGET, RELATIVE_NUGGET, Data, Hyper, Spec, condition, predict
from modelodds.surrogate.kernels import KERNELS
from modelodds.surrogate.leave_one_out import leave_one_out
from modelodds.surrogate.sharing import Sharing, find_sharing

Array = NDArray[np.float64]

_correlation = jit64(coupled.correlation, static=("g",))
_marginal = jit64(coupled.log_marginal, static=("spec",))
_predict = jit64(predict, static=("spec",))
_condition = jit64(condition, static=("spec",))

FLAT = stats.norm(0, 1)
SHAPES = {  # in NumPy: JAX outside the package computes in single precision
    "matern52": lambda r2: (1 + np.sqrt(5 * r2) + 5 * r2 / 3) * np.exp(-np.sqrt(5 * r2)),
    "squared_exponential": lambda r2: np.exp(-0.5 * r2),
}


def model(name: str, *parameters: str, **options: Any) -> Model:
    """A model with standard normal parameters and no likelihood to speak of."""
    return Model(name, lambda theta: 0.0, Prior(dict.fromkeys(parameters, FLAT)), **options)


NESTED = [model("small", "a", "b"), model("large", "c", "b", "a"), model("other", "b", "d")]


def example(
    mean: str = "full_quadratic", kernel: str = "matern52", n: int = 8, partial: Any = (1.1, 0.4, -0.3)
) -> tuple[Sharing, CoupledSpec, CoupledHyper, CoupledData, list[Array]]:
    """Three models of two, three and two parameters, ``n`` observations each, and points of each."""
    rng = np.random.default_rng(3)
    (sharing,) = find_sharing(NESTED)
    spec = CoupledSpec(kernel, mean, sharing.has)
    d = len(sharing.names)
    sizes = np.array([[0.3], [0.1], [0.5]]) if mean == "full_quadratic" else np.array([[-1.0], [0.5], [2.0]])
    hyper = CoupledHyper(
        rng.normal(0.2, 0.2, d), rng.normal(0.3, 0.3, 3), sizes, rng.normal(size=d), np.array(partial), 1
    )
    points = [rng.normal(size=(n, m.dim)) for m in NESTED]
    x = np.vstack([sharing.embed(i, p) for i, p in enumerate(points)])
    which = np.repeat(np.arange(3), n)
    data = CoupledData(x, rng.normal(size=3 * n), rng.uniform(0.01, 0.1, 3 * n), np.ones(3 * n), which)
    return sharing, spec, hyper, data, [rng.normal(size=(5, m.dim)) for m in NESTED]


def group_of(joint: Coupled) -> Group:
    """The three models joined by ``joint``."""
    method = Method(kernel=joint.spec.kernel, mean=joint.spec.mean, n_nodes=64)
    group = Group(joint.sharing, [Learner(m, method, np.random.default_rng(0)) for m in NESTED], method)
    group.joint = joint
    return group


def covariances(
    joint: Coupled, nodes: list[Array], weights: list[Array], i: int, j: int
) -> tuple[float, float]:
    """Of the evidences of models ``i`` and ``j``: of their logarithms, and relative to their means."""
    group, views = group_of(joint), [joint.view(m) for m in range(3)]
    one, two = (group._projected(views[m], nodes[m], weights[m]) for m in (i, j))
    x, apart, factor = group.elsewhere(i, j, nodes[j])
    original = _original_between_64(
        spec=group.plain, gp=views[i], one=one, x=x, apart=apart, factor=factor, two=two
    )
    return group._between(views, i, one, j, two), float(original)


def padded(data: CoupledData, more: int = 7) -> CoupledData:
    """The same with padding."""
    zeros = [np.append(p, np.zeros(more)) for p in (data.y, data.noise, data.mask)]
    x = np.vstack([data.x, np.zeros((more, data.x.shape[1]))])
    return CoupledData(x, *zeros, np.append(data.model, np.zeros(more, dtype=int)))


def dense_prior(spec: CoupledSpec, hyper: CoupledHyper, data: CoupledData) -> Array:
    """Prior covariance with the basis part, as the formula has it: every pair on its own."""
    has, between = np.array(spec.has), np.asarray(_correlation(hyper.partial, g=len(spec.has)))
    everywhere, n = has.all(axis=0), len(data.y)
    cov = np.empty((n, n))
    for p in range(n):
        for q in range(n):
            i, j = int(data.model[p]), int(data.model[q])
            x = np.where(has[i], data.x[p], hyper.anchor)
            y = np.where(has[j], data.x[q], hyper.anchor)
            r2 = np.array((((x - y) / np.exp(hyper.log_lengthscale)) ** 2).sum())
            cov[p, q] = np.exp(hyper.log_amplitude[i] + hyper.log_amplitude[j]) * SHAPES[spec.kernel](r2)
            if spec.mean == "full_quadratic":
                u, w = ((x - np.where(everywhere, 0.0, hyper.anchor))[has[i] & has[j]] for x in (x, y))
                b, c = np.exp(hyper.mean[i, 0]), np.exp(hyper.mean[j, 0])
                quadratic = u @ w + (np.outer(u, u) * np.outer(w, w))[np.triu_indices(len(u))].sum()
                level = (100 + 10 * b) * (100 + 10 * c)
                cov[p, q] += b * c * quadratic + level * hyper.tied
            cov[p, q] *= between[i, j]
            if spec.mean == "full_quadratic" and not hyper.tied and i == j:
                cov[p, q] += level
    return cov


@pytest.mark.parametrize("tied", [0.0, 1.0])
@pytest.mark.parametrize("kernel", ["matern52", "squared_exponential"])
@pytest.mark.parametrize("mean", coupled.MEANS)
def test_what_each_model_sees_is_the_joint_process(mean: str, kernel: str, tied: float) -> None:
    """Means, variances and covariances between points of different models, against the dense system."""
    sharing, spec, hyper, data, points = example(mean, kernel)
    hyper = hyper._replace(tied=tied)
    joint = Coupled.of(sharing, spec, hyper, padded(data))
    n, m = len(data.y), len(points[0])
    x = np.vstack([data.x, *(sharing.embed(i, p) for i, p in enumerate(points))])
    which = np.append(data.model, np.repeat(np.arange(3), m))
    everything = CoupledData(x, np.zeros(len(x)), np.zeros(len(x)), np.ones(len(x)), which)
    prior = dense_prior(spec, hyper, everything)
    amplitude = np.exp(2 * hyper.log_amplitude)[data.model]
    system = prior[:n, :n] + np.diag(data.noise + NUGGET + RELATIVE_NUGGET * amplitude)
    level = hyper.mean[:, 0] if mean == "constant" else np.zeros(3)
    expected = level[which[n:]] + prior[n:, :n] @ np.linalg.solve(system, data.y - level[data.model])
    posterior = prior[n:, n:] - prior[n:, :n] @ np.linalg.solve(system, prior[:n, n:])
    plain = Spec(kernel, mean)
    # The dense system with a basis has a condition number near 1e8, as in test_gp.py.
    tolerance = 2e-5 if mean == "full_quadratic" else 1e-8
    for i, p in enumerate(points):
        view = joint.view(i, level=2.5)  # whose zero is 2.5 higher, so that values are lower
        at, spread = _predict(spec=plain, gp=view, x=p)
        rows = slice(i * m, (i + 1) * m)
        np.testing.assert_allclose(at, expected[rows] - 2.5, atol=tolerance)
        np.testing.assert_allclose(spread, posterior.diagonal()[rows], atol=tolerance)
    for i in range(3):
        for j in range(3):
            log, original = covariances(joint, points, [np.full(m, 1.0 / m)] * 3, i, j)
            block = posterior[i * m : (i + 1) * m, j * m : (j + 1) * m]
            assert log == pytest.approx(block.mean(), abs=tolerance)
            assert original == pytest.approx(np.expm1(block).mean(), rel=10 * tolerance, abs=tolerance)


def test_the_marginal_likelihood_is_that_of_the_dense_system() -> None:
    """Up to the constant, padding or not; the basis's determinant included."""
    _, spec, hyper, data, _ = example()
    amplitude = np.exp(2 * hyper.log_amplitude)[data.model]
    system = dense_prior(spec, hyper, data) + np.diag(data.noise + NUGGET + RELATIVE_NUGGET * amplitude)
    expected = stats.multivariate_normal.logpdf(data.y, np.zeros(len(data.y)), system)
    expected += 0.5 * len(data.y) * np.log(2 * np.pi)
    for version in (data, padded(data)):
        assert float(_marginal(spec=spec, hyper=hyper, data=version)) == pytest.approx(expected, abs=1e-4)


def test_models_that_do_not_correlate_are_on_their_own() -> None:
    """With R diagonal every model's view is its own GP, and evidences have no covariance."""
    sharing, spec, hyper, data, points = example(partial=(0.0, 0.0, 0.0))
    hyper = hyper._replace(anchor=np.zeros(len(sharing.names)))  # its quadratic is centred there
    joint, plain = Coupled.of(sharing, spec, hyper, data), Spec(spec.kernel, spec.mean)
    for i, p in enumerate(points):
        mine = data.model == i
        columns = list(sharing.columns[i])
        own = Hyper(hyper.log_lengthscale[columns], hyper.log_amplitude[i], hyper.mean[i])
        alone = _condition(
            spec=plain,
            hyper=own,
            data=Data(data.x[mine][:, columns], data.y[mine], data.noise[mine], data.mask[mine]),
        )
        for found, expected in zip(
            _predict(spec=plain, gp=joint.view(i), x=p), _predict(spec=plain, gp=alone, x=p), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
        for found, expected in zip(leave_one_out(joint.view(i)), leave_one_out(alone), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_nested_model_is_the_larger_one_at_the_anchor() -> None:
    """Fully correlated and of one size, an observation of either is one of the other."""
    (sharing,) = find_sharing(NESTED[:2])
    spec = CoupledSpec("matern52", "full_quadratic", sharing.has)
    at = 0.7
    anchor = np.array([at if name == "c" else 0.0 for name in sharing.names])
    hyper = CoupledHyper(np.zeros(3), np.full(2, 0.4), np.full((2, 1), 1.0), anchor, np.array([12.0]))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12, 2))
    y = np.sin(x[:, 0]) - x[:, 1] ** 2
    data = CoupledData(sharing.embed(0, x), y, np.full(12, 1e-6), np.ones(12), np.zeros(12, dtype=int))
    joint = Coupled.of(sharing, spec, hyper, data)
    new = rng.normal(size=(6, 2))
    large = np.column_stack([np.full(6, at), new[:, 1], new[:, 0]])  # its parameters are c, b, a
    one, two = (
        _predict(spec=Spec("matern52", "full_quadratic"), gp=joint.view(i), x=p)
        for i, p in enumerate((new, large))
    )
    np.testing.assert_allclose(one, two, atol=1e-3)
    # ... and away from the anchor the larger model is less sure.
    away = _predict(spec=Spec("matern52", "full_quadratic"), gp=joint.view(1), x=large + np.eye(3)[0])
    assert (np.asarray(away[1]) > 10 * np.asarray(two[1])).all()


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_any_sharing_is_positive_definite(draw: Any) -> None:
    """Whatever models share, wherever the anchors are, however they correlate."""
    g, d = 3, 3
    rows = st.lists(st.booleans(), min_size=d, max_size=d).filter(any).map(tuple)
    spec = CoupledSpec(
        draw.draw(st.sampled_from(list(KERNELS)), "kernel"),
        draw.draw(st.sampled_from(coupled.MEANS), "mean"),
        tuple(draw.draw(st.lists(rows, min_size=g, max_size=g), "has")),
    )
    rng = np.random.default_rng(draw.draw(st.integers(0, 2**32 - 1), "seed"))
    hyper = CoupledHyper(
        rng.normal(size=d),
        rng.normal(size=g),
        rng.normal(size=(g, 1)),
        rng.normal(size=d),
        rng.uniform(-6, 6, g * (g - 1) // 2),
    )
    which = rng.integers(g, size=24)
    x = rng.normal(size=(24, d)) * np.array(spec.has, dtype=float)[which]
    data = CoupledData(x, np.zeros(24), np.zeros(24), np.ones(24), which)
    with jax.enable_x64(True):  # uncompiled: every sharing would be compiled anew
        cov = np.asarray(coupled.prior_covariance(spec, hyper, data))
        if spec.mean == "full_quadratic":
            mixed = coupled.coefficient_factor(spec, coupled.factor(hyper.partial, g), 1.0)
            part = np.asarray(coupled.centred_basis(spec, hyper, data) @ mixed)
            cov = cov + part @ part.T
    eigenvalues = np.linalg.eigvalsh(cov)
    assert eigenvalues[0] > -1e-10 * eigenvalues[-1]


def test_evidences_covary_as_draws_of_them_do() -> None:
    """Draws of both log-likelihoods at the nodes: of log a where they vary little, of a itself always."""
    sharing, spec, hyper, data, _ = example("constant")
    hyper = hyper._replace(
        log_amplitude=np.log(np.array([0.3, 0.25, 0.2])),
        log_lengthscale=np.full(len(sharing.names), 0.9),
        anchor=np.zeros(len(sharing.names)),
        partial=np.array([2.0, 0.4, -0.3]),
    )
    data = data._replace(noise=np.full(24, 1.0))
    joint, plain, rng = (
        Coupled.of(sharing, spec, hyper, data),
        Spec(spec.kernel, spec.mean),
        np.random.default_rng(1),
    )
    nodes = [rng.normal(size=(30, m.dim)) for m in NESTED[:2]]
    x = np.vstack([sharing.embed(i, p) for i, p in enumerate(nodes)])
    which = np.repeat([0, 1], 30)
    # Posterior of all nodes at once, by conditioning a process of the nodes on the data.
    everything = CoupledData(
        np.vstack([data.x, x]), *[np.zeros(84)] * 2, np.ones(84), np.append(data.model, which)
    )
    prior = dense_prior(spec, hyper, everything)
    amplitude = np.exp(2 * hyper.log_amplitude)[data.model]
    system = prior[:24, :24] + np.diag(data.noise + NUGGET + RELATIVE_NUGGET * amplitude)
    posterior = prior[24:, 24:] - prior[24:, :24] @ np.linalg.solve(system, prior[:24, 24:])
    mean = np.concatenate([_predict(spec=plain, gp=joint.view(i), x=p)[0] for i, p in enumerate(nodes)])
    g = rng.multivariate_normal(mean, posterior, size=100_000, check_valid="ignore")
    a = np.column_stack([np.exp(g[:, which == i]).mean(axis=1) for i in (0, 1)])
    moment = [np.exp(mean + 0.5 * posterior.diagonal())[which == i] for i in (0, 1)]
    plug_in = [np.exp(mean[which == i]) for i in (0, 1)]
    for weights, sample, tolerance in (
        (plug_in, np.log(a), 0.05),  # second order in variances of up to 0.09
        (moment, a / [m.mean() for m in moment], 0.03),  # 1/sqrt(1e5), times a few
    ):
        found = covariances(joint, nodes, [w / w.sum() for w in weights], 0, 1)[weights is moment]
        expected = np.cov(sample.T)
        scale = np.sqrt(expected[0, 0] * expected[1, 1])
        assert abs(expected[0, 1]) > 0.1 * scale  # there is something to see
        assert found == pytest.approx(expected[0, 1], abs=tolerance * scale)


# ---------------------------------------------------------------------- what is shared


def test_parameters_are_shared_by_name_and_prior() -> None:
    """Same name and prior: one coordinate, wherever it stands; another prior makes another parameter."""
    wide = Model("wide", lambda theta: 0.0, Prior({"a": stats.norm(0, 2), "b": FLAT}))
    lonely = model("lonely", "e")
    (group,) = find_sharing([NESTED[0], lonely, NESTED[1], wide])
    assert group.members == (0, 2, 3)
    assert group.names == ("a", "b", "c", "a")
    assert group.columns == ((0, 1), (2, 1, 0), (3, 1))
    assert find_sharing([lonely, NESTED[0]]) == []


def test_declared_parameters_are_shared_across_names_and_widths() -> None:
    """A point means the same theta in both models' coordinates."""
    one = model("one", "a")
    two = Model(
        "two",
        lambda theta: 0.0,
        Prior({"slope": stats.norm(3.0, 2.0), "c": FLAT}),
        shared={"slope": "a"},
    )
    (group,) = find_sharing([one, two])
    assert group.columns == ((0,), (0, 1))
    theta = 1.7
    x = two.prior.to_x([theta, 0.0])
    np.testing.assert_allclose(group.embed(1, x[None])[0, 0], one.prior.to_x([theta])[0], rtol=1e-9)
    skewed = Model("skewed", lambda theta: 0.0, Prior({"s": stats.gamma(2.0)}), shared={"s": "a"})
    with pytest.raises(ModelError, match="same prior in both"):
        find_sharing([one, skewed])
    with pytest.raises(ModelError, match="one of its parameters"):
        model("typo", "a", shared={"b": "a"})
    with pytest.raises(ModelError, match="two of its parameters"):
        model("twice", "a", "b", shared={"b": "a"})


def test_a_parameter_fixed_in_one_model_is_anchored_there() -> None:
    """Where the smaller model holds it is where the larger one is most like it."""
    small = Model("small", lambda theta: 0.0, Prior({"a": FLAT, "b": 0.5}))
    (group,) = find_sharing([small, model("large", "a", "b")])
    assert group.names == ("a", "b")
    np.testing.assert_allclose(group.anchor, [0.0, 0.5], atol=1e-9)
    assert group.anchored.tolist() == [False, True]
