"""What in the paper's method fails: its preset with one choice at a time made as ours is, and the reverse.

The synthetic task again, with the paper's budget. Each method is the preset ``paper``, or our default without
models that learn from each other, but for the options named: a change that takes the error away, or brings
it back, says what made it. ``paper_surrogate`` changes three at once, since a mean with all quadratic terms
needs hyperparameters fitted to logs, and observations that it need not follow all the way down. The last two
of the paper's add a change to that of the estimate.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from modelodds import baselines
from modelodds.baselines import Entry
from modelodds.errors import OptionError
from modelodds.experiments import synthetic
from modelodds.experiments.statistics import smaller, worst_share
from modelodds.experiments.synthetic import PER_DIMENSION, Task
from modelodds.method import resolve_method

OUT = Path("results/parts/curves.csv.gz")
DIMENSIONS = (3,)
DATASETS = 40
CHANGES: dict[str, dict[str, Any]] = {
    "paper_acquisition": {"acquisition": "log_odds"},
    "paper_design": {"design": "quasi", "initial": 2.0, "initial_extra": 4},
    "paper_nodes": {"nodes": "adaptive"},
    "paper_climb": {"climb": True},
    "paper_estimate": {"weights": "capped", "estimate": "mean"},
    "paper_kernel": {"kernel": "squared_exponential"},
    "paper_fit": {"fit": "log"},
    "paper_mean": {"mean": "quadratic"},
    "paper_surrogate": {"fit": "log", "mean": "full_quadratic", "shaped_noise": True},
}
CHANGES |= {
    f"paper_estimate_{name}": CHANGES["paper_estimate"] | CHANGES[f"paper_{name}"]
    for name in ("design", "surrogate")
}
WHOLE = ("paper", "default", "default_independent")
BACK: dict[str, dict[str, Any]] = {  # the reverse: our default with the paper's choice
    "default_acquisition": {"acquisition": "mutual_information"},
    "default_design": {"design": "random", "initial": 5.0, "initial_extra": 0},
    "default_nodes": {"nodes": "prior", "n_nodes": 8192},
    "default_climb": {"climb": False},
    "default_estimate": {"weights": "moment", "estimate": "moment"},
    "default_squash": {"squash": "none"},
}
METHOD_NAMES = ("paper", *CHANGES, "default", "default_independent", *BACK)


def _variant(preset: str, change: dict[str, Any]) -> Entry:
    method = resolve_method(preset, **(change | {"coupling": "independent"}))
    return Entry("baselines.ours", f"{preset} with {change}", (("method", method),))


METHODS: dict[str, Entry] = (
    {name: baselines.METHODS[name] for name in WHOLE}
    | {name: _variant("paper", change) for name, change in CHANGES.items()}
    | {name: _variant("default", change) for name, change in BACK.items()}
)


def check_method(name: str) -> None:
    """Complain about a method that does not exist."""
    if name not in METHODS:
        raise OptionError(f"There is no method {name!r}; the methods are {', '.join(METHODS)}.")


def work(task: Task) -> list[dict[str, Any]]:
    """The rows of one run."""
    return synthetic.run(task, METHODS[task.method], PER_DIMENSION * task.d)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Errors of z_1 at the full budget by what was changed, and tests that the change makes them smaller.

    With respect to the preset that was changed; ``worst, nats`` is the largest error of the log-odds.
    """
    table = []
    end = rows.sort_values("n_evaluations").groupby(["d", "dataset", "method"]).tail(1)
    nats = (end.log_odds - end.log_odds_true).abs().groupby([end.d, end.method]).max().to_dict()
    for d, wide in synthetic.final_errors(rows).groupby(level="d"):
        for method in synthetic.in_order(set(wide.columns) & set(METHOD_NAMES), METHOD_NAMES):
            error, whole = wide[method].dropna(), "default_independent" if method in BACK else "paper"
            row = {"d": d, "method": method, "changed": in_words(method), "n": len(error)}
            row |= {"mean": error.mean(), "median": error.median(), "worst, nats": nats[d, method]}
            if whole in wide and method != whole:
                row |= dict(zip(("t", "Wilcoxon"), smaller(error, wide[whole]), strict=True))
            table.append(row | {"worst five": worst_share(error)})
    columns = "d", "method", "changed", "n", "mean", "median", "worst five", "worst, nats", "t", "Wilcoxon"
    return pd.DataFrame(table).reindex(columns=list(columns))


def in_words(method: str) -> str:
    """The options that ``method`` has unlike the preset it is named after."""
    change: Iterable[tuple[str, Any]] = (CHANGES | BACK).get(method, {}).items()
    return ", ".join(f"{name}={value}" for name, value in change) or "–"
