"""Expected reduction of the summed variance of z, for more than two models.

Mutual information with the whole vector z is blind to scale: it keeps refining models of negligible
probability. An observation with squared correlation rho_i^2 takes away s_i^2 rho_i^2 of the variance of log
a_i, and by the softmax's derivative, dz_j / d log a_i = z_j (delta_ij - z_i), about

    s_i^2 rho_i^2 E_z[ z_i^2 ((1 - z_i)^2 + sum_{j != i} z_j^2) ]

of sum_j Var(z_j). That is for small s_i; evidences known to within many nats leave z at zero or one, where
derivatives vanish although nothing is decided. The sum of variances that log a_i is answerable for, with the
other evidences given,

    E[ sum_j Var(z_j | a_others) ] = 1/2 E |z - z'|^2,    z' being z with log a_i drawn afresh,

has the same limit and does not vanish there; times rho_i^2 it stands for what one observation takes away (too
much, by half or more, once s_i is several nats: it ranks models, it does not promise). The expectation over
the belief, not a value at its mean, keeps a model whose evidence is merely not known yet in the race.
"""

import numpy as np
from scipy import special

from modelodds.acquisition.base import Acquisition, Aux, Rivals, View
from modelodds.acquisition.log_odds import project, squared_correlation
from modelodds.odds import draws
from modelodds.precision import Array
from modelodds.surrogate.gp import Spec


def answerable(mean: np.ndarray, variance: np.ndarray, n: int) -> np.ndarray:
    """1/2 E |z - z'|^2 for each model's log-evidence drawn afresh, shape (k,)."""
    k = len(mean)
    both = draws(np.tile(mean, 2), np.tile(np.sqrt(variance), 2), n)
    log_a, fresh = both[:, :k], both[:, k:]
    z = special.softmax(log_a, axis=1)
    share = np.empty(k)
    for i in range(k):
        other = log_a.copy()
        other[:, i] = fresh[:, i]
        share[i] = 0.5 * ((z - special.softmax(other, axis=1)) ** 2).sum(1).mean()
    return share


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
            return np.asarray(best * rivals.variance)
        share = answerable(rivals.mean, rivals.variance, self.n_draws)
        if not share.any():  # decided beyond what the draws can tell: any uncertainty is as good as another
            share = rivals.variance
        return np.asarray(share * best)
