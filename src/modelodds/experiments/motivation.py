"""The paper's motivation (Chai et al. 2019, section 4): two evidences uncertain, their odds certain.

A real comparison, ended early: does a signal decay exponentially or by a power law? As soon as each evidence
is known to within a factor of two or so, the answer is as good as certain, and what else could be learnt of
the evidences would not change it.
"""

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from modelodds.model import Model
from modelodds.prior import Prior
from modelodds.result import Result
from modelodds.session import Session

OUT = Path("results/motivation")
ENOUGH = 0.8  # standard deviation of each log-evidence, in nats, at which the run ends
MOST = 200  # evaluations
NOISE = 0.08
TIMES = np.linspace(0.5, 5.0, 10)

Array = NDArray[np.float64]


def exponential(theta: Array) -> Array:
    """Signal exp(a - e^b t)."""
    return np.asarray(np.exp(theta[0] - np.exp(theta[1]) * TIMES))


def power_law(theta: Array) -> Array:
    """Signal e^a (1 + t)^(-e^b)."""
    return np.asarray(np.exp(theta[0] - np.exp(theta[1]) * np.log1p(TIMES)))


def observations() -> Array:
    """Ten noisy values (10,) of an exponential decay."""
    noise = np.random.default_rng(0).normal(size=TIMES.size)
    return 2.0 * np.exp(-0.6 * TIMES) + NOISE * noise


def models() -> list[Model]:
    """The two laws, under the same prior."""
    y = observations()
    prior = Prior({"log_amplitude": stats.norm(0.5, 0.5), "log_rate": stats.norm(-0.3, 0.7)})
    return [
        Model(name, lambda theta, f=f: float(stats.norm.logpdf(y, f(theta), NOISE).sum()), prior)
        for name, f in {"exponential": exponential, "power law": power_law}.items()
    ]


def run(method: str = "default", seed: int = 0) -> Result:
    """Compare the two until each log-evidence is known to `ENOUGH`."""
    session = Session(models(), method, seed)
    likelihoods = {m.name: m.log_likelihood for m in session.models}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while session.n_evaluations < MOST:
            for query in session.ask():
                session.tell(query, likelihoods[query.model](query.theta))
            if not session.in_design and session.belief().sd.max() <= ENOUGH:
                break
        return session.result()


def in_words(result: Result) -> str:
    """What the figure shows, in a sentence."""
    best = result.best
    known = " and ".join(f"{relative(sd)} ({name})" for name, sd in result.log_evidence_sd.items())
    return (
        f"After {len(result.evaluations)} evaluations the evidences are known to {known}, and yet the "
        f"probability of {best} is {result.probabilities[best]:.4f} ± {result.probability_sd[best]:.4f}."
    )


def relative(sd: float) -> str:
    """Uncertainty of an evidence, in words, from the standard deviation of its logarithm."""
    if sd < 1.0:
        return f"± {100.0 * np.sqrt(np.expm1(sd**2)):.2g} %"
    return f"within a factor of {np.exp(sd):.0f}" if sd < 7.0 else "unknown"
