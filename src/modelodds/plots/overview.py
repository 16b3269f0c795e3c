"""How the probabilities settled, where the evaluations went, and the log-odds at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modelodds import odds
from modelodds.plots.theme import LIGHT, Theme, count_axis, dress, paint, theme
from modelodds.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

DASHES = ("-", "--", ":")  # one more dash pattern each time the colours run out
MOST_BANDS = 200  # rows of history that get a band: finer would not show
FARTHEST = -30.0  # nats; log-odds below this are written at the edge, so that the others keep their scale


@dataclass(frozen=True)
class Trace:
    """Probabilities as the run went on: `n_evaluations` (r,), `mean` and `sd` (r, k)."""

    n_evaluations: Array
    mean: Array
    sd: Array


def probability_trace(result: Result) -> Trace:
    """Posterior probabilities after each recorded step; the final ones alone when there is no history."""
    if result.history.empty:
        sd = np.array([list(result.probability_sd.values())])
        return Trace(np.array([float(len(result.evaluations))]), result.probabilities_mean[None, :], sd)
    rows = np.unique(np.linspace(0, len(result.history) - 1, MOST_BANDS).round().astype(int))
    history = result.history.iloc[rows]
    log_prior = np.log(result.prior_probabilities)
    beliefs = zip(
        _columns(history, "log_evidence", result), _columns(history, "log_evidence_sd", result), strict=True
    )
    moments = [_moments(mean, sd, log_prior) for mean, sd in beliefs]
    mean, sd = (np.array(part) for part in zip(*moments, strict=True))
    return Trace(history["n_evaluations"].to_numpy(dtype=float), mean, sd)


def cumulative_evaluations(result: Result) -> Array:
    """Evaluations of each model so far, after 0, 1, ..., n of all; shape (n + 1, k)."""
    model = result.evaluations["model"].to_numpy()
    hits = np.array([model == name for name in result.names], dtype=float).reshape(len(result.names), -1)
    return np.vstack([np.zeros(len(result.names)), np.cumsum(hits, axis=1).T])


def log_odds_against_best(result: Result) -> pd.DataFrame:
    """Log posterior odds of every model against the most probable one, best first: columns mean and sd."""
    order = list(result.table().index)
    return pd.DataFrame(
        [result.log_odds(name, order[0]) for name in order], index=order, columns=["mean", "sd"]
    )


def probabilities_figure(result: Result, dark: bool = False) -> Figure:
    """How the probabilities settled, where the evaluations went, and the log-odds at the end.

    Returns
    -------
    matplotlib.figure.Figure
        Save it with `figure.savefig("odds.png")`; a notebook shows it as it is.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.5, 1.0, 1.0))
    colours = theme(dark)
    _draw_probabilities(left, result, colours)
    _draw_evaluations(middle, result, colours)
    _draw_log_odds(right, result, colours)
    handles, labels = left.get_legend_handles_labels()
    columns = min(len(labels), 4)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
    return paint(figure, colours)


def style(position: int, colours: Theme = LIGHT) -> dict[str, Any]:
    """Colour and dashes of the model at `position`; no two alike among the first 24."""
    return {
        "color": colours.colour(position),
        "linestyle": DASHES[position // len(colours.palette) % len(DASHES)],
    }


def _draw_probabilities(axes: Axes, result: Result, colours: Theme) -> None:
    trace = probability_trace(result)
    marker = "o" if len(trace.n_evaluations) == 1 else ""
    for i, name in enumerate(result.names):
        mean, sd = trace.mean[:, i], trace.sd[:, i]
        low, high = np.clip(mean - 2.0 * sd, 0.0, 1.0), np.clip(mean + 2.0 * sd, 0.0, 1.0)
        axes.fill_between(
            trace.n_evaluations, low, high, color=style(i, colours)["color"], alpha=0.15, linewidth=0
        )
        axes.plot(trace.n_evaluations, mean, label=name, marker=marker, linewidth=1.8, **style(i, colours))
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlim(left=0)
    count_axis(axes.xaxis)
    dress(axes, "Posterior probability, ± 2 sd", "evaluations", "probability")


def _draw_evaluations(axes: Axes, result: Result, colours: Theme) -> None:
    counts = cumulative_evaluations(result)
    for i in range(len(result.names)):
        axes.plot(counts[:, i], linewidth=1.8, drawstyle="steps-post", **style(i, colours))
    axes.set_ylim(0, max(counts.max() * 1.05, 1))
    count_axis(axes.xaxis)
    count_axis(axes.yaxis)
    dress(axes, "Where the evaluations went", "evaluations, all models", "evaluations of the model")


def _draw_log_odds(axes: Axes, result: Result, colours: Theme) -> None:
    table = log_odds_against_best(result)
    for row, (name, mean, sd) in enumerate(table.itertuples()):
        colour = style(result.names.index(name), colours)["color"]
        if mean >= FARTHEST:
            axes.errorbar(mean, row, xerr=2.0 * sd, fmt="o", color=colour, capsize=3, markersize=6)
        else:
            edge: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "color": colour}
            axes.plot(0.04, row, marker="<", markersize=6, **edge)
            axes.text(0.08, row, _far(mean, 2.0 * sd), va="center", fontsize=9, **edge)
    axes.axvline(0.0, color=colours.faint, linewidth=1, zorder=0)
    axes.set_yticks(range(len(table)), list(table.index))
    axes.set_ylim(len(table) - 0.5, -0.5)
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, -1.0), max(high, 0.1))  # a lone point would be given a scale of its own
    dress(axes, "Log-odds against the best, ± 2 sd", "natural log of the odds", "")


def _far(mean: float, spread: float) -> str:
    """Log-odds too far off to draw, in words."""
    return f"{mean:.0f} ± {spread:.0f}" if spread >= 10.0 else f"{mean:.1f} ± {spread:.2g}"


def _columns(history: pd.DataFrame, quantity: str, result: Result) -> Array:
    """One quantity of the history for every model, shape (r, k)."""
    return np.asarray(history[[f"{quantity}[{name}]" for name in result.names]], dtype=float)


def _moments(mean: Array, sd: Array, log_prior: Array) -> tuple[Array, Array]:
    """E[z] and sd of z, or NaN (a gap in the line) where the belief was not yet a number."""
    if not (np.isfinite(sd).all() and np.isfinite(mean).any() and not np.isnan(mean).any()):
        return np.full(mean.shape, np.nan), np.full(mean.shape, np.nan)
    z, cov = odds.moments(mean, sd, log_prior)
    return z, np.sqrt(np.diag(cov))
