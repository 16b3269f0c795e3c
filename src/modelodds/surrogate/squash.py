"""Log-likelihoods far below the best, drawn closer together before the surrogate sees them.

A Gaussian process that has to follow a cliff of hundreds of nats thinks everything varies by hundreds of
nats. Where that is so, it is given f = -s(gap) instead of y = -gap, the gap being that to the best
observation:

    s(gap) = gap                                   up to the gap t worth following,
    s(gap) = t + c log(1 + (gap - t) / c)          beyond.

With c infinite, f is y. Whether to squash is decided by the data, as the kernel is: the density of y under
the squashed process is that of f times s'(gap).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SCALE = 3.0  # the c of squashing, in nats
STEEPEST = 50.0  # exponents beyond this are cut: the gap is astronomical


class Squash(NamedTuple):
    """The map from gaps to the surrogate's scale."""

    followed: float  # t
    scale: float = np.inf  # c

    @classmethod
    def none(cls, d: int) -> "Squash":
        """The scale as it is; in ``d`` dimensions a Gaussian's bulk rarely falls by more than this t."""
        return cls(5.0 + 2.5 * d)

    @classmethod
    def some(cls, d: int) -> "Squash":
        """Squashed; as the surrogate need not follow what is beyond t, that is nearer to the best."""
        return cls(6.0 + d, SCALE)

    @classmethod
    def more(cls, d: int) -> "Squash":
        """Squashed from nearer to the best on: for plateaus and cliffs that begin high up."""
        return cls(3.0 + d, SCALE)

    @classmethod
    def exact(cls) -> "Squash":
        """The scale as it is, followed all the way down: for a log-likelihood as good as quadratic."""
        return cls(np.inf)

    @property
    def capped(self) -> bool:
        """Whether likelihoods far above the best one seen are ruled out: a proven quadratic knows its top."""
        return np.isfinite(self.followed) or not self.straight

    @property
    def straight(self) -> bool:
        """Whether f is y."""
        return self.scale == np.inf

    def __call__(self, gap: Array) -> Array:
        """s(gap)."""
        if self.straight:
            return gap
        excess = np.maximum(gap - self.followed, 0.0)
        return np.asarray(np.minimum(gap, self.followed) + self.scale * np.log1p(excess / self.scale))

    def inverse(self, squashed: Array) -> Array:
        """The gap of s(gap)."""
        if self.straight:
            return squashed
        excess = np.maximum(squashed - self.followed, 0.0)
        beyond = self.scale * np.expm1(np.minimum(excess / self.scale, STEEPEST))
        return np.asarray(np.minimum(squashed, self.followed) + beyond)

    def log_likelihood(self, f: Array) -> Array:
        """y, relative to the best observation, from f."""
        return -self.inverse(-f)

    def slope(self, gap: Array) -> Array:
        """s'(gap), between 0 and 1."""
        if self.straight:
            return np.ones_like(gap)
        return np.asarray(1.0 / (1.0 + np.maximum(gap - self.followed, 0.0) / self.scale))
