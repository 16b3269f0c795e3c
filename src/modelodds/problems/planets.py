"""Planets in a star's radial velocity: none, one or two on circular orbits. Synthetic data.

The posterior of a period is a comb of narrow peaks, as a sparse series is fitted by many frequencies. The
evidences are nevertheless known by quadrature: with a Rayleigh prior an amplitude and its uniform phase are a
pair of independent normal coefficients of cosine and sine (as in The Joker, Price-Whelan et al. 2017), which
drop out in closed form together with the offset. Frequencies and jitter are left, three dimensions at most.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from modelodds.model import Model
from modelodds.prior import Prior
from modelodds.problems.base import Family, Problem
from modelodds.problems.truth import Truth, stored

Array = NDArray[np.float64]

N_DATA = 36
SPAN = 540.0  # days
ERROR = 1.5  # m/s, of each velocity
SHORTEST, LONGEST = 5.0, 200.0  # days
AMPLITUDE = 4.0  # m/s
OFFSET = 10.0  # m/s
JITTER, JITTER_SPREAD = 1.5, 0.5  # m/s, logarithmic


def planets(seed: int) -> Problem:
    """No planet, one or two; one made the data."""
    models = planets_models(seed)
    return Problem(f"planets-{seed}", models, *stored("planets", seed, models), "quadrature")


def planets_models(seed: int) -> tuple[Model, ...]:
    """The three models, with velocities drawn by ``seed``.

    Noise is normal: measuring errors of 1.5 m/s and a ``jitter`` of the star's own, whose prior is lognormal
    with median 1.5 m/s and logarithmic standard deviation 0.5. The star's ``offset`` is normal(0, 10 m/s). A
    planet's period is log-uniform from 5 to 200 days (``log_period``, in days), its ``amplitude`` Rayleigh of
    scale 4 m/s, its ``phase`` at the middle of the series uniform. Two planets are ordered by their periods:
    the outer one's log-period is the later of two uniform draws, with its triangular density, and the inner
    one's a uniform ``share`` of the way there. They are then log-uniform on ordered pairs.
    """
    times, velocity = planets_data(seed)
    low, width = np.log(SHORTEST), np.log(LONGEST / SHORTEST)
    star = {"offset": stats.norm(0, OFFSET), "jitter": stats.lognorm(JITTER_SPREAD, scale=JITTER)}
    size, angle = stats.rayleigh(scale=AMPLITUDE), stats.uniform(0, 2 * np.pi)
    one = {"log_period": stats.uniform(low, width), "amplitude": size, "phase": angle}
    outer = {"log_period2": stats.powerlaw(2, low, width), "amplitude2": size, "phase2": angle}
    inner = {"share": stats.uniform(0, 1), "amplitude1": size, "phase1": angle}
    priors = {"no planet": star, "one planet": star | one, "two planets": star | outer | inner}
    return tuple(
        Model(name, _log_likelihood(times, velocity), Prior(prior), vectorized=True)
        for name, prior in priors.items()
    )


def planets_data(seed: int) -> tuple[Array, Array]:
    """Days from the middle of the series and velocities in m/s, shape (36,) each.

    Nights are drawn from 540, hours from four around midnight. The planet has a log-uniform period of 8 to
    100 days and an amplitude of 4 to 7 m/s, the star a jitter of 1.5 m/s.
    """
    rng = np.random.default_rng([13, seed])
    nights = np.sort(rng.choice(int(SPAN), N_DATA, replace=False))
    times = nights + rng.uniform(-1 / 12, 1 / 12, N_DATA) - SPAN / 2
    period, amplitude = np.exp(rng.uniform(np.log(8.0), np.log(100.0))), rng.uniform(4.0, 7.0)
    orbit = circular(times, period, amplitude, rng.uniform(0, 2 * np.pi))
    return times, orbit + OFFSET * rng.normal() + np.hypot(ERROR, JITTER) * rng.normal(size=N_DATA)


def circular(times: Array, period: Array | float, amplitude: Array | float, phase: Array | float) -> Array:
    """Radial velocity on a circular orbit; arguments are broadcast."""
    return np.asarray(amplitude * np.cos(2 * np.pi * times / period + phase))


def _log_likelihood(times: Array, velocity: Array) -> Callable[[Array], Array]:
    def log_likelihood(theta: Array) -> Array:
        columns = theta.T[:, :, None]
        mean = columns[0] + np.zeros_like(times)
        log_period = columns[2] if len(columns) > 2 else columns[0]
        for first in range(2, len(columns), 3):
            if first == 5:  # the inner planet
                log_period = np.log(SHORTEST) + columns[first] * (log_period - np.log(SHORTEST))
            mean += circular(times, np.exp(log_period), *columns[first + 1 : first + 3])
        variance = ERROR**2 + theta[:, 1] ** 2
        squares = ((velocity - mean) ** 2).sum(axis=1)
        return np.asarray(-0.5 * squares / variance - 0.5 * len(times) * np.log(2 * np.pi * variance))

    return log_likelihood


def solve(size: int, seed: int, model: Model) -> Truth:
    """Log-evidence by quadrature; its error is what steps half as wide again would change."""
    n_planets = (model.dim - 2) // 3
    fine, coarse = (quadrature(*planets_data(seed), n_planets, wider) for wider in (1.0, 1.5))
    return Truth(fine, max(abs(fine - coarse), 1e-6))


def quadrature(times: Array, velocity: Array, n_planets: int, wider: float = 1.0) -> float:
    """Log-evidence by a midpoint rule over frequencies and a trapezoid rule over the logarithm of the jitter.

    Steps are ``wider`` times 7.5e-5 per day, where peaks have standard deviations of 1e-4 per day or more,
    and 0.2 prior standard deviations. As the likelihood does not know which planet is which, the mean over
    ordered pairs of periods is that over all pairs.
    """
    low, high = 1.0 / LONGEST, 1.0 / SHORTEST
    edges = np.linspace(low, high, round((high - low) / (7.5e-5 * wider)) + 1)
    log_share = np.log(np.diff(np.log(edges)) / np.log(high / low))
    angle = np.pi * (edges[1:] + edges[:-1])[:, None] * times
    waves = np.stack([np.cos(angle), np.sin(angle)])  # (2, F, N)
    normal = np.arange(-6.0, 6.0 + 1e-9, 0.2 * wider)
    jitter = JITTER * np.exp(JITTER_SPREAD * normal)
    given = [_given_jitter(waves, log_share, velocity, j, n_planets) for j in jitter]
    return float(special.logsumexp(stats.norm.logpdf(normal) + np.log(0.2 * wider) + given))


def _given_jitter(waves: Array, log_share: Array, velocity: Array, jitter: float, n_planets: int) -> float:
    """Log-evidence at one jitter, coefficients and offset integrated out."""
    n = len(velocity)
    chol = np.linalg.cholesky((ERROR**2 + jitter**2) * np.eye(n) + OFFSET**2)
    y = np.linalg.solve(chol, velocity)
    white = np.linalg.solve(chol, waves.reshape(-1, n).T).T.reshape(waves.shape)
    log_evidence = -0.5 * y @ y - np.log(np.diag(chol)).sum() - 0.5 * n * np.log(2 * np.pi)
    if n_planets == 0:
        return float(log_evidence)
    c, s = white
    gram = np.stack([(c * c).sum(1), (c * s).sum(1), (s * s).sum(1)])  # (3, F)
    slope = white @ y  # (2, F)
    one = _gain(gram, slope)
    if n_planets == 1:
        return float(log_evidence + special.logsumexp(log_share + one))
    rest = np.empty_like(one)
    for f in range(len(one)):  # what a second planet of frequency f or more adds; pairs count twice
        factor = np.linalg.cholesky(white[:, f] @ white[:, f].T + np.eye(2) / AMPLITUDE**2)
        base = np.linalg.solve(factor, white[:, f])  # (2, N)
        (cc, cs), (sc, ss) = base @ c[f:].T, base @ s[f:].T
        left = gram[:, f:] - np.stack([cc * cc + cs * cs, cc * sc + cs * ss, sc * sc + ss * ss])
        ahead = slope[:, f:] - np.stack([base @ y @ (cc, cs), base @ y @ (sc, ss)])
        twice = np.full(left.shape[1], np.log(2.0))
        twice[0] = 0.0
        rest[f] = special.logsumexp(log_share[f:] + twice + _gain(left, ahead))
    return float(log_evidence + special.logsumexp(log_share + one + rest))


def _gain(gram: Array, slope: Array) -> Array:
    """Log of the mean likelihood ratio that normal coefficients of a cosine and a sine give, (F,).

    ``gram`` (3, F) are their squares and product, ``slope`` (2, F) their products with the data.
    """
    cc, cs, ss = gram[0] + AMPLITUDE**-2, gram[1], gram[2] + AMPLITUDE**-2
    determinant = cc * ss - cs**2
    explained = (ss * slope[0] ** 2 - 2 * cs * slope[0] * slope[1] + cc * slope[1] ** 2) / determinant
    return np.asarray(0.5 * explained - 0.5 * np.log(determinant * AMPLITUDE**4))


FAMILY = Family(
    "planets",
    "no planet, one or two in radial velocities (2, 5 and 8 parameters)",
    lambda size, seed: planets(seed),
    candidates=lambda size, seed: planets_models(seed),
    solve=solve,
)
