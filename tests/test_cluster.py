"""Sweeps over a Dask cluster of two local workers: the same rows as anywhere else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from modelodds.cli import app
from modelodds.errors import OptionError
from modelodds.experiments import synthetic
from modelodds.experiments.cluster import check_workers, dask_cluster
from modelodds.experiments.provenance import code_version
from modelodds.experiments.sweep import read, sweep

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # what a cluster says as it shuts down is not ours

NUMBERS = ["n_evaluations", "z1", "log_odds", "z1_true", "log_odds_true"]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Address of a scheduler with two worker processes."""
    with distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        yield cluster.scheduler_address


def sorted_numbers(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.sort_values(["dataset", "n_evaluations"])[["dataset", *NUMBERS]].reset_index(drop=True)


def test_a_cluster_gives_the_rows_of_one_process(address: str, tmp_path: Path) -> None:
    tasks, out = synthetic.tasks([1], range(4), ["monte_carlo"]), tmp_path / "curves.csv.gz"
    with dask_cluster(address) as (executor, workers):
        assert workers == 2
        list(sweep(tasks, synthetic.work, out, executor=executor))
    alone = pd.DataFrame([row for rows in sweep(tasks, synthetic.work) for row in rows])
    pd.testing.assert_frame_equal(sorted_numbers(read(out)), sorted_numbers(alone), check_exact=True)
    assert set(read(out).code) == {code_version("monte_carlo")}


def fails_at_two(task: synthetic.Task) -> list[dict[str, Any]]:
    if task.dataset == 2:
        raise ValueError("no luck")
    return [task._asdict() | {"value": np.pi}]


def test_a_failing_task_does_not_lose_the_others(address: str, tmp_path: Path) -> None:
    tasks, out = synthetic.tasks([1], range(4), ["m"]), tmp_path / "curves.csv.gz"
    with (
        dask_cluster(address) as (executor, _),
        pytest.raises(RuntimeError, match=r"1 of 4 tasks failed, first .*dataset=2.*no luck"),
    ):
        list(sweep(tasks, fails_at_two, out, executor=executor))
    assert set(read(out).dataset) == {0, 1, 3}


def test_the_command_runs_on_a_cluster(address: str, tmp_path: Path) -> None:
    out = tmp_path / "curves.csv.gz"
    words = ["reproduce", "synthetic", "--dimension", "1", "--datasets", "3", "--method", "monte_carlo"]
    done = CliRunner().invoke(app, [*words, "--dask", address, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert set(read(out).dataset) == {0, 1, 2}


def test_clusters_that_would_not_give_the_same_are_refused() -> None:
    check_workers({"tcp://a": code_version()}, "here")
    with pytest.raises(OptionError, match="has no workers"):
        check_workers({}, "here")
    with pytest.raises(OptionError, match=r"1 of 2 Dask workers do not run .*first tcp://b: '0.0.1\+x'"):
        check_workers({"tcp://a": code_version(), "tcp://b": "0.0.1+x"}, "here")
    with pytest.raises(OptionError, match="ModuleNotFoundError"):
        check_workers({"tcp://a": ModuleNotFoundError("No module named 'modelodds'")}, "here")


def test_silence_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modelodds.experiments.cluster.PATIENCE", 1)
    with (
        pytest.raises(OptionError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9"),
        dask_cluster("tcp://127.0.0.1:9"),
    ):
        pass
