"""How much may go wrong before a run ends."""

from dataclasses import dataclass
from numbers import Real

import numpy as np

from modelodds.errors import OptionError

USUAL = (20, 0.5)  # more failures than this, and than this share of all evaluations, end a run


@dataclass(frozen=True)
class Failures:
    """What to do about evaluations that fail.

    Parameters
    ----------
    retries
        How often a failed evaluation is made again before it counts as failed.
    timeout
        Seconds after which an evaluation is stopped and has failed. Without an executor, and in threads, a
        function can be stopped between two steps of Python alone; worker processes are killed if need be.
    max_failures
        How many may fail before the run ends. Left out: 20, or half of all evaluations if that is more.
    """

    retries: int = 0
    timeout: float | None = None
    max_failures: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("retries", self.retries), ("max_failures", self.max_failures)):
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if value is None and name == "max_failures":
                continue
            if value is None or not whole or value < 0:
                raise OptionError(f"{name} must be a whole number, 0 or more, not {value!r}.")
        if self.timeout is None:
            return
        real = isinstance(self.timeout, Real) and not isinstance(self.timeout, bool)
        if not real or not 0 < self.timeout < np.inf:
            raise OptionError(f"timeout must be a number of seconds above 0, not {self.timeout!r}.")

    def too_many(self, failed: int, of: int) -> bool:
        """Whether so many failures end the run."""
        return failed > (max(USUAL[0], USUAL[1] * of) if self.max_failures is None else self.max_failures)
