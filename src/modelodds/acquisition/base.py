"""What an acquisition is: a score inside one model's space, and a way to compare models.

For every rule here the best point inside a model does not depend on the other models, so the search runs
model by model (``within``) and only the winners are compared (``across``): Chai et al. 2019, eqs. 16-17.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from modelodds.precision import Array
from modelodds.surrogate.gp import GP, Spec
from modelodds.surrogate.observations import SHAPE

FLOOR = 1e-4  # variance below which an observation has nothing left to tell: a hundredth of a nat


class Stakes(NamedTuple):
    """Correlated log-evidences of all k models, as ``coupled.py`` compares observations by them."""

    odds_precision: Array  # (k, k)
    precision: Array  # (k, k) inverse of their covariance
    mean: Array  # (k,)
    log_a: Array  # (n, k) draws
    fresh: Array  # (n,) standard normal draws
    original_precision: Array  # (k, k) in the original space, relative to the expected evidences
    ray: Array  # (n, k) draws of a, relative to the expected evidences


class Joint(NamedTuple):
    """The evidences of a group of g models as one of them sees them: nodes in its own coordinates."""

    x: Array  # (g, S, d)
    apart: Array  # (g, S) squared distances of the nodes from its space
    factor: Array  # (g,) how much they count
    weight: Array  # (g, S)
    on_data: Array  # (g, n) the evidences' projections
    on_basis: Array  # (g, p)
    features: tuple[tuple[Array, Array], ...]  # of each member's nodes, (n, S) and (p, S), if they are needed
    stretch: Array  # (g,) standard deviation of each log-evidence, by that of the surrogate alone
    place: Array  # (g, k) 1 where a member is which of all models
    stakes: Stakes


class View(NamedTuple):
    """One model as an acquisition sees it; a pytree."""

    gp: GP
    x: Array  # (S, d) nodes, drawn in proportion to the integrand
    weight: Array  # (S,) their weights, summing to one
    noise: Array  # () variance of the next observation ...
    followed: Array  # () ... to which shaped noise adds at more nats than this below the best; inf for none
    box: Array  # (d,) 1 where the prior of x is uniform, 0 where it is standard normal
    joint: Joint | None = None  # evidences that correlate with this model's


def observation_noise(view: View, mean: Array) -> Array:
    """Variance that observations will be given where the surrogate's mean is ``mean`` (m,), shape (m,)."""
    return FLOOR + view.noise + (SHAPE * jnp.maximum(0.0, -mean - view.followed)) ** 2


class Aux(NamedTuple):
    """What ``prepare`` computes once per model."""

    variance: Array  # () variance of the log-evidence
    projection: tuple[Array, ...]  # whatever ``within`` needs


class Rivals(NamedTuple):
    """All models' evidences, as ``across`` sees them; natural logs, prior model probabilities included."""

    mean: np.ndarray  # (k,)
    variance: np.ndarray  # (k,) of the log-evidence, as the surrogate has it
    offset: np.ndarray  # (k,) best log-likelihood of each model: what its surrogate's zero stands for


class Acquisition(ABC):
    """One rule for choosing the next evaluation.

    ``is_share`` says whether a score is a share of the evidence's variance, between 0 and 1; ``n_models`` how
    many models the rule is for, where it is not for any number.
    """

    is_share: bool = True
    n_models: int | None = None

    @abstractmethod
    def prepare(self, spec: Spec, view: View) -> Aux:
        """Computed once per model before the search (JAX)."""

    @abstractmethod
    def within(self, spec: Spec, view: View, aux: Aux, x: Array) -> Array:
        """Scores (m,) of points ``x`` (m, d) of one model; larger is better (JAX, differentiable)."""

    @abstractmethod
    def across(self, best: np.ndarray, rivals: Rivals) -> np.ndarray:
        """Values (k,) by which the models' best points, of scores ``best`` (k,), are compared."""
