"""What the surrogate of one model believes, and where it would look next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from modelodds.errors import ResultError
from modelodds.plots.theme import Theme, dress, paint, theme
from modelodds.result import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 4  # slices side by side


def seen_points(result: Result, name: str) -> pd.DataFrame:
    """Evaluations of one model that gave a finite value, with ``below``: nats relative to its best."""
    rows = result.evaluations[result.evaluations["model"] == name]
    rows = rows[np.isfinite(rows["log_likelihood"].to_numpy(dtype=float))]
    seen: pd.DataFrame = rows.assign(below=rows["log_likelihood"] - rows["log_likelihood"].max())
    return seen


def kept(result: Result, name: str) -> dict[str, Any]:
    """What the result keeps of one model's surrogate, or an error that says why there is nothing."""
    if name not in result.names:
        raise ResultError(f"There is no model named {name!r}; the models are {', '.join(result.names)}.")
    if name not in result.diagnostics:
        raise ResultError(
            f"Nothing is kept of a surrogate of {name!r}: the method {result.method} has none, the model has "
            "no free parameters, or the result was saved by an earlier version."
        )
    return result.diagnostics[name]


def surrogate_figure(result: Result, name: str, dark: bool = False) -> Figure:
    """Surrogate and acquisition along each parameter through the best point, as maps too if there are two.

    Observations are drawn where they are for a model of one parameter, in the maps for one of two.
    """
    from matplotlib.figure import Figure

    colours, keep = theme(dark), kept(result, name)
    slices = list(keep["slices"].items())[:MOST]
    columns = len(slices) + ("map" in keep)
    figure = Figure(figsize=(max(6.0, 3.6 * columns), 5.4), layout="constrained")
    grid = figure.subplots(2, columns, squeeze=False, height_ratios=(1.6, 1.0), sharex="col")
    alone = len(keep["slices"]) == 1
    for (top, bottom), (label, line) in zip(grid.T, slices, strict=False):
        _draw_slice(top, label, line, seen_points(result, name) if alone else None, colours)
        _draw_score(bottom, label, line, colours)
    grid[0, 0].set_ylabel("log-likelihood − best, ± 2 sd")
    grid[1, 0].set_ylabel("what an evaluation\nwould tell")
    if "map" in keep:
        labels = list(keep["slices"])
        for axes, what in zip(grid[:, -1], ("mean", "score"), strict=True):
            _draw_map(axes, keep["map"], what, labels, seen_points(result, name), colours)
    figure.suptitle(f"{name}: its surrogate through the best point", x=0.01, ha="left", color=colours.ink)
    return paint(figure, colours)


def _draw_slice(
    axes: Axes, label: str, line: dict[str, Any], points: pd.DataFrame | None, colours: Theme
) -> None:
    x, mean, sd = line["value"], line["mean"], line["sd"]
    colour = colours.colour(0)
    axes.fill_between(x, mean - 2 * sd, mean + 2 * sd, color=colour, alpha=0.25, linewidth=0)
    axes.plot(x, mean, color=colour, linewidth=1.8)
    low = float(np.nanmin(mean)) - 1.0
    if points is not None:
        inside = points[points["below"] >= low]
        axes.plot(inside[label], inside["below"], "o", color=colours.colour(1), markersize=4)
    axes.set_xlim(float(x.min()), float(x.max()))
    axes.set_ylim(low, float(np.nanmax(mean)) + 1.0)
    dress(axes, "", "", "")


def _draw_score(axes: Axes, label: str, line: dict[str, Any], colours: Theme) -> None:
    axes.plot(line["value"], line["score"], color=colours.colour(2), linewidth=1.8)
    axes.set_ylim(bottom=0.0)
    dress(axes, "", label, "")


def _draw_map(
    axes: Axes, grid: dict[str, Any], what: str, labels: list[str], points: pd.DataFrame, colours: Theme
) -> None:
    axes.contourf(grid["first"], grid["second"], grid[what], levels=14, cmap=colours.shades)
    inside = points[
        points[labels[0]].between(grid["first"].min(), grid["first"].max())
        & points[labels[1]].between(grid["second"].min(), grid["second"].max())
    ]
    axes.plot(
        inside[labels[0]], inside[labels[1]], "o", color="#D55E00", markersize=3.5, markeredgecolor="white"
    )
    dress(axes, "", labels[0] if what == "score" else "", labels[1])
