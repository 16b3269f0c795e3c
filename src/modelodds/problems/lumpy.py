"""A lumpy likelihood against a smooth one: VBMC's lumpy family (Acerbi 2018). Exact evidences.

``lumpy`` is a mixture of twelve normal densities with means uniform on the unit cube, standard deviations
uniform from 0.2 to 0.6 along each axis and Dirichlet(1) weights: mildly multimodal. ``smooth`` is one normal
density of the same mean and covariance. The prior is normal about the cube's middle and 3.5 times as wide as
a typical mixture, whose standard deviation is 0.5. Under so wide a prior a density has much the same evidence
whatever its shape, and the odds would be even to 1 %; so each likelihood is multiplied by e^c, c standard
normal.
"""

from typing import NamedTuple

import numpy as np
from scipy import special, stats

from modelodds.model import Model
from modelodds.prior import Prior
from modelodds.problems.base import Family, Problem

COMPONENTS = 12
CENTRE = 0.5
SPREAD = 3.5 * 0.5


class Mixture(NamedTuple):
    """A sum of normal densities: weights (K,), means (K, d) and covariances (K, d, d)."""

    weight: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray

    def log_density(self, theta: np.ndarray) -> np.ndarray:
        """At ``theta`` (n, d), shape (n,)."""
        parts = zip(self.mean, self.covariance, strict=True)
        each = np.stack([np.atleast_1d(stats.multivariate_normal.logpdf(theta, m, c)) for m, c in parts])
        return np.asarray(special.logsumexp(each, axis=0, b=self.weight[:, None]))

    def log_evidence(self) -> float:
        """Log of its integral over the prior: each part, widened by the prior, at the prior's centre."""
        widened = self._replace(covariance=self.covariance + SPREAD**2 * np.eye(self.mean.shape[1]))
        return float(widened.log_density(np.full((1, self.mean.shape[1]), CENTRE))[0])

    def smooth(self) -> "Mixture":
        """One normal density with the mean and covariance of the whole, whose weights sum to 1."""
        mean = self.weight @ self.mean
        apart = self.mean - mean
        each = self.covariance + apart[:, :, None] * apart[:, None, :]
        return Mixture(np.ones(1), mean[None], np.einsum("k,kij->ij", self.weight, each)[None])


def lumpy(d: int, seed: int) -> Problem:
    """The mixture against its normal likeness in ``d`` dimensions."""
    rng = np.random.default_rng([4, d, seed])
    mean, sd = rng.uniform(size=(COMPONENTS, d)), rng.uniform(0.2, 0.6, size=(COMPONENTS, d))
    mixture = Mixture(rng.dirichlet(np.ones(COMPONENTS)), mean, sd[:, :, None] ** 2 * np.eye(d))
    likelihoods = {
        name: part._replace(weight=part.weight * np.exp(rng.normal()))
        for name, part in (("lumpy", mixture), ("smooth", mixture.smooth()))
    }
    prior = Prior({f"x{j}": stats.norm(CENTRE, SPREAD) for j in range(d)})
    return Problem(
        f"lumpy-{d}-{seed}",
        tuple(Model(name, m.log_density, prior, vectorized=True) for name, m in likelihoods.items()),
        tuple(m.log_evidence() for m in likelihoods.values()),
    )


FAMILY = Family("lumpy", "mixture of twelve normals against a single one", lumpy, sizes=tuple(range(2, 11)))
