"""Named arrays as one vector of named numbers, and back: what probabilistic programs need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sites:
    """Random variables of a program, in order, with the shape of each.

    ``labels`` gives, for variables that have them, the labels along every axis.
    """

    shapes: Mapping[str, tuple[int, ...]]
    labels: Mapping[str, tuple[Sequence[Any], ...]]

    @property
    def names(self) -> list[str]:
        """One name per number: ``mu``, ``theta[Choate]``, ``beta[0, 1]``."""
        found = []
        for name, shape in self.shapes.items():
            axes = self.labels.get(name) or tuple(range(n) for n in shape)
            entries = product(*axes)
            found += [f"{name}[{', '.join(map(str, entry))}]" for entry in entries] if shape else [name]
        return found

    def split(self, theta: Any) -> dict[str, Any]:
        """Arrays by name from one vector; of whatever kind the vector is."""
        found, start = {}, 0
        for name, shape in self.shapes.items():
            size = int(np.prod(shape))
            found[name] = theta[start : start + size].reshape(shape)
            start += size
        return found
