"""What a benchmark problem is: models, and the log-evidences they really have."""

from dataclasses import dataclass

from modelodds.model import Model


@dataclass(frozen=True)
class Problem:
    """A comparison whose answer is known.

    Attributes
    ----------
    name : str
        Family, dimension and seed.
    models : tuple of Model
        The candidates.
    log_evidence : tuple of float
        Their true log-evidences, in the same order.
    error : float
        How far these may be off, in nats; 0 where they are exact.
    """

    name: str
    models: tuple[Model, ...]
    log_evidence: tuple[float, ...]
    error: float = 0.0
