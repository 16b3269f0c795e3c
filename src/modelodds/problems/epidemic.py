"""SIR against SEIR: is an infection passed on from the start, or after a latent time? Synthetic counts."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from modelodds.model import Model
from modelodds.prior import Prior
from modelodds.problems.base import Family, Problem
from modelodds.problems.truth import stored

Array = NDArray[np.float64]

POPULATION = 20_000.0
DAYS = 60
STEP = 0.25  # of a day; four to a day
REPORTED = 0.1  # share of the cases that is reported
BACKGROUND = 0.1  # counts a day that have nothing to do with the outbreak
DISPERSION = 10.0  # variance of a count of mean m: m + m^2 / DISPERSION
PRIORS = {
    "r0": stats.lognorm(0.4, scale=2.5),
    "infectious": stats.lognorm(0.4, scale=5.0),
    "initial": stats.lognorm(1.0, scale=10.0),
    "latent": stats.lognorm(0.5, scale=3.0),
}


def epidemic(seed: int) -> Problem:
    """SIR against SEIR; SIR made the data of even seeds, SEIR those of odd ones."""
    models = epidemic_models(seed)
    return Problem(f"epidemic-{seed}", models, *stored("epidemic", seed, models), "importance sampling")


def epidemic_models(seed: int) -> tuple[Model, ...]:
    """The two models, with counts drawn by ``seed``.

    Parameters are the basic reproduction number ``r0``, the mean days for which a case is ``infectious``, the
    number of ``initial`` cases, all of them infectious, and for SEIR the mean days for which an infection is
    ``latent``. Their priors are lognormal: medians 2.5, 5, 10 and 3, logarithmic standard deviations 0.4,
    0.4, 1 and 0.5. A case counts on the day on which it becomes infectious. Of 20 000 people's cases one in
    ten is reported; 0.1 counts a day come from elsewhere; counts are negative binomial with that mean and
    dispersion 10. These three numbers and the population are taken as known. What made the data was drawn
    from the middle half of each parameter's prior.
    """
    counts = epidemic_counts(seed)
    models = {"sir": ("r0", "infectious", "initial"), "seir": ("r0", "infectious", "initial", "latent")}
    return tuple(
        Model(name, _log_likelihood(counts), Prior({n: PRIORS[n] for n in names}), vectorized=True)
        for name, names in models.items()
    )


def epidemic_counts(seed: int) -> Array:
    """Reported cases of each day, shape (60,)."""
    rng = np.random.default_rng([11, seed])
    theta = np.array([[prior.ppf(rng.uniform(0.25, 0.75)) for prior in PRIORS.values()]])
    mean = expected_counts(theta if seed % 2 else theta[:, :3])[0]
    return np.asarray(rng.poisson(rng.gamma(DISPERSION, mean / DISPERSION)), dtype=float)


def expected_counts(theta: Array) -> Array:
    """Mean counts (n, 60) of parameters ``theta`` (n, 3) of SIR or (n, 4) of SEIR."""
    people = trajectories(theta)
    so_far = POPULATION - people[..., :-2].sum(axis=2)  # all who are or were infectious
    return np.asarray(BACKGROUND + REPORTED * np.maximum(np.diff(so_far, axis=1), 0.0))


def trajectories(theta: Array, days: int = DAYS, step: float = STEP) -> Array:
    """People in each compartment at the end of every day, shape (n, days + 1, 3) or (n, days + 1, 4).

    The compartments are susceptible, exposed (SEIR only), infectious, removed. Runge and Kutta's rule of
    order four, in fixed steps of ``step`` days. No stage is taken to last less than one step, nor a case to
    infect more than two others in it, which keeps the rule stable however improbable the parameters.
    """
    r0, infectious, initial = theta.T[:3]
    recovery = 1.0 / np.maximum(infectious, step)
    contact = np.minimum(r0 * recovery, 2.0 / step)
    onset = 1.0 / np.maximum(theta.T[3], step) if theta.shape[1] == 4 else None

    def flow(now: Array) -> Array:
        """Change per day of the compartments (compartments, n)."""
        infected = contact * now[0] * now[-2] / POPULATION
        recovered = recovery * now[-2]
        if onset is None:
            return np.stack([-infected, infected - recovered, recovered])
        started = onset * now[1]
        return np.stack([-infected, infected - started, started - recovered, recovered])

    now = np.zeros((theta.shape[1], len(theta)))
    now[-2] = np.minimum(initial, POPULATION)
    now[0] = POPULATION - now[-2]
    found = [now]
    for _ in range(days):
        for _ in range(round(1.0 / step)):
            k1 = flow(now)
            k2 = flow(now + 0.5 * step * k1)
            k3 = flow(now + 0.5 * step * k2)
            k4 = flow(now + step * k3)
            now = now + step / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
        found.append(now)
    return np.stack(found).transpose(2, 0, 1)


def _log_likelihood(counts: Array) -> Callable[[Array], Array]:
    constant = (special.gammaln(counts + DISPERSION) - special.gammaln(counts + 1)).sum()
    constant -= len(counts) * special.gammaln(DISPERSION)

    def log_likelihood(theta: Array) -> Array:
        mean = expected_counts(theta)
        each = counts * np.log(mean / (mean + DISPERSION)) - DISPERSION * np.log1p(mean / DISPERSION)
        return np.asarray(constant + each.sum(axis=1))

    return log_likelihood


FAMILY = Family(
    "epidemic",
    "SIR against SEIR on synthetic daily counts (3 and 4 parameters)",
    lambda size, seed: epidemic(seed),
    candidates=lambda size, seed: epidemic_models(seed),
)
