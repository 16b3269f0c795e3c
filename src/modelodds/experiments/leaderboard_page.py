"""The page of docs about the leaderboard: tables from the runs there are, and its figures beside it."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from modelodds.baselines import METHODS
from modelodds.experiments.leaderboard import SUITE, WITHIN, answered, calibration, data_of, standings
from modelodds.experiments.leaderboard_plots import save
from modelodds.experiments.page import codes_by_method, markdown_table
from modelodds.problems import load

TEMPLATE = Path(__file__).with_suffix(".md")
OURS = "default"
PEERS = ("pyvbmc", "bobe", "nautilus", "dynesty", "bridge", "reversible_jump")
FAR = 1.0  # nats
SMALL = 6  # parameters of a model up to which a problem is one of few dimensions


def write(rows: pd.DataFrame, out: Path) -> list[Path]:
    """Write the page to ``out`` and its figures into ``img`` beside it."""
    table = standings(rows)
    slots = {
        "notice": _notice(rows),
        "within": f"{WITHIN:g}",
        "needed": markdown_table(needed(table)),
        "ratios": markdown_table(ratios(rows)),
        "verdict": _verdict(ratios(rows)),
        "medians": markdown_table(medians(table)),
        "calibration": markdown_table(_percent(calibration(rows))),
        "by_dimension": markdown_table(_percent(by_dimension(rows))),
        "worst": _worst(table),
        "ours": markdown_table(_percent(table[table.method == OURS].drop(columns="method"))),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(TEMPLATE.read_text(encoding="utf-8").format(**slots), encoding="utf-8")
    return [out, *save(rows, table, out.parent / "img")]


def dimension(problem: str) -> int:
    """Parameters of the problem's largest model."""
    return max(model.dim for model in load(problem, data_of(problem, 0)).models)


def needed(table: pd.DataFrame) -> pd.DataFrame:
    """Median evaluations to the answer: a row per problem, a column per method, runs in brackets."""
    found = []
    for problem in _problems(table):
        row: dict[str, object] = {"problem": problem, "d": dimension(problem)}
        mine = table[table.problem == problem].set_index("method")
        for method in _methods(table):
            row[method] = (
                f"{_count(mine.needed[method])} ({mine.runs[method]})" if method in mine.index else "–"
            )
        found.append(row)
    return pd.DataFrame(found)


def ratios(rows: pd.DataFrame) -> pd.DataFrame:
    """Ours against the best peer of each problem, both on data that both have had: some are harder."""
    runs = answered(rows).drop_duplicates(["problem", "data", "method", "seed"])
    found = []
    for problem in _problems(runs):
        mine = runs[(runs.problem == problem) & (runs.method == OURS)]
        pairs = []
        for peer in PEERS:
            other = runs[(runs.problem == problem) & (runs.method == peer)]
            ours, theirs = (a[a.data.isin(b.data)].needed for a, b in ((mine, other), (other, mine)))
            if len(ours):
                pairs.append((float(theirs.median()), peer, float(ours.median())))
        if not pairs:
            continue
        its, best, own = min(pairs)
        ratio = own / its if np.isfinite([own, its]).any() else np.nan
        row = {"problem": problem, "d": dimension(problem), OURS: own}
        found.append(row | {"best peer": best if np.isfinite(its) else "none", "its": its, "ratio": ratio})
    return pd.DataFrame(found, columns=["problem", "d", OURS, "best peer", "its", "ratio"])


def medians(table: pd.DataFrame) -> pd.DataFrame:
    """Median over problems of the evaluations that a method needs: those of few dimensions, and all."""
    found = []
    small = table.problem.map({p: dimension(p) <= SMALL for p in _problems(table)})
    for method in _methods(table):
        mine = table.method == method
        row: dict[str, object] = {"method": method}
        for suffix, these in ((f", d ≤ {SMALL}", mine & small), (", all", mine)):
            counts = table[these].needed
            reached = f"{int(np.isfinite(counts).sum())} of {len(counts)}"
            row |= {f"median{suffix}": counts.median(), f"reached{suffix}": reached}
        found.append(row)
    return pd.DataFrame(found)


def by_dimension(rows: pd.DataFrame) -> pd.DataFrame:
    """Coverage of our default's intervals, for problems of few dimensions and of more."""
    ours = rows[rows.method == OURS]
    small = ours.problem.map({p: dimension(p) <= SMALL for p in _problems(ours)}).astype(bool)
    found = [
        calibration(ours[these]).assign(method=name).rename(columns={"method": "problems"})
        for name, these in ((f"d ≤ {SMALL}", small), (f"d > {SMALL}", ~small))
        if these.any()
    ]
    return pd.concat(found) if found else calibration(ours)


def _worst(table: pd.DataFrame) -> str:
    """Where the worst run is far off after twice the evaluations that the median run needs."""
    ours = table[table.method == OURS]
    never = [p for p in _problems(ours) if not np.isfinite(ours.needed[ours.problem == p]).all()]
    reached = ours[~ours.problem.isin(never)]
    far = reached[reached["worst at twice"] > FAR]
    says = (
        f"Of {len(ours)} problems the median run gets there on {len(reached)}; after twice as many "
        "evaluations, or at the end of its budget where that comes first, the worst run of any of them is "
        f"off by {reached['worst at twice'].max():.2g} nats"
    )
    says += f" (over {FAR:g} on {_listed(list(far.problem))})" if len(far) else ""
    if not never:
        return f"{says}."
    worst = f"{ours.worst[ours.problem.isin(never)].max():.2g} nats"
    says += f". It does not get there on {_listed(never)}, where the worst run ends {worst} off"
    others = table[table.problem.isin(never) & table.method.isin(PEERS) & np.isfinite(table.needed)]
    do = [f"`{o.method}` on `{o.problem}` after {o.needed:.0f} evaluations" for o in others.itertuples()]
    return (
        f"{says}; of its peers {' and '.join(do) or 'none'} does." if len(table) > len(ours) else f"{says}."
    )


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _verdict(table: pd.DataFrame) -> str:
    known = table[table.ratio.notna()]
    if known.empty:
        return ""
    few = known[known.d <= SMALL]
    more = int((known.ratio > 1.0).sum())
    return (
        f"Our default needs {few.ratio.median():.2g} times as many in the median problem with d ≤ {SMALL}, "
        f"{known.ratio.median():.2g} times in that of all, "
        f"and more than the best peer on {more} of {len(known)}."
    )


def _notice(rows: pd.DataFrame) -> str:
    """How many runs each method has, and which code made them."""
    runs = rows.drop_duplicates(["problem", "data", "method", "seed"])
    says = []
    for method in _methods(rows):
        each = runs[runs.method == method].groupby("problem").size()
        seeds = f"{each.min()}" if each.min() == each.max() else f"{each.min()} to {each.max()}"
        says.append(f"`{method}` {seeds} on each of {len(each)}")
    made = codes_by_method(runs, _methods(rows))
    return f"Runs, of {len(_problems(rows))} problems: {', '.join(says)}. Made by modelodds {made}."


def _problems(table: pd.DataFrame) -> list[str]:
    return [problem for problem in SUITE if problem in set(table.problem)]


def _methods(table: pd.DataFrame) -> list[str]:
    return [method for method in METHODS if method in set(table.method)]


def _count(value: float) -> str:
    return f"{value:.0f}" if np.isfinite(value) else "∞"


def _percent(table: pd.DataFrame, names: Iterable[str] = ("in 50 %", "in 80 %", "in 95 %")) -> pd.DataFrame:
    return table.assign(**{name: [f"{100 * share:.0f} %" for share in table[name]] for name in names})
