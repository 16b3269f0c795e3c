"""Where peers that take a density of the parameters work: in these, where their prior has such a density."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from modelodds.baselines.peers.base import with_fixed
from modelodds.errors import PriorError
from modelodds.nodes import systematic
from modelodds.prior import Prior

Array = NDArray[np.float64]

PLAUSIBLE = (0.16, 0.84)
TAIL = 1e-9
DRAWS = 4096  # from which the quantiles of a joint prior are read


@dataclass(frozen=True)
class Space:
    """Where a peer works: theta, or the internal x of a prior that has no density of theta."""

    prior: Prior
    natural: bool
    hard: Array  # (2, d)
    plausible: Array  # (2, d)

    @classmethod
    def of(cls, prior: Prior) -> "Space":
        """The space of ``prior``."""
        if prior.components:
            marginals = prior.components.values()
            hard = np.array([_ends(marginal) for marginal in marginals]).T
            plausible = np.array([marginal.ppf(PLAUSIBLE) for marginal in marginals]).T
            return cls(prior, True, hard, plausible)
        draws = _prior_draws(prior)
        theta = prior.to_theta(draws)
        try:
            prior.log_density_theta(theta[:1])
        except PriorError:  # a transform of the unit cube
            return cls(prior, False, prior.bounds, np.quantile(draws, PLAUSIBLE, axis=0))
        return cls(prior, True, prior.bounds, np.quantile(theta, PLAUSIBLE, axis=0))

    def theta(self, points: Array) -> Array:
        """Parameters (m, p) at ``points`` (m, d)."""
        return with_fixed(self.prior, points) if self.natural else self.prior.to_theta(points)

    def log_prior(self, point: Array) -> float:
        """Log prior density of ``point`` (d,)."""
        if self.natural:
            return float(self.prior.log_density_theta(self.theta(point[None, :]))[0])
        return float(self.prior.log_density(point))

    def box(self, confidence: float) -> Array:
        """Bounds (2, d): the hard ones, and where there are none, those of so much of each marginal.

        Without marginals they are as far out as a normal distribution's with the same plausible range.
        """
        share = 0.5 * (1.0 + confidence)
        if self.prior.components:
            ends = np.array([m.ppf([1.0 - share, share]) for m in self.prior.components.values()]).T
        else:
            sds = np.array([[-1.0], [1.0]]) * special.ndtri(share) / special.ndtri(PLAUSIBLE[1])
            ends = self.plausible.mean(0) + 0.5 * sds * np.diff(self.plausible, axis=0)
        return np.where(np.isinf(self.hard), ends, self.hard)


def _ends(marginal: Any) -> Array:
    """Hard bounds of a parameter: both or none, as PyVBMC wants; a half-open support ends in its far tail."""
    ends = np.array(marginal.support(), dtype=float)
    if np.isinf(ends).all():
        return ends
    return np.where(np.isinf(ends), marginal.ppf([TAIL, 1.0 - TAIL]), ends)


def _prior_draws(prior: Prior) -> Array:
    """Internal coordinates (DRAWS, d) of points of the prior."""
    x, log_weight = prior.from_unit(np.random.default_rng(0).random((DRAWS, prior.dim)))
    return np.asarray(x[systematic(np.exp(log_weight - log_weight.max()), DRAWS)])
