"""A line or a parabola.

modelodds run examples/linear_or_quadratic.py --budget 60
"""

import numpy as np
from scipy import stats

from modelodds import Model, Prior

rng = np.random.default_rng(1)
t = np.linspace(-1, 1, 20)
y = 0.5 + 1.2 * t + 0.3 * rng.standard_normal(20)  # your measurements go here


def linear(theta):
    """Log-likelihood of offset and slope."""
    offset, slope = theta
    return stats.norm(offset + slope * t, 0.3).logpdf(y).sum()


def quadratic(theta):
    """Log-likelihood of offset, slope and bend."""
    offset, slope, bend = theta
    return stats.norm(offset + slope * t + bend * t**2, 0.3).logpdf(y).sum()


models = [
    Model("linear", linear, Prior({"offset": stats.norm(0, 2), "slope": stats.norm(0, 2)})),
    Model(
        "quadratic",
        quadratic,
        Prior({"offset": stats.norm(0, 2), "slope": stats.norm(0, 2), "bend": stats.norm(0, 2)}),
    ),
]
