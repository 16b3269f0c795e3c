"""A small Gaussian process, in JAX as the package has it and in dense NumPy, for the tests to compare."""

from typing import NamedTuple

import jax
import numpy as np
from jax import Array as JaxArray
from numpy.typing import NDArray

from modelodds.acquisition import View
from modelodds.precision import jit64
from modelodds.surrogate.gp import (
    GP,
    NUGGET,
    RELATIVE_NUGGET,
    Data,
    Hyper,
    Spec,
    condition,
    covariance,
    log_marginal,
    predict,
)
from modelodds.surrogate.means import basis

Array = NDArray[np.float64]

PLAIN = Spec("matern52", "constant")


class Posterior(NamedTuple):
    """What conditioning gives at points a (m, d) and b (l, d)."""

    mean: JaxArray  # (m,)
    variance: JaxArray  # (m,)
    covariance: JaxArray  # (m, l)
    log_marginal: JaxArray  # ()


def _posterior(spec: Spec, hyper: Hyper, data: Data, a: JaxArray, b: JaxArray) -> Posterior:
    gp = condition(spec, hyper, data)
    return Posterior(*predict(spec, gp, a), covariance(spec, gp, a, b), log_marginal(spec, hyper, data))


posterior = jit64(_posterior, static=("spec",))
condition64 = jit64(condition, static=("spec",))
predict64 = jit64(predict, static=("spec",))
covariance64 = jit64(covariance, static=("spec",))


def make_data(x: Array, y: Array, noise: float | Array = 0.0, size: int | None = None) -> Data:
    """Observations, padded to ``size``."""
    n, d = x.shape
    pad = (size or n) - n
    return Data(
        np.vstack([x, np.zeros((pad, d))]),
        np.append(y, np.zeros(pad)),
        np.append(np.broadcast_to(noise, n), np.zeros(pad)),
        np.append(np.ones(n), np.zeros(pad)),
    )


def make_hyper(spec: Spec, lengthscale: Array, amplitude: float) -> Hyper:
    """Hyperparameters with a mean that is neither zero nor symmetric."""
    d = len(lengthscale)
    mean = {
        "constant": np.array([-2.0]),
        "quadratic": np.concatenate([[-1.0], np.linspace(-0.2, 0.3, d), np.linspace(-0.1, 0.4, d)]),
        "full_quadratic": np.array([np.log(2.0)]),
    }[spec.mean]
    return Hyper(np.log(lengthscale), np.array(np.log(amplitude)), mean)


def surface(x: Array) -> Array:
    """A log-likelihood (n,) with a peak and a bend, at ``x`` (n, 2)."""
    return -0.5 * (x[:, 0] - 0.3) ** 2 / 0.4 - 0.5 * (x[:, 1] + 0.2 * x[:, 0] ** 2) ** 2 + np.cos(2 * x[:, 0])


def example_gp(amplitude: float = 1.5, seed: int = 0, spec: Spec = PLAIN, n: int = 12) -> GP:
    """A GP (d = 2) conditioned on ``n`` exact observations, padded to 32 so that all share programs."""
    x = np.random.default_rng(seed).normal(size=(n, 2))
    hyper = make_hyper(spec, np.array([0.8, 1.3]), amplitude)
    return condition64(spec=spec, hyper=hyper, data=make_data(x, surface(x), size=32))


def example_view(amplitude: float = 1.5, seed: int = 0, noise: float = 0.0, spec: Spec = PLAIN) -> View:
    """A model as an acquisition sees it, with 64 equally likely nodes within the observations' reach."""
    nodes = np.random.default_rng(seed + 1000).normal(size=(64, 2))
    return make_view(example_gp(amplitude, seed, spec), nodes, np.full(64, 1 / 64), noise)


def make_view(gp: GP, nodes: Array, weight: Array, noise: float = 0.0) -> View:
    """A view of a model with a normal prior, without shaped noise."""
    return View(
        gp=gp,
        x=nodes,
        weight=weight,
        noise=np.array(noise),
        followed=np.array(np.inf),
        box=np.zeros(nodes.shape[1]),
    )


def observed(view: View) -> Array:
    """The points the view's GP was given."""
    data = view.gp.data
    return np.asarray(data.x)[np.asarray(data.mask) > 0]


# ---------------------------------------------------------------------- dense NumPy


def dense_correlation(kernel: str, r: Array) -> Array:
    """Textbook correlations at scaled distance ``r`` (Rasmussen & Williams 2006, section 4.2)."""
    if kernel == "squared_exponential":
        return np.exp(-0.5 * r**2)
    if kernel == "matern52":
        return (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r)
    return (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r)


def dense_kernel(spec: Spec, hyper: Hyper, a: Array, b: Array) -> Array:
    """Kernel matrix (n, m) from differences taken one by one, basis functions included as H H^T."""
    r = np.sqrt((((a[:, None] - b[None]) / np.exp(hyper.log_lengthscale)) ** 2).sum(2))
    return np.exp(2 * hyper.log_amplitude) * dense_correlation(spec.kernel, r) + dense_basis(
        spec, hyper, a
    ) @ (dense_basis(spec, hyper, b).T)


def dense_basis(spec: Spec, hyper: Hyper, x: Array) -> Array:
    """Columns of a constant, b x_j and b x_j x_l of the full quadratic mean; none for the others."""
    if spec.mean != "full_quadratic":
        return np.zeros((len(x), 0))
    d, b = x.shape[1], np.exp(hyper.mean[0])
    with jax.enable_x64(True):
        level = np.asarray(basis(spec.mean, hyper.mean, x))[:, 0]  # as free as the package has it
    assert np.all(level == level[0]) and level[0] >= 100.0
    columns = [level, *(b * x[:, j] for j in range(d))]
    columns += [b * x[:, j] * x[:, k] for j in range(d) for k in range(j, d)]
    return np.stack(columns, axis=1)


def dense_mean(spec: Spec, hyper: Hyper, x: Array) -> Array:
    """Prior mean (n,) at ``x`` (n, d)."""
    d = x.shape[1]
    if spec.mean == "constant":
        return np.full(len(x), hyper.mean[0])
    if spec.mean == "quadratic":
        centre, width = hyper.mean[1 : d + 1], np.exp(hyper.mean[d + 1 :])
        return hyper.mean[0] - 0.5 * (((x - centre) / width) ** 2).sum(1)
    return np.zeros(len(x))


def dense_posterior(spec: Spec, hyper: Hyper, data: Data, a: Array, b: Array) -> Posterior:
    """The same by solving the full system; ``data`` without padding."""
    diagonal = data.noise + NUGGET + RELATIVE_NUGGET * np.exp(2 * hyper.log_amplitude)
    system = dense_kernel(spec, hyper, data.x, data.x) + np.diag(diagonal)
    residual = data.y - dense_mean(spec, hyper, data.x)
    to_a, to_b = dense_kernel(spec, hyper, data.x, a), dense_kernel(spec, hyper, data.x, b)
    mean = dense_mean(spec, hyper, a) + to_a.T @ np.linalg.solve(system, residual)
    cov = dense_kernel(spec, hyper, a, b) - to_a.T @ np.linalg.solve(system, to_b)
    own = dense_kernel(spec, hyper, a, a) - to_a.T @ np.linalg.solve(system, to_a)
    log_density = -0.5 * residual @ np.linalg.solve(system, residual) - 0.5 * np.linalg.slogdet(system)[1]
    return Posterior(mean, np.diag(own), cov, log_density)
