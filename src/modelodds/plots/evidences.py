"""What is known of the evidences, and what that leaves open of the odds (Chai et al. 2019, fig. 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from modelodds import correlated
from modelodds.plots.theme import Theme, dress, paint, theme
from modelodds.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

REACH = 4.0  # standard deviations drawn to each side
NARROWEST = 1e-6  # nats: an evidence known exactly is drawn this wide
FAR = 30.0  # nats below the best beyond which an evidence is left out of the picture
DRAWS = 2**14
SLIVER = 0.2  # a probability known more closely than this gets a scale of its own


@dataclass(frozen=True)
class Densities:
    """Densities of the log-evidences, the log-odds of the two best, and the best one's probability."""

    names: list[str]  # of the models in the picture, best first
    log_evidence: Array  # (m, 201), relative to the best model's mean
    log_evidence_density: Array  # (m, 201), each with a peak of one
    log_odds: Array  # (201,)
    log_odds_density: Array  # (201,)
    probability: Array  # (DRAWS,) draws of the best model's probability


def evidence_densities(result: Result) -> Densities:
    """What `evidences_figure` draws."""
    order = list(result.table().index)
    mean, sd = result.log_evidence, result.log_evidence_sd
    shown = [name for name in order if mean[name] > mean[order[0]] - FAR] or order[:1]
    t = np.linspace(-REACH, REACH, 201)
    widths = np.array([max(sd[name], NARROWEST) for name in shown])
    centres = np.array([mean[name] - mean[order[0]] for name in shown])
    middle, spread = result.log_odds(order[0], order[1]) if len(order) > 1 else (0.0, 0.0)
    spread = max(spread, NARROWEST)
    location = result.log_evidence_mean + np.log(result.prior_probabilities)
    log_a = correlated.draws(location, result.log_evidence_cov, DRAWS)
    return Densities(
        shown,
        centres[:, None] + widths[:, None] * t,
        np.repeat(np.exp(-0.5 * t**2)[None], len(shown), 0),
        middle + spread * t,
        stats.norm.pdf(t) / spread,
        special.softmax(log_a, axis=1)[:, result.names.index(order[0])],
    )


def evidences_figure(result: Result, dark: bool = False) -> Figure:
    """Evidences, the odds of the two best models, and the probability of the best, each with its doubt."""
    from matplotlib.figure import Figure

    data, colours = evidence_densities(result), theme(dark)
    figure = Figure(figsize=(12.0, 3.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    _draw_evidences(left, result, data, colours)
    _draw_odds(middle, data, colours)
    _draw_probability(right, result, data, colours)
    return paint(figure, colours)


def _draw_evidences(axes: Axes, result: Result, data: Densities, colours: Theme) -> None:
    rows = zip(data.names, data.log_evidence, data.log_evidence_density, strict=True)
    for level, (name, x, density) in enumerate(rows):
        colour = colours.colour(result.names.index(name))
        axes.fill_between(x, -level, 0.8 * density - level, color=colour, alpha=0.35, linewidth=0)
        axes.plot(x, 0.8 * density - level, color=colour, linewidth=1.8)
        axes.plot([x[100]] * 2, [-level, 0.8 - level], color=colour, linewidth=1.8)
    axes.set_yticks([-float(level) for level in range(len(data.names))], data.names)
    axes.set_ylim(0.15 - len(data.names), 1.0)
    axes.axvline(0.0, color=colours.faint, linewidth=1, zorder=0)
    dress(axes, "Log-evidences", f"log-evidence minus that of {data.names[0]}", "")


def _draw_odds(axes: Axes, data: Densities, colours: Theme) -> None:
    if len(data.names) < 2:
        axes.text(0.5, 0.5, "no rival within reach", ha="center", transform=axes.transAxes, color=colours.ink)
        axes.set_axis_off()
        return
    axes.fill_between(data.log_odds, data.log_odds_density, color=colours.ink, alpha=0.15, linewidth=0)
    axes.plot(data.log_odds, data.log_odds_density, color=colours.ink, linewidth=1.8)
    axes.axvline(0.0, color=colours.faint, linewidth=1, zorder=0)
    axes.set_ylim(bottom=0)
    title = f"Log-odds of {data.names[0]} over {data.names[1]}"
    dress(axes, title, "natural log of the odds; 0 is even", "density")


def _draw_probability(axes: Axes, result: Result, data: Densities, colours: Theme) -> None:
    colour = colours.colour(result.names.index(data.names[0]))
    low, high = _frame(data.probability)
    axes.hist(data.probability, bins=60, range=(low, high), color=colour, density=True)
    axes.set_xlim(low, high)
    dress(axes, f"Probability of {data.names[0]}", "posterior probability", "density")


def _frame(probability: Array) -> tuple[float, float]:
    """From where to where to draw: all from 0 to 1, unless the doubt would be a sliver of that."""
    low, high = np.quantile(probability, [0.001, 0.999])
    if high - low > SLIVER:
        return 0.0, 1.0
    pad = max(0.3 * (high - low), 1e-4)
    return max(float(low) - pad, 0.0), min(float(high) + pad, 1.0)
