"""Two models written for dynesty, compared as they are: loglike and prior_transform stay untouched.

modelodds run examples/from_dynesty.py --budget 100
"""

import numpy as np
from scipy import stats

from modelodds import Model, Prior

rng = np.random.default_rng(2)
t = np.linspace(0, 3, 25)
y = 2.0 * np.exp(-0.8 * t) + 0.1 * rng.standard_normal(25)


def loglike_exponential(theta):  # as passed to dynesty.NestedSampler
    """Exponential decay."""
    height, rate = theta
    return stats.norm(height * np.exp(-rate * t), 0.1).logpdf(y).sum()


def loglike_hyperbolic(theta):
    """Hyperbolic decay."""
    height, rate = theta
    return stats.norm(height / (1 + rate * t), 0.1).logpdf(y).sum()


def prior_transform(u):
    """Height uniform on 0 to 5, rate log-uniform on 0.1 to 10."""
    return np.array([5 * u[0], 10 ** (2 * u[1] - 1)])


names = ["height", "rate"]
models = [
    Model("exponential", loglike_exponential, Prior.from_transform(prior_transform, names)),
    Model("hyperbolic", loglike_hyperbolic, Prior.from_transform(prior_transform, names)),
]
