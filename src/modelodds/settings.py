"""What a reader needs to make a result again: the method, the priors, and the versions it ran with."""

import platform
from collections.abc import Iterable
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from modelodds._version import __version__
from modelodds.method import Method
from modelodds.model import Model
from modelodds.prior import Prior

PACKAGES = ("numpy", "scipy", "jax", "jaxlib", "pandas")


def settings(models: Iterable[Model], method: Method) -> dict[str, Any]:
    """Settings of a run, in plain values: written with the result."""
    return {
        "method": asdict(method),
        "priors": {model.name: prior_text(model.prior) for model in models},
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Versions of the library and of what its numbers depend on."""
    found = {"modelodds": __version__, "Python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # a build without metadata
            continue
    return found | {"platform": platform.platform(terse=True)}


def prior_text(prior: Prior) -> dict[str, str]:
    """Every parameter's prior in words: a scipy.stats call, a number, or how else it was given."""
    fixed = {name: f"fixed at {value:g}" for name, value in prior.fixed.items()}
    components = {name: _call(component) for name, component in prior.components.items()}
    return {name: (fixed | components).get(name, "given by a function") for name in prior.names}


def _call(component: Any) -> str:
    arguments = [f"{value:g}" for value in component.args]
    arguments += [f"{key}={value:g}" for key, value in component.kwds.items()]
    return f"{component.dist.name}({', '.join(arguments)})"
