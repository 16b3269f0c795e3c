"""Observations of one model's log-likelihood, as the surrogate is given them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelodds.surrogate.gp import Data
from modelodds.surrogate.squash import Squash

Array = NDArray[np.float64]

BUCKETS = (48, 96, 160, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
"""Sizes observations are padded to, so that a run compiles a handful of times."""

SHAPE = 0.1  # extra noise per nat, as the surrogate sees it, beyond the gap that is worth following


@dataclass(frozen=True)
class Observations:
    """Points, log-likelihoods and the variance of each."""

    x: Array  # (n, d)
    y: Array  # (n,)
    noise: Array  # (n,)

    @classmethod
    def empty(cls, d: int) -> "Observations":
        """No observations of a ``d``-dimensional model."""
        return cls(np.empty((0, d)), np.empty(0), np.empty(0))

    def add(self, x: Array, y: float | Array, noise: float | Array = 0.0) -> "Observations":
        """These and more: one point (d,) or several (m, d)."""
        x, y = np.atleast_2d(x), np.atleast_1d(y)
        return Observations(
            np.vstack([self.x, x]),
            np.append(self.y, y),
            np.append(self.noise, np.broadcast_to(noise, len(y))),
        )

    def __len__(self) -> int:
        return len(self.y)

    @property
    def best(self) -> float:
        """The largest log-likelihood; minus infinity while there is none."""
        return float(self.y.max(initial=-np.inf))

    @property
    def best_x(self) -> Array:
        """Where it is, (d,)."""
        return np.asarray(self.x[int(np.argmax(self.y))])

    def gap(self, best: float | None = None) -> Array:
        """Nats below the best observation, or below the given value, (n,)."""
        return (self.best if best is None else best) - self.y

    def data(self, shaped_noise: bool, best: float | None = None, squash: Squash | None = None) -> Data:
        """Values relative to the best (or the given one), noise shaped, squashed, padded."""
        d, gap, noise = self.x.shape[1], self.gap(best), self.noise
        squash = squash or Squash.none(d)
        noise, gap = noise * squash.slope(gap) ** 2, squash(gap)
        if shaped_noise:
            noise = noise + (SHAPE * np.maximum(0.0, gap - squash.followed)) ** 2
        n = len(self)
        pad = next((b for b in BUCKETS if b >= n), n) - n
        return Data(
            np.vstack([self.x, np.zeros((pad, d))]),
            np.append(-gap, np.zeros(pad)),
            np.append(noise, np.zeros(pad)),
            np.append(np.ones(n), np.zeros(pad)),
        )
