"""Uncertainty sampling (Gunter et al. 2014): where the integrand prior x likelihood is least known.

The score is log(pi(x)^2 Sigma(x, x)), with Sigma the moment-matched variance of the likelihood itself. A
joint prior enters by the standard normal that its coordinates are whitened to.
"""

import jax.numpy as jnp
import numpy as np

from modelodds.acquisition.base import Acquisition, Aux, Rivals, View
from modelodds.acquisition.log_odds import project
from modelodds.precision import Array
from modelodds.surrogate.gp import Spec, predict


def log_expm1(v: Array) -> Array:
    """log(exp(v) - 1) for v > 0, without overflow."""
    return v + jnp.log(-jnp.expm1(-v))


class Uncertainty(Acquisition):
    """Variance of the integrand, model by model."""

    def prepare(self, spec: Spec, view: View) -> Aux:
        """The log-evidence's variance, for the record."""
        return project(spec, view)

    def within(self, spec: Spec, view: View, aux: Aux, x: Array) -> Array:
        """log(pi^2 Sigma)."""
        mean, variance = predict(spec, view.gp, x)
        normal = -0.5 * (x * x + jnp.log(2.0 * jnp.pi))
        log_prior = jnp.sum(jnp.where(view.box > 0, -jnp.log(2.0 * jnp.sqrt(3.0)), normal), axis=1)
        return 2.0 * (log_prior + mean) + variance + log_expm1(jnp.maximum(variance, 1e-10))

    def across(self, best: np.ndarray, rivals: Rivals) -> np.ndarray:
        """The scores on one scale: log(pi^2 Sigma) with the models' likelihoods in the same units."""
        return best + 2.0 * rivals.offset
