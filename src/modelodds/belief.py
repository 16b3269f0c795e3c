"""Where a comparison stands: what is believed of all evidences and model probabilities together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelodds import correlated
from modelodds.evidence import Evidence

Array = NDArray[np.float64]

IGNORANCE = 1000.0  # nats: standard deviation of a log-evidence of which nothing is known


@dataclass(frozen=True)
class Belief:
    """Where a session stands."""

    mean: Array  # (k,) of the log-evidences
    sd: Array  # (k,)
    probabilities: Array  # (k,) expected posterior model probabilities
    probability_sd: Array  # (k,)
    shared: Array | None = None  # (k, k) covariance of the log-evidences, where they are not independent

    @classmethod
    def of(
        cls,
        evidences: Sequence[Evidence],
        log_prior: Array,
        joint: Callable[[Array, Array], Array] | None = None,
    ) -> "Belief":
        """The belief that follows from each model's evidence and their log prior probabilities (k,).

        Where evidences correlate, ``joint`` gives their covariance from their variances and the parts of
        these that no evaluation takes away.
        """
        mean = np.array([e.mean for e in evidences])
        sd = np.sqrt([e.variance for e in evidences])
        unknown = np.isnan(mean) | np.isneginf(mean).all()
        known = mean[np.isfinite(mean)]
        mean[unknown] = known.mean() if len(known) else 0.0
        sd[unknown] = IGNORANCE
        shared = None if joint is None else joint(sd**2, np.array([e.fixed for e in evidences]))
        z, cov = correlated.moments(mean, np.diag(sd**2) if shared is None else shared, log_prior)
        return cls(mean, sd, z, np.sqrt(np.diag(cov)), shared)

    @property
    def cov(self) -> Array:
        """Covariance of the log-evidences, (k, k)."""
        return np.diag(self.sd**2) if self.shared is None else self.shared

    def log_odds_sd(self, a: int, b: int) -> float:
        """Standard deviation of the log-odds of models ``a`` and ``b``."""
        between = 0.0 if self.shared is None else self.shared[a, b]
        return float(np.sqrt(max(self.sd[a] ** 2 + self.sd[b] ** 2 - 2.0 * between, 0.0)))

    def row(self, n_evaluations: int, names: Sequence[str]) -> dict[str, float]:
        """The belief as a row of :attr:`Result.history`."""
        row: dict[str, float] = {"n_evaluations": n_evaluations}
        for i, name in enumerate(names):
            row[f"log_evidence[{name}]"] = float(self.mean[i])
            row[f"log_evidence_sd[{name}]"] = float(self.sd[i])
            row[f"probability[{name}]"] = float(self.probabilities[i])
            for j in range(i if self.shared is not None else 0):
                row[f"log_evidence_cov[{names[j]}, {name}]"] = float(self.cov[i, j])
        return row
