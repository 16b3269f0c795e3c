"""Sweeps of many tasks: what is kept, how a run goes on after a kill; and runs as curves."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from modelodds import __version__
from modelodds.baselines import METHODS
from modelodds.experiments.curves import Pair, curve, settled_at, thinned
from modelodds.experiments.provenance import (
    WITHOUT_SURROGATE,
    code_version,
    made_by,
    others,
    source_hash,
    up_to_date,
)
from modelodds.experiments.sweep import FOR_WORKERS, for_workers, read, sweep
from modelodds.problems import Problem, load
from modelodds.problems.nested import nested
from modelodds.result import Result


class Task(NamedTuple):
    name: str
    number: int


STAMPS = ["seconds", "code"]
TASKS = [Task(name, number) for number in range(3) for name in "ab"]


def three(task: Task) -> list[dict[str, Any]]:
    """Three rows of numbers that belong to the task alone."""
    rng = np.random.default_rng([task.number, ord(task.name)])
    return [task._asdict() | {"step": step, "value": rng.normal()} for step in range(3)]


def one(task: Task) -> list[dict[str, Any]]:
    return three(task)[:1]


def fails_at_one(task: Task) -> list[dict[str, Any]]:
    if task == Task("b", 1):
        raise ValueError("no luck")
    return three(task)


def environment(task: Task) -> list[dict[str, Any]]:
    return [task._asdict() | {name: os.environ[name] for name in FOR_WORKERS}]


class Counted:
    """Work, and the tasks it was done for."""

    def __init__(self, work: Any) -> None:
        self.work, self.done = work, list[Task]()

    def __call__(self, task: Task) -> Any:
        self.done.append(task)
        return self.work(task)


def frame(rows: list[Any]) -> pd.DataFrame:
    """Rows of all tasks, in the tasks' order, without their stamps."""
    table = pd.DataFrame([row for task in rows for row in task]).drop(columns=STAMPS, errors="ignore")
    return table.sort_values(["number", "name", "step"]).reset_index(drop=True)


def expected(tasks: list[Task] = TASKS, work: Any = three) -> pd.DataFrame:
    return frame([work(task) for task in tasks])


def same(found: pd.DataFrame, wanted: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(found, wanted, rtol=1e-14)


# ---------------------------------------------------------------------- kept and resumed


@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_rows_are_kept_and_not_computed_again(suffix: str, tmp_path: Path) -> None:
    out, work = tmp_path / "deep" / f"rows.{suffix}", Counted(three)
    same(frame(list(sweep(TASKS[:2], work, out))), expected(TASKS[:2]))
    stamp = out.read_bytes()
    again = list(sweep(TASKS, work, out))
    assert work.done == TASKS  # each once
    same(frame(again), expected())
    assert out.read_bytes().startswith(stamp)
    same(frame([read(out).to_dict("records")]), expected())


def test_known_tasks_come_first_and_foreign_rows_stay(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv.gz"
    list(sweep([TASKS[5], TASKS[3]], three, out))
    found = list(sweep(TASKS[2:4], three, out))
    assert [(rows[0]["name"], rows[0]["number"]) for rows in found] == [TASKS[3], TASKS[2]]
    assert len(read(out)) == 9


def test_rows_are_written_as_they_come(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv.gz"
    rows = sweep(TASKS, three, out)
    next(rows), next(rows)
    rows.close()
    same(frame([read(out).to_dict("records")]), expected(TASKS[:2]))


def test_without_a_file_nothing_is_kept() -> None:
    assert list(sweep([], three)) == []
    same(frame(list(sweep(TASKS, three))), expected())
    assert read(None).empty and read(Path("no such file.csv")).empty


def test_a_file_says_the_same_to_pandas(tmp_path: Path) -> None:
    """Many gzip members are one gzip file to the rest of the world."""
    out = tmp_path / "rows.csv.gz"
    list(sweep(TASKS, three, out))
    pd.testing.assert_frame_equal(pd.read_csv(out), read(out), rtol=1e-14)


# ---------------------------------------------------------------------- after a kill


@pytest.mark.parametrize("cut", [1, 5, 60])
@pytest.mark.parametrize(("suffix", "work"), [("csv", one), ("csv.gz", three)])
def test_a_file_cut_short_goes_on_from_its_last_whole_task(
    suffix: str, work: Any, cut: int, tmp_path: Path
) -> None:
    out = tmp_path / f"rows.{suffix}"
    list(sweep(TASKS[:3], work, out))
    out.write_bytes(left := out.read_bytes()[:-cut])
    same(
        frame([read(out).to_dict("records")]),
        expected(TASKS[: 2 if cut < 60 or suffix == "csv.gz" else 1], work),
    )
    assert out.read_bytes() == left  # it may be in the middle of a write: only a sweep mends
    counted = Counted(work)
    same(frame(list(sweep(TASKS, counted, out))), expected(TASKS, work))
    assert set(counted.done) >= set(TASKS[2:]) and TASKS[0] not in counted.done
    same(frame([read(out).to_dict("records")]), expected(TASKS, work))
    assert not list(tmp_path.glob("*.new"))


def test_a_csv_file_cut_in_its_header_starts_anew(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    out.write_text("name,num")
    list(sweep(TASKS, one, out))
    same(frame([read(out).to_dict("records")]), expected(TASKS, one))


def test_a_gzip_file_cut_in_its_first_task_starts_anew(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv.gz"
    list(sweep(TASKS[:1], three, out))
    out.write_bytes(out.read_bytes()[:-3])
    list(sweep(TASKS, three, out))
    assert list(read(out).columns) == ["name", "number", "step", "value", *STAMPS]
    same(frame([read(out).to_dict("records")]), expected())


# ---------------------------------------------------------------------- which code, how long


def test_rows_say_which_code_made_them_and_how_long_it_took(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv.gz"
    (rows,) = sweep(TASKS[:1], three, out)
    assert all(row["code"] == code_version() and 0 < row["seconds"] < 1 for row in rows)
    assert set(read(out).code) == {code_version()} and code_version().startswith(f"{__version__}+")
    (timed,) = sweep(TASKS[:1], lambda task: [task._asdict() | {"seconds": 7.0}])
    assert timed[0]["seconds"] == 7.0  # work that took its own time is believed


def test_a_file_from_before_the_stamps_is_read_and_goes_on(tmp_path: Path) -> None:
    for suffix in ("csv", "csv.gz"):
        out = tmp_path / f"rows.{suffix}"
        pd.DataFrame(three(TASKS[0])).to_csv(out, index=False)
        work = Counted(three)
        same(frame(list(sweep(TASKS[:2], work, out))), expected(TASKS[:2]))
        assert work.done == TASKS[1:2]
        rows = read(out)
        assert list(rows.columns) == ["name", "number", "step", "value", *STAMPS]
        assert list(made_by(rows)) == ["unknown"] * 3 + [code_version()] * 3
        pd.testing.assert_frame_equal(rows.iloc[:3, :4], pd.DataFrame(three(TASKS[0])), check_exact=True)
        assert others(rows, ["name", "number"]) == {"unknown": 1}
        assert others(rows.iloc[3:], ["name", "number"]) == {} == others(read(None), ["name"])


def test_redo_runs_again_what_other_code_has_made(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv.gz"
    list(sweep(TASKS[:3], three, out))
    old = read(out)
    old.loc[old.name == "a", "code"] = "0.0.1+00000000"  # TASKS[0] and TASKS[2]
    old.to_csv(out, index=False)
    assert others(read(out), ["name", "number"]) == {"0.0.1+00000000": 2}
    kept, again = Counted(three), Counted(three)
    list(sweep(TASKS[:2], kept, out))
    assert kept.done == []
    same(frame(list(sweep(TASKS[:2], again, out, redo=True))), expected(TASKS[:2]))
    assert again.done == TASKS[:1] and others(read(out), ["name", "number"]) == {"0.0.1+00000000": 1}
    assert len(read(out)) == 9
    list(sweep(TASKS[:3], three, out, redo=True))
    assert others(read(out), ["name", "number"]) == {} and len(read(out)) == 9


def test_names_that_look_like_numbers_are_known_again(tmp_path: Path) -> None:
    """A file says 1 and 0.5 of settings "1" and "0.5"."""
    out, tasks = tmp_path / "rows.csv", [Task(name, 0) for name in ("0.5", "1", "growing")]
    work = Counted(lambda task: [task._asdict()])
    list(sweep(tasks[:2], work, out))
    list(sweep(tasks, work, out))
    assert work.done == tasks and len(read(out)) == 3


def test_redo_of_a_whole_file_starts_it_anew(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    pd.DataFrame(one(TASKS[0])).to_csv(out, index=False)
    list(sweep(TASKS[:1], one, out, redo=True))
    assert len(read(out)) == 1 and set(read(out).code) == {code_version()}


def test_the_hash_is_of_what_can_change_a_number(tmp_path: Path) -> None:
    (tmp_path / "cli").mkdir()
    (tmp_path / "nodes.py").write_text("a = 1\n")
    first = source_hash(tmp_path)
    (tmp_path / "cli" / "main.py").write_text("b = 1\n")
    (tmp_path / "plots.py").write_text("b = 1\n")
    (tmp_path / "notes.txt").write_text("c")
    assert source_hash(tmp_path) == first and len(first) == 8
    (tmp_path / "nodes.py").write_bytes(b"a = 1\r\n")
    assert source_hash(tmp_path) == first
    (tmp_path / "nodes.py").write_text("a = 2\n")
    second = source_hash(tmp_path)
    (tmp_path / "nodes.py").rename(tmp_path / "odds.py")
    assert len({first, second, source_hash(tmp_path)}) == 3


def test_samplers_are_not_of_other_code_when_the_surrogate_is(tmp_path: Path) -> None:
    def hashes() -> tuple[str, str]:
        return source_hash(tmp_path), source_hash(tmp_path, WITHOUT_SURROGATE)

    (tmp_path / "evidence.py").write_text("a = 1\n")
    (tmp_path / "model.py").write_text("a = 1\n")
    ours, theirs = hashes()
    (tmp_path / "evidence.py").write_text("a = 2\n")
    assert hashes()[0] != ours and hashes()[1] == theirs
    (tmp_path / "model.py").write_text("a = 2\n")
    assert hashes()[1] != theirs
    assert (
        code_version("default") == code_version("unheard of") == code_version("round_robin") == code_version()
    )
    assert code_version("bridge") == code_version("reversible_jump") != code_version()
    rows = pd.DataFrame({"method": ["bridge", "default"], "code": code_version()})
    assert list(up_to_date(rows)) == [False, True] and others(rows, ["method"]) == {code_version(): 1}


def test_our_methods_are_not_of_other_code_when_what_runs_a_peer_is(tmp_path: Path) -> None:
    def hashes() -> tuple[str, str]:
        return source_hash(tmp_path, peers=False), source_hash(tmp_path, WITHOUT_SURROGATE, peers=True)

    (tmp_path / "baselines" / "peers").mkdir(parents=True)
    (tmp_path / "baselines" / "peers" / "one.py").write_text("a = 1\n")
    ours, theirs = hashes()
    (tmp_path / "baselines" / "peers" / "one.py").write_text("a = 2\n")
    assert hashes()[0] == ours and hashes()[1] != theirs
    assert code_version("bridge") != code_version("pyvbmc") == code_version("dynesty") != code_version()


def test_rows_are_stamped_with_the_code_of_their_method() -> None:
    class Run(NamedTuple):
        method: str

    (rows,) = sweep([Run("bridge")], lambda task: [task._asdict()])
    assert rows[0]["code"] == code_version("bridge")


# ---------------------------------------------------------------------- failures and processes


def test_a_failing_task_in_a_pool_does_not_lose_the_others(tmp_path: Path) -> None:
    out, others = tmp_path / "rows.csv.gz", [task for task in TASKS if task != Task("b", 1)]
    with ThreadPoolExecutor(2) as executor:
        found = sweep(TASKS, fails_at_one, out, executor=executor)
        with pytest.raises(RuntimeError, match=r"1 of 6 tasks failed, first .*name='b', number=1.*no luck"):
            list(found)
        same(frame([read(out).to_dict("records")]), expected(others))
        work = Counted(three)
        same(frame(list(sweep(TASKS, work, out, executor=executor))), expected())
    assert work.done == [Task("b", 1)]


def test_processes_inherit_their_settings_and_leave_none_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")  # the user's own stays
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    before = dict(os.environ)
    for jobs in (2, 1):  # a single task of a single process has them too: it finds what it found in a sweep
        (rows, *_) = list(sweep(TASKS[:jobs], environment, jobs=jobs))
        assert dict(os.environ) == before
        assert rows[0]["OMP_NUM_THREADS"] == "7" and rows[0]["XLA_FLAGS"] == FOR_WORKERS["XLA_FLAGS"]


def test_settings_are_taken_back_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    before = dict(os.environ)
    with pytest.raises(RuntimeError, match="1 of 2 tasks failed"):
        list(sweep([Task("b", 1), Task("a", 1)], fails_at_one, jobs=2))
    assert dict(os.environ) == before


# ---------------------------------------------------------------------- curves


def monte_carlo(problem: Problem, budget: int = 400) -> Result:
    return METHODS["monte_carlo"](problem.models, budget, 0)


def test_a_curve_ends_with_the_results_own_numbers() -> None:
    problem = nested(4, 0)
    result = monte_carlo(problem)
    pair, rows = Pair.of(problem), curve(problem, result)
    assert rows.iloc[-1][["log_odds", "log_odds_sd"]].tolist() == pytest.approx(
        result.log_odds(pair.first, pair.second)
    )
    weight = np.exp(np.array(problem.log_evidence) - max(problem.log_evidence))
    z_error = np.abs(np.array(list(result.probabilities.values())) - weight / weight.sum()).max()
    assert rows.z_error.iloc[-1] == pytest.approx(z_error)
    assert rows.n_evaluations.iloc[-1] == 400 and rows.n_evaluations.is_monotonic_increasing


def test_a_curve_is_the_history_of_the_two_best_models() -> None:
    problem = nested(4, 0)
    result, pair = monte_carlo(problem), Pair.of(problem)
    rows, history = curve(problem, result), result.history
    a, b = (history[f"log_evidence[{name}]"] for name in pair[:2])
    np.testing.assert_allclose(rows.log_odds[:-1], (a - b)[:-1])
    assert pair.log_odds == pytest.approx(-np.diff(np.sort(problem.log_evidence)[::-1])[0])
    assert list(rows.n_evaluations) == list(history.n_evaluations)


def test_prior_probabilities_are_part_of_a_curve() -> None:
    flat = load("regression-2", 0)
    models = tuple(replace(m, prior_probability=p) for m, p in zip(flat.models, (1.0, 9.0), strict=True))
    problem = Problem(flat.name, models, flat.log_evidence)
    result, pair = monte_carlo(problem), Pair.of(problem)
    a, b = (result.history[f"log_evidence[{name}]"] for name in pair[:2])
    ratio = {m.name: np.log(m.prior_probability) for m in models}
    shift = ratio[pair.first] - ratio[pair.second]
    truth = dict(zip(result.names, problem.log_evidence, strict=True))
    assert abs(shift) == pytest.approx(np.log(9))
    assert pair.log_odds == pytest.approx(truth[pair.first] - truth[pair.second] + shift)
    np.testing.assert_allclose(curve(problem, result).log_odds, a - b + shift, atol=1e-9)


@pytest.mark.parametrize("order", [1, -1])
def test_covariances_between_models_narrow_a_curve(order: int) -> None:
    problem = load("regression-2", 0)
    result, pair = monte_carlo(problem), Pair.of(problem)
    var_a, var_b = (result.history[f"log_evidence_sd[{name}]"] ** 2 for name in pair[:2])
    covariance = 0.4 * np.minimum(var_a, var_b)
    covariance[:5] = np.nan  # models that were apart at first
    column = f"log_evidence_cov[{', '.join(pair[:2][::order])}]"
    shared = replace(result, history=result.history.assign(**{column: covariance}))
    found = curve(problem, shared).log_odds_sd
    np.testing.assert_allclose(found[:-1], np.sqrt(var_a + var_b - 2 * covariance.fillna(0.0))[:-1])


def test_a_thinned_curve_keeps_both_ends() -> None:
    problem = load("regression-2", 0)
    result = monte_carlo(problem)
    rows = thinned(curve(problem, result), 7)
    assert len(rows) <= 7 < len(result.history)
    ends = result.history.n_evaluations.iloc[[0, -1]].tolist()
    assert rows.n_evaluations.iloc[[0, -1]].tolist() == ends


@pytest.mark.parametrize(
    ("error", "when"),
    [
        ([0.05, -0.1, 0.0, 0.1], 10.0),  # never outside
        ([0.5, 0.05, -0.05, 0.0], 20.0),
        ([0.5, 0.05, -0.3, 0.0], 40.0),  # in, and out again
        ([0.0, 0.0, 0.0, 0.2], np.inf),  # ends outside
        ([0.0, np.nan, 0.0, 0.0], 30.0),  # not known is outside
        ([0.0, 0.0, 0.0, np.nan], np.inf),
    ],
)
def test_settled_is_never_to_leave_again(error: list[float], when: float) -> None:
    assert settled_at(np.array([10, 20, 30, 40]), np.array(error), 0.1) == when


def test_processors_that_differ_are_made_to_compute_alike() -> None:
    old, new = for_workers("flags: sse2 avx avx2 fma"), for_workers("flags: avx2 fma avx512f avx512_vnni")
    assert new == old
    assert "max_isa=AVX2" in new["XLA_FLAGS"] and new["OPENBLAS_CORETYPE"] == "Haswell"
    assert new["PJRT_NPROC"] == "2"  # however many cores there are
    elsewhere = for_workers("Features: asimd")  # other processors are left alone
    assert "OPENBLAS_CORETYPE" not in elsewhere and "max_isa" not in elsewhere["XLA_FLAGS"]
