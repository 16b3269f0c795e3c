"""Kernels against their textbook forms; smoothness at zero and positive matrices, as the rest needs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special

from example_gp import dense_correlation
from modelodds.precision import jit64
from modelodds.surrogate.kernels import KERNELS, squared_distance

Array = NDArray[np.float64]
SMOOTHNESS = {"matern32": 1.5, "matern52": 2.5}


def _matrix(a: jax.Array, b: jax.Array, lengthscale: jax.Array, kernel: str) -> jax.Array:
    return KERNELS[kernel](squared_distance(a, b, lengthscale))


matrix = jit64(_matrix, static=("kernel",))
slope = jit64(
    jax.grad(lambda a, b, lengthscale, kernel: jnp.sum(_matrix(a, b, lengthscale, kernel))),
    static=("kernel",),
)


def points(seed: int, n: int = 24, d: int = 3) -> Array:
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("kernel", KERNELS)
def test_matrix_is_the_textbook_formula_of_scaled_distances(kernel: str) -> None:
    a, b, lengthscale = points(0), points(1), np.array([0.3, 1.0, 4.0])
    r = np.sqrt((((a[:, None] - b[None]) / lengthscale) ** 2).sum(2))
    # Squares near 100 are subtracted from each other: 1e-14 of rounding in r^2, halved by the slope in r^2.
    np.testing.assert_allclose(
        matrix(a, b, lengthscale, kernel=kernel), dense_correlation(kernel, r), atol=1e-13
    )


@pytest.mark.parametrize("kernel", SMOOTHNESS)
def test_matern_is_the_bessel_function_formula(kernel: str) -> None:
    nu, r = SMOOTHNESS[kernel], np.linspace(0.01, 8.0, 24)
    scaled = np.sqrt(2 * nu) * r
    bessel = 2 ** (1 - nu) / special.gamma(nu) * scaled**nu * special.kv(nu, scaled)
    with jax.enable_x64(True):
        found = np.asarray(KERNELS[kernel](jnp.asarray(r**2)))
    np.testing.assert_allclose(found, bessel, rtol=1e-12)  # scipy's kv is good to about 1e-14


@pytest.mark.parametrize("kernel", KERNELS)
def test_coincident_points_have_correlation_one_and_no_slope(kernel: str) -> None:
    a, lengthscale = points(2), np.array([0.3, 1.0, 4.0])
    one = np.diagonal(matrix(a, a, lengthscale, kernel=kernel))
    np.testing.assert_allclose(one, 1.0, atol=1e-13)  # r^2 comes out as rounding, 1e-14, instead of zero
    for i in range(3):
        flat = np.asarray(slope(a[i : i + 1], a[i : i + 1], lengthscale, kernel=kernel))
        # 2 (a - b) / lengthscale^2 cancels to rounding of |a| / lengthscale^2 = 20.
        np.testing.assert_allclose(flat, 0.0, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_slope_matches_finite_differences(kernel: str) -> None:
    a, b, lengthscale, h = points(3, n=1), points(4, n=24), np.array([0.3, 1.0, 4.0]), 1e-5
    found = np.asarray(slope(a, b, lengthscale, kernel=kernel))[0]
    for j in range(3):
        step = h * np.eye(3)[j]
        up, down = (np.asarray(matrix(a + s, b, lengthscale, kernel=kernel)).sum() for s in (step, -step))
        # Rounding 1e-15 x 24 / h, and h^2 times a third derivative of up to 1/0.3^3 per point.
        assert found[j] == pytest.approx((up - down) / (2 * h), abs=1e-7)


@pytest.mark.parametrize("kernel", KERNELS)
def test_correlation_falls_from_one_to_zero(kernel: str) -> None:
    with jax.enable_x64(True):
        value = np.asarray(KERNELS[kernel](jnp.linspace(0.0, 50.0, 200) ** 2))
    assert value[0] == 1.0
    assert np.all(np.diff(value) <= 0) and np.all(np.diff(value[:20]) < 0)
    assert 0.0 <= value[-1] < 1e-30  # exp(-sqrt(3) 50) = 2e-38 is the slowest of the three


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 2**16),
    lengthscale=st.lists(st.floats(0.01, 100.0), min_size=3, max_size=3),
    shift=st.floats(-7, 7),
    kernel=st.sampled_from(sorted(KERNELS)),
)
def test_matrix_is_positive_within_the_relative_nugget(
    seed: int, lengthscale: list[float], shift: float, kernel: str
) -> None:
    """Cholesky factors need the smallest eigenvalue above -1e-8 (gp.RELATIVE_NUGGET), in any fit's bounds."""
    a = np.clip(points(seed) + shift, -7, 7)
    found = np.asarray(matrix(a, a, np.array(lengthscale), kernel=kernel))
    assert np.linalg.eigvalsh(found)[0] > -1e-8
    np.testing.assert_array_equal(found, found.T)
