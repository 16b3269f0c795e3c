"""Changes of level in the Nile's annual flow at Aswan, 1871 to 1970: none, one or two.

The data (10^8 cubic metres a year; Cobb 1978) come with statsmodels, which is imported only when needed. The
evidences are known by quadrature: given the noise and the dates the levels drop out in closed form.
"""

from collections.abc import Callable
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from modelodds.model import Model
from modelodds.prior import Prior
from modelodds.problems.base import Family, Problem
from modelodds.problems.truth import Truth, stored

Array = NDArray[np.float64]

START, YEARS = 1871, 100
MEAN, SPREAD = 1000.0, 300.0  # of levels
NOISE, NOISE_SPREAD = 150.0, 0.5  # median, logarithmic standard deviation


def nile() -> Problem:
    """Constant level, one change or two."""
    models = nile_models()
    return Problem("nile", models, *stored("nile", 0, models), "quadrature")


def nile_models() -> tuple[Model, ...]:
    """Normal noise around levels that hold between dates of change.

    A date is continuous. A year's flow is what came down in it, so the year in which the level changes has
    the mean of the two levels, weighted by the time each of them held; the log-likelihood is thus a
    continuous function of the date. Levels are normal(1000, 300) and independent, the standard deviation of
    the noise is lognormal with median 150 and logarithmic standard deviation 0.5, dates are uniform over the
    hundred years. Two dates are ordered: the later one is that of two uniform draws, with its triangular
    density, and the earlier one a uniform ``share`` of the way there. They are then uniform on ordered pairs.
    """
    flow = nile_flow()
    level, noise = stats.norm(MEAN, SPREAD), stats.lognorm(NOISE_SPREAD, scale=NOISE)
    date, later = stats.uniform(START, YEARS), stats.powerlaw(2, START, YEARS)
    priors = {
        "constant": {"level": level, "noise": noise},
        "one change": {"level1": level, "level2": level, "noise": noise, "date": date},
        "two changes": {"level1": level, "level2": level, "level3": level, "noise": noise}
        | {"later": later, "share": stats.uniform(0, 1)},
    }
    return tuple(
        Model(name, _log_likelihood(flow, changes), Prior(prior), vectorized=True)
        for changes, (name, prior) in enumerate(priors.items())
    )


def nile_flow() -> Array:
    """The hundred annual flows."""
    from statsmodels.datasets import nile as data

    return np.asarray(data.load_pandas().data["volume"], dtype=float)


def shares(dates: Array) -> Array:
    """Share (n, 100, k + 1) of every year that falls between ordered ``dates`` (n, k) of change."""
    passed = np.clip(np.arange(START + 1, START + YEARS + 1)[:, None] - dates[:, None, :], 0.0, 1.0)
    ends = np.ones((*passed.shape[:2], 1))
    return -np.diff(np.concatenate([ends, passed, 0.0 * ends], axis=2), axis=2)


def _log_likelihood(flow: Array, changes: int) -> Callable[[Array], Array]:
    def log_likelihood(theta: Array) -> Array:
        levels, noise, dates = np.split(theta, [changes + 1, changes + 2], axis=1)
        if changes == 2:
            later, share = dates.T
            dates = np.stack([START + share * (later - START), later], axis=1)
        mean = np.einsum("nyk,nk->ny", shares(dates), levels)
        squares = ((flow - mean) ** 2).sum(axis=1)
        noise = noise[:, 0]
        return np.asarray(-0.5 * squares / noise**2 - YEARS * np.log(noise * np.sqrt(2 * np.pi)))

    return log_likelihood


def solve(size: int, seed: int, model: Model) -> Truth:
    """Log-evidence by quadrature; its error is what one node fewer in each year would change."""
    changes = (model.dim - 2) // 2
    fine, coarse = (quadrature(nile_flow(), changes, nodes) for nodes in (5, 4))
    return Truth(fine, max(abs(fine - coarse), 1e-6))


def quadrature(flow: Array, changes: int, nodes: int = 5) -> float:
    """Log-evidence by Gauss's rule in every year for the dates, a trapezoid rule for the noise's logarithm.

    Two dates are integrated over all pairs, put in order: their mean over ordered pairs.
    """
    point, weight = np.polynomial.legendre.leggauss(nodes)
    date = (np.arange(START, START + YEARS)[:, None] + 0.5 * (1.0 + point)).ravel()
    share = np.tile(0.5 * weight / YEARS, YEARS)
    ordered = list(combinations_with_replacement(range(len(date)), changes))
    index = np.array(ordered, dtype=int)  # (ordered sets, changes)
    times = 1.0 + (np.diff(index, axis=1) > 0).any(axis=1)  # a pair of different dates stands for two
    log_weight = np.log(share[index].prod(axis=1) * times)
    parts = np.array_split(np.arange(len(index)), 1 + len(index) // 2000)
    found = [log_weight[part] + _given_dates(flow, date[index[part]]) for part in parts]
    return float(special.logsumexp(np.concatenate(found)))


def _given_dates(flow: Array, dates: Array) -> Array:
    """Log-evidence (n,) given ``dates`` (n, changes), levels and noise integrated out."""
    held, rest = shares(dates), flow - MEAN
    gram, slope = held.transpose(0, 2, 1) @ held, rest @ held
    normal, found = np.arange(-5.0, 5.05, 0.1), []
    for noise in NOISE * np.exp(NOISE_SPREAD * normal):
        precision = gram / noise**2 + np.eye(gram.shape[1]) / SPREAD**2
        explained = (slope * np.linalg.solve(precision, slope[:, :, None])[:, :, 0]).sum(axis=1) / noise**4
        spread = np.linalg.slogdet(precision * SPREAD**2)[1] + 2 * YEARS * np.log(noise * np.sqrt(2 * np.pi))
        found.append(0.5 * (explained - rest @ rest / noise**2 - spread))
    return np.asarray(special.logsumexp(found + stats.norm.logpdf(normal)[:, None] + np.log(0.1), axis=0))


FAMILY = Family(
    "nile",
    "no, one or two changes of the Nile's level (2, 4 and 6 parameters)",
    lambda size, seed: nile(),
    seeded=False,
    candidates=lambda size, seed: nile_models(),
    solve=solve,
)
