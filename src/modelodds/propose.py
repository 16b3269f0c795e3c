"""Maximise an acquisition inside one model's space: candidates, then gradient refinement of the best."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize

from modelodds.acquisition import ACQUISITIONS, Acquisition, Aux, View
from modelodds.acquisition.coupled import COUPLED
from modelodds.precision import Array, jit64
from modelodds.surrogate.gp import Spec

REFINED = 3  # candidates refined together
RULES: dict[str, Acquisition] = {**ACQUISITIONS, **COUPLED}


class Proposal(NamedTuple):
    """The best point found inside a model, and what the acquisition says of it."""

    x: np.ndarray  # (d,)
    score: float
    variance: float  # of the model's log-evidence, with what is pending taken as known
    candidate: np.ndarray  # (d,) where the refinement began: a point of the prior's support


def _score(rule: str, spec: Spec, view: View, x: Array) -> tuple[Aux, Array]:
    acquisition = RULES[rule]
    aux = acquisition.prepare(spec, view)
    return aux, acquisition.within(spec, view, aux, x)


def _loss(x: Array, rule: str, spec: Spec, view: View, aux: Aux) -> tuple[Array, Array]:
    score = RULES[rule].within(spec, view, aux, x)
    return -jnp.sum(score), score


def _variance(rule: str, spec: Spec, view: View) -> Array:
    return ACQUISITIONS[rule].prepare(spec, view).variance


_variance_alone = jit64(_variance, static=("rule", "spec"))
_score_all = jit64(_score, static=("rule", "spec"))
_loss_and_grad = jit64(jax.value_and_grad(_loss, has_aux=True), static=("rule", "spec"))


def scores(rule: str, spec: Spec, view: View, x: np.ndarray) -> np.ndarray:
    """What the acquisition called ``rule`` says of points ``x`` (m, d), shape (m,)."""
    return np.asarray(_score_all(rule=rule, spec=spec, view=view, x=x)[1])


def evidence_variance(rule: str, spec: Spec, view: View) -> float:
    """Variance of the model's log-evidence, as :class:`Proposal` has it."""
    return float(_variance_alone(rule=rule, spec=spec, view=view))


def propose(rule: str, spec: Spec, view: View, candidates: np.ndarray, bounds: np.ndarray) -> Proposal:
    """Best point of one model under the acquisition called ``rule``.

    Parameters
    ----------
    candidates : array (m, d)
        Where the search starts; always the same m, so that it compiles once.
    bounds : array (2, d)
        Limits of x.
    """
    aux, scores = _score_all(rule=rule, spec=spec, view=view, x=candidates)
    scores = np.where(np.isfinite(scores), scores, -np.inf)
    top = np.argsort(-scores, kind="stable")[:REFINED]
    start, shape = candidates[top], candidates[top].shape

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        (value, _), grad = _loss_and_grad(flat.reshape(shape), rule=rule, spec=spec, view=view, aux=aux)
        value, grad = float(value), np.asarray(grad).ravel()
        if not np.isfinite(value) or not np.all(np.isfinite(grad)):
            return 1e12, np.zeros_like(grad)
        return value, grad

    limits = optimize.Bounds(
        np.repeat(bounds[:1], len(top), 0).ravel(), np.repeat(bounds[1:], len(top), 0).ravel()
    )
    found = optimize.minimize(
        loss, start.ravel(), jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": 20}
    )
    refined = found.x.reshape(shape)
    (_, after), _ = _loss_and_grad(refined, rule=rule, spec=spec, view=view, aux=aux)
    after = np.where(np.isfinite(after), after, -np.inf)
    best = int(np.argmax(after))
    if after[best] >= scores[top[0]]:
        return Proposal(refined[best], float(after[best]), float(aux.variance), start[best])
    return Proposal(start[0], float(scores[top[0]]), float(aux.variance), start[0])
