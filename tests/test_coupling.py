"""Sessions whose models share what they learn: nested models gain, unrelated ones lose nothing."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from modelodds import Method, Model, Prior, Session, compare
from modelodds.errors import OptionError
from modelodds.group import FREE, HOPELESS, Group
from modelodds.method import PRESETS
from modelodds.problems import load
from modelodds.surrogate import coupled as joint_process

Array = NDArray[np.float64]

SHARED = Method(coupling="shared", n_nodes=512)


def value(model: Model, theta: Array) -> float:
    """One log-likelihood."""
    return float(np.squeeze(model.log_likelihood(theta[None] if model.vectorized else theta)))


def run(models: tuple[Model, ...], n: int, method: Method = SHARED, batch: int = 1) -> Session:
    """A session after ``n`` evaluations, its belief formed after every batch."""
    session = Session(models, method=method, rng=0, budget=60)
    by_name = {m.name: m for m in session.models}
    while session.n_evaluations < n:
        for query in session.ask(batch):
            session.tell(query, value(by_name[query.model], query.theta))
        session.belief()
    return session


def test_nested_regressions_need_the_observations_of_one() -> None:
    """Three quadratics of 3, 6 and 10 coefficients are one of ten: 16 evaluations tell all."""
    problem = load("nested-3", 0)
    session = run(problem.models, 16)
    belief, truth = session.belief(), np.array(problem.log_evidence)
    np.testing.assert_allclose(belief.mean - belief.mean[0], truth - truth[0], atol=0.05)
    assert (belief.sd < 0.5).all()
    alone = run(problem.models, 16, Method(n_nodes=512, coupling="independent")).belief()
    assert np.abs(alone.mean - truth).max() > 1.0


def test_two_models_in_batches() -> None:
    """Points that are out count for both models: none is asked for twice."""
    session = run((bumps(False), bumps(True)), 20, batch=4)
    assert session.joined
    asked = [q.theta for q in session.ask(4)]
    assert len(asked) == 4
    for i, one in enumerate(asked):
        assert all(len(one) != len(two) or np.abs(one - two).max() > 1e-3 for two in asked[:i])


def test_the_result_tells_of_the_covariance() -> None:
    """Log-odds are surer than the evidences are, if these go up and down together."""
    problem = load("nested-2", 0)
    session = run(problem.models, 11)
    result = session.result()
    cov = result.log_evidence_cov
    a, b = result.names
    expected = np.sqrt(cov[0, 0] + cov[1, 1] - 2 * cov[0, 1])
    assert result.log_bayes_factor(a, b)[1] == pytest.approx(expected)
    assert session.belief().log_odds_sd(0, 1) == pytest.approx(
        np.sqrt(session.belief().cov[[0, 1], [0, 1]].sum() - 2 * session.belief().cov[0, 1])
    )
    assert np.linalg.eigvalsh(cov)[0] >= -1e-12


def test_the_nodes_errors_do_not_cancel_in_reported_odds() -> None:
    """Surrogates may err alike; sets of nodes, drawn for each model by itself, do not."""
    session = run(load("nested-3", 0).models, 40)
    assert session.joined and session._coupling is not None
    assert session._coupling.covariance(np.ones(3), np.zeros(3))[1, 2] > 0.9  # these err alike
    seeded = zip(session._learners[1:], session._report_seeds[1:], strict=True)
    two = [learner.report(16, seed).evidence for learner, seed in seeded]
    sd = session.result().log_bayes_factor(*[m.name for m in session.models[1:]])[1]
    assert sd >= 0.999 * np.sqrt(sum(evidence.fixed for evidence in two)) > 0.0


def unrelated() -> tuple[Model, ...]:
    """Two models that have a parameter in name only."""

    def wiggle(theta: Array) -> float:
        return float(-3 * np.sin(3 * theta[0]) - theta[1] ** 2)

    def valley(theta: Array) -> float:
        return float(-np.abs(theta[0] - 1) - 2 * np.cos(2 * theta[1]))

    prior = Prior({"a": stats.norm(), "b": stats.norm()})
    return Model("wiggle", wiggle, prior), Model("valley", valley, prior)


def test_unrelated_models_are_left_alone() -> None:
    """The same queries as without coupling, bit for bit."""
    apart, coupled = (
        run(unrelated(), 40, Method(coupling=c, n_nodes=512)) for c in ("independent", "shared")
    )
    assert apart._coupling is None
    assert coupled._coupling is not None and not coupled._coupling.active
    for one, two in zip(*(s._log.table().to_dict("records") for s in (apart, coupled)), strict=True):
        assert one["model"] == two["model"] and one["a"] == two["a"] and one["b"] == two["b"]


def bumps(larger: bool) -> Model:
    """Not a quadratic: two humps along ``a``, and ``c`` of which the smaller model knows nothing."""

    def log_likelihood(theta: Array) -> float:
        humps = np.logaddexp(-2 * (theta[0] - 1) ** 2, -2 * (theta[0] + 1) ** 2)
        return float(humps - (theta[1] - 0.3) ** 2 * larger) if larger else float(humps - 0.09)

    parameters = {"a": stats.norm()} | ({"c": stats.norm()} if larger else {})
    return Model("larger" if larger else "smaller", log_likelihood, Prior(parameters))


def test_models_that_are_no_quadratics_are_joined_and_right() -> None:
    """The joint process is in use, and evidences are those of a grid."""
    session = run((bumps(False), bumps(True)), 40)
    assert session._coupling is not None and session._coupling.active
    grid = np.linspace(-6, 6, 801)
    humps = np.exp(np.logaddexp(-2 * (grid - 1) ** 2, -2 * (grid + 1) ** 2) + stats.norm.logpdf(grid))
    first = np.log(np.trapezoid(humps, grid))
    second = np.log(np.trapezoid(np.exp(-((grid - 0.3) ** 2) + stats.norm.logpdf(grid)), grid))
    np.testing.assert_allclose(session.belief().mean, [first - 0.09, first + second], atol=0.05)
    assert session.belief().cov[0, 1] > 0


def test_models_that_share_nothing_are_a_plain_comparison() -> None:
    """No parameter in common, or none at all."""
    one, two = unrelated()
    other = Model("other", lambda theta: float(-(theta[0] ** 2)), Prior({"q": stats.norm()}))
    fixed = Model("fixed", lambda theta: -1.0, Prior({}))
    session = Session([one, other, fixed], method=SHARED)
    assert session._coupling is not None and session._coupling.groups == []
    assert two.shared == {}


def test_failures_are_gone_around() -> None:
    """Failures are points to avoid."""
    problem = load("nested-2", 0)

    def sometimes(theta: Array) -> float:
        return np.nan if theta[0] > 1.5 else value(problem.models[1], theta)

    failing = Model("degree_1", sometimes, problem.models[1].prior)
    result = compare([problem.models[0], failing], budget=30, method=SHARED, progress=False)
    assert result.status != "failed"


def test_a_likelihood_of_zero_ends_the_coupling() -> None:
    """Its support is a model's own; the others go on as if there had never been a joint process."""
    problem = load("nested-2", 1)
    session = run(problem.models, 16)
    assert session.joined
    session.add("degree_1", [0.0, 3.0], -np.inf)
    belief = session.belief()
    assert not session.joined and np.isfinite(belief.mean).all() and belief.shared is None
    assert all(one.surrogate.gp.borrowed is None for one in session._learners)
    assert session.ask(1)


def test_a_joint_process_that_breaks_down_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The models are on their own then, and the session goes on."""
    problem = load("nested-2", 1)
    session = run(problem.models, 16)
    assert session.joined
    condition = joint_process._condition

    def broken(**given: Any) -> Any:
        found = condition(**given)
        return found._replace(white=np.full(found.white.shape, np.nan))

    monkeypatch.setattr(joint_process, "_condition", broken)
    session.add("degree_1", [0.0, 3.0], -30.0)
    belief = session.belief()
    assert not session.joined and np.isfinite(belief.mean).all() and np.isfinite(belief.sd).all()
    assert session.ask(1)


def test_every_model_of_a_group_goes_together_with_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain will do; one that stands apart is enough to leave all as they are."""
    models = [Model(f"{i}", lambda theta: 0.0, {"a": stats.norm()}) for i in range(3)]
    session = Session(models)
    assert session._coupling is not None
    (group,) = session._coupling.groups

    def related(ab: float, bc: float, ac: float) -> bool:
        between = np.array([[1.0, ab, ac], [ab, 1.0, bc], [ac, bc, 1.0]])
        monkeypatch.setattr(Group, "_joined", lambda self, mode: SimpleNamespace(between=between))
        return group._related(group.mode)

    assert related(0.9, 0.9, 0.9) and related(0.9, 0.85, 0.6)
    assert not related(0.9, 0.5, 0.5) and not related(0.7, 0.7, 0.7)


def test_several_starts_are_for_what_is_not_hopeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a search from the last one's end falls far short again, that is all, until it does not."""
    session = Session([Model(f"{i}", lambda theta: 0.0, {"a": stats.norm()}) for i in range(2)])
    assert session._coupling is not None
    (group,) = session._coupling.groups
    searches: list[bool] = []
    monkeypatch.setattr(Group, "_fitted", lambda self, mode, full: searches.append(full))

    def kinds(last: float | None, gain: float) -> list[bool]:
        """Which searches are made, full ones or not."""
        searches.clear()
        group._gains = {} if last is None else {FREE: last}
        monkeypatch.setattr(Group, "_gain", lambda self, mode: gain)
        assert group._searched(FREE) == gain
        return list(searches)

    assert kinds(None, -1000.0) == [True]  # the first time
    assert kinds(2.0 * -HOPELESS, 2.0 * -HOPELESS) == [False]
    assert kinds(2.0 * -HOPELESS, 0.0) == [False, True]  # it may be worth it by now
    assert kinds(0.0, -1000.0) == [True]


def test_options_that_do_not_go_together() -> None:
    """The paper's fit has no joint version; targets for two models have none, either."""
    with pytest.raises(OptionError, match="coupling='shared' needs fit='log'"):
        Method(coupling="shared", fit="original", mean="constant", kernel="matern32", squash="none")
    with pytest.raises(OptionError, match="log_odds, variance, mutual_information"):
        Method(coupling="shared", acquisition="model_choice")
    with pytest.raises(OptionError, match="choose one of auto, independent, shared"):
        Method(coupling="both")


def test_models_are_coupled_unless_the_method_or_their_number_forbids() -> None:
    """A method that cannot do it does without, if it was not asked for."""
    assert Method().coupled and not Method(coupling="independent").coupled
    assert not Method(acquisition="uncertainty").coupled and not PRESETS["paper"].coupled

    def groups(n: int, coupling: str) -> list[tuple[int, ...]]:
        models = [Model(f"{i}", lambda theta: 0.0, {"a": stats.norm()}) for i in range(n)]
        found = Session(models, method=Method(coupling=coupling))._coupling
        return [] if found is None else [group.sharing.members for group in found.groups]

    assert groups(4, "auto") == groups(4, "shared") == [(0, 1, 2, 3)]
    assert groups(5, "auto") == [] and groups(5, "shared") == [(0, 1, 2, 3, 4)]
    assert groups(4, "independent") == []
