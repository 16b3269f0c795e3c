"""Parts of a model that can be exchanged for each other: absorbers, planets, components of a mixture.

If every permutation of some groups of parameters gives the same likelihood, the surrogate should know. And
often each part adds to the log-likelihood about what it would add alone. So, with c what is common to all
parts and x_1 ... x_B the parts,

    g(c, x_1 ... x_B) = sum_i s(c, x_i) + t(c, x_1 ... x_B),

s and t Gaussian processes of one stationary correlation k, t not changed by permutations p:

    Cov(g(x), g(x')) = A^2 [ 1/B sum_ij k(u_i, u'_j) + rho^2 / B! sum_p k(x, p x') ],     u_i = (c, x_i).

An observation tells of s at B places, which is a function of few parameters; how far the parts add up, rho,
is a hyperparameter.

| symbol | name          | shape        | meaning                                              |
|--------|---------------|--------------|------------------------------------------------------|
| u_i    | ``members``   | (B, c + p)   | the columns of x that make a part with what is common |
|        | ``slots``     | (d,)         | which of the c + p length-scales each column has     |
"""

from itertools import permutations

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from modelodds.precision import Array
from modelodds.surrogate.kernels import TINY, correlation, squared_distance

Blocks = tuple[tuple[int, ...], ...]
"""Columns of x that make each part; empty where nothing can be exchanged."""


FAR = 30.0
"""Coordinate of a part that is absent (``family.py``), in standard deviations of the prior."""


def common(blocks: Blocks, d: int) -> list[int]:
    """Columns that are of no part."""
    return [j for j in range(d) if not any(j in block for block in blocks)]


def members(blocks: Blocks, d: int) -> NDArray[np.intp]:
    """Columns of (c, x_i) for every part i, (B, c + p)."""
    return np.array([[*common(blocks, d), *block] for block in blocks])


def n_slots(blocks: Blocks, d: int) -> int:
    """How many hyperparameters ``d`` columns have between them: c + p."""
    return int(members(blocks, d).shape[1]) if blocks else d


def slots(blocks: Blocks, d: int) -> NDArray[np.intp]:
    """Which hyperparameter of c + p each of the ``d`` columns has, (d,)."""
    if not blocks:
        return np.arange(d)
    found = np.zeros(d, dtype=np.intp)
    for columns in members(blocks, d):
        found[columns] = np.arange(len(columns))
    return found


def exchanged(blocks: Blocks, d: int) -> NDArray[np.intp]:
    """The columns of a point in every order of its parts, (B!, d)."""
    orders = []
    for order in permutations(range(len(blocks))):
        columns = np.arange(d)
        for to, source in enumerate(order):
            columns[list(blocks[to])] = blocks[source]
        orders.append(columns)
    return np.array(orders)


def in_order(blocks: Blocks, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points ``x`` (n, d), the parts of each being in the order of their first columns."""
    if not blocks:
        return x
    parts, ordered = np.array(blocks), x.copy()
    order = np.argsort(x[:, parts[:, 0]], axis=1)
    ordered[:, parts] = np.take_along_axis(x[:, parts], order[:, :, None], axis=1)
    return ordered


def exchangeable_correlation(
    kernel: str,
    index: Array | int,
    blocks: Blocks,
    lengthscale: Array,
    rho: Array | float,
    a: Array,
    b: Array,
) -> Array:
    """The covariance over A^2 of points ``a`` (n, d) with ``b`` (m, d), shape (n, m)."""
    d, size = a.shape[1], len(blocks)
    shared, parts = np.array(common(blocks, d), dtype=np.intp), np.array(blocks)

    def apart(i: NDArray[np.intp], j: NDArray[np.intp]) -> Array:
        return squared_distance(a[:, i], b[:, j], lengthscale[i])

    rest = apart(shared, shared) if len(shared) else jnp.zeros((len(a), len(b)))
    r2 = [[apart(i, j) for j in parts] for i in parts]
    alone = jnp.stack([rest + r2[i][j] for i in range(size) for j in range(size)])
    return _sums(kernel, index, rho, size, alone, _together(rest, r2))


def exchangeable_variance(
    kernel: str, index: Array | int, blocks: Blocks, lengthscale: Array, rho: Array, x: Array
) -> Array:
    """The same of points ``x`` (n, d) with themselves, shape (n,)."""
    size, scaled = len(blocks), x / lengthscale
    parts = np.array(blocks)
    r2 = [[((scaled[:, i] - scaled[:, j]) ** 2).sum(1) for j in parts] for i in parts]
    alone = jnp.stack([r2[i][j] for i in range(size) for j in range(size)])
    return _sums(kernel, index, rho, size, alone, _together(jnp.zeros(len(x)), r2))


def _together(rest: Array, r2: list[list[Array]]) -> Array:
    """Squared distances of whole points, one of them permuted, for each permutation."""
    return jnp.stack(
        [rest + sum(r2[i][j] for i, j in enumerate(order)) for order in permutations(range(len(r2)))]
    )


def _sums(
    kernel: str, index: Array | int, rho: Array | float, size: int, alone: Array, whole: Array
) -> Array:
    def total(r2: Array) -> Array:
        return correlation(kernel, index, jnp.maximum(r2, TINY)).sum(0)

    return total(alone) / size + rho**2 * total(whole) / len(whole)
