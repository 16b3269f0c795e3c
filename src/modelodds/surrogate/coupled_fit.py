"""Hyperparameters of a group's joint GP, and whether the group is better off with it.

The search starts from what the models' own surrogates have found. Coupling is judged by Schwarz's criterion:
the penalised log marginal likelihood of all observations less half the number of hyperparameters times log n,
against the sum of the same over the models on their own. Unrelated models then keep to themselves.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize

from modelodds.precision import Array, jit64
from modelodds.surrogate.coupled import CoupledData, CoupledHyper, CoupledSpec, log_marginal
from modelodds.surrogate.fit import AMPLITUDE_BOUNDS, LENGTHSCALE_BOUNDS
from modelodds.surrogate.gp import GP, Spec
from modelodds.surrogate.gp import log_marginal as own_log_marginal
from modelodds.surrogate.sharing import Sharing

AMPLITUDE = np.log(5.0), 1.5  # location and scale of the prior on log amplitudes, ...
LENGTHSCALE = 1.0  # ... scale of that on log length-scales, ...
SIZE = 1.5  # ... of that on log sizes of the means' coefficients, ...
DIFFERENT, MOST_DIFFERENT = 0.7, 5.0  # ... on what the models' differ by, ...
ANCHOR, KNOWN = 1.0, 1e-3  # ... on anchors, and on anchors that are known, ...
PARTIAL = 5.0  # ... and on partial correlations, as inverse hyperbolic tangents
STRONGEST = 14.0  # partial correlations from 0 up to tanh(14), one less 1e-12
FURTHEST = 3.0  # anchors are no further out than this
STARTS = ((0.5, 0.0), (2.5, 0.0), (2.5, -1.5), (2.5, 1.5))  # partial correlations and anchors to begin with
NESTED_STARTS = (0.1, 5.0)  # amplitudes, for models that are nested
TRIAL, FINALISTS = 10, 2  # iterations after which only so many searches go on
MARGIN = 3.0  # nats by which coupling must win
LEVEL = 10.0  # nats that nested models' levels might plausibly have differed by, had they not been nested


class CoupledPrior(NamedTuple):
    """Independent normal priors on the flat vector of hyperparameters, and their limits."""

    loc: np.ndarray  # (h,)
    scale: np.ndarray  # (h,)
    lower: np.ndarray  # (h,)
    upper: np.ndarray  # (h,)
    tied: bool  # whether the levels of the models' quadratics are one


class CoupledFit(NamedTuple):
    """The best hyperparameters found and their negative log posterior density."""

    vector: np.ndarray  # (h,)
    loss: float
    kernel: int


class Layout(NamedTuple):
    """Where the parts of the flat vector are.

    Amplitudes and sizes are one for the group, and what each model's differs by: where models are nested,
    these differences are zero to many digits, and no search would get far with amplitudes of their own.
    """

    lengthscale: slice  # (D,)
    amplitude: int
    amplitudes: slice  # (g,)
    size: int
    sizes: slice  # (g,)
    anchor: slice  # of parameters that some model lacks
    partial: slice  # (g (g - 1) / 2,)

    @classmethod
    def of(cls, spec: CoupledSpec) -> "Layout":
        """The layout for a group."""
        g, d, a = len(spec.has), len(spec.has[0]), len(loose(spec))
        ends = np.cumsum([d, 1, g, 1, g, a, g * (g - 1) // 2]).tolist()
        parts = [slice(i, j) for i, j in zip([0, *ends], ends, strict=False)]
        return cls(parts[0], ends[0], parts[2], ends[2], *parts[4:])


def loose(spec: CoupledSpec) -> np.ndarray:
    """Positions of the parameters that some model lacks, and which so have an anchor."""
    return np.flatnonzero(~np.array(spec.has).all(axis=0))


def unflatten(spec: CoupledSpec, vector: Array, kernel: Array | int, tied: Array | float) -> CoupledHyper:
    """Hyperparameters from their flat vector (h,)."""
    at = Layout.of(spec)
    anchor = jnp.zeros(len(spec.has[0])).at[loose(spec)].set(vector[at.anchor])
    amplitude = vector[at.amplitude] + vector[at.amplitudes]
    size = vector[at.size] + vector[at.sizes]
    return CoupledHyper(
        vector[at.lengthscale], amplitude, size[:, None], anchor, vector[at.partial], kernel, tied
    )


def prior_of(spec: CoupledSpec, sharing: Sharing, size: float, nested: bool) -> CoupledPrior:
    """Weak priors as in ``fit.py``, ``size`` being the expected log size of the means' coefficients.

    With ``nested`` the models differ in nothing but where their parameters are.
    """
    at, free = Layout.of(spec), loose(spec)
    h = at.partial.stop
    loc, scale, lower, upper = np.zeros(h), np.ones(h), np.zeros(h), np.zeros(h)

    def put(where: slice | int, centre: Any, width: Any, low: float, high: float) -> None:
        loc[where], scale[where], lower[where], upper[where] = centre, width, low, high

    typical = 0.5 * float(np.log(np.array(spec.has).sum(1).mean()))
    level = spec.mean == "constant"
    put(at.lengthscale, typical, LENGTHSCALE, *np.log(LENGTHSCALE_BOUNDS))
    put(at.amplitude, *AMPLITUDE, *np.log(AMPLITUDE_BOUNDS))
    put(at.amplitudes, 0.0, DIFFERENT, -MOST_DIFFERENT, MOST_DIFFERENT)
    put(at.size, size, 20.0 if level else SIZE, -1e6 if level else -6.0, 1e3 if level else 20.0)
    put(
        at.sizes,
        0.0,
        20.0 if level else DIFFERENT,
        *((-1e6, 1e6) if level else (-MOST_DIFFERENT, MOST_DIFFERENT)),
    )
    put(at.anchor, sharing.anchor[free], np.where(sharing.anchored[free], KNOWN, ANCHOR), -FURTHEST, FURTHEST)
    put(at.partial, 0.0, PARTIAL, 0.0, STRONGEST)
    lower[at.anchor] = np.minimum(lower[at.anchor], loc[at.anchor])  # a known anchor may lie further out
    upper[at.anchor] = np.maximum(upper[at.anchor], loc[at.anchor])
    if nested:
        put(at.amplitudes, 0.0, 1.0, 0.0, 0.0)
        put(at.sizes, 0.0, 1.0, 0.0, 0.0)
        put(at.partial, STRONGEST, 1.0, STRONGEST, STRONGEST)
    return CoupledPrior(loc, scale, lower, upper, nested)


def typical_size(data: CoupledData) -> float:
    """Log of the median distance from the best observation, in nats, but at least ten."""
    y = np.asarray(data.y)[np.asarray(data.mask) > 0]
    return float(np.log(max(10.0, float(np.median(y.max() - y)))))


def start_points(
    spec: CoupledSpec, sharing: Sharing, own: Sequence[GP], prior: CoupledPrior
) -> list[np.ndarray]:
    """Where the models' own fits ended, averaged over models, with several correlations and anchors."""
    at, free = Layout.of(spec), loose(spec)
    lengths: list[list[float]] = [[] for _ in sharing.names]
    for i, gp in enumerate(own):
        stretch = np.log(np.abs(sharing.scale[i]))
        for j, c in enumerate(sharing.columns[i]):
            lengths[c].append(float(gp.hyper.log_lengthscale[j]) + stretch[c])
    point = prior.loc.copy()
    point[at.lengthscale] = [np.mean(found) for found in lengths]
    amplitude = np.array([float(gp.hyper.log_amplitude) for gp in own])
    point[at.amplitude], point[at.amplitudes] = amplitude.mean(), amplitude - amplitude.mean()
    points = []
    for partial, anchor in STARTS if len(free) else STARTS[:2]:
        start = point.copy()
        start[at.anchor] = np.where(sharing.anchored[free], sharing.anchor[free], anchor)
        start[at.partial] = partial
        points.append(start)
    return points


def nested_starts(spec: CoupledSpec, prior: CoupledPrior) -> list[np.ndarray]:
    """One function for all models, of two amplitudes beside its quadratic."""
    at, points = Layout.of(spec), []
    for amplitude in NESTED_STARTS:
        point = prior.loc.copy()
        point[at.amplitude] = np.log(amplitude)
        points.append(point)
    return points


def _objective(
    vector: Array, kernel: Array, tied: Array, data: CoupledData, loc: Array, scale: Array, spec: CoupledSpec
) -> Array:
    marginal = log_marginal(spec, unflatten(spec, vector, kernel, tied), data)
    return 0.5 * jnp.sum(((vector - loc) / scale) ** 2) - marginal


_value_and_grad = jit64(jax.value_and_grad(_objective), static=("spec",))
_own_log_marginal = jit64(own_log_marginal, static=("spec",))


def fit(
    spec: CoupledSpec,
    sharing: Sharing,
    data: CoupledData,
    own: Sequence[GP],
    warm: CoupledFit | None,
    full: bool,
    nested: bool,
) -> CoupledFit:
    """Most probable hyperparameters: from where the last search ended and, in ``full``, from several starts.

    A full search also chooses among the kernels that the models' own surrogates have. With ``nested`` all is
    one function, of which the smaller models are slices.
    """
    prior = prior_of(spec, sharing, typical_size(data), nested)
    trials = [] if warm is None else [(warm.vector, warm.kernel)]
    if full or not trials:
        kernels = sorted({int(gp.hyper.kernel) for gp in own})
        starts = nested_starts(spec, prior) if nested else start_points(spec, sharing, own, prior)
        trials += [(p, kernel) for kernel in kernels for p in starts]
    if len(trials) > FINALISTS or (nested and full):
        first = _anchors_held(spec, prior) if nested else prior
        short = [_search(spec, data, first, vector, kernel, TRIAL) for vector, kernel in trials]
        trials = [(f.vector, f.kernel) for f in sorted(short, key=lambda f: f.loss)[:FINALISTS]]
    found = [_search(spec, data, prior, vector, kernel, 100 if full else 30) for vector, kernel in trials]
    return min(found, key=lambda f: f.loss)


def _anchors_held(spec: CoupledSpec, prior: CoupledPrior) -> CoupledPrior:
    """The same with anchors where they are expected: for nested models nothing else gets far at first."""
    at, lower, upper = Layout.of(spec).anchor, prior.lower.copy(), prior.upper.copy()
    lower[at] = upper[at] = prior.loc[at]
    return prior._replace(lower=lower, upper=upper)


def _search(
    spec: CoupledSpec, data: CoupledData, prior: CoupledPrior, start: np.ndarray, kernel: int, most: int
) -> CoupledFit:
    def loss(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, grad = _value_and_grad(
            vector, kernel, float(prior.tied), data, prior.loc, prior.scale, spec=spec
        )
        value, grad = float(value), np.asarray(grad)
        if not np.isfinite(value) or not np.all(np.isfinite(grad)):
            return 1e12, np.zeros_like(vector)  # a Cholesky factor broke down: the line search backs off
        return value, grad

    found = optimize.minimize(
        loss,
        np.clip(start, prior.lower, prior.upper),
        jac=True,
        method="L-BFGS-B",
        bounds=optimize.Bounds(prior.lower, prior.upper),
        options={"maxiter": most, "ftol": 1e-7},
    )
    return CoupledFit(np.asarray(found.x), float(found.fun), kernel)


def gain(
    spec: CoupledSpec,
    sharing: Sharing,
    found: CoupledFit,
    data: CoupledData,
    own: Sequence[GP],
    nested: bool,
    log_slope: float = 0.0,
) -> float:
    """Nats by which the joint GP explains its ``data`` better than the models' own GPs do theirs.

    ``log_slope`` is the sum of log s' (``squash.py``) where these see them squashed and the joint GP not.
    """
    n = float(np.asarray(data.mask).sum())
    prior = prior_of(spec, sharing, typical_size(data), nested)
    free = int((prior.upper > prior.lower).sum()) - (0 if nested else 2)  # a mean and deviations from it
    alone, size = 0.0, 0
    for i, gp in enumerate(own):
        columns = list(sharing.columns[i])
        length = np.asarray(gp.hyper.log_lengthscale) + np.log(np.abs(sharing.scale[i, columns]))
        alone += 0.5 * float((((length - prior.loc[columns]) / LENGTHSCALE) ** 2).sum())
        alone += 0.5 * float((float(gp.hyper.log_amplitude) - AMPLITUDE[0]) / AMPLITUDE[1]) ** 2
        alone -= float(_own_log_marginal(spec=Spec(spec.kernel, spec.mean), hyper=gp.hyper, data=gp.data))
        size += len(columns) + 2
    if nested and spec.mean == "full_quadratic":  # levels that are all but free prove too much by agreeing
        width = 100.0 + 10.0 * np.exp(found.vector[Layout.of(spec).size])  # as in means.basis
        alone -= (len(own) - 1) * float(np.log(width / LEVEL))
    more = max(free - size, 0)  # having fewer is no merit: they are what the models share, or do not
    return alone - log_slope - found.loss - 0.5 * more * float(np.log(max(n, 2.0)))
