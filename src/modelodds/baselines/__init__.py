"""What our method is compared with: each ``run(models, budget, rng) -> Result``, every call counted.

``METHODS`` has them by name, our own presets among them, so that a benchmark can treat all alike.
"""

from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from typing import NamedTuple

import numpy as np

from modelodds.method import Method
from modelodds.model import Model
from modelodds.result import Result

Run = Callable[[Iterable[Model], int, "int | np.random.Generator"], Result]


class Entry(NamedTuple):
    """A method by its module, imported when it is first run."""

    module: str
    about: str
    options: tuple[tuple[str, object], ...] = ()
    peer: str = ""  # the package that it is, where it is another library

    def __call__(self, models: Iterable[Model], budget: int, rng: int | np.random.Generator = 0) -> Result:
        """Compare ``models`` in ``budget`` evaluations."""
        run: Run = import_module(f"modelodds.{self.module}").run
        return partial(run, **dict(self.options))(models, budget, rng)


METHODS: dict[str, Entry] = {
    "default": Entry("baselines.ours", "our default", (("method", "default"),)),
    "default_independent": Entry(
        "baselines.ours",
        "our default, no model learning from another",
        (("method", Method(coupling="independent")),),
    ),
    "default_stopping": Entry(
        "baselines.ours", "our default, ended when the answer is settled", (("stop", None),)
    ),
    "paper": Entry("baselines.ours", "the method of Chai et al. (2019)", (("method", "paper"),)),
    "round_robin": Entry(
        "baselines.round_robin", "models in turn, uncertainty sampling, the paper's surrogate"
    ),
    "round_robin_default": Entry(
        "baselines.round_robin",
        "models in turn, uncertainty sampling, our surrogate",
        (("method", "default"),),
    ),
    "bridge": Entry("baselines.bridge", "bridge sampling (Gronau et al. 2017)"),
    "reversible_jump": Entry("baselines.reversible_jump", "reversible jump, every proposed jump recycled"),
    "reversible_jump_visits": Entry(
        "baselines.reversible_jump", "the same chain, by counting its visits", (("estimator", "visits"),)
    ),
    "monte_carlo": Entry("baselines.monte_carlo", "simple Monte Carlo from the prior"),
    "quasi_monte_carlo": Entry("baselines.monte_carlo", "the same with a Sobol sequence", (("quasi", True),)),
    "nested": Entry("baselines.nested", "nested sampling"),
    "annealed": Entry("baselines.annealed", "tempered sequential Monte Carlo"),
    "pyvbmc": Entry("baselines.peers.pyvbmc", "PyVBMC as its users run it, model by model", peer="pyvbmc"),
    "bobe": Entry("baselines.peers.bobe", "BOBE as its users run it, model by model", peer="BOBE"),
    "dynesty": Entry(
        "baselines.peers.dynesty", "dynesty as its users run it, model by model", peer="dynesty"
    ),
    "nautilus": Entry(
        "baselines.peers.nautilus", "nautilus as its users run it, model by model", peer="nautilus"
    ),
}

__all__ = ["METHODS", "Entry", "Run"]
