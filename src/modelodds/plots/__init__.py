"""Figures of a result: pure functions that say what to draw, and thin ones that draw it.

matplotlib is imported when a figure is asked for, not with the library, and its global state is left alone.
Every figure takes ``dark=True`` for dark pages and slides.
"""

from modelodds.plots.checks import calibration_figure, left_out_figure, sensitivity_figure
from modelodds.plots.evidences import evidence_densities, evidences_figure
from modelodds.plots.overview import (
    DASHES,
    FARTHEST,
    MOST_BANDS,
    Trace,
    cumulative_evaluations,
    log_odds_against_best,
    probabilities_figure,
    probability_trace,
    style,
)
from modelodds.plots.posterior import corner_figure, corner_points
from modelodds.plots.surrogate import surrogate_figure
from modelodds.plots.theme import PALETTE

__all__ = [
    "DASHES",
    "FARTHEST",
    "MOST_BANDS",
    "PALETTE",
    "Trace",
    "calibration_figure",
    "corner_figure",
    "corner_points",
    "cumulative_evaluations",
    "evidence_densities",
    "evidences_figure",
    "left_out_figure",
    "log_odds_against_best",
    "probabilities_figure",
    "probability_trace",
    "sensitivity_figure",
    "style",
    "surrogate_figure",
]
