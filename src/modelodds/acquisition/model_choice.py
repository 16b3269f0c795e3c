"""Targets for choosing between two models: [z_1 > z_2] (Chai et al. 2019, eqs. 18-19) and z_1 - z_2.

    I([z_1 > z_2]; l_i(x)) = H([z_1 > z_2]) - E_l H([z_1 > z_2] | l_i(x))

Either way of modelling the evidences leaves a Gaussian question: is D > 0? An observation takes delta_i off
the variance V of D and moves its mean by as much as that says, D | l ~ N(mu + sqrt(delta_i) xi, V - delta_i)
with xi standard normal, so the expected entropy is a sum over Gauss-Hermite nodes in xi.

| form                    | D               | delta_i             |                                        |
|-------------------------|-----------------|---------------------|----------------------------------------|
| ``model_choice``        | log a_1 - log a_2 | s_i^2 rho_i^2     | Gaussian log-evidences                 |
| ``model_choice_gaussian`` | a_1 - a_2     | K_i rho_i^2         | Gaussian evidences, as the paper has it |
| ``difference``          | log a_1 - log a_2 | s_i^2 rho_i^2     | variance of z_1 - z_2 taken away       |

Inside a model the best point is that of largest rho_i^2, as for every rule here. Between models, all targets
that are functions of the log-odds agree: the larger delta_i tells more about each of them (Blackwell's
order). The Gaussian form differs: it weighs absolute variances, so the model of smaller evidence is hardly
ever asked, and when one model looks far better its entropies are zero to the last bit and it has no opinion.
That is how the paper's rule fails; where the log form runs out of digits it falls back on delta_i itself.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import special

from modelodds.acquisition.base import Acquisition, Aux, Rivals, View
from modelodds.acquisition.log_odds import project, squared_correlation
from modelodds.acquisition.mutual_information import MutualInformation
from modelodds.precision import Array
from modelodds.surrogate.gp import Spec

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(64)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
TINY = 1e-14  # nats, below which differences of entropies are rounding


def binary_entropy(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Entropy, in nats, of an event of probability Phi(t)."""
    either = special.ndtr(t) * special.log_ndtr(t) + special.ndtr(-t) * special.log_ndtr(-t)
    return np.asarray(-either)


def information_on_sign(mean: float, variance: float, taken: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mutual information of [D > 0], D ~ N(mean, variance), with observations that take ``taken`` (k,)."""
    left = np.sqrt(np.maximum(variance - taken, 1e-12 * variance))
    after = binary_entropy((mean + np.sqrt(taken)[:, None] * NODES) / left[:, None]) @ WEIGHTS
    return np.asarray(binary_entropy(np.array(mean / np.sqrt(variance))) - after)


def variance_of_difference(mean: float, variance: float, taken: NDArray[np.float64]) -> NDArray[np.float64]:
    """Expected reduction of Var(z_1 - z_2) = Var(tanh(D / 2)) by observations that take ``taken`` (k,)."""
    left = np.sqrt(np.maximum(variance - taken, 0.0))
    log_odds = mean + np.sqrt(taken)[:, None, None] * NODES[:, None] + left[:, None, None] * NODES
    expected = np.tanh(0.5 * log_odds) @ WEIGHTS  # (k, nodes): E[z_1 - z_2] after each observation
    centre = expected @ WEIGHTS
    return np.asarray((expected - centre[:, None]) ** 2 @ WEIGHTS)


class ModelChoice(Acquisition):
    """Information about which of two models is the better, with Gaussian log-evidences."""

    n_models = 2

    def prepare(self, spec: Spec, view: View) -> Aux:
        """See :func:`modelodds.acquisition.log_odds.project`."""
        return project(spec, view)

    def within(self, spec: Spec, view: View, aux: Aux, x: Array) -> Array:
        """See :func:`modelodds.acquisition.log_odds.squared_correlation`."""
        return squared_correlation(spec, view, aux, x)

    def across(self, best: np.ndarray, rivals: Rivals) -> np.ndarray:
        """Mutual information in nats; delta itself where that is below rounding."""
        mean, variance, taken = _log_odds(best, rivals)
        values = information_on_sign(mean, variance, taken)
        return values if values.max() > TINY else TINY * taken / variance


class Difference(ModelChoice):
    """Expected reduction of the variance of z_1 - z_2, with Gaussian log-evidences."""

    def across(self, best: np.ndarray, rivals: Rivals) -> np.ndarray:
        """Reduction of the variance; delta itself where that is below rounding."""
        mean, variance, taken = _log_odds(best, rivals)
        values = variance_of_difference(mean, variance, taken)
        return values if values.max() > TINY else TINY * taken / variance


class GaussianModelChoice(MutualInformation):
    """Information about which of two models is the better, with Gaussian evidences: the paper's."""

    n_models = 2

    def across(self, best: np.ndarray, rivals: Rivals) -> np.ndarray:
        """Mutual information in nats."""
        location = rivals.mean + 0.5 * rivals.variance
        evidence = np.exp(location - location.max())  # in units of the larger
        variance = evidence**2 * np.expm1(np.minimum(rivals.variance, 500.0))
        total = max(float(variance.sum()), 1e-300)
        return information_on_sign(
            float(evidence[0] - evidence[1]), total, variance * np.clip(best, 0.0, 1.0)
        )


def _log_odds(best: np.ndarray, rivals: Rivals) -> tuple[float, float, np.ndarray]:
    """Mean and variance of the log-odds, and what each model's best observation takes off the latter."""
    variance = max(float(rivals.variance.sum()), 1e-300)
    gap = rivals.mean[0] - rivals.mean[1]
    return float(np.clip(gap, -1e4, 1e4)), variance, rivals.variance * np.clip(best, 0.0, 1.0)
