"""Equivalent circuits of a battery cell: one, two or three resistor-capacitor pairs. Synthetic voltages."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from modelodds.model import Model
from modelodds.prior import Prior
from modelodds.problems.base import Family, Problem
from modelodds.problems.truth import Truth, importance, stored

Array = NDArray[np.float64]

TIMES = np.arange(0.0, 600.0, 5.0) + 2.5  # seconds
SWITCHED = {10.0: 2.5, 70.0: -2.5, 370.0: -2.5, 400.0: 2.5}  # seconds: step of the current, in ampere
RESISTANCE = stats.lognorm(0.6, scale=15.0)  # milliohm
NOISE = stats.lognorm(0.5, scale=1.0)  # millivolt
FASTEST = stats.loguniform(5.0, 50.0)  # seconds
RATIO = stats.loguniform(3.0, 20.0)


def battery(seed: int) -> Problem:
    """One, two or three pairs; two made the data."""
    models = battery_models(seed)
    return Problem(f"battery-{seed}", models, *stored("battery", seed, models), "importance sampling")


def battery_models(seed: int) -> tuple[Model, ...]:
    """The three circuits, with voltages drawn by ``seed``.

    A cell at rest gives 2.5 A for a minute, rests for five, takes 2.5 A for half a minute and rests again.
    Its voltage, less the known voltage at rest, is measured every five seconds for ten minutes, with
    independent normal noise. The resistance ``r0`` and those of the pairs, ``r1``, ``r2`` and ``r3``, are
    lognormal with median 15 milliohm and logarithmic standard deviation 0.6; the ``noise``'s standard
    deviation with median 1 mV and 0.5. The first time constant, ``tau1``, is log-uniform from 5 to 50
    seconds: a pair faster than the measurements could not be told from ``r0``. Pairs are told apart by their
    speed: each is slower than the one before by a ``ratio`` log-uniform from 3 to 20, so that exchanging two
    of them is not another solution. What made the data was drawn from the middle half of each parameter's
    prior.
    """
    voltage = battery_voltage(seed)
    return tuple(
        Model(f"{n} pair" + "s" * (n > 1), _log_likelihood(voltage), Prior(components(n)), vectorized=True)
        for n in (1, 2, 3)
    )


def components(pairs: int) -> dict[str, stats.rv_continuous]:
    """Prior of a circuit of that many pairs."""
    prior = {"noise": NOISE, "r0": RESISTANCE, "r1": RESISTANCE, "tau1": FASTEST}
    for i in range(2, pairs + 1):
        prior |= {f"r{i}": RESISTANCE, f"ratio{i}": RATIO}
    return prior


def battery_voltage(seed: int) -> Array:
    """Voltages, in mV above that at rest, shape (120,)."""
    rng = np.random.default_rng([12, seed])
    theta = np.array([[prior.ppf(rng.uniform(0.25, 0.75)) for prior in components(2).values()]])
    return np.asarray(response(theta, TIMES)[0] + theta[0, 0] * rng.normal(size=len(TIMES)))


def response(theta: Array, times: Array) -> Array:
    """Voltages (n, len(times)) without noise at parameters ``theta`` (n, 2 + 2 pairs).

    The circuit is linear, so that its answer to the pulses is the sum of its answers to every step of the
    current: to one of 1 A a pair of resistance r and time constant tau adds r (1 - exp(-t / tau)).
    """
    r0, tau = theta[:, 1:2], np.cumprod(theta[:, 3::2], axis=1)
    voltage = np.zeros((len(theta), len(times)))
    for switch, current in SWITCHED.items():
        since = times[times >= switch] - switch
        rise = r0 + np.zeros_like(since)
        for i in range(tau.shape[1]):
            rise -= theta[:, 2 + 2 * i, None] * np.expm1(-since / tau[:, i, None])
        voltage[:, times >= switch] -= current * rise
    return voltage


def _log_likelihood(voltage: Array) -> Callable[[Array], Array]:
    def log_likelihood(theta: Array) -> Array:
        noise = theta[:, 0]
        squares = ((voltage - response(theta, TIMES)) ** 2).sum(axis=1)
        return np.asarray(-0.5 * squares / noise**2 - len(voltage) * np.log(noise * np.sqrt(2 * np.pi)))

    return log_likelihood


def solve(size: int, seed: int, model: Model) -> Truth:
    """Log-evidence by importance sampling; a third pair leaves curved, thin ridges, so the search is long.

    It is made twice as long, with twice the components, where the error is still above 0.03.
    """
    truth = importance(model, n_search=2**15, components=16)
    return truth if truth.error <= 0.03 else importance(model, n_search=2**16, components=32)


FAMILY = Family(
    "battery",
    "equivalent circuits of 1, 2 and 3 resistor-capacitor pairs (4, 6 and 8 parameters)",
    lambda size, seed: battery(seed),
    candidates=lambda size, seed: battery_models(seed),
    solve=solve,
)
