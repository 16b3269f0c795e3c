"""The paper's model-choice experiment (Chai et al. 2019, section 6.3): whose favourite is the right one.

The synthetic task again, in one and two dimensions, and targets that ask only which model is the better,
[z_1 > z_2], beside those that ask how probable each is. Each target guides the paper's surrogate and our
default's, so that what the target does can be told from what the surrogate does; the latter with models that
do not learn from each other (``default_independent``), which not every target can do.

| target        | paper's surrogate       | our default's                                    |
|---------------|-------------------------|--------------------------------------------------|
| z             | ``paper``               | ``default_mutual_information``                   |
| log-odds      |                         | ``default_independent``                          |
| [z_1 > z_2], Gaussian evidences | ``paper_choice_gaussian`` | ``default_choice_gaussian``  |
| [z_1 > z_2], Gaussian log-evidences | ``paper_choice`` | ``default_choice``                    |
| z_1 - z_2     | ``paper_difference``    | ``default_difference``                           |

For two models and Gaussian log-evidences, whatever tells more about the log-odds tells more about every
function of them (Blackwell's order): ``default_independent``, ``default_choice`` and ``default_difference``
choose the same points, and so do ``paper_choice`` and ``paper_difference``. `agreement` counts in how many
runs they did.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from modelodds import baselines
from modelodds.baselines import Entry
from modelodds.errors import OptionError
from modelodds.experiments import synthetic
from modelodds.experiments.provenance import up_to_date
from modelodds.experiments.statistics import mcnemar, share, smaller
from modelodds.experiments.synthetic import PER_DIMENSION, Task, along, in_order
from modelodds.method import resolve_method

OUT = Path("results/model_choice/curves.csv.gz")
DIMENSIONS = (1, 2)
TARGETS = {"choice_gaussian": "model_choice_gaussian", "choice": "model_choice", "difference": "difference"}
MONTE_CARLO = ("bridge", "reversible_jump")
PAPER = ("paper", *(f"paper_{name}" for name in TARGETS), "round_robin")
DEFAULT = (
    "default",
    "default_independent",
    "default_mutual_information",
    *(f"default_{name}" for name in TARGETS),
    "round_robin_default",
)
METHOD_NAMES = (*DEFAULT, *PAPER, *MONTE_CARLO)
SHARES = (0.4, 1.0)  # of the budget at which choices are counted: soon after the design, and at the end


def _variant(preset: str, acquisition: str) -> Entry:
    method = resolve_method(preset, acquisition=acquisition, coupling="independent")
    return Entry("baselines.ours", f"{preset} with the target {acquisition}", (("method", method),))


METHODS: dict[str, Entry] = baselines.METHODS | {
    f"{preset}_{name}": _variant(preset, rule)
    for preset in ("default", "paper")
    for name, rule in {**TARGETS, "mutual_information": "mutual_information"}.items()
    if (preset, name) != ("paper", "mutual_information")  # that is the preset itself
}


def check_method(name: str) -> None:
    """Complain about a method that does not exist."""
    if name not in METHODS:
        raise OptionError(f"There is no method {name!r}; the methods are {', '.join(METHODS)}.")


def work(task: Task) -> list[dict[str, Any]]:
    """The rows of one run."""
    return synthetic.run(task, METHODS[task.method], PER_DIMENSION * task.d)


def borrowed(tasks: Iterable[Task], known: pd.DataFrame, ran: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of the synthetic experiment, ``ran`` there by this very code, that ``known`` here is missing.

    The two experiments have the same runs of the methods that both have.
    """
    if ran.empty:
        return []
    key = list(Task._fields)
    there = ran[up_to_date(ran)]
    have = set() if known.empty else set(known[key].itertuples(index=False, name=None))
    wanted = set(map(tuple, tasks)) - have
    found = there[[task in wanted for task in there[key].itertuples(index=False, name=None)]]
    return [{str(name): value for name, value in row.items()} for row in found.to_dict("records")]


# ---------------------------------------------------------------------- tables


def right(rows: pd.DataFrame) -> pd.Series:
    """Whether the model with the larger probability is the one that truly has it; a tie is no choice."""
    return ((rows.z1 > 0.5) & (rows.z1_true > 0.5)) | ((rows.z1 < 0.5) & (rows.z1_true < 0.5))


def at(rows: pd.DataFrame, d: int, portion: float) -> pd.DataFrame:
    """The last row of every run in ``d`` dimensions up to this portion of the budget."""
    early = rows[(rows.d == d) & (rows.n_evaluations <= portion * PER_DIMENSION * d)]
    return early.sort_values("n_evaluations").groupby(["method", "dataset"]).tail(1)


def choices(rows: pd.DataFrame, ours: str = "default") -> pd.DataFrame:
    """Share of right choices with its interval, and McNemar's test of ``ours`` against each method.

    ``silent``: share of datasets on which the method has said nothing yet, which is no right choice;
    ``ours alone``: datasets on which our choice was right and the method's was not; ``it alone``: the
    reverse.
    """
    table = []
    for d in sorted(rows.d.unique()):
        for portion in SHARES:
            end = at(rows, d, portion)
            wide = end.assign(right=right(end)).pivot(index="dataset", columns="method", values="right")
            silent = (end.z1 == 0.5).groupby(end.method).mean()
            for method in in_order(wide.columns, METHOD_NAMES):
                hits = wide[method].dropna().astype(bool)
                found = share(hits)
                row: dict[str, Any] = {"d": d, "share": portion, "method": method, "n": len(hits)}
                row |= {"silent": silent[method], "right": found.value, "low": found.low, "high": found.high}
                table.append(row | _against(wide, ours, method))
    return pd.DataFrame(table)


def _against(wide: pd.DataFrame, ours: str, method: str) -> dict[str, Any]:
    names = "ours alone", "it alone", "McNemar"
    if ours not in wide or method == ours:
        return dict.fromkeys(names, np.nan)
    both = wide[[ours, method]].dropna().astype(bool)
    return dict(zip(names, mcnemar(both[ours], both[method]), strict=True))


def z_errors(rows: pd.DataFrame, ours: str = "default") -> pd.DataFrame:
    """Fractional errors of z_1 at the end (figure 4), and one-sided paired tests of ``ours``."""
    table = []
    for d, wide in synthetic.final_errors(rows).groupby(level="d"):
        for method in in_order(wide.columns, METHOD_NAMES):
            error = wide[method].dropna()
            test = smaller(wide[ours], error) if ours in wide and method != ours else (np.nan, np.nan)
            row = {"d": d, "method": method, "n": len(error), "mean": error.mean(), "median": error.median()}
            row |= {"s.e.": error.sem(), f"t, {ours}": test[0], f"Wilcoxon, {ours}": test[1]}
            table.append(row)
    return pd.DataFrame(table)


def agreement(rows: pd.DataFrame) -> pd.DataFrame:
    """Runs in which two targets gave the very same curve, to the last digit kept."""
    pairs = [("default_independent", m) for m in DEFAULT[2:-1]] + [("paper", m) for m in PAPER[1:-1]]
    pairs.append(("paper_choice", "paper_difference"))
    table = []
    for d, group in rows.groupby("d"):
        runs = {key: run for key, run in group.groupby(["method", "dataset"])[["n_evaluations", "z1"]]}
        for ours, method in pairs:
            shared = [i for m, i in runs if m == method and (ours, i) in runs]
            same = [np.array_equal(runs[ours, i], runs[method, i]) for i in shared]
            if same:
                table.append({"d": d, "method": method, "as": ours, "runs": len(same), "the same": sum(same)})
    return pd.DataFrame(table)


def share_right(rows: pd.DataFrame, method: str, d: int) -> pd.Series:
    """Share of right choices by number of evaluations (figure 5)."""
    group = rows[(rows.method == method) & (rows.d == d)]
    return along(group, right(group).astype(float)).mean()
