"""Rosenbrock's curved valley against a normal likelihood of the same mean and covariance, on a box.

Both have their highest log-likelihood at 0 and uniform priors on [-5, 5] x [-5, 5], where the valley is cut
off at y = 5. Its log-evidence, -5.804, is one that nested samplers are commonly tried on.
"""

import numpy as np
from scipy import stats

from modelodds.model import Model
from modelodds.prior import Prior
from modelodds.problems.base import Family, Problem

# ``python -m modelodds.problems.rosenbrock`` prints all of these: by Gauss-Legendre with 2000 x 2000 nodes,
# at most 0.008 apart across a valley of standard deviation 0.07, so that only their rounding is left. The
# moments, rounded to three digits, define the normal model; its log-evidence is that of the rounded ones.
LOG_EVIDENCE = {"rosenbrock": -5.804132, "normal": -3.817930}
MEAN = np.array([0.936, 1.293])
COVARIANCE = np.array([[0.417, 0.700], [0.700, 1.469]])
EDGE = 5.0


def rosenbrock(theta: np.ndarray) -> np.ndarray:
    """Log-likelihood (n,) of a valley along y = x^2, at ``theta`` (n, 2)."""
    x, y = theta.T
    return np.asarray(-((1.0 - x) ** 2) - 100.0 * (y - x**2) ** 2)


def normal(theta: np.ndarray) -> np.ndarray:
    """Log-likelihood (n,) with the valley's mean and covariance, at ``theta`` (n, 2)."""
    from_mean = theta - MEAN
    return np.asarray(-0.5 * (from_mean @ np.linalg.inv(COVARIANCE) * from_mean).sum(1))


def problem() -> Problem:
    """The valley against its normal likeness."""
    prior = Prior({name: stats.uniform(-EDGE, 2.0 * EDGE) for name in "xy"})
    models = tuple(Model(f.__name__, f, prior, vectorized=True) for f in (rosenbrock, normal))
    return Problem("rosenbrock", models, tuple(LOG_EVIDENCE.values()), 1e-6, "quadrature")


def grid(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes (n^2, 2) of the prior and their weights (n^2,), which sum to 1."""
    node, weight = np.polynomial.legendre.leggauss(n)
    theta = EDGE * np.stack(np.meshgrid(node, node), axis=-1).reshape(-1, 2)
    return theta, np.outer(weight, weight).ravel() / 4.0


def moments(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the valley's posterior."""
    theta, weight = grid(n)
    mass = weight * np.exp(rosenbrock(theta))
    return np.average(theta, axis=0, weights=mass), np.cov(theta.T, aweights=mass, bias=True)


FAMILY = Family(
    "rosenbrock",
    "Rosenbrock's valley against a normal of the same covariance, on a box",
    lambda size, seed: problem(),
    seeded=False,
)


if __name__ == "__main__":
    print(*moments(2000), sep="\n")
    theta, weight = grid(2000)
    for f in (rosenbrock, normal):
        print(f"{f.__name__}: {np.log(weight @ np.exp(f(theta))):.6f}")
