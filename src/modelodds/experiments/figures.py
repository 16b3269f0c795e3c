"""Figures of the paper's experiments: errors and right choices against evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from modelodds.experiments import model_choice
from modelodds.experiments.synthetic import PER_DIMENSION, along, errors, in_order
from modelodds.plots.theme import PALETTE, count_axis, dress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, VERMILION, GREEN, PINK, ORANGE, SKY, BLACK, GREY = PALETTE
STYLES: dict[str, dict[str, Any]] = {
    "default": {"color": BLUE, "linewidth": 2.4, "zorder": 5},
    "default_independent": {"color": BLUE, "linewidth": 1.4, "linestyle": ":", "zorder": 5},
    "paper": {"color": VERMILION, "linewidth": 2.0},
    "round_robin": {"color": ORANGE, "linewidth": 1.5, "linestyle": "--"},
    "round_robin_default": {"color": SKY, "linewidth": 1.5, "linestyle": "--"},
    "bridge": {"color": BLACK, "linewidth": 1.2, "linestyle": ":"},
    "reversible_jump": {"color": GREY, "linewidth": 1.2, "linestyle": "-."},
    "monte_carlo": {"color": PINK, "linewidth": 1.2, "linestyle": ":"},
    "quasi_monte_carlo": {"color": PINK, "linewidth": 1.2},
    "paper_choice_gaussian": {"color": GREEN, "linewidth": 2.0},
    "default_choice_gaussian": {"color": GREEN, "linewidth": 2.0},
    "paper_choice": {"color": PINK, "linewidth": 1.6},
    "default_choice": {"color": PINK, "linewidth": 1.6, "linestyle": (0, (4, 2)), "zorder": 6},
    "paper_difference": {"color": SKY, "linewidth": 1.4, "linestyle": "--"},
    "default_difference": {"color": ORANGE, "linewidth": 1.2, "linestyle": (2, (2, 4)), "zorder": 7},
    "default_mutual_information": {"color": VERMILION, "linewidth": 1.6},
}
PLAIN = {"linewidth": 1.2, "color": GREY}


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write PNG and SVG, the same bytes whenever the figure is the same."""
    from matplotlib import rc_context

    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_suffix(".png"), stem.with_suffix(".svg")]
    with rc_context({"svg.hashsalt": "modelodds"}):
        figure.savefig(paths[0], dpi=150)
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def errors_figure(rows: pd.DataFrame, methods: Sequence[str]) -> Figure:
    """Mean fractional error of z_1, with its standard error, one panel per dimension (figures 2 and 4)."""
    from matplotlib.figure import Figure

    dimensions = sorted(rows.d.unique())
    across = min(len(dimensions), 3)
    down = -(-len(dimensions) // across)
    figure = Figure(figsize=(4.2 * across, 3.4 * down + 0.6), layout="constrained")
    panels = list(figure.subplots(down, across, squeeze=False).flat)
    for axes, d in zip(panels, dimensions, strict=False):
        for method in in_order(set(rows.method) & set(methods), methods):
            group = rows[(rows.d == d) & (rows.method == method)]
            _draw_errors(axes, group, method)
        axes.set_yscale("log")
        axes.set_xlim(0, PER_DIMENSION * d)
        n = rows[rows.d == d].dataset.nunique()
        _finish(axes, f"d = {d}, {n} datasets", "fractional error of z₁")
    for axes in panels[len(dimensions) :]:
        axes.set_visible(False)
    _legend(figure, panels)
    return figure


def _draw_errors(axes: Axes, group: pd.DataFrame, method: str) -> None:
    wide = along(group, errors(group))
    if wide.empty:
        return
    mean, spread = wide.mean(), wide.sem().fillna(0.0)
    style = STYLES.get(method, PLAIN)
    low = np.maximum(mean - spread, 0.5 * mean)  # a logarithm's axis has no zero
    axes.fill_between(wide.columns, low, mean + spread, color=style["color"], alpha=0.12, linewidth=0)
    axes.plot(wide.columns, mean, label=method, **style)


def choices_figure(rows: pd.DataFrame) -> Figure:
    """Share of datasets whose better model is the favourite (figure 5): by surrogate (rows) and dimension."""
    from matplotlib.figure import Figure

    dimensions = sorted(rows.d.unique())
    families = {"the paper's surrogate": model_choice.PAPER, "our default's": model_choice.DEFAULT}
    size = (4.6 * len(dimensions), 6.8)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(2, len(dimensions), squeeze=False, sharey=True)
    for line, (family, methods) in zip(panels, families.items(), strict=True):
        for axes, d in zip(line, dimensions, strict=True):
            for method in in_order(set(rows[rows.d == d].method), [*methods, *model_choice.MONTE_CARLO]):
                if method in methods or method in model_choice.MONTE_CARLO:
                    found = model_choice.share_right(rows, method, d)
                    axes.plot(found.index, found, label=method, **STYLES.get(method, PLAIN))
            axes.set_xlim(0, PER_DIMENSION * d)
            axes.set_ylim(0.4, 1.02)  # a coin has one half
            _finish(axes, f"d = {d}, {family}", "share of right choices")
    _legend(figure, list(panels.flat))
    return figure


def _finish(axes: Axes, title: str, ylabel: str) -> None:
    count_axis(axes.xaxis)
    dress(axes, title, "evaluations, both models", ylabel)


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """One legend for all panels, below them."""
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        found.values(), found.keys(), loc="outside lower center", ncols=3, frameon=False, fontsize=9
    )
