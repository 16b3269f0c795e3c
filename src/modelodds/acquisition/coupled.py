"""The acquisitions in full-matrix form: an observation of one model tells of several evidences.

With evidences that correlate, an observation g_i(x) of variance v pulls at all of them: it has covariances
c_j(x) = Cov(g_i(x), log a_j), and once it is made, log a moves along c / sqrt(v) by a standard normal amount.
With S the covariance of the log-evidences and alpha = c / sqrt(v), the rules are

- ``log_odds``: I = -1/2 log(1 - alpha^T M alpha),  M = S^-1 - S^-1 1 1^T S^-1 / (1^T S^-1 1); knowing the
  odds leaves log a free along 1 = (1, ..., 1), as knowing z leaves a free along the ray of z;
- ``variance``: rho^2 E |z - z'|^2 / 2, with rho^2 = alpha^T S^-1 alpha and z' being z once log a is drawn
  afresh along alpha / rho, everything uncorrelated with that staying as it is;
- ``mutual_information`` (Chai et al. 2019, with Gaussian evidences): the same as the first in the original
  space, L_j(x) = Cov(l_i(x), a_j) and K the evidences' covariance,
  I = -1/2 E_z log(1 - [L^T K^-1 L - (L^T K^-1 z)^2 / (z^T K^-1 z)] / Sigma_i(x, x)).

With S (or K) diagonal, only alpha_i is not zero and each is the formula of its own file.

| symbol  | name        | shape  | meaning                                                             |
|---------|-------------|--------|---------------------------------------------------------------------|
| S       | ``cov``     | (k, k) | covariance of the log-evidences                                     |
| alpha   | ``pull``    | (m, k) | by how much an observation at each of m points moves each of them   |
"""

from abc import abstractmethod

import jax.numpy as jnp
import numpy as np
from jax.nn import softmax

from modelodds.acquisition.base import Acquisition, Aux, Joint, Rivals, Stakes, View, observation_noise
from modelodds.evidence import expm1_cut
from modelodds.odds import _normal_lattice
from modelodds.precision import Array
from modelodds.surrogate.gp import Spec, features, moments, prior_covariance, relative_nugget

DRAWS = 256
TINY = 1e-12


def odds_precision(cov: np.ndarray) -> np.ndarray:
    """M (k, k): alpha^T M alpha is the share of an observation's variance that the log-odds explain.

    By way of the k - 1 log-odds Q log a against the last model, M = Q^T (Q S Q^T)^-1 Q, which also holds
    where an evidence is known exactly.
    """
    k = len(cov)
    if k == 1:
        return np.asarray(1.0 / np.maximum(cov, 1e-300))
    contrast = np.eye(k)[:-1] - np.eye(k)[-1]
    spread = contrast @ cov @ contrast.T
    spread += np.diag(TINY * spread.diagonal() + 1e-300)
    return np.asarray(contrast.T @ np.linalg.solve(spread, contrast))


def stakes(mean: np.ndarray, cov: np.ndarray) -> Stakes:
    """What the rules need to know of the log-evidences ``mean`` (k,) and ``cov`` (k, k)."""
    k = len(mean)
    variance = np.maximum(cov.diagonal(), TINY)
    steady = cov + np.diag(variance - cov.diagonal() + 1e-9 * variance)
    lattice = _normal_lattice(k + 1, DRAWS)
    finite = np.where(np.isfinite(mean), mean, -1e6)
    log_a = finite + lattice[:, :k] @ np.linalg.cholesky(steady).T
    # In the original space, relative to the expected evidences.
    relative = np.expm1(np.clip(cov, -500.0, 300.0))
    own = np.maximum(relative.diagonal(), TINY)
    relative = relative + np.diag(own - relative.diagonal() + 1e-9 * own)
    return Stakes(
        odds_precision(cov),
        np.linalg.inv(steady),
        finite,
        log_a,
        lattice[:, k],
        np.linalg.inv(relative),
        np.exp(np.clip(log_a - finite - 0.5 * variance, -300.0, 300.0)),
    )


def log_pull(spec: Spec, view: View, joint: Joint, x: Array) -> Array:
    """The pull alpha (m, k) of points ``x`` (m, d)."""
    v, s = features(spec, view.gp, x)
    columns = []
    for j in range(joint.weight.shape[0]):
        kernel = prior_covariance(spec, view.gp.hyper, joint.x[j], x, joint.apart[j])
        columns.append(joint.factor[j] * joint.weight[j] @ kernel)
    covariance = jnp.stack(columns, axis=1) - (joint.on_data @ v).T + (joint.on_basis @ s).T
    mean, own = moments(spec, view.gp, x, v, s)
    open_to = jnp.maximum(own - relative_nugget(view.gp.hyper), 0.0) / own
    scale = jnp.sqrt(open_to / (own + observation_noise(view, mean)) + 1e-30)
    return (covariance * joint.stretch * scale[:, None]) @ joint.place


def moment_pull(spec: Spec, view: View, joint: Joint, x: Array) -> Array:
    """The pull L / sqrt(Sigma) (m, k) of points ``x`` (m, d), relative to the expected evidences."""
    v, s = features(spec, view.gp, x)
    columns = []
    for j in range(joint.weight.shape[0]):
        kernel = prior_covariance(spec, view.gp.hyper, joint.x[j], x, joint.apart[j])
        on_data, on_basis = joint.features[j]
        cov = joint.factor[j] * kernel - on_data.T @ v + on_basis.T @ s  # (S, m)
        columns.append(joint.weight[j] @ expm1_cut(cov))
    mean, own = moments(spec, view.gp, x, v, s)
    scale = expm1_cut(own + observation_noise(view, mean)) ** -0.5
    return (jnp.stack(columns, axis=1) * joint.stretch * scale[:, None]) @ joint.place


class CoupledAcquisition(Acquisition):
    """A rule whose scores are final: what an observation is worth, whichever model it is of."""

    original: bool = False  # whether evidences are Gaussian in the original space

    def prepare(self, spec: Spec, view: View) -> Aux:
        """Nothing: the work was done once for all models."""
        return Aux(jnp.zeros(()), ())

    def within(self, spec: Spec, view: View, aux: Aux, x: Array) -> Array:
        """The worth of points ``x`` (m, d)."""
        assert view.joint is not None
        pull = moment_pull if self.original else log_pull
        return self.worth(view.joint.stakes, pull(spec, view, view.joint, x))

    def across(self, best: np.ndarray, rivals: Rivals) -> np.ndarray:
        """As they are."""
        return best

    @abstractmethod
    def worth(self, stakes: Stakes, pull: Array) -> Array:
        """What observations that pull at the evidences by ``pull`` (m, k) are worth, (m,)."""


class SharedLogOdds(CoupledAcquisition):
    """Information about the log-odds (all of them, jointly)."""

    def worth(self, stakes: Stakes, pull: Array) -> Array:
        """Mutual information in nats."""
        share = jnp.sum((pull @ stakes.odds_precision) * pull, axis=1)
        return -0.5 * jnp.log1p(-jnp.clip(share, 0.0, 1.0 - TINY))


class SharedVariance(CoupledAcquisition):
    """Reduction of the variance of the posterior model probabilities."""

    def worth(self, stakes: Stakes, pull: Array) -> Array:
        """Expected reduction of sum_j Var(z_j)."""
        onto = pull @ stakes.precision  # (m, k)
        share = jnp.maximum(jnp.sum(onto * pull, axis=1), 1e-30)  # rho^2
        before = (stakes.log_a - stakes.mean) @ onto.T / share  # (n, m), in units of pull
        fresh = stakes.fresh[:, None] / jnp.sqrt(share)
        moved = stakes.log_a[:, None, :] + (fresh - before)[:, :, None] * pull  # (n, m, k)
        change = softmax(stakes.log_a, axis=1)[:, None, :] - softmax(moved, axis=2)
        gain = share * 0.5 * jnp.mean(jnp.sum(change**2, axis=2), axis=0)
        # Where all is decided beyond what draws can tell, any uncertainty is as good as another.
        return gain + 1e-20 * jnp.sum(pull**2, axis=1)


class SharedMutualInformation(CoupledAcquisition):
    """Information about z, all moment-matched Gaussians: the paper's, with correlated evidences."""

    original = True

    def worth(self, stakes: Stakes, pull: Array) -> Array:
        """Expectation over z, in nats."""
        onto = pull @ stakes.original_precision
        share = jnp.sum(onto * pull, axis=1)
        along = stakes.ray @ onto.T  # (n, m)
        norm = jnp.sum((stakes.ray @ stakes.original_precision) * stakes.ray, axis=1)
        left = jnp.clip(share - along**2 / norm[:, None], 0.0, 1.0 - TINY)
        return jnp.mean(-0.5 * jnp.log1p(-left), axis=0)


COUPLED: dict[str, CoupledAcquisition] = {
    "shared:log_odds": SharedLogOdds(),
    "shared:variance": SharedVariance(),
    "shared:mutual_information": SharedMutualInformation(),
}
