"""bilby's likelihoods and priors, as they are."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelodds.errors import ModelError, PriorError
from modelodds.model import Model
from modelodds.prior import Prior

Array = NDArray[np.float64]


def from_bilby(name: str, likelihood: Any, priors: Any, prior_probability: float = 1.0) -> Model:
    """A model from a ``bilby.Likelihood`` and a ``bilby.core.prior.PriorDict`` (or a plain dictionary).

    Delta functions and numbers fix a parameter. Constraints, which make a prior improper until it is
    normalised by counting, are refused.
    """
    from bilby.core.prior import Constraint, PriorDict

    if not hasattr(likelihood, "log_likelihood"):
        raise ModelError(f"from_bilby takes a bilby.Likelihood, not a {type(likelihood).__name__}")
    priors = PriorDict(dict(priors))
    if constrained := [key for key, prior in priors.items() if isinstance(prior, Constraint)]:
        raise PriorError(f"{constrained[0]!r} is a Constraint; return -inf from the likelihood instead")
    free = list(priors.non_fixed_keys)
    fixed = {key: float(priors[key].peak) for key in priors.fixed_keys}

    takes_them = "parameters" in inspect.signature(likelihood.log_likelihood).parameters

    def log_likelihood(theta: Array) -> float:
        values = {**dict(zip(free, map(float, theta), strict=True)), **fixed}
        if takes_them:
            return float(likelihood.log_likelihood(values))
        likelihood.parameters.update(values)  # as likelihoods written for bilby 2.5 and earlier have it
        return float(likelihood.log_likelihood())

    prior = Prior.from_transform(lambda u: np.array(priors.rescale(free, u), dtype=float), free)
    return Model(name, log_likelihood, prior, prior_probability)
