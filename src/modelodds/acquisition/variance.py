"""Expected reduction of the summed variance of z, for more than two models.

Mutual information with the whole vector z is blind to scale: it keeps refining models of negligible probability. An
observation with squared correlation rho_i^2 takes away s_i^2 rho_i^2 of the variance of log a_i, and by the softmax's
derivative, dz_j / d log a_i = z_j (delta_ij - z_i), about

    s_i^2 rho_i^2 E_z[ z_i^2 ((1 - z_i)^2 + sum_{j != i} z_j^2) ]

of sum_j Var(z_j). The expectation over the belief on z, not its value at the mean, keeps a model whose evidence is merely
not known yet in the race.
"""

import numpy as np
from jax import Array
from scipy import special

from modelodds.acquisition.base import Acquisition, Aux, Rivals, View
from modelodds.acquisition.log_odds import project, squared_correlation
from modelodds.odds import draws
from modelodds.surrogate.gp import Spec


class Variance(Acquisition):
    """Reduction of the variance of the posterior model probabilities."""

    def __init__(self, n_draws: int = 1024) -> None:
        self.n_draws = n_draws

    def prepare(self, spec: Spec, view: View) -> Aux:
        """See :func:`modelodds.acquisition.log_odds.project`."""
        return project(spec, view)

    def within(self, spec: Spec, view: View, aux: Aux, x: Array) -> Array:
        """See :func:`modelodds.acquisition.log_odds.squared_correlation`."""
        return squared_correlation(spec, view, aux, x)

    def across(self, best: np.ndarray, rivals: Rivals) -> np.ndarray:
        """Expected reduction of sum_j Var(z_j)."""
        if len(best) == 1:
            return best * rivals.variance
        z = special.softmax(draws(rivals.mean, np.sqrt(rivals.variance), self.n_draws), axis=1)
        square = z**2
        others = square.sum(1, keepdims=True) - square
        sensitivity = (square * ((1.0 - z) ** 2 + others)).mean(0)
        return rivals.variance * best * sensitivity
