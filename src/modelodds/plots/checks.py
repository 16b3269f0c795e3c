"""Whether the surrogates predict what they claim to, and what it would take to change the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from modelodds.diagnostics import calibration, to_prior_odds, to_widths
from modelodds.diagnostics.sensitivity import PRIOR_ODDS
from modelodds.diagnostics.surrogates import LEVELS
from modelodds.plots.overview import style
from modelodds.plots.theme import Theme, dress, paint, theme
from modelodds.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def left_out_figure(result: Result, dark: bool = False) -> Figure:
    """Each observation against what the surrogate predicts of it from the others, ± 2 sd, model by model."""
    from matplotlib.figure import Figure

    colours, names = theme(dark), list(result.diagnostics)
    columns = min(max(len(names), 1), 3)
    rows = max(1, -(-len(names) // columns))
    figure = Figure(figsize=(4.0 * columns, 3.8 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, name in zip(grid, names, strict=False):
        _draw_left_out(axes, result, name, colours)
    for axes in grid[len(names) :]:
        axes.set_axis_off()
    return paint(figure, colours)


def _draw_left_out(axes: Axes, result: Result, name: str, colours: Theme) -> None:
    keep = result.diagnostics[name]
    near = keep["observed"] >= -keep["followed"]
    observed, mean = keep["observed"][near], keep["left_out_mean"][near]
    sd = np.sqrt(keep["inflation"]) * keep["left_out_sd"][near]
    low = float(-keep["followed"]) - 0.5
    axes.plot([low, 0.5], [low, 0.5], color=colours.faint, linewidth=1, zorder=0)
    colour = colours.colour(result.names.index(name))
    axes.errorbar(observed, mean, yerr=2 * sd, fmt="o", color=colour, markersize=4, linewidth=1)
    axes.set_xlim(low, 0.5)
    axes.set_ylim(low - 1.5, 2.0)
    dress(axes, name, "observed, nats below the best", "predicted from the others")


def calibration_figure(result: Result, dark: bool = False) -> Figure:
    """How often observations fell into the intervals that were predicted for them before they were made."""
    from matplotlib.figure import Figure

    colours = theme(dark)
    figure = Figure(figsize=(5.2, 4.6), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=colours.faint, linewidth=1)
    for name, keep in result.diagnostics.items():
        i = result.names.index(name)
        axes.plot(LEVELS, calibration(keep), label=name, linewidth=1.8, **style(i, colours))
    fewest = min((len(keep["record"]) for keep in result.diagnostics.values()), default=0)
    if fewest:
        low, high = (stats.binom.ppf(q, fewest, LEVELS) / fewest for q in (0.025, 0.975))
        axes.fill_between(LEVELS, low, high, color=colours.faint, alpha=0.15, linewidth=0)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    if result.diagnostics:
        axes.legend(frameon=False, loc="lower right")
    dress(axes, "Calibration of the surrogates", "predicted share inside", "observed share inside")
    return paint(figure, colours)


def sensitivity_figure(result: Result, dark: bool = False) -> Figure:
    """Probabilities under other prior odds, and log-evidences under narrower and wider parameter priors."""
    from matplotlib.figure import Figure

    colours = theme(dark)
    figure = Figure(figsize=(9.6, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for i, name in enumerate(result.names):
        left.plot(PRIOR_ODDS, to_prior_odds(result, name), label=name, linewidth=1.8, **style(i, colours))
    left.set_xscale("log")
    left.set_ylim(-0.02, 1.02)
    left.axvline(1.0, color=colours.faint, linewidth=1, zorder=0)
    left.legend(frameon=False)
    dress(left, "If a model's prior odds were multiplied by", "factor on its prior odds", "its probability")
    _draw_widths(right, result, colours)
    return paint(figure, colours)


def _draw_widths(axes: Axes, result: Result, colours: Theme) -> None:
    table = to_widths(result)
    for row, name in enumerate(result.names):
        i = result.names.index(name)
        for _, factor, _, sd, shift, _, _ in table[table["model"] == name].itertuples(index=False):
            marker = "<" if factor < 1 else ">"
            axes.errorbar(shift, row, xerr=2 * sd, fmt=marker, color=colours.colour(i), capsize=3)
    axes.axvline(0.0, color=colours.faint, linewidth=1, zorder=0)
    axes.set_yticks(range(len(result.names)), result.names)
    axes.set_ylim(len(result.names) - 0.5, -0.5)
    dress(axes, "Priors half (<) and twice (>) as wide", "change of the log-evidence, ± 2 sd", "")
