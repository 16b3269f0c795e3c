"""What a surrogate predicts of each of its observations from all the others, in closed form.

With the coefficients of the basis integrated out, the observations' covariance is K' = K + noise + H H^T, and
leaving one out needs no second factorisation (Rasmussen & Williams 2006, section 5.4.2):

    mean_i = y_i - alpha_i / kappa_i,    variance_i = 1 / kappa_i,

alpha being K'^-1 times the residual and kappa the diagonal of K'^-1. With L L^T = K + noise, D = L^-1 H and
B B^T = I + D^T D (what ``gp.py`` keeps), K'^-1 = L^-T (I - D (B B^T)^-1 D^T) L^-1.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from modelodds.surrogate.gp import GP

Array = NDArray[np.float64]


class LeftOut(NamedTuple):
    """Each observation, and its prediction from the others, noise included; on the surrogate's scale."""

    observed: Array  # (n,)
    mean: Array  # (n,)
    sd: Array  # (n,)


def leave_one_out(gp: GP) -> LeftOut:
    """Predictions of every observation of ``gp`` from all the others, its hyperparameters as they are."""
    real = np.asarray(gp.data.mask if gp.borrowed is None else gp.borrowed.own) > 0
    chol = np.asarray(gp.chol)
    inverse = solve_triangular(chol, np.eye(len(chol)), lower=True)
    on_basis = solve_triangular(np.asarray(gp.basis_chol), np.asarray(gp.design).T @ inverse, lower=True)
    alpha = inverse.T @ np.asarray(gp.white)
    kappa = np.maximum((inverse**2).sum(0) - (on_basis**2).sum(0), 1e-12)
    observed = np.asarray(gp.data.y) + (0.0 if gp.borrowed is None else float(gp.borrowed.level))
    return LeftOut(observed[real], (observed - alpha / kappa)[real], (1.0 / np.sqrt(kappa))[real])
