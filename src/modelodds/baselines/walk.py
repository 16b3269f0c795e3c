"""An adaptive random walk through one model's posterior (Haario, Saksman & Tamminen 2001).

It wastes few calls: it starts at the best of a handful of prior draws, takes the posterior's covariance from
its own past, and tunes the step to the acceptance rate that suits a random walk. Proposals outside the
prior's support are turned down without a call. The adaptation fades, as ergodicity asks.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from modelodds.baselines.base import Point, Target

Array = NDArray[np.float64]

STARTS = 3  # prior draws per dimension, of which the best is where the walk begins
FIRST_STEP = 0.3  # in units of the prior's standard deviations, until the scale has found itself
HASTE = 3.0  # how fast the scale does so
ENOUGH = 3  # accepted moves per dimension, and as many more, for a covariance of their own
BURN = 0.1  # share of the walk since its arrival that is left out as burn-in, too


class Walk:
    """The walk through one model: a chain of points, one per proposal."""

    def __init__(self, target: Target, rng: np.random.Generator) -> None:
        self.target, self.rng = target, rng
        self.chain: list[Point] = []
        self._log_scale, self._cov = np.log(FIRST_STEP), np.eye(target.dim)
        self._wanted = 0.44 if target.dim == 1 else 0.3
        self.moves, self._tuned = 0, 0  # accepted proposals; since when the scale is tuned
        self._steps = self._go()

    def step(self) -> None:
        """Until the next call of the likelihood has been made."""
        next(self._steps)

    def enter(self, point: Point) -> None:
        """Come into this model at ``point``, from another one."""
        self.chain.append(point)

    @property
    def arrived(self) -> int:
        """How far into the chain it first was as high up as nine tenths of its later half."""
        height = np.array([p.log_joint for p in self.chain])
        return int(np.argmax(height >= np.quantile(height[len(height) // 2 :], 0.1)))

    @property
    def kept(self) -> list[Point]:
        """The chain without its burn-in."""
        if not self.chain:
            return []
        arrived = self.arrived
        return self.chain[arrived + int(BURN * (len(self.chain) - arrived)) :]

    @property
    def here(self) -> Point:
        """Where the walk is."""
        return self.chain[-1]

    def _go(self) -> Iterator[None]:
        best: Point | None = None
        for _ in range(STARTS * max(self.target.dim, 1)):
            point = self.target.at(self.target.draw(self.rng))
            best = point if best is None or point.log_likelihood > best.log_likelihood else best
            yield
        while best is None or not np.isfinite(best.log_joint):  # nothing but likelihoods of zero so far
            best = self.target.at(self.target.draw(self.rng))
            yield
        self.chain.append(best)
        while True:
            before = self.target.meter.spent
            self.move()
            if self.target.meter.spent > before or self.target.dim == 0:
                yield

    def move(self) -> None:
        """Propose one step from here, and take it or stay."""
        here, step = self.here, self.rng.standard_normal(self.target.dim)
        chol = np.linalg.cholesky(self._cov)
        there = self.target.at(here.v + np.exp(self._log_scale) * chol @ step)
        accepted = float(np.exp(min(0.0, there.log_joint - here.log_joint)))
        moved = self.rng.uniform() < accepted
        self.chain.append(there if moved else here)
        self.moves += moved
        self._adapt(accepted, moved)

    def _adapt(self, accepted: float, moved: bool) -> None:
        d = self.target.dim
        self._tuned += 1
        self._log_scale += HASTE * (accepted - self._wanted) / (HASTE + self._tuned) ** 0.6
        if not moved or self.moves < ENOUGH * (d + 1):
            return
        if self.moves == ENOUGH * (d + 1):  # from here on the covariance sets the scale
            self._log_scale, self._tuned = np.log(2.38 / np.sqrt(d)), 0
        later = np.array([p.v for p in self.chain[len(self.chain) // 2 :]])
        self._cov = shrunk_covariance(later)


def shrunk_covariance(points: Array) -> Array:
    """Covariance (d, d) of ``points`` (n, d), shrunk towards no correlations as if d + 1 had said so."""
    n, d = points.shape
    cov = np.cov(points.T, bias=True).reshape(d, d)
    return np.asarray((n * cov + (d + 1) * np.diag(np.maximum(np.diag(cov), 1e-10))) / (n + d + 1))


def autocorrelation_time(series: Array) -> float:
    """Integrated autocorrelation time of ``series`` (n,), by Geyer's (1992) initial positive sequence."""
    n = len(series)
    centred = series - series.mean()
    power = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
    covariance = np.fft.irfft(power)[:n]
    if n < 4 or covariance[0] <= 0:
        return 1.0
    rho = covariance / covariance[0]
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(1)
    end = int(np.argmax(pairs < 0)) if (pairs < 0).any() else len(pairs)
    return float(max(1.0, 2.0 * np.minimum.accumulate(pairs[:end]).sum() - 1.0))
