"""Hyperparameters of a surrogate: priors on them, the two objectives, and the search.

Two objectives. ``log``: marginal likelihood of the observed log-likelihoods. ``original``: the paper's (Chai
& Garnett 2018), the Gaussian density of the observed *likelihoods* under the moment-matched prior, mean exp(m
+ s^2/2) and covariance mu(x) mu(x') (exp K(x, x') - 1).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from scipy import optimize

from modelodds.precision import Array, jit64
from modelodds.surrogate.exchange import Blocks, n_slots, slots
from modelodds.surrogate.gp import RELATIVE_NUGGET, Data, Hyper, Spec, log_marginal, prior_covariance
from modelodds.surrogate.means import mean_function, n_hyper

LENGTHSCALE_BOUNDS = (0.01, 100.0)
AMPLITUDE_BOUNDS = (1e-2, 1e4)
RHO = 0.3  # of exchangeable parts: what they have beside their sum
TRIAL = 8  # iterations after which ...
FINALISTS = 2  # ... only this many searches go on


class HyperPrior(NamedTuple):
    """Independent normal priors on the flat vector of hyperparameters."""

    loc: np.ndarray  # (h,)
    scale: np.ndarray  # (h,)
    lower: np.ndarray  # (h,)
    upper: np.ndarray  # (h,)


def hyper_prior(spec: Spec, d: int, log_space: bool, typical_gap: float = 10.0) -> HyperPrior:
    """Weak priors, in whitened coordinates and nats.

    Length-scales near sqrt(d), where a stationary kernel on the unit ball is neither flat nor white;
    amplitudes of a few nats. In the original space an amplitude of s nats makes likelihoods vary by exp(s),
    so it is held nearer to one. Coefficients of a quadratic mean are of the size by which observations fall
    below the best, ``typical_gap``. Exchangeable parts have the same length-scales, and beside their sum a
    share that the last hyperparameter tells.
    """
    d = n_slots(spec.blocks, d)
    loc = [0.5 * np.log(d)] * d + [np.log(5.0) if log_space else 0.0]
    scale = [1.0] * d + [1.5 if log_space else 1.0]
    lower = [np.log(LENGTHSCALE_BOUNDS[0])] * d + [np.log(AMPLITUDE_BOUNDS[0])]
    upper = [np.log(LENGTHSCALE_BOUNDS[1])] * d + [np.log(AMPLITUDE_BOUNDS[1] if log_space else 5.0)]
    if spec.mean == "full_quadratic":
        loc, scale, lower, upper = [*loc, np.log(typical_gap)], [*scale, 1.5], [*lower, -6.0], [*upper, 20.0]
    else:  # the level, in nats below the best observation
        loc, scale, lower, upper = [*loc, -5.0], [*scale, 20.0], [*lower, -1e6], [*upper, 1e3]
    if spec.mean == "quadratic":
        loc, scale = loc + [0.0] * d + [0.0] * d, scale + [1.0] * d + [1.5] * d
        lower, upper = lower + [-5.0] * d + [-6.0] * d, upper + [5.0] * d + [5.0] * d
    if spec.blocks:
        loc, scale, lower, upper = [*loc, np.log(RHO)], [*scale, 1.5], [*lower, -6.0], [*upper, 3.0]
    return HyperPrior(*(np.array(part, dtype=float) for part in (loc, scale, lower, upper)))


def unflatten(vector: Array, d: int, kernel: Array | int = 0, blocks: Blocks = ()) -> Hyper:
    """Hyperparameters from their flat vector (h,)."""
    if blocks:
        p = n_slots(blocks, d)
        return Hyper(vector[slots(blocks, d)], vector[p], vector[p + 1 : -1], kernel, vector[-1])
    return Hyper(vector[:d], vector[d], vector[d + 1 :], kernel)


def log_marginal_original(spec: Spec, hyper: Hyper, data: Data) -> Array:
    """Gaussian log density of exp(y) under the moment-matched prior (Chai & Garnett 2018)."""
    variance = jnp.exp(2.0 * hyper.log_amplitude)
    log_mu = mean_function(spec.mean, hyper.mean, data.x) + 0.5 * variance
    kernel = (
        jnp.expm1(prior_covariance(spec, hyper, data.x, data.x)) * data.mask[:, None] * data.mask[None, :]
    )
    # Noise of variance tau^2 in the log adds exp(s^2) (exp(tau^2) - 1) to the relative variance of the
    # likelihood.
    noise = jnp.exp(variance) * jnp.expm1(jnp.minimum(data.noise, 30.0))
    jitter = noise + RELATIVE_NUGGET * jnp.expm1(variance) + 1e-8
    chol = jnp.linalg.cholesky(kernel + jnp.diag(jnp.where(data.mask > 0, jitter, 1.0)))
    relative = (jnp.exp(jnp.clip(data.y - log_mu, -700.0, 300.0)) - 1.0) * data.mask
    white = solve_triangular(chol, relative, lower=True)
    return -0.5 * white @ white - jnp.log(jnp.diagonal(chol)).sum() - (log_mu * data.mask).sum()


def _objective(
    vector: Array, kernel: Array, data: Data, loc: Array, scale: Array, spec: Spec, log_space: bool
) -> Array:
    marginal = log_marginal if log_space else log_marginal_original
    hyper = unflatten(vector, data.x.shape[1], kernel, spec.blocks)
    return 0.5 * jnp.sum(((vector - loc) / scale) ** 2) - marginal(spec, hyper, data)


_value_and_grad = jit64(jax.value_and_grad(_objective), static=("spec", "log_space"))


class Fit(NamedTuple):
    """The best hyperparameters found and their negative log posterior density."""

    vector: np.ndarray  # (h,)
    loss: float
    kernel: int
    blocks: Blocks = ()

    def hyper(self, d: int) -> Hyper:
        """The hyperparameters by name."""
        return unflatten(self.vector, d, self.kernel, self.blocks)


def fit(
    spec: Spec,
    data: Data,
    log_space: bool,
    warm: np.ndarray | None = None,
    starts: int = 3,
    max_iterations: int = 100,
    kernels: tuple[int, ...] = (0,),
    curvature: float | None = None,
) -> Fit:
    """Most probable hyperparameters, searched from ``starts`` fixed points and from ``warm``.

    ``kernels`` are the positions in ``KERNELS`` to choose from, for a ``spec`` of kernel ``"any"``. Of many
    starts only the most promising are followed to the end.
    """
    d = data.x.shape[1]
    prior = hyper_prior(spec, d, log_space, curvature or _typical_gap(data))
    points = start_points(spec, prior, data, starts)
    if warm is not None:
        points = [warm, *points]
    trials = [(point, kernel) for kernel in kernels for point in points]
    if len(trials) > FINALISTS:
        short = [_search(spec, kernel, data, log_space, prior, point, TRIAL) for point, kernel in trials]
        trials = [(f.vector, f.kernel) for f in sorted(short, key=lambda f: f.loss)[:FINALISTS]]
    found = [_search(spec, kernel, data, log_space, prior, point, max_iterations) for point, kernel in trials]
    return min(found, key=lambda f: f.loss)


def _typical_gap(data: Data) -> float:
    """Median distance below the best observation, in nats, but at least ten."""
    y = np.asarray(data.y)[np.asarray(data.mask) > 0]
    return max(10.0, float(np.median(y.max() - y)))


def start_points(spec: Spec, prior: HyperPrior, data: Data, starts: int) -> list[np.ndarray]:
    """The prior's centre with length-scales around it; the quadratic mean starts at the best observation.

    Where the observations spread by more than the prior expects, one more start has their amplitude.
    """
    d = n_slots(spec.blocks, data.x.shape[1])
    points = []
    spread = float(np.log(np.std(np.asarray(data.y)[np.asarray(data.mask) > 0]) + 1e-9))
    amplitudes = [prior.loc[d]] * starts
    if starts and prior.loc[d] + 1.0 < spread < prior.upper[d]:
        amplitudes.append(spread)
    for factor, amplitude in zip([*(1.0, 0.3, 3.0, 0.1, 10.0)[:starts], 1.0], amplitudes, strict=False):
        point = prior.loc.copy()
        point[:d] += np.log(factor)
        point[d] = amplitude
        if spec.mean == "quadratic":
            point[d + 2 : 2 * d + 2] = np.asarray(data.x)[np.argmax(np.where(data.mask > 0, data.y, -np.inf))]
        points.append(point)
    return points


def _search(
    spec: Spec,
    kernel: int,
    data: Data,
    log_space: bool,
    prior: HyperPrior,
    start: np.ndarray,
    max_iterations: int,
) -> Fit:
    def loss(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, grad = _value_and_grad(
            vector, kernel, data, prior.loc, prior.scale, spec=spec, log_space=log_space
        )
        value, grad = float(value), np.asarray(grad)
        if not np.isfinite(value) or not np.all(np.isfinite(grad)):
            return 1e12, np.zeros_like(vector)  # a Cholesky factor broke down: the line search backs off
        return value, grad

    start = np.clip(start, prior.lower, prior.upper)
    found = optimize.minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=optimize.Bounds(prior.lower, prior.upper),
        options={"maxiter": max_iterations, "ftol": 1e-7},
    )
    return Fit(np.asarray(found.x), float(found.fun), kernel, spec.blocks)


__all__ = [
    "Fit",
    "HyperPrior",
    "fit",
    "hyper_prior",
    "log_marginal_original",
    "n_hyper",
    "start_points",
    "unflatten",
]
