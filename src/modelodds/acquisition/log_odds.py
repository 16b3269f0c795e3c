"""Mutual information between the log-odds and the next observation, with Gaussian log-evidences.

Linearised around the surrogate, log a = const + sum_s w_s (g(x_s) - m(x_s)) is Gaussian with variance
s^2 = w^T C w, and correlated with g(x) by c(x) = sum_s w_s C(x, x_s). Then

    I = -1/2 log(1 - w_i rho_i^2(x)),
    rho_i^2 = c_i(x)^2 / (C_i(x, x) s_i^2),   w_i = 1 - s_i^-2 / sum_j s_j^-2.

Mutual information does not change under a smooth bijection, so for two models z_1 and the log-odds are one
target.
"""

import jax.numpy as jnp
import numpy as np

from modelodds.acquisition.base import Acquisition, Aux, Rivals, View, observation_noise
from modelodds.precision import Array
from modelodds.surrogate.gp import Spec, features, moments, prior_covariance, relative_nugget


def project(spec: Spec, view: View) -> Aux:
    """Variance of the log-evidence and the projections of the nodes on the data and on the basis."""
    v, s = features(spec, view.gp, view.x)
    on_data, on_basis = v @ view.weight, s @ view.weight
    kernel = view.weight @ prior_covariance(spec, view.gp.hyper, view.x, view.x) @ view.weight
    variance = kernel - on_data @ on_data + on_basis @ on_basis
    return Aux(jnp.maximum(variance, 1e-12), (on_data, on_basis))


def squared_correlation(spec: Spec, view: View, aux: Aux, x: Array) -> Array:
    """rho^2 of an observation at each of ``x`` (m, d) with its model's log-evidence, shape (m,)."""
    v, s = features(spec, view.gp, x)
    on_data, on_basis = aux.projection
    with_evidence = (
        prior_covariance(spec, view.gp.hyper, x, view.x) @ view.weight - on_data @ v + on_basis @ s
    )
    mean, own = moments(spec, view.gp, x, v, s)
    # The nugget is for the arithmetic's sake: what it leaves open at an observed point is not worth asking.
    open_to = jnp.maximum(own - relative_nugget(view.gp.hyper), 0.0) / own
    return open_to * with_evidence**2 / ((own + observation_noise(view, mean)) * aux.variance)


def rivalry(variance: np.ndarray) -> np.ndarray:
    """w_i = 1 - s_i^-2 / sum_j s_j^-2: how much of a model's uncertainty reaches the odds, shape (k,)."""
    if len(variance) == 1:
        return np.ones(1)  # a single model: its evidence is the target
    precision = 1.0 / np.maximum(variance, 1e-300)
    return np.asarray(1.0 - precision / precision.sum())


class LogOdds(Acquisition):
    """Information about the log-odds (all of them, jointly)."""

    def prepare(self, spec: Spec, view: View) -> Aux:
        """See :func:`project`."""
        return project(spec, view)

    def within(self, spec: Spec, view: View, aux: Aux, x: Array) -> Array:
        """See :func:`squared_correlation`."""
        return squared_correlation(spec, view, aux, x)

    def across(self, best: np.ndarray, rivals: Rivals) -> np.ndarray:
        """Mutual information in nats."""
        return np.asarray(-0.5 * np.log1p(-np.clip(rivalry(rivals.variance) * best, 0.0, 1.0 - 1e-12)))
