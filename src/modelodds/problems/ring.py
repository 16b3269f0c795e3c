"""A ring against a blob of the same covariance, on a box.

The log-likelihood of ``ring`` falls off to either side of a circle of radius 1 as a normal density of
standard deviation 0.1 does; that of ``blob`` is round and normal about the same centre, which is not the
box's. Both have their highest log-likelihood at 0 and uniform priors on [-2, 2] x [-2, 2].
"""

import numpy as np
from scipy import stats

from modelodds.model import Model
from modelodds.prior import Prior
from modelodds.problems.base import Family, Problem

# By a 4001 x 4001 midpoint rule on the box (``python -m modelodds.problems.ring`` prints them).
LOG_EVIDENCE = {"ring": -2.318358, "blob": -1.615121}
CENTRE = np.array([0.3, -0.2])
RADIUS = 1.0
WIDTH = 0.1
BLOB_SD = np.sqrt(0.5 * (RADIUS**2 + 3.0 * WIDTH**2))  # the ring's own along each axis, but for the box
EDGE = 2.0


def ring(theta: np.ndarray) -> np.ndarray:
    """Log-likelihood (n,) of the ring at ``theta`` (n, 2)."""
    r = np.hypot(*(theta - CENTRE).T)
    return np.asarray(-0.5 * ((r - RADIUS) / WIDTH) ** 2)


def blob(theta: np.ndarray) -> np.ndarray:
    """Log-likelihood (n,) of the blob at ``theta`` (n, 2)."""
    return np.asarray(-0.5 * (((theta - CENTRE) / BLOB_SD) ** 2).sum(1))


def problem() -> Problem:
    """Ring against blob."""
    prior = Prior({name: stats.uniform(-EDGE, 2.0 * EDGE) for name in "xy"})
    models = tuple(Model(f.__name__, f, prior, vectorized=True) for f in (ring, blob))
    return Problem("ring", models, tuple(LOG_EVIDENCE.values()), 1e-6, "quadrature")


def quadrature(name: str, n: int) -> float:
    """Log-evidence by an n x n midpoint rule."""
    axis = EDGE * (2.0 * np.arange(n) + 1.0 - n) / n
    theta = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    return float(np.log(np.exp({"ring": ring, "blob": blob}[name](theta)).mean()))


FAMILY = Family(
    "ring", "a thin ring against a round blob, on a box", lambda size, seed: problem(), seeded=False
)


if __name__ == "__main__":
    for name in LOG_EVIDENCE:
        print(f"{name}: {quadrature(name, 4001):.6f}")
