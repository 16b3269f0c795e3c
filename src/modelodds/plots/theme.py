"""How figures look on light and on dark pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by colour-blind readers; grey for their yellow, which is faint on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
# The same on a dark ground: their light blue leads, and white stands for black.
DARK_PALETTE = ("#56B4E9", "#E69F00", "#1FBF93", "#CC79A7", "#F0E442", "#E8743B", "#FFFFFF", "#A6A6A6")


@dataclass(frozen=True)
class Theme:
    """Colours of a page."""

    paper: str
    ink: str
    faint: str  # lines that guide the eye
    grid: str
    palette: tuple[str, ...]
    shades: str  # matplotlib's name of a sequence of colours

    def colour(self, position: int) -> str:
        """Colour of the model at ``position``."""
        return self.palette[position % len(self.palette)]


LIGHT = Theme("#ffffff", "#1a1a1a", "#8c8c8c", "#ebebeb", PALETTE, "cividis")
DARK = Theme("#14181c", "#e6e6e6", "#8c959c", "#2b3238", DARK_PALETTE, "cividis")


def theme(dark: bool) -> Theme:
    """The theme of dark or light pages."""
    return DARK if dark else LIGHT


def dress(axes: Axes, title: str, xlabel: str, ylabel: str) -> None:
    """Title and labels, two spines, a quiet grid."""
    axes.set_title(title, fontsize=11, loc="left")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="both", linewidth=0.8)
    axes.set_axisbelow(True)


def paint(figure: Figure, colours: Theme) -> Figure:
    """Give all that is not data the colours of a theme, once it is drawn."""
    figure.set_facecolor(colours.paper)
    for axes in figure.axes:
        axes.set_facecolor(colours.paper)
        axes.tick_params(which="both", colors=colours.ink)
        for spine in axes.spines.values():
            spine.set_edgecolor(colours.ink)
        for line in (*axes.get_xgridlines(), *axes.get_ygridlines()):
            line.set_color(colours.grid)
        for text in (axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label):  # type: ignore[attr-defined]
            text.set_color(colours.ink)
    for legend in (*figure.legends, *(a.get_legend() for a in figure.axes)):
        for text in legend.get_texts() if legend is not None else ():
            text.set_color(colours.ink)
    return figure


def count_axis(axis: Axis) -> None:
    """Whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 5, 10]))
