"""Random bad input ends in an error of ours, in words, or in a valid run; never in the depths.

MODELODDS_EXAMPLES sets how much of it each test makes up; with 1250 it is 11 250 in all.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from modelodds import Failures, Ledger, Method, Model, ModelOddsError, Prior, compare
from modelodds.errors import LedgerError, StudyError
from modelodds.ledger import evaluations, load_result, salvage, standing
from modelodds.stopping import Never
from modelodds.study import load_study
from test_command import STUDY

EXAMPLES = int(os.environ.get("MODELODDS_EXAMPLES", "40"))
some = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

numbers = st.one_of(
    st.floats(), st.integers(-(10**6), 10**6), st.sampled_from([0, 1, -1, 1e308, -1e308, 1e-320])
)
junk = st.one_of(
    st.none(),
    st.booleans(),
    numbers,
    st.complex_numbers(),
    st.text(max_size=5),
    st.binary(max_size=3),
    st.lists(numbers, max_size=3),
    st.dictionaries(st.text(max_size=2), numbers, max_size=2),
    st.just(object()),
    st.just(np.zeros((2, 2))),
)


def frozen(name: str, a: float, b: float) -> Any:
    with np.errstate(all="ignore"):
        return getattr(stats, name)(a, b)


components = st.one_of(
    junk,
    st.builds(
        frozen, st.sampled_from(["norm", "uniform", "cauchy", "gamma", "lognorm", "t"]), numbers, numbers
    ),
    st.sampled_from([stats.norm(), stats.uniform(-1, 2), stats.poisson(3), stats.norm, stats.halfnorm()]),
    st.just(stats.multivariate_normal([0, 0])),
)


def hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


words = st.text("abc", min_size=1, max_size=2)
names = st.one_of(words, words, words, st.text(max_size=3), junk)
keys = st.one_of(words, words, words, junk.filter(hashable))
likely = st.dictionaries(words, st.one_of(components, st.sampled_from([stats.norm(), 0.5])), max_size=1)
priors = st.one_of(likely, likely, junk, st.dictionaries(keys, components, max_size=1))


def ends_well(act: Callable[[], Any]) -> Any:
    """What ``act`` returns; None where it ended in an error of ours that says something."""
    try:
        return act()
    except ModelOddsError as error:
        assert len(str(error)) > 15
        return None


# ---------------------------------------------------------------------- models and priors


@some
@given(
    st.lists(
        st.tuples(st.one_of(st.text(max_size=3), junk), priors, junk, st.one_of(st.just(1.0), junk)),
        max_size=2,
    )
)
def test_models_and_priors(parts: list[Any]) -> None:
    def act() -> Any:
        made = [
            Model(name, lambda theta, value=value: value, prior, probability)
            for name, prior, value, probability in parts
        ]
        size = sum(m.dim + 2 for m in made)
        return compare(made, budget=max(size, 1), stop=Never(), progress=False)

    result = ends_well(act)
    if result is not None:
        assert sum(result.probabilities.values()) == pytest.approx(1.0)
        assert set(result.evaluations["status"]) <= {"ok", "failed"}


groups = st.lists(st.lists(st.one_of(words, words, names), max_size=2), max_size=3)
settings_of_a_model = {
    "exchangeable": st.one_of(groups, groups, junk),
    "shared": st.one_of(st.dictionaries(words, names, max_size=2), junk),
    "cost": junk,
    "vectorized": junk,
}


@some
@given(
    st.dictionaries(words, st.sampled_from([stats.norm(), stats.norm(), stats.uniform(), 0.5]), max_size=3),
    st.sampled_from(["exchangeable", "exchangeable", *settings_of_a_model]).flatmap(
        lambda which: st.tuples(st.just(which), settings_of_a_model[which])
    ),
)
def test_settings_of_a_model(parts: dict[str, Any], given_: tuple[str, Any]) -> None:
    def act() -> Any:
        a = Model("a", lambda theta: 0.0, parts, **{given_[0]: given_[1]})
        b = Model("b", lambda theta: -1.0, {"x": stats.norm()})
        return compare([a, b], budget=a.dim + 6, stop=Never(), progress=False)

    result = ends_well(act)
    assert result is None or sum(result.probabilities.values()) == pytest.approx(1.0)


@some
@given(st.sampled_from(["transform", "density", "sample", "names"]), junk)
def test_priors_of_functions(which: str, value: Any) -> None:
    good: dict[str, Any] = {
        "transform": lambda u: stats.norm.ppf(u),
        "density": lambda theta: stats.norm.logpdf(theta).sum(),
        "sample": lambda n, rng: rng.normal(size=(n, 1)),
        "names": ["x"],
    }
    given_ = {**good, which: value if which == "names" else lambda *arguments: value}
    ends_well(lambda: Prior.from_transform(given_["transform"], given_["names"]))
    if which != "transform":
        ends_well(lambda: Prior.from_density(given_["density"], given_["sample"], given_["names"]))


@some
@given(st.sampled_from(["budget", "batch", "rng", "method", "executor", "ledger", "failures", "stop"]), junk)
def test_options(which: str, value: Any) -> None:
    if which == "ledger" and isinstance(value, str):
        value = "\0" + value  # a name that no file can have
    if which in ("budget", "batch") and isinstance(value, int):
        value = min(value, 3)
    models = [Model("a", lambda theta: 0.0, {"x": 1.0})]
    ends_well(lambda: compare(models, **{"progress": False, which: value}))


@some
@given(st.sampled_from(["retries", "timeout", "max_failures"]), junk)
def test_failures_options(which: str, value: Any) -> None:
    ends_well(lambda: Failures(**{which: value}))


@some
@given(st.sampled_from(sorted(Method.__dataclass_fields__)), st.one_of(st.none(), st.text(max_size=4)))
def test_method_options(which: str, value: Any) -> None:
    if isinstance(getattr(Method(), which), str):
        ends_well(lambda: Method(**{which: value}))


# ---------------------------------------------------------------------- studies


@st.composite
def mangled(draw: st.DrawFn, text: str) -> str:
    """The text with a few lines or characters dropped, doubled, moved or replaced."""
    for _ in range(draw(st.integers(1, 4))):
        i, j = sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
        j = min(j, i + draw(st.integers(0, 30)))
        kind = draw(st.sampled_from(["drop", "double", "replace"]))
        new = draw(
            st.sampled_from(["0", "-1", '"x"', "[", "]", "{}", "=", "\n", "inf", "true", "#", ".", "é", "\0"])
        )
        text = text[:i] + {"drop": "", "double": text[i:j] * 2, "replace": new}[kind] + text[j:]
    return text


@some
@given(mangled(STUDY))
def test_studies(tmp_path: Path, text: str) -> None:
    path = tmp_path / "study.toml"
    path.write_text(text, encoding="utf-8", newline="")
    try:
        study = load_study(path)
    except StudyError as error:
        assert str(path) in str(error)
    else:
        assert study.models


# ---------------------------------------------------------------------- ledgers


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "run.db"
    models = [Model("a", lambda theta: -1.0, {"x": 1.0}), Model("b", lambda theta: -2.0, {"x": 2.0})]
    compare(models, budget=10, ledger=path, progress=False)
    return path


kinds = st.sampled_from(["flip", "cut", "zero", "insert"])
edits = st.lists(
    st.tuples(
        st.sampled_from(["flip", "cut", "zero", "insert"]), st.floats(0, 1), st.binary(min_size=1, max_size=9)
    ),
    min_size=1,
    max_size=4,
)


@some
@given(edits)
def test_ledgers(whole: Path, tmp_path_factory: pytest.TempPathFactory, changes: list[Any]) -> None:
    content = whole.read_bytes()
    for kind, share, new in changes:
        i = int(share * len(content))
        before, after = content[:i], content[i:]
        content = {
            "flip": before + bytes(b ^ (new[0] or 1) for b in after[:1]) + after[1:],
            "cut": before,
            "zero": before + bytes(len(after[:64])) + after[64:],
            "insert": before + new + after,
        }[kind]
    folder = tmp_path_factory.mktemp("bad")
    path = folder / "run.db"
    path.write_bytes(content)
    for act in (standing, load_result, evaluations):
        ends_well(lambda act=act: act(path))
    ends_well(lambda: salvage(path, folder / "new.db"))
    if (folder / "new.db").exists():
        assert len(evaluations(folder / "new.db")) <= 2
    assert path.read_bytes() == bytes(content)


@some
@given(st.binary(max_size=200))
def test_files_that_are_no_ledgers(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("no") / "run.db"
    path.write_bytes(content)
    with pytest.raises(LedgerError):
        load_result(path)
    with pytest.raises(LedgerError):
        compare(
            [Model("a", lambda t: 0.0, {"x": 1.0})], ledger=Ledger(path.parent / "n.db", path), progress=False
        )
    assert path.read_bytes() == content
