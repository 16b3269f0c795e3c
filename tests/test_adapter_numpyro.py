"""NumPyro's programs, from its own documentation, against exact answers."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from example_schools import (
    EFFECTS,
    ERRORS,
    monte_carlo_log_evidence,
    schools_log_evidence,
)
from modelodds.adapters import from_numpyro
from modelodds.coordinates.base import EDGE
from modelodds.errors import ModelError, PriorError

pytestmark = [pytest.mark.filterwarnings("default")]  # NumPyro's own
numpyro = pytest.importorskip(
    "numpyro", reason="NumPyro is not installed: pip install 'modelodds[numpyro]'", exc_type=ImportError
)
dist: Any = numpyro.distributions


def eight_schools(J: int, sigma: Any, y: Any = None) -> None:
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("J", J):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("obs", dist.Normal(theta, sigma), obs=y)


def test_eight_schools() -> None:
    model = from_numpyro(eight_schools, "schools", 8, ERRORS, y=EFFECTS)
    assert model.parameters == ("mu", "tau", *(f"theta[{i}]" for i in range(8)))
    found, error = monte_carlo_log_evidence(model, 8192)
    assert error < 0.03 and abs(found - schools_log_evidence()) < 4 * error


def test_quantiles() -> None:
    import jax

    from modelodds.adapters.numpyro import quantile

    u = np.array([0.01, 0.3, 0.8])
    pairs = [
        (dist.Normal(1, 2), stats.norm(1, 2)),
        (dist.HalfNormal(2), stats.halfnorm(scale=2)),
        (dist.HalfCauchy(2), stats.halfcauchy(scale=2)),
        (dist.Exponential(2.0), stats.expon(scale=0.5)),
        (dist.Gamma(2.0, 3.0), stats.gamma(2, scale=1 / 3)),
        (dist.InverseGamma(2.0, 3.0), None),
        (dist.Beta(2.0, 3.0), stats.beta(2, 3)),
        (dist.StudentT(4.0, 1.0, 2.0), stats.t(4, 1, 2)),
        (dist.Weibull(3.0, 2.0), stats.weibull_min(2, scale=3)),
        (dist.LogNormal(1.0, 0.5), stats.lognorm(0.5, scale=np.e)),
        (dist.LogUniform(1.0, 10.0), stats.loguniform(1, 10)),
        (dist.Normal(1, 2).expand([3]).to_event(1), stats.norm(1, 2)),
    ]
    with jax.enable_x64(True):
        for ours, known in pairs:
            found = np.asarray(quantile(ours, u))
            assert np.isfinite(quantile(ours, np.array([EDGE, 0.5, 1 - EDGE]))).all()
            if known is None:  # decreasing in u: as good a transform
                np.testing.assert_allclose(stats.invgamma(2, scale=3).sf(found), u, rtol=1e-6)
            else:
                np.testing.assert_allclose(found, known.ppf(u), rtol=1e-6)
        cov = np.array([[2.0, 1.0], [1.0, 3.0]])
        joint = dist.MultivariateNormal(np.ones(2), covariance_matrix=cov)
        points = stats.qmc.Sobol(2, rng=np.random.default_rng(0)).random(4096) * 0.999 + 0.0005
        np.testing.assert_allclose(np.cov(np.asarray(quantile(joint, points)).T), cov, atol=0.05)


def test_factors_count_and_the_users_precision_is_left_alone() -> None:
    import jax.numpy as jnp

    def program() -> None:
        x = numpyro.sample("x", dist.Normal(0, 1))
        numpyro.factor("f", -(x**2))
        numpyro.sample("y", dist.Normal(x, 1), obs=0.5)

    model = from_numpyro(program, "m")
    expected = -(0.3**2) + stats.norm.logpdf(0.5, 0.3, 1)
    assert model.log_likelihood(np.array([0.3])) == pytest.approx(expected, rel=1e-12)
    assert jnp.ones(1).dtype == jnp.float32


def test_what_it_cannot_do_is_said() -> None:
    def blind() -> None:
        numpyro.sample("x", dist.Normal(0, 1))

    def discrete() -> None:
        numpyro.sample("y", dist.Normal(numpyro.sample("n", dist.Poisson(3.0)), 1.0), obs=0.5)

    def simplex() -> None:
        p = numpyro.sample("p", dist.Dirichlet(np.ones(3)))
        numpyro.sample("y", dist.Normal(p[0], 1.0), obs=0.5)

    with pytest.raises(ModelError, match="nothing is observed"):
        from_numpyro(blind, "m")
    with pytest.raises(PriorError, match="'n' is discrete"):
        from_numpyro(discrete, "m")
    with pytest.raises(PriorError, match="'p' is a Dirichlet"):
        from_numpyro(simplex, "m")
