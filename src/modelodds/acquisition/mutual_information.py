"""The paper's acquisition: mutual information between z and the next likelihood observation, for any k.

Chai et al. 2019, eqs. 14-17. Conditioning on z confines the evidences to the ray {t z}; with independent
models the formula factorises into

    I(z; l_i(x)) = -1/2 E_z log(1 - w_i(z) rho_i^2(x)),     w_i(z) = 1 - (z_i^2 / K_i) / sum_j (z_j^2 / K_j),
    rho_i^2(x) = L_i(x)^2 / (K_i Sigma_i(x, x)),

so that the best point inside a model is the one of largest rho_i^2, whatever p(z) is. For k = 2, w_1 is the
paper's (1 - z_1)^2 K_1 / s_1^2 and w_2 its z_1^2 K_2 / s_1^2. p(z) is taken from log-normal evidences with
the same two moments, which are positive as evidences are.

Exact conditioning on z would carry the Jacobian t^(k-1) along the ray; observing b_1 = 0, as the paper does,
drops it. The two agree as the relative uncertainty of the evidences vanishes (at 35 % it is worth about 0.01
nats of 0.4; a test measures it).
"""

import jax.numpy as jnp
import numpy as np
from scipy import special

from modelodds.acquisition.base import Acquisition, Aux, Rivals, View, observation_noise
from modelodds.evidence import expm1_cut
from modelodds.odds import draws
from modelodds.precision import Array
from modelodds.surrogate.gp import Spec, covariance, predict


def posterior_weight(log_a: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """w_i(z) for draws of the log-evidences.

    Parameters
    ----------
    log_a : array (n, k)
        Log-evidences, prior probabilities included; z is their softmax.
    mean, variance : array (k,)
        Moments of the log-evidences' belief, which give K_i.
    """
    possible = np.isfinite(mean)  # an evidence of zero is known exactly, as one of variance zero is
    gap = np.subtract(log_a, mean, out=np.zeros(log_a.shape), where=possible)
    log_k = variance + np.log(np.maximum(np.expm1(np.minimum(variance, 500.0)), 1e-300))  # of K / exp(2 mean)
    return np.asarray(1.0 - special.softmax(2.0 * gap - log_k, axis=1))


class MutualInformation(Acquisition):
    """Information about the posterior model probabilities, all moment-matched Gaussians."""

    def __init__(self, n_draws: int = 512) -> None:
        self.n_draws = n_draws

    def prepare(self, spec: Spec, view: View) -> Aux:
        """Relative variance of the evidence, K / m^2, and its log-normal counterpart."""
        relative = view.weight @ expm1_cut(covariance(spec, view.gp, view.x, view.x)) @ view.weight
        relative = jnp.maximum(relative, 1e-12)
        return Aux(jnp.log1p(relative), (relative,))

    def within(self, spec: Spec, view: View, aux: Aux, x: Array) -> Array:
        """rho^2; the factors mu(x) of L and Sigma cancel."""
        with_evidence = expm1_cut(covariance(spec, view.gp, x, view.x)) @ view.weight
        mean, variance = predict(spec, view.gp, x)
        own = expm1_cut(variance + observation_noise(view, mean))
        return with_evidence**2 / (own * aux.projection[0])

    def across(self, best: np.ndarray, rivals: Rivals) -> np.ndarray:
        """Expectation over z, in nats."""
        if len(best) == 1:
            return np.asarray(-0.5 * np.log1p(-np.clip(best, 0.0, 1.0 - 1e-12)))
        log_a = draws(rivals.mean, np.sqrt(rivals.variance), self.n_draws)
        weight = posterior_weight(log_a, rivals.mean, rivals.variance)
        return np.asarray(-0.5 * np.log1p(-np.clip(weight * best, 0.0, 1.0 - 1e-12)).mean(0))
