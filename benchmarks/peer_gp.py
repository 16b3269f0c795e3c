"""Our Gaussian process against tinygp's, side by side: ``python benchmarks/peer_gp.py``.

One step of the surrogate is some likelihoods with their gradient (the fit) and one conditioning at the nodes.
Constant mean, Matérn 5/2, n = 128 observations, d = 3, 4096 nodes; medians of 30 calls, the two libraries
taking turns.
"""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import tinygp

from modelodds.precision import jit64, one_blas_thread
from modelodds.surrogate.fit import unflatten
from modelodds.surrogate.gp import NUGGET, RELATIVE_NUGGET, Data, Spec, condition, log_marginal, predict

N, D, NODES, REPEATS = 128, 3, 4096, 30
SPEC = Spec("matern52", "constant")


def peer(vector: jax.Array, data: Data) -> tinygp.GaussianProcess:
    """The same Gaussian process in tinygp."""
    variance = jnp.exp(2.0 * vector[D])
    matern = tinygp.kernels.Matern52(distance=tinygp.kernels.distance.L2Distance())
    kernel = variance * tinygp.transforms.Linear(jnp.exp(-vector[:D]), matern)
    noise = data.noise + NUGGET + RELATIVE_NUGGET * variance
    return tinygp.GaussianProcess(kernel, data.x, diag=noise, mean=vector[D + 1])


def peer_predict(vector: jax.Array, data: Data, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Its conditional mean and variance."""
    conditioned = peer(vector, data).condition(data.y, x, diag=0.0).gp
    return conditioned.loc, conditioned.variance


def our_predict(vector: jax.Array, data: Data, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Ours."""
    return predict(SPEC, condition(SPEC, unflatten(vector, D), data), x)


def milliseconds(*calls: Callable[[], object]) -> list[float]:
    """Median time of each of some calls, which take turns."""
    times = np.empty((REPEATS + 1, len(calls)))
    for row in times:
        for j, call in enumerate(calls):
            start = time.perf_counter()
            jax.block_until_ready(call())
            row[j] = time.perf_counter() - start
    return [1000 * float(t) for t in np.median(times[1:], axis=0)]  # the first call compiles


def main() -> None:
    """Check that both agree, then time them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, D))
    data = Data(x, np.sin(x[:, 0]) - (x**2).sum(1), np.full(N, 1e-4), np.ones(N))
    vector, nodes = np.array([0.1, 0.3, -0.2, 0.5, -1.0]), rng.normal(size=(NODES, D))
    ours = jit64(jax.value_and_grad(lambda v: log_marginal(SPEC, unflatten(v, D), data)))
    theirs = jit64(jax.value_and_grad(lambda v: peer(v, data).log_probability(data.y)))
    np.testing.assert_allclose(ours(vector)[1], theirs(vector)[1], rtol=1e-6)
    our_nodes, their_nodes = jit64(our_predict), jit64(peer_predict)
    np.testing.assert_allclose(
        our_nodes(vector, data, nodes)[0], their_nodes(vector, data, nodes)[0], atol=1e-6
    )
    with one_blas_thread():
        fit = milliseconds(lambda: ours(vector), lambda: theirs(vector))
        conditioning = milliseconds(
            lambda: our_nodes(vector, data, nodes), lambda: their_nodes(vector, data, nodes)
        )
    for name, (a, b) in {"likelihood and gradient": fit, "conditioning at the nodes": conditioning}.items():
        print(f"{name}: ours {a:.2f} ms, tinygp {b:.2f} ms, {b / a:.2f} times ours")


if __name__ == "__main__":
    main()
