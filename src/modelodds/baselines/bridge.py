"""Bridge sampling (Meng & Wong 1996), by the recipe of Gronau et al. (2017).

Each model by itself: draws from its posterior by a random walk, a Gaussian proposal g fitted to the first
half of them (Overstall & Forster 2010), draws from g, and the optimal bridge function between the second half
and these,

    a = mean_g[ q / (s_1 q + s_2 a g) ] / mean_post[ g / (s_1 q + s_2 a g) ],      q = likelihood x prior,

iterated to its fixed point; s_1 and s_2 are the shares of the effective sample sizes. Its relative
mean-squared error (Frühwirth-Schnatter 2004), with the autocorrelation of the walk, is the variance of log a.

So that an estimate is at hand after any number of calls, walk and proposal take turns, and g is refitted
whenever the walk has grown by half. Draws of earlier fits are kept: all of them together are draws from the
mixture of the fits, each weighted by how many draws it gave. Until the bridge holds, the walk tells what it
knows by itself, the Laplace-Metropolis estimate (Lewis & Raftery 1997): its highest point and its covariance.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from modelodds.baselines.base import Point, Target, in_turn
from modelodds.baselines.walk import Walk, autocorrelation_time, shrunk_covariance
from modelodds.model import Model
from modelodds.result import Result

Array = NDArray[np.float64]

FIRST_FIT = 4  # chain points per dimension, and as many more, before the first proposal is fitted
CAUTION = 4.0  # a fit to few points is widened: by this times (d + 1) over their number, plus one
GROWTH = 1.5  # the walk's growth that makes a new fit worth its while
SATURATED = 0.1  # relative mean-squared errors beyond this are not believed
ROUGH = 4.0  # squared nats: variance of the walk's own estimate, told where the bridge is no better
FAR = 10.0  # nats between the two one-sided estimates that leave nothing to believe
KEPT_DRAWS = 2000


class Gaussian:
    """A normal distribution fitted to points."""

    def __init__(self, points: Array) -> None:
        distinct = len(np.unique(points, axis=0))  # a chain stays where it is when it rejects
        wider = 1.0 + CAUTION * (points.shape[1] + 1) / distinct
        self.mean, self.chol = points.mean(0), np.linalg.cholesky(wider * shrunk_covariance(points))

    def draw(self, rng: np.random.Generator) -> Array:
        """One point (d,)."""
        return np.asarray(self.mean + self.chol @ rng.standard_normal(len(self.mean)))

    def log_density(self, v: Array) -> Array:
        """Log-density at ``v`` (n, d), shape (n,)."""
        white = np.linalg.solve(self.chol, (v - self.mean).T)
        constant = np.log(np.diag(self.chol)).sum() + 0.5 * len(self.mean) * np.log(2 * np.pi)
        return np.asarray(-0.5 * (white**2).sum(0) - constant)


class Bridge:
    """Bridge sampling of one model's evidence, call by call."""

    def __init__(self, target: Target, rng: np.random.Generator) -> None:
        self.target, self.rng, self.calls = target, rng, 0
        self.walk = Walk(target, rng)
        self.fits: list[Gaussian] = []
        self.proposed: list[tuple[int, Point]] = []  # which fit it came from, and where it fell
        self._fitted_at = self._head_start = 0

    def step(self) -> None:
        """Make one call: of the walk, or of the proposal when that is behind."""
        before = self.target.meter.spent
        while self.target.meter.spent == before and not self.target.settled:
            if self._proposal_is_due():
                point = self.target.at(self.fits[-1].draw(self.rng))
                self.proposed.append((len(self.fits) - 1, point))
            else:
                self.walk.step()
        self.calls += 1

    def _proposal_is_due(self) -> bool:
        chain = len(self.walk.chain)
        if not self.fits:
            enough = FIRST_FIT * (self.target.dim + 1)
            if (
                chain < enough
                or self.walk.moves < enough // 2
                or len(self.walk.kept) < max(enough, chain // 2)
            ):
                return False  # still on its way up
            places = np.unique([p.v for p in self._halves()[0]], axis=0)
            if len(places) < self.target.dim + 2:
                return False  # too few places to fit a Gaussian to
            self._head_start = chain - enough  # nor does the proposal make up for what the first fit lacks
        if chain >= GROWTH * self._fitted_at:
            first, _ = self._halves()
            self.fits.append(Gaussian(np.array([p.v for p in first])))
            self._fitted_at = chain
        return len(self.proposed) < chain - self._head_start

    def _halves(self) -> tuple[list[Point], list[Point]]:
        kept = self.walk.kept
        return kept[: len(kept) // 2], kept[len(kept) // 2 :]

    def estimate(self) -> tuple[float, float]:
        """Log-evidence and its variance; NaN before there is one."""
        if self.target.settled:
            return self.target.at(np.empty(0)).log_likelihood, 0.0
        if len(self.proposed) >= 2:
            _, posterior = self._halves()
            proposed = [point for _, point in self.proposed]
            log_evidence, variance = bridge(self._log_ratios(posterior), self._log_ratios(proposed))
            if variance <= ROUGH:
                return log_evidence, variance
        return self._by_walk()

    def _by_walk(self) -> tuple[float, float]:
        if not self.fits:
            return np.nan, np.nan  # still on its way up
        points = np.array([p.v for p in self.walk.kept])
        _, log_volume = np.linalg.slogdet(2 * np.pi * shrunk_covariance(points))
        return max(p.log_joint for p in self.walk.kept) + 0.5 * float(log_volume), ROUGH

    def _log_ratios(self, points: list[Point]) -> Array:
        """Logarithms of q / g at ``points``."""
        v = np.array([p.v for p in points])
        counts = np.bincount([fit for fit, _ in self.proposed], minlength=len(self.fits))
        parts = [
            np.log(n / counts.sum()) + fit.log_density(v)
            for n, fit in zip(counts, self.fits, strict=True)
            if n > 0
        ]
        return np.asarray([p.log_joint for p in points] - special.logsumexp(parts, axis=0))

    def draws(self) -> Array:
        """Posterior draws of theta, (m, p)."""
        points = self.walk.kept
        if not points:
            return np.empty((0, len(self.target.model.parameters)))
        chosen = np.linspace(0, len(points) - 1, min(KEPT_DRAWS, len(points))).astype(int)
        return self.target.theta(np.array([points[i].v for i in chosen]))[0]


def bridge(posterior: Array, proposed: Array, independent: bool = True) -> tuple[float, float]:
    """Log normalising constant of q, and the variance of it, by the optimal bridge function.

    Parameters
    ----------
    posterior : array, shape (n_1,)
        log q - log g at draws from q, in the order of their chain.
    proposed : array, shape (n_2,)
        The same at draws from g; -inf where q vanishes.
    independent : bool
        Whether the draws from g are; if not, they are in the order of their chain, too.
    """
    if not np.isfinite(proposed).any():
        return np.nan, np.nan  # no proposal fell where the posterior is
    n_1, n_2 = len(posterior) / autocorrelation_time(posterior), float(len(proposed))
    if not independent:
        n_2 /= autocorrelation_time(np.maximum(proposed, posterior.min() - 100.0))
    log_s1, log_s2 = np.log(n_1 / (n_1 + n_2)), np.log(n_2 / (n_1 + n_2))

    def imbalance(log_a: float) -> float:
        """The fixed point's equation, arranged to rise with ``log_a``."""
        shift = log_s2 + log_a - log_s1
        return float(
            np.exp(log_s1) * special.expit(shift - posterior).mean()
            - np.exp(log_s2) * special.expit(proposed - shift).mean()
        )

    ends = np.concatenate([posterior, proposed[np.isfinite(proposed)]])
    reach = 50.0 + np.abs(log_s1 - log_s2)
    log_a = float(optimize.brentq(imbalance, ends.min() - reach, ends.max() + reach, xtol=1e-10))
    of_g = special.expit(log_s1 - log_s2 - log_a + proposed)
    of_posterior = special.expit(log_s2 - log_s1 + log_a - posterior)
    variance = _squared_error(of_g, independent) + _squared_error(of_posterior, False)
    # Importance sampling from g alone and from the posterior alone err to opposite sides. Where they are far
    # apart, or one draw carries a mean, the formula tells less than their distance does.
    forward = special.logsumexp(proposed) - np.log(len(proposed))
    backward = np.log(len(posterior)) - special.logsumexp(-posterior)
    gap = abs(forward - backward)
    if not variance <= SATURATED or gap > FAR:
        variance = SATURATED + gap**2
    return log_a, variance


def _squared_error(values: Array, independent: bool) -> float:
    """Relative mean-squared error of the mean of ``values`` (n,); infinite where they all underflow."""
    mean = values.mean()
    if mean < 1e-150:
        return np.inf
    time = 1.0 if independent else autocorrelation_time(values)
    return float(time * values.var() / mean**2 / len(values))


def run(models: Iterable[Model], budget: int, rng: int | np.random.Generator = 0) -> Result:
    """Compare ``models`` by bridge sampling, each getting the same share of ``budget`` calls."""
    return in_turn(models, budget, rng, Bridge, "bridge")
