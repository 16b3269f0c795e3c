"""Figures of the leaderboard: who needs how many evaluations, and whose intervals hold what they say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import special

from modelodds.baselines import METHODS
from modelodds.experiments import figures
from modelodds.experiments.leaderboard import errors, picked, telling
from modelodds.plots import PALETTE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVELS = np.linspace(0.05, 0.99, 48)
MARKS = ("o", "s", "D", "^", "v", "P", "X", "*")
ENOUGH = 10  # runs that a method needs for a curve of coverage


def styles(rows: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Colour and mark of each method in ``rows``, in the order of METHODS, ours first."""
    found = sorted(set(rows.method), key=list(METHODS).index)
    return {
        method: {"color": PALETTE[i % len(PALETTE)], "marker": MARKS[i % len(MARKS)]}
        for i, method in enumerate(found)
    }


def covered(rows: pd.DataFrame, share: float = 1.0, least: int = 1) -> dict[str, np.ndarray]:
    """Share of each method's runs whose interval of each of LEVELS has the truth, by method.

    Methods of which fewer than ``least`` runs claim anything so far are left out.
    """
    found = {}
    for method, group in errors(rows).groupby("method", sort=False):
        off = telling(picked(group, share)).off.to_numpy()
        if len(off) >= least:
            found[str(method)] = np.array([(off <= special.ndtri(0.5 + 0.5 * p)).mean() for p in LEVELS])
    return found


def draw_needed(standings: pd.DataFrame) -> Figure:
    """Evaluations to the answer, one line per problem; open marks at the edge where the median run failed."""
    from matplotlib.figure import Figure

    problems, marks = list(dict.fromkeys(standings.problem)), styles(standings)
    figure = Figure(figsize=(8, 0.32 * len(problems) + 1.2), layout="constrained")
    axes = figure.subplots()
    never = 1.6 * standings.needed[np.isfinite(standings.needed)].max()
    for i, (method, style) in enumerate(marks.items()):
        rows = standings[standings.method == method]
        y = np.array([problems.index(p) for p in rows.problem]) + 0.12 * (i - 0.5 * (len(marks) - 1))
        reached = np.isfinite(rows.needed.to_numpy())
        x = np.where(reached, rows.needed, never)
        style = style | {"linestyle": "none"}
        axes.plot(x[reached], y[reached], label=method, **style)
        axes.plot(x[~reached], y[~reached], fillstyle="none", **style)
    axes.set_xscale("log")
    axes.axvline(never / 1.25, color="0.7", linewidth=0.8)
    axes.set_yticks(range(len(problems)), problems)
    axes.invert_yaxis()
    axes.grid(axis="y", color="0.9")
    axes.set_xlabel(
        "evaluations of all models until the log-odds stay within 0.1 nats (open: not reached)", fontsize=9
    )
    figure.legend(loc="outside upper center", ncols=min(4, len(marks)), frameon=False)
    return figure


def draw_calibration(rows: pd.DataFrame) -> Figure:
    """Coverage against level, at the end of the budget and half-way there, of methods with enough runs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.4), layout="constrained")
    for axes, share, title in zip(
        figure.subplots(1, 2, sharey=True),
        (0.5, 1.0),
        ("half of the budget", "all of the budget"),
        strict=True,
    ):
        axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        held = covered(rows, share, ENOUGH)
        for method, style in styles(rows).items():
            if method in held:
                width = 2.5 if method == "default" else 1.3
                axes.plot(LEVELS, held[method], color=style["color"], linewidth=width, label=method)
        axes.set(title=title, xlabel="level of the interval", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    figure.axes[0].set_ylabel("share of runs it held in")
    handles, labels = figure.axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    return figure


def save(rows: pd.DataFrame, standings: pd.DataFrame, folder: Path) -> list[Path]:
    """Both figures as PNG and SVG."""
    drawn = {"needed": draw_needed(standings), "calibration": draw_calibration(rows)}
    return [
        path
        for name, figure in drawn.items()
        for path in figures.save(figure, folder / f"leaderboard-{name}")
    ]
