"""One Gaussian process over (model, x): models that share parameters learn from each other's observations.

Every model's points are placed in the space of all the group's parameters (``sharing.py``), those it lacks
held at their anchors a. There

    Cov(g_i(x), g_j(x')) = R_ij [ s_i s_j k(e_i(x), e_j(x')) + b_i b_j sum_t phi_t(x) phi_t(x') ],

k being the product over parameters that a stationary kernel is: over those that both models have (the shared
part) and over those that only one has (the own parts, distances to the anchor). R is a correlation matrix, so
that B_ij = R_ij s_i s_j; phi_t are the terms of a quadratic that both models have, centred at the anchors, so
that at the anchors the larger model has the smaller one's terms and no others. (Its level, the term that is
1, is all but free; each model has its own unless the models are nested.) A sum of products of positive
semi-definite matrices, so positive semi-definite for any sharing. At R_ij = 1 and b_i = b_j, s_i = s_j the
larger model equals the smaller one where its own parameters are at their anchors: it is nested. At R_ij = 0
the models are independent.

Seen from one model the whole is an ordinary GP with more observations, those of other models lying apart from
its space and counting in part (``gp.Borrowed``): :meth:`Coupled.view`.

| symbol | name            | shape      | meaning                                                      |
|--------|-----------------|------------|--------------------------------------------------------------|
| R      | ``correlation`` | (g, g)     | between models, by its partial correlations tanh(``partial``) |
| a      | ``anchor``      | (D,)       | where a parameter is in the models that lack it              |
| s_i    | ``log_amplitude`` | (g,)     | of each model's kernel                                       |
| b_i    | ``mean``        | (g, h)     | hyperparameters of each model's mean, as ``means.py`` has them |
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from numpy.typing import NDArray

from modelodds.precision import Array, jit64
from modelodds.surrogate.gp import (
    GP,
    NUGGET,
    RELATIVE_NUGGET,
    Borrowed,
    Data,
    Hyper,
    coefficients,
    log_density,
)
from modelodds.surrogate.kernels import correlation as kernel_correlation
from modelodds.surrogate.kernels import squared_distance
from modelodds.surrogate.means import basis
from modelodds.surrogate.sharing import Sharing

MEANS = ("constant", "full_quadratic")  # that can be shared


class CoupledSpec(NamedTuple):
    """What kind of GP it is: compile-time constants."""

    kernel: str
    mean: str
    has: tuple[tuple[bool, ...], ...]  # (g, D) which parameters each model has


class CoupledHyper(NamedTuple):
    """Hyperparameters of the prior."""

    log_lengthscale: Array  # (D,)
    log_amplitude: Array  # (g,)
    mean: Array  # (g, 1)
    anchor: Array  # (D,)
    partial: Array  # (g (g - 1) / 2,)
    kernel: Array | int = 0
    tied: Array | float = 1.0  # whether the quadratics' levels correlate as well (1), or each is free (0)


class CoupledData(NamedTuple):
    """Observations of all models, relative to one zero; ``mask`` is 1 for real ones and 0 for padding."""

    x: Array  # (n, D) in the common space, 0 for what a model lacks
    y: Array  # (n,)
    noise: Array  # (n,)
    mask: Array  # (n,)
    model: Array  # (n,) which of the group's


class Factors(NamedTuple):
    """The joint GP conditioned on data; as in ``gp.GP``."""

    chol: Array
    white: Array
    design: Array
    basis_chol: Array
    beta: Array


def factor(partial: Array, g: int) -> Array:
    """Cholesky factor (g, g) of the correlation matrix with partial correlations tanh(``partial``)."""
    rows, at = [], 0
    for i in range(g):
        row, left = [], jnp.ones(())
        for _ in range(i):
            row.append(jnp.tanh(partial[at]) * left)
            left = left / jnp.cosh(partial[at])
            at += 1
        rows.append(jnp.stack([*row, left, *[jnp.zeros(())] * (g - i - 1)]))
    return jnp.stack(rows)


def correlation(partial: Array, g: int) -> Array:
    """Correlation matrix R (g, g) between models."""
    lower = factor(partial, g)
    return lower @ lower.T


def terms(spec: CoupledSpec) -> list[list[int]]:
    """Terms of the common space's quadratic that each model has: positions in ``means.basis``'s order."""
    d = len(spec.has[0])
    if spec.mean != "full_quadratic":
        return [[] for _ in spec.has]
    row, col = np.triu_indices(d)
    found = []
    for has in np.array(spec.has):
        pairs = np.flatnonzero(has[row] & has[col])
        found.append([0, *(1 + np.flatnonzero(has)), *(1 + d + pairs)])
    return found


def coefficient_factor(spec: CoupledSpec, lower: Array, tied: Array | float) -> Array:
    """All models' coefficients, side by side, from independent ones: a matrix (sum of p_i, p).

    Those of one term correlate as the models do, whose correlations have the Cholesky factor ``lower``; those
    of the levels only if ``tied``. No factorisation of their own correlations, which are singular for nested
    models.
    """
    rows: dict[int, list[tuple[int, int]]] = {}  # of each term: models that have it, and where
    at = 0
    for i, owned in enumerate(terms(spec)):
        for term in owned:
            rows.setdefault(term, []).append((i, at))
            at += 1
    parts: list[tuple[int, int, int, int]] = []  # row, column, and the entry of ``lower``
    column = 0
    for members in rows.values():
        if len(members) == 1:
            parts.append((members[0][1], column, 0, 0))  # which is 1
            column += 1
            continue
        width = 1 + max(i for i, _ in members)
        parts += [(row, column + q, i, q) for i, row in members for q in range(i + 1)]
        column += width
    row, col, i, q = np.array(parts).T
    level = col < len(spec.has)  # the first term, which all models have
    entry = jnp.where(level, tied * lower[i, q] + (1.0 - tied) * (i == q), lower[i, q])
    return jnp.zeros((at, column)).at[row, col].set(entry)


def placed(spec: CoupledSpec, hyper: CoupledHyper, data: CoupledData) -> Array:
    """Observations (n, D) in the common space, parameters that their models lack at the anchors."""
    has = jnp.asarray(np.array(spec.has, dtype=float))[data.model]
    return data.x * has + hyper.anchor * (1.0 - has)


def centred_basis(spec: CoupledSpec, hyper: CoupledHyper, data: CoupledData) -> Array:
    """Basis functions (n, p) of all models' coefficients side by side, p being the sum of their numbers."""
    everywhere = np.array(spec.has).all(axis=0)
    has = jnp.asarray(np.array(spec.has, dtype=float))[data.model]
    x = (data.x - jnp.where(everywhere, 0.0, hyper.anchor)) * has
    parts = []
    for i, owned in enumerate(terms(spec)):
        if owned:
            part = basis(spec.mean, hyper.mean[i], x)[:, np.array(owned)]
            parts.append(part * (data.model == i)[:, None])
    return jnp.concatenate(parts, axis=1) if parts else jnp.zeros((x.shape[0], 0))


def prior_covariance(spec: CoupledSpec, hyper: CoupledHyper, data: CoupledData) -> Array:
    """Prior covariance (n, n) of the observations, without the basis part."""
    x, between = placed(spec, hyper, data), correlation(hyper.partial, len(spec.has))
    r2 = squared_distance(x, x, jnp.exp(hyper.log_lengthscale))
    amplitude = jnp.exp(hyper.log_amplitude)[data.model]
    weight = between[data.model[:, None], data.model] * amplitude[:, None] * amplitude
    return weight * kernel_correlation(spec.kernel, hyper.kernel, r2)


def condition(spec: CoupledSpec, hyper: CoupledHyper, data: CoupledData) -> Factors:
    """Posterior given all models' observations."""
    mask, g = data.mask, len(spec.has)
    kernel = prior_covariance(spec, hyper, data) * mask[:, None] * mask
    own = jnp.exp(2.0 * hyper.log_amplitude)[data.model]
    diagonal = jnp.where(mask > 0, data.noise + NUGGET + RELATIVE_NUGGET * own, 1.0)
    chol = jnp.linalg.cholesky(kernel + jnp.diag(diagonal))
    mean = hyper.mean[:, 0][data.model] if spec.mean == "constant" else jnp.zeros(len(mask))
    white = solve_triangular(chol, (data.y - mean) * mask, lower=True)
    functions = centred_basis(spec, hyper, data)
    if functions.shape[1]:
        functions = functions @ coefficient_factor(spec, factor(hyper.partial, g), hyper.tied)
    design = solve_triangular(chol, functions * mask[:, None], lower=True)
    rest, basis_chol, beta = coefficients(white, design)
    return Factors(chol, rest, design, basis_chol, beta)


def log_marginal(spec: CoupledSpec, hyper: CoupledHyper, data: CoupledData) -> Array:
    """Log marginal likelihood of all models' observations, up to the constant that ``gp.py`` leaves out."""
    gp = condition(spec, hyper, data)
    return log_density(gp.white, gp.beta, gp.chol, gp.basis_chol)


_condition = jit64(condition, static=("spec",))
_factor = jit64(factor, static=("g",))
_coefficient_factor = jit64(coefficient_factor, static=("spec",))


class Coupled(NamedTuple):
    """The joint GP of a group of models."""

    sharing: Sharing
    spec: CoupledSpec
    hyper: CoupledHyper  # NumPy's arrays
    data: CoupledData
    factors: Factors
    between: NDArray[np.float64]  # (g, g) R
    mixed: NDArray[np.float64]  # (sum of p_i, p) the models' coefficients from independent ones

    @classmethod
    def of(cls, sharing: Sharing, spec: CoupledSpec, hyper: CoupledHyper, data: CoupledData) -> "Coupled":
        """Condition on ``data``."""
        lower = np.asarray(_factor(hyper.partial, g=len(spec.has)))
        mixed = np.zeros((0, 0))
        if spec.mean == "full_quadratic":
            mixed = np.asarray(_coefficient_factor(spec=spec, lower=lower, tied=hyper.tied))
        factors = _condition(spec=spec, hyper=hyper, data=data)
        return cls(sharing, spec, hyper, data, factors, lower @ lower.T, mixed)

    def coefficients(self) -> float:
        """How many coefficients of the basis the observations determine: the trace of the hat matrix."""
        square = np.asarray(self.factors.basis_chol)
        if not len(square):
            return 0.0
        return len(square) - float((np.linalg.inv(square) ** 2).sum())

    def conditioned(self, data: CoupledData) -> "Coupled":
        """The same prior with other data."""
        return self._replace(data=data, factors=_condition(spec=self.spec, hyper=self.hyper, data=data))

    def elsewhere(
        self, i: int, common: NDArray[np.float64], model: NDArray[np.int_]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Points of the group's models as model ``i`` sees them.

        Parameters
        ----------
        common : array (n, D)
            As :meth:`Sharing.embed` gives them.
        model : array (n,)
            Whose they are.

        Returns
        -------
        x, apart, factor : arrays (n, d), (n,), (n,)
            Where they are in its own coordinates, how far from its space, and how much they count.
        """
        columns, hyper = list(self.sharing.columns[i]), self.hyper
        has = np.array(self.spec.has, dtype=float)[model]
        at = common * has + np.asarray(hyper.anchor) * (1.0 - has)
        away = (at - np.asarray(hyper.anchor)) / np.exp(np.asarray(hyper.log_lengthscale))
        apart = (np.delete(away, columns, axis=1) ** 2).sum(1)
        amplitude = np.exp(np.asarray(hyper.log_amplitude))
        x = (at[:, columns] - self.sharing.shift[i, columns]) / self.sharing.scale[i, columns]
        return x, apart, self.between[i, model] * amplitude[model] / amplitude[i]

    def view(self, i: int, level: float = 0.0) -> GP:
        """The GP of member ``i`` in its own coordinates, its zero ``level`` above the common one."""
        columns, hyper, data = list(self.sharing.columns[i]), self.hyper, self.data
        model = np.asarray(data.model)
        x, apart, weight = self.elsewhere(i, np.asarray(data.x), model)
        own = Hyper(
            np.asarray(hyper.log_lengthscale)[columns] - np.log(np.abs(self.sharing.scale[i, columns])),
            np.asarray(hyper.log_amplitude)[i],
            np.asarray(hyper.mean)[i],
            hyper.kernel,
        )
        mask = np.asarray(data.mask)
        mix = self._mix(i)
        borrowed = Borrowed(apart, weight, mask * (model == i), mix, np.asarray(-level))
        seen = Data(x, np.asarray(data.y), np.asarray(data.noise), mask)
        return GP(own, seen, *self.factors, borrowed)

    def _mix(self, i: int) -> NDArray[np.float64]:
        """Member ``i``'s plain basis functions in terms of the independent coefficients, (p_i, p).

        Plain ones are of x, those of the common space of u = scale x + offset, the anchor taken off where
        some model lacks the parameter: u_j u_l expands into plain terms.
        """
        if self.spec.mean != "full_quadratic":
            return np.zeros((0, 0))
        columns = list(self.sharing.columns[i])
        d, size = len(columns), len(self.sharing.names)
        owned = terms(self.spec)
        block = self.mixed[sum(map(len, owned[:i])) : sum(map(len, owned[: i + 1]))]
        everywhere = np.array(self.spec.has).all(axis=0)
        centre = np.where(everywhere, 0.0, np.asarray(self.hyper.anchor))[columns]
        stretch, offset = self.sharing.scale[i, columns], self.sharing.shift[i, columns] - centre
        b = float(np.exp(np.asarray(self.hyper.mean)[i, 0]))
        level = 100.0 + 10.0 * b  # as in means.basis
        row, col = (side.tolist() for side in np.triu_indices(size))
        common = {pair: 1 + size + t for t, pair in enumerate(zip(row, col, strict=True))}
        place = {term: t for t, term in enumerate(owned[i])}
        change = np.zeros((1 + d + d * (d + 1) // 2, len(owned[i])))
        change[0, 0] = 1.0
        for j, column in enumerate(columns):
            at = place[1 + column]
            change[1 + j, at], change[0, at] = stretch[j], offset[j] * b / level
        own_row, own_col = (side.tolist() for side in np.triu_indices(d))
        for t, (j, m) in enumerate(zip(own_row, own_col, strict=True)):
            pair = min(columns[j], columns[m]), max(columns[j], columns[m])
            at = place[common[pair]]
            change[1 + d + t, at] += stretch[j] * stretch[m]
            change[1 + j, at] += stretch[j] * offset[m]
            change[1 + m, at] += stretch[m] * offset[j]
            change[0, at] += offset[j] * offset[m] * b / level
        return np.asarray(change @ block)
