"""One absorber by dense quadrature: the midpoint rule on cells of z and log N_HI, halved where the mass is.

The posterior is a few peaks, each a ten-thousandth of the prior wide. A first grid as fine as half a pixel
finds them all; cells that hold the mass are then halved in both directions until the evidence stays put.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from modelodds.apps.dla.likelihood import Likelihood
from modelodds.apps.dla.prior import COLUMN_DENSITY, HIGHEST, LOWEST, UNIFORM_TO

Array = NDArray[np.float64]

STEP_Z, STEP_N = 5e-4, 0.1  # of the first grid; a pixel is about 8e-4 in z
TAIL_N = 0.25  # its step in log N_HI where the prior has but a millionth of its mass
LEFT_OUT = 1e-5  # share of the mass in cells that need no halving
MOST = 40_000  # cells halved at a time
TOLERANCE = 1e-3  # nats
ROUNDS = 8


class Grid(NamedTuple):
    """Cells' midpoints and the log of the evidence in each."""

    theta: Array  # (n, 2)
    log_mass: Array  # (n,)
    error: float  # nats
    evaluations: int

    @property
    def log_evidence(self) -> float:
        """Log of the evidence."""
        return float(logsumexp(self.log_mass))

    @property
    def weight(self) -> Array:
        """Posterior probabilities of the cells, (n,)."""
        return np.asarray(np.exp(self.log_mass - self.log_evidence))

    def quantiles(self, column: int, at: tuple[float, ...] = (0.025, 0.5, 0.975)) -> Array:
        """Quantiles of z (column 0) or log N_HI (column 1)."""
        order = np.argsort(self.theta[:, column])
        share = np.cumsum(self.weight[order])
        return np.asarray(np.interp(at, share, self.theta[order, column]))


def one_absorber(likelihood: Likelihood) -> Grid:
    """Quadrature of the one-absorber model's evidence, its error the last change that halving made."""
    low, high = likelihood.sightline.z_range
    cells = _first(low, high)
    values = likelihood(cells[:, :2])
    evaluations, before, change = len(cells), np.inf, np.inf
    for left in reversed(range(ROUNDS)):
        log_mass = values + COLUMN_DENSITY.logpdf(cells[:, 1]) + np.log(4 * cells[:, 2] * cells[:, 3])
        log_mass -= np.log(high - low)
        total = float(logsumexp(log_mass))
        change, before = abs(total - before), total
        if change < TOLERANCE or not left:
            break
        chosen = _heaviest(log_mass - total)
        finer = _halved(cells[chosen])
        evaluations += len(finer)
        cells = np.concatenate([np.delete(cells, chosen, axis=0), finer])
        values = np.concatenate([np.delete(values, chosen), likelihood(finer[:, :2])])
    return Grid(cells[:, :2], log_mass, change, evaluations)


def first_edges(low: float, high: float) -> tuple[Array, Array]:
    """Edges of the first grid's cells in z, between ``low`` and ``high``, and in log N_HI."""
    tail = _edges(UNIFORM_TO, HIGHEST, TAIL_N)[1:]
    return _edges(low, high, STEP_Z), np.concatenate([_edges(LOWEST, UNIFORM_TO, STEP_N), tail])


def _first(low: float, high: float) -> Array:
    """Cells (n, 4): midpoints of z and log N_HI, and half their widths."""
    z, n = first_edges(low, high)
    middle = [0.5 * (e[1:] + e[:-1]) for e in (z, n)]
    half = [0.5 * np.diff(e) for e in (z, n)]
    parts = [np.meshgrid(*pair, indexing="ij") for pair in (middle, half)]
    return np.stack([p.ravel() for pair in parts for p in pair], axis=1)


def _edges(low: float, high: float, step: float) -> Array:
    return np.linspace(low, high, int(np.ceil((high - low) / step)) + 1)


def _heaviest(log_share: Array) -> NDArray[np.intp]:
    order = np.argsort(-log_share)
    enough = int(np.searchsorted(np.cumsum(np.exp(log_share[order])), 1.0 - LEFT_OUT)) + 1
    return order[: min(enough, MOST)]


def _halved(cells: Array) -> Array:
    z, n, dz, dn = (cells[:, i] for i in range(4))
    quarters = [(z + a * dz / 2, n + b * dn / 2, dz / 2, dn / 2) for a in (-1, 1) for b in (-1, 1)]
    return np.concatenate([np.stack(q, axis=1) for q in quarters])
