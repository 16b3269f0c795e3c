"""Uncertainty sampling (Gunter et al. 2014): where the integrand prior x likelihood is least known.

The score is log(pi(x)^2 Sigma(x, x)), with Sigma the moment-matched variance of the likelihood itself. A
joint prior enters by the standard normal that its coordinates are whitened to.
"""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr

from modelodds.acquisition.base import Acquisition, Aux, Rivals, View
from modelodds.acquisition.log_odds import project
from modelodds.precision import Array
from modelodds.surrogate.gp import Spec, predict


def log_expm1(v: Array) -> Array:
    """log(exp(v) - 1) for v > 0, without overflow."""
    return v + jnp.log(-jnp.expm1(-v))


def log_capped_variance(mean: Array, variance: Array, cap: Array) -> Array:
    """Log of the variance of exp(min(g, cap)) for g ~ N(mean, variance)."""
    sd = jnp.sqrt(variance)
    above = log_ndtr((mean - cap) / sd)

    def log_moment(order: int) -> Array:
        below = order * mean + 0.5 * order**2 * variance + log_ndtr((cap - mean) / sd - order * sd)
        return jnp.logaddexp(below, order * cap + above)

    first, second = log_moment(1), log_moment(2)
    spread = second + jnp.log(jnp.maximum(-jnp.expm1(jnp.minimum(2.0 * first - second, 0.0)), 1e-12))
    return jnp.minimum(
        spread, 2.0 * mean + variance + log_expm1(variance)
    )  # which is exact far below the cap


class Uncertainty(Acquisition):
    """Variance of the integrand, model by model.

    Where a surrogate knows nothing, the moment-matched variance explodes and draws every evaluation to the
    edges. With a ``cap``, likelihoods are taken to reach at most that many nats above the best one seen, or
    above the surrogate's mean where that is higher still.
    """

    is_share = False

    def __init__(self, cap: float | None = None) -> None:
        self.cap = cap

    def prepare(self, spec: Spec, view: View) -> Aux:
        """The log-evidence's variance, for the record."""
        return project(spec, view)

    def within(self, spec: Spec, view: View, aux: Aux, x: Array) -> Array:
        """log(pi^2 Sigma)."""
        mean, variance = predict(spec, view.gp, x)
        normal = -0.5 * (x * x + jnp.log(2.0 * jnp.pi))
        log_prior = jnp.sum(jnp.where(view.box > 0, -jnp.log(2.0 * jnp.sqrt(3.0)), normal), axis=1)
        variance = jnp.maximum(variance, 1e-10)
        if self.cap is None:
            return 2.0 * (log_prior + mean) + variance + log_expm1(variance)
        cap = self.cap + jnp.maximum(
            mean, 0.0
        )  # what the surrogate itself expects may be as high as it likes
        return 2.0 * log_prior + log_capped_variance(mean, variance, cap)

    def across(self, best: np.ndarray, rivals: Rivals) -> np.ndarray:
        """The scores on one scale: log(pi^2 Sigma) with the models' likelihoods in the same units."""
        return best + 2.0 * rivals.offset
