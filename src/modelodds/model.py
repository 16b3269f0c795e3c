"""Model: a name, a log-likelihood, a prior, a prior probability."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from modelodds.errors import ModelError
from modelodds.prior import Prior

MOST_GROUPS = 4  # of exchangeable parameters: all their permutations are summed over
QUANTILES = np.array([0.03, 0.2, 0.5, 0.7, 0.98])  # at which priors that should be alike are compared


@dataclass(frozen=True)
class Model:
    """One candidate explanation of the data.

    Parameters
    ----------
    name
        What to call it; unique in a comparison.
    log_likelihood
        Takes theta, shape (p,), in the order of the prior's names, and returns the natural log of the
        likelihood; or the pair of it and its standard error when it is noisy. Constants count: a factor left
        out of one model's likelihood is a factor in its odds. All models must be of the same data.
    prior
        A `Prior`, or the dictionary of components to make one from.
    prior_probability
        Relative to the other models' (they need not sum to 1).
    vectorized
        Whether ``log_likelihood`` takes many points at once: (n, p) to (n,).
    cost
        What an evaluation costs, relative to the other models' (seconds, say): points are chosen by what
        they tell per cost. ``Method(costs="measured")`` takes the seconds that evaluations take instead.
    shared
        From parameters of this model to what other models call the same: ``{"slope": "w1"}``, so that
        models learn from each other (``coupling.py``); parameters of one name and prior are shared anyway.
    exchangeable
        Groups of parameters that can change places without changing the likelihood, alike in their priors:
        ``[("z_1", "size_1"), ("z_2", "size_2")]`` of two absorbers. The surrogate then learns one function
        of a single group, and how far groups just add up (``surrogate/exchange.py``).
    """

    name: str
    log_likelihood: Callable[..., Any]
    prior: Prior
    prior_probability: float = 1.0
    vectorized: bool = False
    cost: float = 1.0
    shared: Mapping[str, str] = field(default_factory=dict, hash=False)
    exchangeable: Sequence[Sequence[str]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ModelError(f"a model's name must be a non-empty string, not {self.name!r}")
        if not callable(self.log_likelihood):
            raise ModelError(
                f"the log_likelihood of model {self.name!r} must be a function of theta, "
                f"not a {type(self.log_likelihood).__name__}"
            )
        if isinstance(self.prior, Mapping):
            object.__setattr__(self, "prior", Prior(self.prior))
        if not isinstance(self.prior, Prior):
            raise ModelError(
                f"the prior of model {self.name!r} must be a Prior or a dictionary of components, "
                f"not a {type(self.prior).__name__}"
            )
        if not isinstance(self.vectorized, bool | np.bool_):
            raise ModelError(
                f"vectorized of model {self.name!r} must be True or False, not {self.vectorized!r}"
            )
        hint = "; to rule a model out, leave it out of the comparison"
        object.__setattr__(self, "prior_probability", self._positive("prior_probability", hint))
        object.__setattr__(self, "cost", self._positive("cost"))
        object.__setattr__(self, "shared", self._checked_shared())
        object.__setattr__(self, "exchangeable", self._checked_exchangeable())

    def _positive(self, name: str, hint: str = "") -> float:
        value = getattr(self, name)
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else np.nan
        if not (np.isfinite(number) and number > 0):
            raise ModelError(
                f"the {name} of model {self.name!r} must be a finite number above 0, not {value!r}{hint}"
            )
        return number

    def _checked_shared(self) -> dict[str, str]:
        if not isinstance(self.shared, Mapping):
            raise ModelError(
                f"shared of model {self.name!r} must go from its parameters to others' names, as in "
                f"{{'slope': 'w1'}}, not {self.shared!r}"
            )
        shared = dict(self.shared)
        for own, common in shared.items():
            if own not in self.prior.names or not isinstance(common, str):
                raise ModelError(
                    f"shared of model {self.name!r} maps {own!r} to {common!r}; it goes from one of its "
                    f"parameters ({', '.join(self.prior.names)}) to a name"
                )
        names = [shared.get(name, name) for name in self.prior.names]
        for name in names:
            if names.count(name) > 1:
                raise ModelError(f"shared of model {self.name!r} calls two of its parameters {name!r}")
        return shared

    def _checked_exchangeable(self) -> tuple[tuple[str, ...], ...]:
        wrong = f"exchangeable of model {self.name!r}"
        try:
            given = tuple(self.exchangeable)
            groups = tuple(tuple(group) for group in given)
        except TypeError:
            given, groups = ("",), ()
        if any(isinstance(part, str) for part in (self.exchangeable, *given)) or not all(
            isinstance(name, str) for group in groups for name in group
        ):
            raise ModelError(
                f"{wrong} must be groups of names such as [('z_1', 'n_1'), ('z_2', 'n_2')], "
                f"not {self.exchangeable!r}"
            )
        if not groups:
            return ()
        components, named = self.prior.components, [name for group in groups for name in group]
        if not 2 <= len(groups) <= MOST_GROUPS or len({len(group) for group in groups}) > 1 or not named:
            raise ModelError(f"{wrong} must be 2 to {MOST_GROUPS} groups of as many names each")
        for name in named:
            if name not in components:
                raise ModelError(
                    f"{wrong} names {name!r}, which is not a free parameter with a distribution of its own"
                )
            if named.count(name) > 1:
                raise ModelError(f"{wrong} names {name!r} twice")
        for alike in zip(*groups, strict=True):
            points = [components[name].ppf(QUANTILES) for name in alike]
            if not all(np.allclose(points[0], other, rtol=1e-9) for other in points):
                raise ModelError(f"{wrong}: {' and '.join(alike)} must have the same prior to change places")
        return groups

    @property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        """The exchangeable groups by their positions among the free parameters."""
        free = list(self.prior.components)
        return tuple(tuple(free.index(name) for name in group) for group in self.exchangeable)

    @property
    def dim(self) -> int:
        """Number d of free parameters."""
        return self.prior.dim

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the p parameters in the order of theta, fixed ones included."""
        return self.prior.names


def check_models(models: Iterable[Model]) -> tuple[Model, ...]:
    """The models as a tuple: at least one, each a `Model`, no two of one name."""
    if isinstance(models, Model) or not isinstance(models, Iterable):
        raise ModelError(
            f"models must be a list such as [model_1, model_2], not a single {type(models).__name__}"
        )
    if isinstance(models, Mapping):
        raise ModelError("models is a dictionary; give list(models.values())")
    checked = tuple(models)
    if not checked:
        raise ModelError("models is empty; give at least one Model")
    for i, model in enumerate(checked):
        if not isinstance(model, Model):
            kind, source = type(model), type(model).__module__.partition(".")[0]
            make = "make it a Model(name, log_likelihood, prior)"
            if source == "pymc":
                make = "make it ours by modelodds.adapters.from_pymc(model, name)"
            name = kind.__qualname__ if source == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
            raise ModelError(f"models[{i}] is a {name}; {make}")
    names = [model.name for model in checked]
    for name in names:
        if names.count(name) > 1:
            raise ModelError(f"two models are called {name!r}; give each its own name")
    return checked
