"""Eight schools (Rubin 1981), as the documentation of PyMC and of NumPyro has it, and its exact evidence."""

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, stats

from modelodds import Model

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SCHOOLS = [
    "Choate",
    "Deerfield",
    "Andover",
    "Exeter",
    "Hotchkiss",
    "Lawrenceville",
    "St. Paul's",
    "Mt. Hermon",
]


def schools_log_evidence() -> float:
    """Given tau the effects are jointly Gaussian, mu ~ N(0, 5) included; over tau by quadrature."""

    def integrand(tau: float) -> float:
        cov = np.diag(ERRORS**2 + tau**2) + 25.0
        return float(
            np.exp(stats.multivariate_normal.logpdf(EFFECTS, cov=cov) + 30.0)
            * stats.halfcauchy.pdf(tau, 0, 5)
        )

    total = sum(integrate.quad(integrand, a, b)[0] for a, b in ((0, 10), (10, 100), (100, np.inf)))
    return float(np.log(total) - 30.0)


def monte_carlo_log_evidence(model: Model, n: int) -> tuple[float, float]:
    """Log-evidence by prior points, and its standard error: a check of prior and likelihood together."""
    x, _ = model.prior.from_unit(stats.qmc.Sobol(model.dim, rng=np.random.default_rng(0)).random(n))
    y: NDArray[np.float64] = np.array([model.log_likelihood(theta) for theta in model.prior.to_theta(x)])
    weight = np.exp(y - y.max())
    return float(np.log(weight.mean()) + y.max()), float(weight.std() / weight.mean() / np.sqrt(n))
