"""PyMC models, as they are.

The prior becomes a transform of the unit cube: each free variable is the quantile of its distribution at a
uniform of its own, its parameters computed from the variables before it (Rosenblatt's transform). So the
hierarchy of a hierarchical prior is kept exactly, and what the surrogate sees is not centred, as samplers
like it. The likelihood is PyMC's own log-density of the observed variables, and of the potentials.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from modelodds.adapters.quantiles import QUANTILES
from modelodds.adapters.sites import Sites
from modelodds.errors import ModelError, PriorError
from modelodds.model import Model
from modelodds.prior import Prior

if TYPE_CHECKING:
    import pymc as pm

Array = NDArray[np.float64]


def from_pymc(model: pm.Model, name: str | None = None, prior_probability: float = 1.0) -> Model:
    """A PyMC model as one to compare.

    Parameters
    ----------
    model : pymc.Model
        Its free variables are the parameters; a vector ``theta`` with coordinates A and B becomes
        ``theta[A]`` and ``theta[B]``.
    name : str, optional
        What to call it; the PyMC model's own name otherwise.
    prior_probability : float
        Relative to the other models'.
    """
    import pymc as pm
    from pymc.model.transform.conditioning import remove_value_transforms

    if not isinstance(model, pm.Model):
        raise ModelError(f"from_pymc takes a pymc.Model, not a {type(model).__name__}")
    if not (name or model.name):
        raise ModelError("this PyMC model has no name; call it something: from_pymc(model, 'linear')")
    if not model.observed_RVs:
        raise ModelError(f"nothing is observed in PyMC model {name!r}; give a variable observed=data")
    sites = _sites(model)
    plain = remove_value_transforms(model)
    log_density = plain.compile_logp(vars=plain.observed_RVs + plain.potentials, jacobian=False)

    def log_likelihood(theta: Array) -> float:
        return float(log_density(sites.split(np.asarray(theta, dtype=float))))

    prior = Prior.from_transform(_transform(model, sites), sites.names) if sites.names else Prior({})
    return Model(name or model.name, log_likelihood, prior, prior_probability)


def _sites(model: pm.Model) -> Sites:
    shapes, labels = {}, {}
    for variable in model.free_RVs:
        _check(variable)
        shapes[variable.name] = tuple(int(n) for n in variable.shape.eval())
        dims = model.named_vars_to_dims.get(variable.name) or ()
        axes = [model.coords.get(dim) for dim in dims]
        if axes and all(axis is not None for axis in axes):
            labels[variable.name] = tuple(axes)
    return Sites(shapes, labels)


def _check(variable: Any) -> None:
    operation = variable.owner.op
    if variable.dtype.startswith(("int", "uint", "bool")):
        raise PriorError(
            f"{variable.name!r} is discrete; sum it out of the likelihood, or make each value its own model"
        )
    if getattr(operation, "name", None) in ("flat", "half_flat"):
        raise PriorError(
            f"{variable.name!r} is flat without end, and an evidence needs a prior that integrates to one; "
            "make it a Uniform or a Normal"
        )
    if getattr(operation, "name", None) not in QUANTILES:
        raise PriorError(
            f"{variable.name!r} is a {type(operation).__name__.removesuffix('RV')}, whose quantiles are not "
            f"known here; write it with one of {', '.join(QUANTILES)}"
        )


def _transform(model: pm.Model, sites: Sites) -> Callable[[Array], Array]:
    """Parameters at a point of the unit cube."""
    steps = [
        (variable.name, QUANTILES[variable.owner.op.name], _parameters(variable, model.free_RVs[:i]))
        for i, variable in enumerate(model.free_RVs)
    ]

    def prior_transform(u: Array) -> Array:
        uniforms = sites.split(u)
        values: list[Array] = []
        for name, quantile, parameters in steps:
            value = quantile(uniforms[name], *parameters(values))
            values.append(np.broadcast_to(np.asarray(value, dtype=float), sites.shapes[name]))
        return np.concatenate([value.ravel() for value in values])

    return prior_transform


def _parameters(variable: Any, before: list[Any]) -> Callable[[list[Array]], list[Array]]:
    """The distribution's parameters from the values of the variables before it."""
    import pytensor

    wanted = variable.owner.op.dist_params(variable.owner)
    compiled = pytensor.function(before, wanted, on_unused_input="ignore", mode="FAST_COMPILE")
    if any(compiled_input_is_used(compiled, i) for i in range(len(before))):
        return lambda values: list(compiled(*values))
    zeros = [np.zeros(tuple(int(n) for n in v.shape.eval()), dtype=v.dtype) for v in before]
    fixed = list(compiled(*zeros))
    return lambda values: fixed


def compiled_input_is_used(compiled: Any, position: int) -> bool:
    """Whether an input of a compiled PyTensor function has any say in its outputs."""
    graph = compiled.maker.fgraph
    return bool(graph.clients[graph.inputs[position]])
