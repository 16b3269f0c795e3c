"""Corner plots of a model's posterior, with the points that were evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from modelodds.plots.surrogate import seen_points
from modelodds.plots.theme import paint, theme
from modelodds.result import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST = 7  # parameters in one picture
BINS = 40
TAIL = 0.002  # share of the draws left outside the frame, at either end


def corner_points(result: Result, name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Posterior draws of the parameters that vary (at most seven), and the evaluations, order in ``id``."""
    draws = (
        result.posterior(name, len(result.draws[name])) if name in result.draws else result.posterior(name)
    )
    varying = [column for column in draws if np.ptp(draws[column].to_numpy()) > 0][:MOST]
    return draws[varying], seen_points(result, name)


def corner_figure(result: Result, name: str, dark: bool = False) -> Figure | None:
    """Posterior of one model: densities, pairs, and the evaluated points; None for one without parameters."""
    from matplotlib.figure import Figure

    colours = theme(dark)
    draws, points = corner_points(result, name)
    names = list(draws)
    if not names:
        return None
    colour = colours.colour(result.names.index(name))
    size = max(4.0, 2.1 * len(names))
    figure = Figure(figsize=(size, size), layout="constrained")
    grid = figure.subplots(len(names), len(names), squeeze=False)
    limits = {column: tuple(draws[column].quantile([TAIL, 1 - TAIL])) for column in names}
    for i, row in enumerate(names):
        for j, column in enumerate(names):
            axes = grid[i, j]
            if j > i:
                axes.set_axis_off()
                continue
            if i == j:
                axes.hist(draws[row], bins=BINS, range=limits[row], color=colour, alpha=0.8)
                axes.set_yticks([])
            else:
                axes.plot(draws[column], draws[row], ".", color=colour, markersize=1.5, alpha=0.35)
                axes.plot(points[column], points[row], "o", color=colours.ink, markersize=3)
                axes.set_ylim(limits[row])
            axes.set_xlim(limits[column])
            axes.tick_params(labelsize=8, labelbottom=i == len(names) - 1, labelleft=j == 0 < i)
            axes.locator_params(nbins=4)
            axes.set_xlabel(column if i == len(names) - 1 else "")
            axes.set_ylabel(row if j == 0 < i else "")
            axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{name}: posterior, and evaluated points within it", color=colours.ink)
    return paint(figure, colours)
