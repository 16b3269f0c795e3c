"""PyMC's models, from its own documentation, against exact answers."""

import numpy as np
import pytest

from example_schools import (
    EFFECTS,
    ERRORS,
    SCHOOLS,
    monte_carlo_log_evidence,
    schools_log_evidence,
)
from modelodds.adapters import from_pymc
from modelodds.adapters.quantiles import QUANTILES
from modelodds.coordinates.base import EDGE
from modelodds.errors import ModelError, PriorError

pytestmark = [
    pytest.mark.filterwarnings("default"),  # PyMC's own, and those of what it imports
]
pm = pytest.importorskip(
    "pymc", reason="PyMC is not installed: pip install 'modelodds[pymc]'", exc_type=ImportError
)


def test_eight_schools() -> None:
    with pm.Model(coords={"school": SCHOOLS}) as schools:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        theta = pm.Normal("theta", mu, tau, dims="school")
        pm.Normal("obs", theta, ERRORS, observed=EFFECTS)
    model = from_pymc(schools, "schools")
    assert model.parameters[:4] == ("mu", "tau", "theta[Choate]", "theta[Deerfield]")
    found, error = monte_carlo_log_evidence(model, 8192)
    assert error < 0.03 and abs(found - schools_log_evidence()) < 4 * error


def test_potentials_count_and_shapes_are_kept() -> None:
    with pm.Model(name="") as model:
        beta = pm.Normal("beta", [0.0, 1.0], 2.0, shape=(3, 2))
        pm.Normal("y", beta.sum(), 1.0, observed=0.5)
        pm.Potential("p", -(beta[0, 0] ** 2))
    ours = from_pymc(model, "m")
    assert ours.parameters == tuple(f"beta[{i}, {j}]" for i in range(3) for j in range(2))
    theta = np.arange(6.0) / 10
    expected = -0.5 * (0.5 - theta.sum()) ** 2 - 0.5 * np.log(2 * np.pi) - theta[0] ** 2
    assert ours.log_likelihood(theta) == pytest.approx(expected)
    np.testing.assert_allclose(ours.prior.to_theta(np.zeros(6)), [0, 1, 0, 1, 0, 1], atol=1e-12)


DISTRIBUTIONS = {
    "normal": lambda: pm.Normal.dist(1, 2),
    "halfnormal": lambda: pm.HalfNormal.dist(2),
    "cauchy": lambda: pm.Cauchy.dist(1, 2),
    "halfcauchy": lambda: pm.HalfCauchy.dist(5),
    "t": lambda: pm.StudentT.dist(nu=4, mu=1, sigma=2),
    "halfstudentt": lambda: pm.HalfStudentT.dist(nu=3, sigma=2),
    "uniform": lambda: pm.Uniform.dist(1, 3),
    "exponential": lambda: pm.Exponential.dist(2.0),
    "gamma": lambda: pm.Gamma.dist(2, 3),
    "invgamma": lambda: pm.InverseGamma.dist(2, 3),
    "beta": lambda: pm.Beta.dist(2, 3),
    "lognormal": lambda: pm.LogNormal.dist(1, 0.5),
    "truncated_normal": lambda: pm.TruncatedNormal.dist(0, 2, lower=-1, upper=3),
    "laplace": lambda: pm.Laplace.dist(1, 2),
    "logistic": lambda: pm.Logistic.dist(1, 2),
    "gumbel": lambda: pm.Gumbel.dist(1, 2),
    "weibull": lambda: pm.Weibull.dist(2, 3),
    "pareto": lambda: pm.Pareto.dist(2, 1),
    "kumaraswamy": lambda: pm.Kumaraswamy.dist(2, 3),
    "triangular": lambda: pm.Triangular.dist(lower=0, c=1, upper=3),
}


def test_quantiles_are_quantiles_of_pymcs_densities() -> None:
    import pytensor

    assert DISTRIBUTIONS.keys() == QUANTILES.keys() - {"multivariate_normal"}
    u = np.array([0.003, 0.2, 0.5, 0.9, 0.99])
    edges = np.linspace(0.2, 0.9, 2001)
    for name, make in DISTRIBUTIONS.items():
        variable = make()
        assert variable.owner.op.name == name
        parameters = variable.owner.op.dist_params(variable.owner)
        values = pytensor.function([], parameters, mode="FAST_COMPILE")()
        assert np.all(np.diff(QUANTILES[name](u, *values)) > 0), name
        assert np.isfinite(QUANTILES[name](np.array([EDGE, 1 - EDGE]), *values)).all(), name
        x = np.asarray(QUANTILES[name](edges, *values))
        middle = (x[1:] + x[:-1]) / 2
        density = pytensor.function([], pm.logp(variable, middle), mode="FAST_COMPILE")()
        np.testing.assert_allclose(np.exp(density) * np.diff(x), np.diff(edges), rtol=1e-3, err_msg=name)


def test_what_it_cannot_do_is_said() -> None:
    with pm.Model() as discrete:
        pm.Normal("y", pm.Poisson("n", 3), 1.0, observed=0.5)
    with pytest.raises(PriorError, match="'n' is discrete; sum it out"):
        from_pymc(discrete, "m")
    with pm.Model() as simplex:
        pm.Normal("y", pm.Dirichlet("p", np.ones(3))[0], 1.0, observed=0.5)
    with pytest.raises(PriorError, match="'p' is a Dirichlet, whose quantiles are not known"):
        from_pymc(simplex, "m")
    with pm.Model() as blind:
        pm.Normal("x")
    with pytest.raises(ModelError, match="nothing is observed"):
        from_pymc(blind, "m")
    with pytest.raises(ModelError, match="has no name"):
        from_pymc(blind)
    with pytest.raises(ModelError, match=r"takes a pymc\.Model, not a int"):
        from_pymc(3, "m")
