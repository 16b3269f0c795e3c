"""What makes two runs the same run: their models, method and seed, described in plain JSON."""

from dataclasses import asdict
from typing import Any

import numpy as np

from modelodds.method import Method
from modelodds.model import Model

PROBES = 3  # points at which priors that are functions are compared
CLOSE = 1e-9  # relative: what another version of SciPy may change


def describe(models: tuple[Model, ...]) -> list[dict[str, Any]]:
    """The models in the order given, without their likelihoods, into which nobody can look."""
    return [
        {
            "name": m.name,
            "parameters": list(m.prior.names),
            "fixed": m.prior.fixed,
            "prior": {name: component_text(c) for name, c in m.prior.components.items()},
            "probe": _probe(m),
            "prior_probability": m.prior_probability,
            "cost": m.cost,
            "shared": dict(m.shared),
            "exchangeable": [list(group) for group in m.exchangeable],
        }
        for m in models
    ]


def component_text(component: Any) -> str:
    """A frozen distribution as one would write it: ``norm(0, scale=2)``."""
    given = [f"{float(a):.12g}" for a in component.args]
    given += [f"{name}={float(value):.12g}" for name, value in component.kwds.items()]
    return f"{component.dist.name}({', '.join(given)})"


def _probe(model: Model) -> list[list[float]]:
    """Points of the prior and its log-density there: tells apart priors that are functions."""
    if model.dim == 0:
        return []
    u = (np.arange(1, PROBES + 1)[:, None] * (1.0 + np.arange(model.dim)) * 0.6180339887) % 1.0
    x, _ = model.prior.from_unit(u)
    values = np.column_stack([model.prior.to_theta(x), model.prior.log_density(x)])
    return [[float(v) for v in row] for row in np.nan_to_num(values)]


def differences(then: list[dict[str, Any]], now: list[dict[str, Any]]) -> list[str]:
    """How the models of a ledger differ from those given, in words; none if they are the same."""
    old, new = {m["name"]: m for m in then}, {m["name"]: m for m in now}
    found = [f"it has a model {name!r}, which is not among those given" for name in old if name not in new]
    found += [f"it has no model {name!r}" for name in new if name not in old]
    if not found and list(old) != list(new):
        found.append(f"its models are in the order {', '.join(old)}")
    for name in new:
        if name in old:
            found += [f"model {name!r}: {text}" for text in _model_differences(old[name], new[name])]
    return found


def _model_differences(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    if then["parameters"] != now["parameters"]:
        return [f"its parameters were {_listed(then['parameters'])}, now {_listed(now['parameters'])}"]
    found = []
    for name in now["parameters"]:
        before, after = (_written(m, name) for m in (then, now))
        if before != after:
            found.append(f"the prior of {name!r} was {before}, now {after}")
    if not found and not _same_numbers(then["probe"], now["probe"]):
        found.append("its prior has changed")
    for key, words in (("prior_probability", "prior probability"), ("cost", "cost")):
        if then[key] != now[key]:
            found.append(f"its {words} was {then[key]:g}, now {now[key]:g}")
    if then.get("shared", {}) != now["shared"]:
        found.append(f"its declared sharing was {then.get('shared', {})}, now {now['shared']}")
    before, after = (m.get("exchangeable", []) for m in (then, now))
    if before != after:
        found.append(f"its exchangeable parameters were {before}, now {after}")
    return found


def _written(model: dict[str, Any], name: str) -> str:
    if name in model["fixed"]:
        return f"fixed at {model['fixed'][name]:.12g}"
    return str(model["prior"].get(name, "a function"))


def _same_numbers(a: list[list[float]], b: list[list[float]]) -> bool:
    return np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=CLOSE, atol=CLOSE)


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"


def method_differences(then: dict[str, Any], method: Method) -> list[str]:
    """How a method's options differ from those on record, in words."""
    now = asdict(method)
    return [
        f"the method's {name} was {then.get(name)!r}, now {now.get(name)!r}"
        for name in dict.fromkeys([*then, *now])
        if then.get(name) != now.get(name)
    ]
