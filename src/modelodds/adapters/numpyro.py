"""NumPyro programs, as they are.

As with PyMC's models (``pymc.py``), the prior becomes a transform of the unit cube: the program is run with
every latent site set to the quantile of its distribution at a uniform of its own. The likelihood is the
log-density of the observed sites, factors included. Both are compiled, and run in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelodds.adapters.sites import Sites
from modelodds.errors import ModelError, PriorError
from modelodds.model import Model
from modelodds.precision import jit64
from modelodds.prior import Prior

Array = NDArray[np.float64]


def from_numpyro(
    program: Callable[..., Any], name: str, *args: Any, prior_probability: float = 1.0, **kwargs: Any
) -> Model:
    """A NumPyro program, called as ``program(*args, **kwargs)``, as a model to compare.

    Parameters
    ----------
    program : callable
        Its latent sites are the parameters; a vector ``beta`` becomes ``beta[0]``, ``beta[1]``.
    name : str
        What to call it.
    args, kwargs
        What it is called with: the data, usually.
    prior_probability : float
        Relative to the other models'.
    """
    from numpyro import handlers

    def run(substitute: Callable[[Any], Any]) -> dict[str, Any]:
        seeded = handlers.seed(program, 0)
        traced = handlers.trace(handlers.substitute(seeded, substitute_fn=substitute))
        sites: dict[str, Any] = traced.get_trace(*args, **kwargs)
        return {key: site for key, site in sites.items() if site["type"] == "sample"}

    found = run(lambda site: None)
    if not any(site["is_observed"] for site in found.values()):
        raise ModelError(f"nothing is observed in NumPyro model {name!r}; pass obs=data to a sample site")
    latent = {key: site for key, site in found.items() if not site["is_observed"]}
    for key, site in latent.items():
        if site["fn"].support.is_discrete:
            raise PriorError(
                f"{key!r} is discrete; sum it out of the likelihood, or make each value its own model"
            )
    sites = Sites({key: tuple(site["value"].shape) for key, site in latent.items()}, {})

    def transform(u: Any) -> Any:
        import jax.numpy as jnp

        uniforms = sites.split(u)
        filled = run(lambda site: _fill(site, uniforms))
        return jnp.concatenate([jnp.ravel(filled[key]["value"]) for key in latent])

    def log_likelihood(theta: Any) -> Any:
        values = sites.split(theta)
        filled = run(lambda site: values.get(site["name"]))
        return sum(_log_density(site) for site in filled.values() if site["is_observed"])

    prior_transform, compiled = jit64(transform), jit64(log_likelihood)
    prior = (
        Prior.from_transform(lambda u: np.asarray(prior_transform(u)), sites.names) if latent else Prior({})
    )
    return Model(name, lambda theta: float(compiled(np.asarray(theta))), prior, prior_probability)


def _fill(site: Any, uniforms: dict[str, Any]) -> Any:
    if site["type"] != "sample" or site["name"] not in uniforms:
        return None
    return quantile(site["fn"], uniforms[site["name"]], site["name"])


def _log_density(site: Any) -> Any:
    density = site["fn"].log_prob(site["value"])
    return (density if site.get("scale") is None else site["scale"] * density).sum()


def quantile(distribution: Any, u: Any, name: str = "the site") -> Any:
    """Quantile of a NumPyro distribution at uniforms ``u``, of the shape of its draws; in JAX."""
    import jax.numpy as jnp
    import numpyro.distributions as dist
    from jax.scipy.special import ndtri
    from scipy import special

    match distribution:
        case dist.Independent() | dist.ExpandedDistribution() | dist.MaskedDistribution():
            return quantile(distribution.base_dist, u, name)
        case dist.MultivariateNormal():
            return distribution.loc + jnp.einsum("...ij,...j->...i", distribution.scale_tril, ndtri(u))
        case dist.TransformedDistribution() if not distribution.event_dim:
            value = quantile(distribution.base_dist, u, name)
            for transform in distribution.transforms:
                value = transform(value)
            return value
        case dist.Gamma():
            return _scipy(special.gammaincinv, distribution.concentration, u) / distribution.rate
        case dist.Beta():
            return _scipy(special.betaincinv, distribution.concentration1, distribution.concentration0, u)
        case dist.StudentT():
            return distribution.loc + distribution.scale * _scipy(special.stdtrit, distribution.df, u)
        case dist.Weibull():
            return distribution.scale * (-jnp.log1p(-u)) ** (1 / distribution.concentration)
    try:
        if distribution.event_dim:
            raise NotImplementedError
        return distribution.icdf(u)
    except (NotImplementedError, ImportError) as error:
        raise PriorError(
            f"{name!r} is a {type(distribution).__name__}, whose quantiles are not known here; write it with "
            "distributions of single numbers that have an icdf, or as a MultivariateNormal"
        ) from error


def _scipy(function: Callable[..., Any], *arguments: Any) -> Any:
    """A SciPy function inside of compiled code."""
    import jax
    import jax.numpy as jnp

    arrays = jnp.broadcast_arrays(*(jnp.asarray(a, dtype=jnp.float64) for a in arguments))
    return jax.pure_callback(lambda *a: np.asarray(function(*map(np.asarray, a))), arrays[0], *arrays)
