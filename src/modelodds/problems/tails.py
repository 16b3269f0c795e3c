"""Heavy tails against a thin ridge: VBMC's Student-t and cigar families (Acerbi 2018). Exact evidences.

The prior is standard normal and 3.5 times as wide as the likelihoods. ``student`` is a product of Student-t
densities of 2.5 to 2 + d/2 degrees of freedom; ``cigar`` a normal one, ten times as long as thick, turned at
random.
"""

import numpy as np
from scipy import special, stats

from modelodds.model import Model
from modelodds.prior import Prior
from modelodds.problems.base import Family, Problem

WIDTH = 1.0 / 3.5


def tails(d: int, seed: int) -> Problem:
    """Student-t against cigar in ``d`` dimensions."""
    rng = np.random.default_rng([2, d, seed])
    (student, student_evidence), (cigar, cigar_evidence) = _student(d, rng), _cigar(d, rng)
    return Problem(f"tails-{d}-{seed}", (student, cigar), (student_evidence, cigar_evidence))


def _prior(d: int) -> Prior:
    return Prior({f"x{j}": stats.norm() for j in range(d)})


def _student(d: int, rng: np.random.Generator) -> tuple[Model, float]:
    freedom, centre = rng.uniform(2.5, max(3.0, 2.0 + d / 2.0), size=d), 0.2 * rng.normal(size=d)

    def log_likelihood(theta: np.ndarray) -> float:
        return float(stats.t.logpdf(theta, freedom, centre, WIDTH).sum())

    # Dimension by dimension; the trapezoid rule is exact to rounding here.
    grid = np.linspace(-12.0, 12.0, 40_001)
    each = [
        special.logsumexp(stats.t.logpdf(grid, f, c, WIDTH) + stats.norm.logpdf(grid))
        for f, c in zip(freedom, centre, strict=True)
    ]
    return Model("student", log_likelihood, _prior(d)), float(sum(each) + d * np.log(grid[1] - grid[0]))


def _cigar(d: int, rng: np.random.Generator) -> tuple[Model, float]:
    turn, centre = np.linalg.qr(rng.normal(size=(d, d)))[0], 0.2 * rng.normal(size=d)
    sd = WIDTH * np.array([1.0] + [0.1] * (d - 1))
    covariance = turn @ np.diag(sd**2) @ turn.T
    density = stats.multivariate_normal(centre, covariance)
    evidence = stats.multivariate_normal.logpdf(centre, np.zeros(d), covariance + np.eye(d))
    return Model("cigar", lambda theta: float(density.logpdf(theta)), _prior(d)), float(evidence)


FAMILY = Family("tails", "product of Student-t against a thin cigar", tails, sizes=tuple(range(2, 11)))
