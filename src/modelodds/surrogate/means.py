"""Prior means of the log-likelihood: what the surrogate falls back to where nothing was observed.

A mean has two parts: a function of a few hyperparameters, and basis functions whose coefficients get a
Gaussian prior and are integrated out in closed form (Rasmussen & Williams 2006, section 2.7).

| name                | hyperparameters                    | basis                       |
|---------------------|------------------------------------|-----------------------------|
| ``constant``        | c                                  | none                        |
| ``quadratic``       | c, x0 (d), log omega (d): c - sum ((x - x0) / omega)^2 / 2 | none |
| ``full_quadratic``  | log b                              | 1, and b times x_j, x_j x_l |
"""

import jax.numpy as jnp
import numpy as np

from modelodds.precision import Array
from modelodds.surrogate.exchange import FAR, Blocks, members, n_slots

MEANS = ("constant", "quadratic", "full_quadratic")


def n_hyper(mean: str, d: int) -> int:
    """How many hyperparameters the mean has in ``d`` dimensions."""
    return 1 + 2 * d if mean == "quadratic" else 1


def n_basis(mean: str, d: int, blocks: Blocks = ()) -> int:
    """How many coefficients the basis has in ``d`` dimensions."""
    d = n_slots(blocks, d)
    return (d + 1) * (d + 2) // 2 if mean == "full_quadratic" else 0


def mean_function(mean: str, hyper: Array, x: Array) -> Array:
    """Value at points ``x`` (n, d) of the part that depends on hyperparameters, shape (n,)."""
    d = x.shape[1]
    if mean == "constant":
        return jnp.full(x.shape[0], hyper[0])
    if mean == "quadratic":
        return hyper[0] - 0.5 * jnp.sum(((x - hyper[1 : d + 1]) * jnp.exp(-hyper[d + 1 :])) ** 2, axis=1)
    return jnp.zeros(x.shape[0])


def basis(mean: str, hyper: Array, x: Array, blocks: Blocks = ()) -> Array:
    """Basis functions (n, p) at ``x`` (n, d), scaled for coefficients that are standard normal a priori.

    With ``blocks``, the mean over exchangeable parts of each part's own quadratic; an absent one has none.
    """
    n, d = x.shape
    if blocks:
        x = jnp.where(x < FAR, x, 0.0)
        return jnp.stack([basis(mean, hyper, x[:, columns]) for columns in members(blocks, d)]).mean(0)
    if mean != "full_quadratic":
        return jnp.zeros((n, 0))
    row, col = np.triu_indices(d)
    scale = jnp.exp(hyper[0])
    level = jnp.full((n, 1), 100.0) + 10.0 * scale  # all but free
    return jnp.concatenate([level, scale * x, scale * x[:, row] * x[:, col]], axis=1)
