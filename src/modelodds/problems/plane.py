"""Two curved likelihoods in the plane: a banana and Himmelblau's four modes, uniform priors on a box."""

import numpy as np
from scipy import stats

from modelodds.model import Model
from modelodds.prior import Prior
from modelodds.problems.base import Family, Problem

# Both by a 4001 x 4001 midpoint rule on the box (``python -m modelodds.problems.plane`` prints them).
LOG_EVIDENCE = {"banana": -3.184823, "himmelblau": -3.183433}
BOX = {"banana": ((-1.0, 1.0), (-1.0, 2.0)), "himmelblau": ((-4.0, 4.0), (-4.0, 4.0))}


def banana(theta: np.ndarray) -> np.ndarray:
    """Log-likelihood of a ridge that follows a quartic."""
    x, y = theta
    return np.asarray(-0.25 * (5.0 * (0.2 - x)) ** 2 - (20.0 * (y / 4.0 - x**4)) ** 2)


def himmelblau(theta: np.ndarray) -> np.ndarray:
    """Log-likelihood with four modes."""
    x, y = theta
    return np.asarray(-0.5 * (0.1 * (x + y**2 - 7.0) ** 2 + (x**2 + y - 11.0) ** 2))


LOG_LIKELIHOOD = {"banana": banana, "himmelblau": himmelblau}


def plane() -> Problem:
    """Banana against Himmelblau; the odds are all but even."""
    models = [
        Model(name, f, Prior({n: stats.uniform(a, b - a) for n, (a, b) in zip("xy", BOX[name], strict=True)}))
        for name, f in LOG_LIKELIHOOD.items()
    ]
    return Problem("plane", tuple(models), tuple(LOG_EVIDENCE.values()), 1e-5, "quadrature")


def quadrature(name: str, n: int) -> float:
    """Log-evidence by an n x n midpoint rule."""
    grid = [np.linspace(a, b, n, endpoint=False) + (b - a) / (2 * n) for a, b in BOX[name]]
    log_likelihood = LOG_LIKELIHOOD[name](np.stack(np.meshgrid(*grid)))
    return float(np.log(np.exp(log_likelihood).mean()))


FAMILY = Family(
    "plane", "banana against Himmelblau's four modes, on a box", lambda size, seed: plane(), seeded=False
)


if __name__ == "__main__":
    for name in LOG_EVIDENCE:
        print(f"{name}: {quadrature(name, 4001):.6f}")
