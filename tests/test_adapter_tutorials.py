"""Models of other libraries' own documentation: our evidences against long runs of those libraries.

The long runs are in results/adapters/long_runs.csv, made by ``python benchmarks/adapters.py``.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from example_tutorials import TUTORIALS
from modelodds import compare

LONG_RUNS = pd.read_csv(Path(__file__).parents[1] / "results/adapters/long_runs.csv").set_index(
    ["tutorial", "model"]
)
NEEDED = {"pymc", "numpyro", "nautilus", "bilby"}  # to write a model down; the others take plain functions
APART = 4.0  # standard deviations of both together
FLOOR = 0.02  # nats: surrogates that are almost exact know their error to no better than this
CLOSE = 0.5  # nats: the most that an answer may leave open of a model that counts


@pytest.mark.filterwarnings("default")  # the libraries' own
@pytest.mark.parametrize("name", [name for name, each in TUTORIALS.items() if not each.hard])
def test_our_evidences_are_theirs(name: str) -> None:
    tutorial = TUTORIALS[name]
    if tutorial.library in NEEDED and importlib.util.find_spec(tutorial.library) is None:
        pytest.skip(f"{tutorial.library} is not installed: pip install 'modelodds[adapters]'")
    result = compare(tutorial.models(), budget=tutorial.budget, progress=False)
    for model in result.names:
        long_run, sd = LONG_RUNS.loc[(name, model)], result.log_evidence_sd[model]
        apart = abs(result.log_evidence[model] - long_run["log_evidence"])
        assert apart < max(APART * np.hypot(sd, long_run["error"]), FLOOR), model
        assert sd < CLOSE or result.probabilities[model] < 0.01, model


def test_every_model_has_a_long_run() -> None:
    for library in ("dynesty", "ultranest"):
        for name, tutorial in TUTORIALS.items():
            if tutorial.library == library:
                assert {(name, model) for model in tutorial.natives()} <= set(LONG_RUNS.index)
    assert set(LONG_RUNS.index.get_level_values("tutorial")) == set(TUTORIALS)
    assert (LONG_RUNS["error"] < 0.2).all() and LONG_RUNS["version"].notna().all()
