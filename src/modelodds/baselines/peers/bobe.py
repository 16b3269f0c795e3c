"""Bayesian optimisation for Bayesian evidence through BOBE (Cohen, Hamann & Malhotra 2026), by its defaults.

BOBE knows uniform priors on a box alone. Others it gets as it treats Cobaya's itself: the log joint density,
plus the log of the box's volume, in the parameters' own coordinates, on a box that ends where the prior does,
or beyond all but 5e-7 of a parameter. Its settings are those that it derives from the dimension; a run that
its share ends is closed by nested sampling on the surrogate (``do_final_ns``), since otherwise it would say
nothing. As in BOBE's own examples, the claim is half the distance between the bounds of the log-evidence.

BOBE 0.1.0 wants a JAX older than ours, so it goes into an environment of its own, with modelodds beside it
for the methods that do without JAX.
"""

import logging
import os
import random
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelodds.baselines.peers.base import KEPT_DRAWS, Found, Gate, Stage, one_by_one
from modelodds.baselines.peers.space import Space
from modelodds.errors import OptionError
from modelodds.model import Model
from modelodds.nodes import systematic
from modelodds.result import Result

Array = NDArray[np.float64]

FIRST = 4  # points of its initial design
CONFIDENCE = 0.9999995  # share of a parameter's prior inside the box: its ``confidence_for_unbounded``
MISSING = (
    "the method 'bobe' needs BOBE, which wants an older JAX than modelodds: make an environment of its own "
    "with pip install BOBE pandas rich typer, then pip install --no-deps modelodds, and run it there"
)


def run(models: Iterable[Model], budget: int, rng: int | np.random.Generator = 0) -> Result:
    """Compare ``models`` by a BOBE run for each, with the same share of ``budget`` calls."""
    return one_by_one(models, budget, rng, _sample, "bobe")


def _sample(gate: Gate, seed: int) -> Found:
    with _kept():
        package, d = _bobe(), gate.target.dim
        defaults = package.get_dimension_based_defaults(d)
        batch = int(defaults["batch_size"])
        most = FIRST + batch * ((min(defaults["max_evals"], gate.share) - FIRST) // batch)
        if most < FIRST + batch:
            return gate.nothing()
        space = Space.of(gate.prior)
        box = space.box(CONFIDENCE)
        log_volume = float(np.log(np.diff(box, axis=0)).sum())

        def log_joint(point: Array) -> float:
            point = np.asarray(point, dtype=float)
            return gate.at(space.theta(point[None, :])[0]) + space.log_prior(point) + log_volume

        with tempfile.TemporaryDirectory() as folder:
            sampler = package.BOBE(
                log_joint,
                param_list=[f"x{j}" for j in range(d)],
                param_bounds=box,
                gp_kwargs={},  # its default is one dictionary for all runs
                n_sobol_init=FIRST,
                save_dir=folder,
                save=False,
                seed=seed,
                verbosity="QUIET",
            )
            results = sampler.run(max_evals=most, do_final_ns=True)
    return _found(gate, space, results)


def _found(gate: Gate, space: Space, results: dict[str, Any]) -> Found:
    log_z = results["logz"]
    if not log_z or not np.isfinite([log_z["mean"], log_z["upper"], log_z["lower"]]).all():
        return gate.nothing()
    stage = Stage(gate.calls, float(log_z["mean"]), float(log_z["upper"] - log_z["lower"]) / 2)
    points, weight = (np.asarray(results["samples"][key], dtype=float) for key in ("x", "weights"))
    chosen = systematic(weight, min(KEPT_DRAWS, len(points)))
    return Found((stage,), space.theta(np.clip(points[chosen], *space.hard)))


@contextmanager
def _kept() -> Iterator[None]:
    """BOBE sets up the root logger, the global generator and the environment: all of it as it was before."""
    root = logging.getLogger()
    handlers, level, state = list(root.handlers), root.level, random.getstate()
    hash_seed = os.environ.get("PYTHONHASHSEED")
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        random.setstate(state)
        if hash_seed is None:
            os.environ.pop("PYTHONHASHSEED", None)
        else:
            os.environ["PYTHONHASHSEED"] = hash_seed


def _bobe() -> Any:
    try:
        import BOBE
    except ImportError as error:
        raise OptionError(MISSING) from error
    return BOBE
