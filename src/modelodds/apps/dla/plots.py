"""A spectrum and the absorption that was found in it."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from modelodds.apps.dla.decide import Decision
from modelodds.apps.dla.likelihood import Likelihood
from modelodds.apps.dla.lines import LYMAN_ALPHA, REACH
from modelodds.apps.dla.models import model_name
from modelodds.apps.dla.sightline import Sightline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

BLUE, ORANGE = "#0072B2", "#D55E00"
SMOOTHED = 3  # pixels on either side, of the spectrum as drawn


def emission(line: Sightline, transmission: Array) -> Array:
    """Posterior mean (n,) of the quasar's own emission, given the absorbers' ``transmission`` (n,)."""
    weight = transmission / (transmission**2 * line.omega2 + line.noise)
    inner = line.m.T @ ((weight * transmission)[:, None] * line.m)
    pull = line.m.T @ (weight * (line.flux - transmission * line.mu))
    return np.asarray(line.mu + line.m @ np.linalg.solve(np.eye(len(inner)) + inner, pull))


def decision_figure(decision: Decision) -> "Figure":
    """The spectrum, the emission that the best model fits to it, and the same behind its absorbers."""
    from matplotlib.figure import Figure

    line, best = decision.sightline, decision.best
    middle = decision.absorbers()[:, :, 1].reshape(1, 2 * best)
    through = Likelihood(line, best).transmission(middle)[0]
    source = emission(line, through)
    kept = line.kept
    wavelength = line.wavelength[REACH : REACH + len(kept)]
    figure = Figure(figsize=(11.0, 3.8), layout="constrained")
    axes = figure.subplots()
    axes.plot(wavelength[kept], line.flux[kept], color="0.82", lw=0.6, label="spectrum")
    width = 2 * SMOOTHED + 1
    smooth = np.convolve(line.flux[kept], np.ones(width) / width, mode="same")
    axes.plot(wavelength[kept], smooth, color="0.35", lw=0.8, label=f"smoothed over {width} pixels")
    axes.plot(wavelength[kept], source[kept], "--", color=ORANGE, lw=1.4, label="quasar, mean forest")
    if best:
        seen = source * through
        axes.plot(wavelength[kept], seen[kept], color=BLUE, lw=1.8, label=f"with {model_name(best)}")
    top = 1.25 * max(float(np.quantile(smooth, 0.99)), float(source[kept].max()))
    for i, (z, log_nhi) in enumerate(middle.reshape(best, 2)):
        at, text = LYMAN_ALPHA * (1 + z), f" z {z:.4f}, log N {log_nhi:.2f}"
        axes.axvline(at, color=BLUE, lw=0.8, ls=":")
        axes.text(at, (0.97 - 0.07 * i) * top, text, va="top", color=BLUE, fontsize=9)
    chances = ", ".join(f"{model_name(k)} {p:.3g}" for k, p in enumerate(decision.probability))
    axes.set_title(f"{line.name}, quasar at z = {line.z_qso:.4g}: {chances}", fontsize=11, loc="left")
    axes.set(
        xlabel="observed wavelength, Å",
        ylabel="normalised flux",
        ylim=(-0.15 * top, top),
        xlim=wavelength[kept][[0, -1]],
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    return figure
