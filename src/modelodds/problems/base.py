"""What a benchmark problem is: models, and the log-evidences they really have."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from modelodds.errors import ProblemError
from modelodds.model import Model
from modelodds.problems.truth import Truth


@dataclass(frozen=True)
class Problem:
    """A comparison whose answer is known.

    Attributes
    ----------
    name : str
        Family, size and seed.
    models : tuple of Model
        The candidates.
    log_evidence : tuple of float
        Their true log-evidences, in the same order.
    error : float
        How far these may be off, in nats (a standard error); 0 where they are exact.
    origin : str
        How they are known: "exact", "quadrature", "importance sampling", "nested sampling".
    """

    name: str
    models: tuple[Model, ...]
    log_evidence: tuple[float, ...]
    error: float = 0.0
    origin: str = "exact"


class Family(NamedTuple):
    """Problems of one kind; ``make(size, seed)`` gives one of them.

    ``size`` is the number after the family's name, as in ``tails-6``: a dimension, or whatever ``sizes_are``
    says. A family of one size takes none, and is called with 0. ``seed`` chooses the data; where these are
    real there is only seed 0. Where no formula gives the evidences, ``candidates(size, seed)`` are the models
    alone and ``truth.py`` computes and stores what ``make`` then reads: by importance sampling, or by
    ``solve(size, seed, model)`` where there is a better way.
    """

    name: str
    about: str
    make: Callable[[int, int], Problem]
    sizes: tuple[int, ...] = ()
    sizes_are: str = "dimension"
    seeded: bool = True
    candidates: Callable[[int, int], tuple[Model, ...]] | None = None
    solve: Callable[[int, int, Model], Truth] | None = None

    def load(self, size: int, seed: int) -> Problem:
        """The problem, or an error that names those there are."""
        if size not in (self.sizes or (0,)):
            known = ", ".join(f"{self.name}-{s}" for s in self.sizes) or self.name
            raise ProblemError(f"There is no {self.name}-{size}; there are {known}.")
        if seed < 0 or (seed > 0 and not self.seeded):
            known = "0 or more" if self.seeded else "only 0"
            raise ProblemError(f"{self.name} has no seed {seed}; choose {known}.")
        return self.make(size, seed)
