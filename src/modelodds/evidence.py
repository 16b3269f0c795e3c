"""Belief on a model's log-evidence from a Gaussian process on its log-likelihood.

The integral runs over nodes (``nodes.py``), where the surrogate has mean m and variance v. Three integrands:

- ``moment``: E[exp g] = exp(m + v/2), the paper's moment matching (section 6);
- ``capped``: E[exp min(g, u)], the same with likelihoods above u, a few nats above the best one seen, ruled
  out;
- ``mean``: exp E[min(g, u)], the surrogate's best guess without the reward for ignorance; exp(m) where m is
  below u.

| symbol       | name          | shape | meaning                                             |
|--------------|---------------|-------|-----------------------------------------------------|
| log a        | ``Evidence``  |       | Gaussian: ``mean``, ``variance``                    |
| w_s          | ``weight``    | (S,)  | normalised node weight times integrand              |
| C(x_s, x_t)  | ``covariance``| (S, S)| posterior covariance of the log-likelihood          |
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy import special

from modelodds.nodes import Nodes, systematic
from modelodds.precision import Array, jit64
from modelodds.surrogate.gp import GP, Spec, covariance, features, prior_covariance
from modelodds.surrogate.squash import Squash

INTEGRANDS = ("moment", "capped", "mean")
CAP = 2.0  # nats above the best observation that a likelihood may plausibly reach
UNCAPPED = 1e6  # nats: a cap that rules nothing out
MOST_CUT = 5.0  # nats: most that the cap may have taken from an evidence, or its second order add
SUMMED = 1024  # nodes that double sums run over
HERMITE, HERMITE_WEIGHT = np.polynomial.hermite_e.hermegauss(16)  # for means over normal variables
HERMITE_WEIGHT /= HERMITE_WEIGHT.sum()


class Evidence(NamedTuple):
    """Gaussian belief on a log-evidence."""

    mean: float
    variance: float
    fixed: float = 0.0  # the part of the variance that no evaluation is meant to take away


def log_integrand(
    kind: str, mean: NDArray[np.float64], variance: NDArray[np.float64], cap: float = CAP
) -> NDArray[np.float64]:
    """Log of the expected likelihood at nodes, shape (S,), from the surrogate's moments there."""
    if kind == "moment":
        return mean + 0.5 * variance
    if kind == "capped":
        sd = np.sqrt(variance)
        below = mean + 0.5 * variance + special.log_ndtr((cap - mean - variance) / sd)
        return np.asarray(np.logaddexp(below, cap + special.log_ndtr((mean - cap) / sd)))
    return capped_mean(mean, variance, cap)


def log_likelihood_at(
    kind: str, mean: NDArray[np.float64], variance: NDArray[np.float64], squash: Squash
) -> NDArray[np.float64]:
    """The integrand in nats relative to the best observation, from moments on the surrogate's scale, (S,)."""
    return squash.log_likelihood(log_integrand(kind, mean, variance, cap_of(squash)))


def log_expected(
    mean: NDArray[np.float64], variance: NDArray[np.float64], squash: Squash
) -> NDArray[np.float64]:
    """Expected likelihood, log E[exp min(g, u)], in nats relative to the best observation, (S,).

    From moments on the surrogate's scale, by Gauss's rule where that is squashed: a likelihood that falls
    ever faster is no log-normal.
    """
    cap = cap_of(squash)
    if squash.straight:
        return log_integrand("capped", mean, variance, cap)
    f = np.minimum(mean[:, None] + np.sqrt(variance)[:, None] * HERMITE, cap)
    return np.asarray(special.logsumexp(squash.log_likelihood(f), axis=1, b=HERMITE_WEIGHT))


def log_integral(
    kind: str,
    nodes: Nodes,
    mean: NDArray[np.float64],
    variance: NDArray[np.float64],
    squash: Squash,
) -> float:
    """Log of the integral of ``kind`` over the nodes, relative to the surrogate's zero."""
    return float(special.logsumexp(nodes.log_weight + log_likelihood_at(kind, mean, variance, squash)))


def cap_of(squash: Squash) -> float:
    """Nats above the best observation beyond which likelihoods are ruled out."""
    return CAP if squash.capped else UNCAPPED


def picked(
    mass: NDArray[np.float64], sd: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Indices and weights of SUMMED nodes that stand for all, in double sums of the surrogate's covariance.

    ``mass`` (S,) sums to one. Drawn by mass alone, one node of little mass where nothing is known would weigh
    as much as any other, and now and then make the sum. So nodes are drawn by mass times (their standard
    deviation ``sd`` plus its mean), and none weighs more than twice its share.
    """
    by = mass * (sd + mass @ sd)
    index = systematic(by, SUMMED)
    return index, mass[index] / by[index] * (by.sum() / SUMMED)


def capped_mean(
    mean: NDArray[np.float64], variance: NDArray[np.float64], cap: float = CAP
) -> NDArray[np.float64]:
    """E[min(g, u)] for g normal: the mean where it is well below the cap u, never above the cap."""
    sd = np.sqrt(variance)
    t = (mean - cap) / sd
    return np.asarray(mean - sd * (np.exp(-0.5 * t**2) / np.sqrt(2.0 * np.pi) + t * special.ndtr(t)))


def log_gaussian_variance(spec: Spec, gp: GP, x: Array, weight: Array) -> Array:
    """Variance of the log-evidence, linearised around the surrogate: w^T C w over nodes ``x`` (S, d)."""
    v, s = features(spec, gp, x)
    kernel = weight @ prior_covariance(spec, gp.hyper, x, x) @ weight
    return jnp.maximum(kernel - jnp.sum((v @ weight) ** 2) + jnp.sum((s @ weight) ** 2), 1e-12)


def expm1_cut(c: Array) -> Array:
    """exp(C) - 1, with C cut at 300 so that squares of it stay finite."""
    return jnp.expm1(jnp.minimum(c, 300.0))


def moment_variance(spec: Spec, gp: GP, x: Array, weight: Array) -> Array:
    """log(1 + K / m^2): variance of the log of a log-normal with the evidence's two moments (eq. 6).

    ``weight`` (S,) is proportional to the nodes' weight times mu, so m cancels.
    """
    relative = weight @ expm1_cut(covariance(spec, gp, x, x)) @ weight
    return jnp.log1p(jnp.maximum(relative, 1e-12))


_log_gaussian_variance = jit64(log_gaussian_variance, static=("spec",))
_moment_variance = jit64(moment_variance, static=("spec",))


def gaussian_variance(
    spec: Spec, gp: GP, x: NDArray[np.float64] | Array, weight: NDArray[np.float64] | Array
) -> float:
    """Compiled :func:`log_gaussian_variance`, as a number."""
    return float(_log_gaussian_variance(spec=spec, gp=gp, x=x, weight=weight))


def belief(
    kind: str,
    spec: Spec,
    gp: GP,
    nodes: Nodes,
    mean: NDArray[np.float64],
    variance: NDArray[np.float64],
    inflation: float = 1.0,
    squash: Squash | None = None,
) -> Evidence:
    """Belief on the log-evidence, relative to the surrogate's zero.

    ``moment`` takes the log-normal with the evidence's two moments. The others are expanded around the
    surrogate's mean; for ``mean`` to second order, E log a = log sum w exp(m) + (sum w v - w^T C w) / 2, and
    v / 2 is what a node's expected likelihood has beyond that of its expected log. What the cap cut off is an
    uncertainty of its own. ``inflation`` multiplies the surrogate's variance; ``squash`` is how the
    surrogate's values are drawn together, if they are.
    """
    squash = squash or Squash(0.0)
    log_likelihood = log_likelihood_at(kind, mean, variance, squash)
    log_weight = nodes.log_weight + log_likelihood
    log_a = float(special.logsumexp(log_weight))
    mass = np.exp(log_weight - log_a)
    stretch = 1.0 / squash.slope(-log_likelihood)  # by how much y varies faster than f
    index, weight = picked(mass, np.sqrt(variance) * stretch)
    if kind == "moment":
        spread = float(_moment_variance(spec=spec, gp=gp, x=nodes.x[index], weight=weight))
        return Evidence(log_a - 0.5 * spread, inflation * spread)
    spread = gaussian_variance(spec, gp, nodes.x[index], weight * stretch[index])
    if kind == "capped":
        return Evidence(log_a, inflation * spread)
    # What the cap cut off, if it cut where the evidence is: one far corner of wild extrapolation is no doubt.
    cap = cap_of(squash)
    uncut = float(special.logsumexp(nodes.log_weight + squash.log_likelihood(mean)))
    cut = min(uncut - log_a, MOST_CUT) * float(mass @ (mean > cap))
    more = log_expected(mean, variance, squash) - log_likelihood  # half the variance where nothing is capped
    second_order = min(max(0.0, float(mass @ more) - 0.5 * spread), MOST_CUT)
    return Evidence(log_a + second_order, inflation * spread + cut**2)
