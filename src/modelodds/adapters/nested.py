"""Problems set up for nested samplers, argument by argument as those samplers take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelodds.errors import ModelError
from modelodds.model import Model
from modelodds.prior import Prior

Array = NDArray[np.float64]


def from_dynesty(
    name: str,
    loglikelihood: Callable[..., Any],
    prior_transform: Callable[..., Any],
    parameters: int | Iterable[str],
    *,
    logl_args: Sequence[Any] = (),
    logl_kwargs: Mapping[str, Any] | None = None,
    ptform_args: Sequence[Any] = (),
    ptform_kwargs: Mapping[str, Any] | None = None,
    prior_probability: float = 1.0,
) -> Model:
    """A model from what ``dynesty.NestedSampler(loglikelihood, prior_transform, ndim)`` is given.

    ``parameters`` are their names, or how many there are, as dynesty has it; they are then called ``x0``,
    ``x1`` and so on.
    """
    names = _names(parameters)
    log_options, transform_options = dict(logl_kwargs or {}), dict(ptform_kwargs or {})

    def log_likelihood(theta: Array) -> Any:
        return loglikelihood(theta, *logl_args, **log_options)

    def transform(u: Array) -> Any:
        return prior_transform(u, *ptform_args, **transform_options)

    return Model(name, log_likelihood, Prior.from_transform(transform, names), prior_probability)


def from_ultranest(
    name: str,
    param_names: Sequence[str],
    loglike: Callable[..., Any],
    transform: Callable[..., Any],
    vectorized: bool = False,
    prior_probability: float = 1.0,
) -> Model:
    """A model from what ``ultranest.ReactiveNestedSampler(param_names, loglike, transform)`` is given."""

    def one(u: Array) -> Any:
        return np.asarray(transform(u[None]))[0] if vectorized else transform(u)

    prior = Prior.from_transform(one, param_names)
    return Model(name, loglike, prior, prior_probability, vectorized=vectorized)


def from_nautilus(
    name: str,
    prior: Any,
    likelihood: Callable[..., Any],
    pass_dict: bool = True,
    vectorized: bool = False,
    prior_probability: float = 1.0,
) -> Model:
    """A model from what ``nautilus.Sampler(prior, likelihood)`` is given; ``prior`` is a ``nautilus.Prior``.

    Parameters that nautilus ties to others are passed to the likelihood, and are not the model's own.
    """
    if not hasattr(prior, "keys") or not hasattr(prior, "dists"):
        raise ModelError(f"from_nautilus takes a nautilus.Prior, not a {type(prior).__name__}")
    own = {key: dist for key, dist in zip(prior.keys, prior.dists, strict=True) if not isinstance(dist, str)}
    free = [not isinstance(dist, Real) for dist in own.values()]

    def log_likelihood(theta: Array) -> Any:
        points = np.asarray(theta)[..., free]
        return likelihood(prior.physical_to_dictionary(points) if pass_dict else points)

    return Model(name, log_likelihood, Prior(own), prior_probability, vectorized=vectorized)


def _names(parameters: int | Iterable[str]) -> list[str]:
    if isinstance(parameters, int):
        return [f"x{i}" for i in range(parameters)]
    return list(parameters)
