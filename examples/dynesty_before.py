"""How does it decay? A script for dynesty; dynesty_after.py is the same for modelodds."""

import dynesty
import numpy as np
from scipy import stats

rng = np.random.default_rng(2)
t = np.linspace(0, 3, 25)
y = 2.0 * np.exp(-0.8 * t) + 0.1 * rng.standard_normal(25)


def exponential(theta):
    """Log-likelihood of a height and a rate."""
    height, rate = theta
    return stats.norm(height * np.exp(-rate * t), 0.1).logpdf(y).sum()


def hyperbolic(theta):
    """The same for a slower decay."""
    height, rate = theta
    return stats.norm(height / (1 + rate * t), 0.1).logpdf(y).sum()


def prior_transform(u):
    """Height uniform on 0 to 5, rate log-uniform on 0.1 to 10."""
    return np.array([5 * u[0], 10 ** (2 * u[1] - 1)])


ndim = 2
for loglike in (exponential, hyperbolic):
    sampler = dynesty.NestedSampler(loglike, prior_transform, ndim)
    sampler.run_nested()
    sampler.results.summary()
