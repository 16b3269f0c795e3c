"""Runs on record: resumed to the last bit, refused when they are others', kept when files are damaged."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from example_models import CENTRES, N, bell, gap, gaussian, null
from modelodds import Failures, Ledger, Model, Prior, Result, compare
from modelodds.errors import LedgerError, LedgerInUse
from modelodds.journal import Entry, Journal, inspect, read
from modelodds.ledger import evaluations, load_result, salvage, standing
from modelodds.method import Method
from modelodds.stopping import Never
from test_compare import identical

BUDGET = 24  # twice the initial design: a smaller one would cut the design


class Killed(BaseException):
    """What nothing in the library catches, as little as kill -9."""


def run(models: list[Model], **options: Any) -> Result:
    return compare(models, **{"budget": BUDGET, "progress": False, "stop": Never(), **options})


def pair(**options: Any) -> list[Model]:
    return [gaussian("a", **options), gaussian("b")]


def counted(models: list[Model], calls: list[Any], until: int | None = None) -> list[Model]:
    """The same models, noting where they are called; dead after so many calls."""

    def watched(model: Model) -> Model:
        def log_likelihood(theta: Any) -> Any:
            if len(calls) == until:
                raise Killed
            calls.append((model.name, *theta))
            return model.log_likelihood(theta)

        return Model(model.name, log_likelihood, model.prior, model.prior_probability)

    return [watched(m) for m in models]


@pytest.fixture(scope="module")
def whole() -> Result:
    return run(pair())


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "run.db"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger of a whole run; not to be written."""
    path = tmp_path_factory.mktemp("finished") / "run.db"
    run(pair(), ledger=path)
    return path


# ---------------------------------------------------------------------- resuming


def test_a_ledger_changes_nothing(whole: Result, finished: Path) -> None:
    assert identical(load_result(finished), whole)


def test_a_resumed_run_is_the_uninterrupted_one(whole: Result, ledger: Path) -> None:
    calls: list[Any] = []
    for until in (0, 3, 11, 12, 16):  # before, in and after the initial design of twelve
        with pytest.raises(Killed):
            run(counted(pair(), calls, until), ledger=ledger)
        assert sum(standing(ledger).done.values()) == until and standing(ledger).status == "stopped"
        assert load_result(ledger).status == "stopped"
    result = run(counted(pair(), calls), ledger=ledger)
    assert identical(result, whole) and len(calls) == len(set(calls)) == BUDGET
    again = run(counted(pair(), calls), ledger=ledger)
    assert identical(again, whole) and len(calls) == BUDGET  # a finished run says what it said
    assert identical(load_result(ledger), whole)


def test_a_larger_budget_goes_on(ledger: Path) -> None:
    calls: list[Any] = []
    run(counted(pair(), calls), ledger=ledger)
    longer = run(counted(pair(), calls), ledger=ledger, budget=BUDGET + 4)
    assert len(calls) == len(set(calls)) == BUDGET + 4
    assert identical(longer, run(pair(), budget=BUDGET + 4))
    assert len(run(pair(), ledger=ledger).evaluations) == BUDGET + 4  # a smaller one takes nothing away


def nested() -> list[Model]:
    """One shared parameter, and one more that only the second model has."""

    def small(theta: Any) -> float:
        return float(-20.0 * np.log1p((theta[0] - 0.3) ** 2))

    def large(theta: Any) -> float:
        return small(theta) - 2.0 * float(theta[1] ** 2) + float(np.tanh(theta[1]))

    return [
        Model("small", small, {"a": stats.norm()}),
        Model("large", large, {"a": stats.norm(), "b": stats.norm()}),
    ]


@pytest.mark.parametrize("batch", [1, 3])
def test_models_that_learn_from_each_other_are_resumed(ledger: Path, batch: int) -> None:
    options: dict[str, Any] = {"method": Method(coupling="shared", n_nodes=512), "batch": batch}
    calls: list[Any] = []
    plain = run(nested(), **options)
    assert plain.log_evidence_cov[0, 1] > 0.0  # they are joined
    for until in (9, 17, 20):
        with pytest.raises(Killed):
            run(counted(nested(), calls, until), ledger=ledger, **options)
    assert identical(run(counted(nested(), calls), ledger=ledger, **options), plain)
    assert len(calls) == len(set(calls)) == BUDGET  # none made again, none asked for twice


@pytest.mark.parametrize("stop", [None, "callable"])
def test_stopping_rules_that_look_are_on_record_too(ledger: Path, stop: Any) -> None:
    """Forming a belief refits surrogates, so it is part of what must be done again."""
    rule = None if stop is None else lambda session: bool(session.belief().sd.max() < 0) or None
    plain = run(pair(), stop=rule)
    with pytest.raises(Killed):
        run(counted(pair(), [], 15), ledger=ledger, stop=rule)
    assert identical(run(pair(), ledger=ledger, stop=rule), plain)


@pytest.mark.parametrize("kind", ["MT19937", "Philox"])
def test_the_generator_of_the_ledger_counts(ledger: Path, kind: str) -> None:
    def generator(seed: int) -> np.random.Generator:
        return np.random.Generator(getattr(np.random, kind)(seed))

    plain = run(pair(), rng=generator(5), budget=14)
    with pytest.raises(Killed):
        run(counted(pair(), [], 9), ledger=ledger, rng=generator(5), budget=14)
    assert identical(run(pair(), ledger=ledger, rng=generator(99), budget=14), plain)


def test_failures_and_retries_are_resumed(ledger: Path) -> None:
    tries: list[float] = []

    def moody(theta: Any) -> float:
        tries.append(theta[0])
        if len(tries) == 6:
            raise Killed
        if tries.count(theta[0]) == 1 and theta[0] > 0.5:
            raise RuntimeError("licence server")
        return -np.inf if theta[0] < -1.0 else bell(*CENTRES["a"])(theta)

    models = [Model("a", moody, {"x": N()})]
    with pytest.raises(Killed):
        run(models, ledger=ledger, failures=Failures(retries=1), budget=12)
    result = run(models, ledger=ledger, failures=Failures(retries=1), budget=12)
    assert result.n_failures == {"a": 0} and standing(ledger).retries > 0
    rows = (
        sqlite3.connect(ledger).execute("SELECT id, status, reason FROM evaluations WHERE retried").fetchall()
    )
    assert len(rows) == standing(ledger).retries and rows[0][1:] == ("failed", "RuntimeError: licence server")
    table = evaluations(ledger)
    assert len(table) == 12 and table["host"].notna().all() and (table["ended"] >= table["started"]).all()


def test_a_session_that_asks_otherwise_takes_the_evaluations_over(ledger: Path, tmp_path: Path) -> None:
    """As when the library was updated in between: nothing is lost, and that is on record."""
    with pytest.raises(Killed):
        run(counted(pair(), [], 15), ledger=ledger)
    other = tmp_path / "other.db"
    with Journal(other) as journal:
        for entry in read(ledger).entries:
            if entry.kind == "ask" and entry.query == 13:
                entry = Entry("ask", 13, entry.model, entry.theta, detail='{"generators": {}}')
            journal.append(entry)
    calls: list[Any] = []
    with pytest.warns(UserWarning, match="query 13 would be asked at another point"), pytest.raises(Killed):
        run(counted(pair(), calls, 2), ledger=other)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # from there on it is the same again
        result = run(counted(pair(), calls), ledger=other)
    assert len(calls) == BUDGET - 15 and len(result.evaluations) == BUDGET
    assert result.log_bayes_factor("a", "b")[0] == pytest.approx(gap("a", "b"), abs=5e-3)


# ---------------------------------------------------------------------- other models, other runs


@pytest.mark.parametrize(
    ("models", "options", "says"),
    [
        (
            [gaussian("a"), gaussian("c")],
            {},
            "it has a model 'b', which is not among those given; it has no model",
        ),
        ([gaussian("b"), gaussian("a")], {}, "its models are in the order a, b"),
        (pair(probability=2.0), {}, "model 'a': its prior probability was 1, now 2"),
        ([Model("a", bell(0, 1), {"y": N()}), gaussian("b")], {}, "its parameters were x, now y"),
        (
            [Model("a", bell(0, 1), {"x": N(0, 2)}), gaussian("b")],
            {},
            r"prior of 'x' was norm\(\), now norm\(0, 2\)",
        ),
        ([Model("a", bell(0, 1), {"x": 1.0}), gaussian("b")], {}, r"was norm\(\), now fixed at 1"),
        (
            [Model("a", bell(0, 1), Prior.from_transform(N.ppf, ["x"])), gaussian("b")],
            {},
            r"was norm\(\), now a function",
        ),
        (pair(), {"method": "paper"}, "the method's kernel was 'auto', now 'matern32'"),
        (pair(), {"rng": 1}, "its seed was 0, now 1"),
    ],
    ids=range(9),
)
def test_a_ledger_of_another_run_is_refused(finished: Path, models: Any, options: Any, says: str) -> None:
    before = finished.read_bytes()
    with pytest.raises(LedgerError, match=says) as error:
        run(models, ledger=finished, **options)
    assert "reuse=" in str(error.value)
    assert finished.read_bytes() == before


def test_priors_that_are_functions_are_compared_at_points(ledger: Path) -> None:
    def model(scale: float) -> list[Model]:
        return [Model("a", bell(0, 1), Prior.from_transform(lambda u: scale * N.ppf(u), ["x"]))]

    run(model(1.0), ledger=ledger, budget=6)
    run(model(1.0), ledger=ledger, budget=7)
    with pytest.raises(LedgerError, match="model 'a': its prior has changed"):
        run(model(1.1), ledger=ledger, budget=7)


# ---------------------------------------------------------------------- evaluations that serve again


def test_evaluations_serve_other_comparisons(finished: Path, tmp_path: Path) -> None:
    """Other model priors, a subset with a newcomer, another parameter prior where points are inside."""
    calls: list[Any] = []
    same = counted(pair(probability=3.0), calls)
    result = run(same, ledger=Ledger(tmp_path / "1.db", reuse=finished), budget=6)
    assert len(calls) == 6 and len(result.evaluations) == BUDGET + 6  # the budget is for new ones
    assert result.log_bayes_factor("a", "b")[0] == pytest.approx(gap("a", "b"), abs=5e-3)
    assert result.prior_probabilities[0] == pytest.approx(0.75)

    calls.clear()
    subset = counted([gaussian("b"), gaussian("c")], calls)
    result = run(subset, ledger=Ledger(tmp_path / "2.db", reuse=[finished]), budget=10)
    assert result.log_bayes_factor("c", "b")[0] == pytest.approx(gap("c", "b"), abs=5e-3)
    assert sum(name == "c" for name, _ in calls) > 5 and len(calls) == 10
    assert standing(tmp_path / "2.db").reused == result.n_evaluations["b"] - 10 + sum(
        c[0] == "c" for c in calls
    )

    narrow = [Model("a", bell(*CENTRES["a"]), {"x": stats.uniform(0, 2)})]
    result = run(narrow, ledger=Ledger(tmp_path / "3.db", reuse=finished), budget=12)
    old = result.evaluations.iloc[:-12]
    assert 0 < len(old) < BUDGET and old["x"].between(0, 2).all()
    truth = np.log(np.diff(N.cdf([0, 2], *CENTRES["a"]))[0] / 2)
    assert result.log_evidence["a"] == pytest.approx(truth, abs=5e-3)


def test_reused_evaluations_are_part_of_the_new_record(finished: Path, ledger: Path, tmp_path: Path) -> None:
    models = pair(probability=2.0)
    plain = run(models, ledger=Ledger(tmp_path / "plain.db", reuse=finished), budget=6)
    with pytest.raises(Killed):
        run(counted(models, [], 3), ledger=Ledger(ledger, reuse=finished), budget=6)
    resumed = run(models, ledger=ledger, budget=6)  # the old ledger is not needed any more
    assert identical(resumed, plain)


def test_reuse_of_a_model_with_other_parameters_is_refused(finished: Path, ledger: Path) -> None:
    with pytest.raises(LedgerError, match="a model 'a' of other parameters: x, not y"):
        run([Model("a", bell(0, 1), {"y": N()})], ledger=Ledger(ledger, reuse=finished))


# ---------------------------------------------------------------------- one writer, many readers


def test_two_writers_in_one_process(ledger: Path) -> None:
    with Journal(ledger), pytest.raises(LedgerInUse, match="by this very process"):
        Journal(ledger)
    Journal(ledger).close()


def test_two_writers_in_two_processes(ledger: Path) -> None:
    """The second is told at once, by whom; readers are not in the way; a killed writer leaves no lock."""
    hold = (
        "import sys, time; from modelodds.journal import Entry, Journal; journal = Journal(sys.argv[1]); "
        "journal.append(Entry('run', detail='{}')); print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", hold, str(ledger)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        assert len(read(ledger).entries) == 1
        with pytest.raises(LedgerInUse, match=f"is being written by process {holder.pid} on "):
            Journal(ledger)
    finally:
        holder.kill()
        holder.communicate()
    with Journal(ledger) as journal:
        assert len(journal.contents.entries) == 1


def test_the_journal_is_append_only(finished: Path, tmp_path: Path) -> None:
    copy = shutil.copy(finished, tmp_path / "copy.db")
    connection = sqlite3.connect(copy)
    for change in ("DELETE FROM journal WHERE n = 5", "UPDATE journal SET status = 'ok'"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(change)
    connection.close()


def test_it_reads_well_in_the_shell(finished: Path) -> None:
    row = (
        sqlite3.connect(finished)
        .execute("SELECT model, theta, status, log_likelihood FROM evaluations")
        .fetchone()
    )
    assert row[0] in "ab" and row[2] == "ok" and isinstance(row[3], float)
    assert list(json.loads(row[1])) == ["x"]


def test_nothing_is_unpickled() -> None:
    source = Path(sys.modules["modelodds.journal"].__file__ or "").parent
    for name in ("journal.py", "ledger.py", "recorder.py", "identity.py", "storage.py"):
        assert "pickle" not in (source / name).read_text()


# ---------------------------------------------------------------------- damage


def test_what_is_no_ledger_is_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("my notes " * 100)
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE mine (x)")
    connection.commit()
    connection.close()
    for path, says in [
        (text, "is no SQLite file, and was left alone"),
        (other, "SQLite file of something else"),
        (tmp_path / "no" / "run.db", "needs the folder"),
        (tmp_path, "there is no ledger|cannot be written|is a folder"),
    ]:
        before = path.read_bytes() if path.is_file() else b""
        with pytest.raises(LedgerError, match=says):
            run(pair(), ledger=path)
        assert (path.read_bytes() if path.is_file() else b"") == before
    with pytest.raises(LedgerError, match="there is no ledger"):
        load_result(tmp_path / "none.db")
    (tmp_path / "empty.db").touch()
    assert len(run([null("n", -1.0)], ledger=tmp_path / "empty.db").evaluations) == 1


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.95])
def test_a_truncated_file_is_noticed_and_what_is_intact_is_kept(
    finished: Path, tmp_path: Path, share: float
) -> None:
    cut = tmp_path / "cut.db"
    whole = finished.read_bytes()
    cut.write_bytes(whole[: int(share * len(whole))])
    before = cut.read_bytes()
    with pytest.raises(LedgerError, match=r"damaged: .*Nothing in it was changed; \d+ of its evaluations"):
        run(pair(), ledger=cut)
    with pytest.raises(LedgerError, match="damaged"):
        load_result(cut)
    try:
        n = salvage(cut, tmp_path / "new.db")
    except LedgerError as error:
        assert share <= 0.1 and "nothing" in str(error)
        return
    assert cut.read_bytes() == before
    intact = evaluations(tmp_path / "new.db")
    full = evaluations(finished)
    assert len(intact) == n and intact.equals(full.iloc[:n])
    calls: list[Any] = []
    assert identical(run(counted(pair(), calls), ledger=tmp_path / "new.db"), load_result(finished))
    assert len(calls) == BUDGET - n


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_flipped_byte_is_noticed_or_does_not_matter(
    finished: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = bytearray(finished.read_bytes())
    where = data.draw(st.integers(0, len(whole) - 1))
    whole[where] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.mktemp("flip") / "run.db"
    path.write_bytes(whole)
    try:
        contents = inspect(path)
    except LedgerError:
        return  # no ledger any more, in words
    entries = read(finished).entries
    assert contents.entries == entries[: len(contents.entries)]
    assert contents.damage is not None or contents.entries == entries


def test_a_changed_value_is_noticed(finished: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(finished, tmp_path / "edited.db"))
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER journal_is_fixed")
    connection.execute("UPDATE journal SET log_likelihood = -1.0 WHERE kind = 'outcome' AND query = 7")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match=r"row \d+ of its journal is missing or was changed"):
        standing(path)
    assert salvage(path, tmp_path / "new.db") == 7


def test_salvage_overwrites_nothing(finished: Path) -> None:
    with pytest.raises(LedgerError, match="exists already"):
        salvage(finished, finished)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_ledger_in_a_folder_that_cannot_be_written_can_be_read(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    path = Path(shutil.copy(finished, folder / "run.db"))
    folder.chmod(0o500)
    try:
        assert sum(standing(path).done.values()) == BUDGET
    finally:
        folder.chmod(0o700)


def test_methods_of_ones_own_are_on_record(ledger: Path) -> None:
    method = Method(acquisition="variance", n_nodes=512)
    run([gaussian("a")], ledger=ledger, method=method, budget=8)
    assert load_result(ledger).method == repr(method)
    with pytest.raises(LedgerError, match="n_nodes was 512, now 1024"):
        run([gaussian("a")], ledger=ledger, method=Method(acquisition="variance", n_nodes=1024), budget=9)
