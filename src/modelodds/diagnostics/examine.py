"""What a result keeps of each model's surrogate, so that it can be judged and drawn later.

Everything is a small array, a number or a list of strings, written with the result. Log-likelihoods are
relative to the model's best observation and on the surrogate's scale, on which those far below the best may
be drawn closer together (``surrogate/squash.py``).

| key                  | shape  | meaning                                                             |
|----------------------|--------|---------------------------------------------------------------------|
| ``observed``         | (n,)   | observations the surrogate was given                                |
| ``left_out_mean/sd`` | (n,)   | what it predicts of each from all the others                        |
| ``followed``         |        | nats below the best that the surrogate is asked to follow closely   |
| ``record``           | (m,)   | squared errors of its predictions before each observation, in units |
|                      |        | of their variance                                                   |
| ``inflation``        |        | factor on the variance that follows from it                         |
| ``draw_log_likelihood`` | (m,) | log-likelihood of each posterior draw, as the surrogate has it   |
| ``effective_nodes``  |        | Kish's effective number of quadrature nodes, of ``nodes``           |
| ``unexplored``       |        | share of the evidence from where the surrogate is not sure to a nat |
| ``kernel``, ``squashed`` |    | what kind of surrogate it is                                        |
| ``at_bounds``        |        | hyperparameters at the limits of their search                       |
| ``width_factors``    | (w,)   | factors by which the prior was made wider ...                       |
| ``width_mean/sd``    | (w,)   | ... and the log-evidence then                                       |
| ``slices``           |        | along each parameter through the best point: value, mean, sd, score |
| ``map``              |        | the same over both parameters of a model that has two               |
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelodds.evidence import log_likelihood_at
from modelodds.learner import CANDIDATES, REACH, Learner, Report
from modelodds.nodes import effective_size
from modelodds.propose import scores
from modelodds.surrogate.exchange import slots
from modelodds.surrogate.fit import hyper_prior
from modelodds.surrogate.kernels import KERNELS
from modelodds.surrogate.leave_one_out import leave_one_out
from modelodds.surrogate.squash import Squash

Array = NDArray[np.float64]

WIDTHS = (0.5, 2.0)  # factors on the prior's width
UNSURE = 1.0  # nats: a likelihood known no better than this is not explored
SLICE, MAP = 61, 25  # points along a slice, and along each side of a map
MOST_SLICES = 8  # parameters that get one
SPREAD = 4.0  # standard deviations of the posterior that a slice reaches to either side


def examine(learner: Learner, report: Report, rule: str, seed: int) -> dict[str, Any]:
    """What to keep of one model; empty where there is no surrogate to speak of."""
    surrogate = learner.surrogate
    if learner.model.dim == 0 or surrogate.gp is None:
        return {}
    left_out = leave_one_out(surrogate.gp)
    return {
        "observed": left_out.observed,
        "left_out_mean": left_out.mean,
        "left_out_sd": left_out.sd,
        "followed": min(surrogate.squash.followed, Squash.none(learner.model.dim).followed),
        "record": np.array(surrogate.record),
        "inflation": float(surrogate.inflation),
        "draw_log_likelihood": report.log_likelihood,
        "kernel": _kernel(learner),
        "squashed": not surrogate.squash.straight,
        "at_bounds": _at_bounds(learner),
        **_nodes(learner),
        **_widths(learner, seed),
        **_pictures(learner, rule),
    }


def _kernel(learner: Learner) -> str:
    spec, hyper = learner.surrogate.spec, learner.surrogate.gp.hyper
    return list(KERNELS)[int(hyper.kernel)] if spec.kernel == "any" else spec.kernel


def _at_bounds(learner: Learner) -> list[str]:
    """Hyperparameters of the kernel within a thousandth of a limit, as sentences' ends.

    Of a quadratic that leaves nothing to the kernel, none matters.
    """
    if learner.surrogate.squash == Squash.exact():
        return []
    d, hyper = learner.model.dim, learner.surrogate.gp.hyper
    limits = hyper_prior(learner.surrogate.spec, d, learner.method.fit == "log")
    each = slots(learner.surrogate.spec.blocks, d)  # exchangeable parameters have one length-scale
    where = np.append(each, each.max() + 1)
    free = [name for name in learner.model.prior.names if name not in learner.model.prior.fixed]
    values = np.append(np.asarray(hyper.log_lengthscale), float(hyper.log_amplitude))
    labels = [f"length-scale of {name}" for name in free] + ["amplitude"]
    found = []
    for label, value, low, high in zip(labels, values, limits.lower[where], limits.upper[where], strict=True):
        if min(value - low, high - value) < 1e-3:
            found.append(f"{label} at its {'lower' if value - low < high - value else 'upper'} limit")
    return found


def _share(learner: Learner) -> Array:
    """Share of each node in the evidence, (S,)."""
    log_share = _log_share(learner)
    share = np.exp(log_share - log_share.max())
    return np.asarray(share / share.sum())


def _log_share(learner: Learner) -> Array:
    seen = learner.seen
    inside = seen.nodes.log_weight + learner.support.log_probability(seen.nodes.x)
    return np.asarray(inside + log_likelihood_at("mean", seen.mean, seen.variance, learner.surrogate.squash))


def _nodes(learner: Learner) -> dict[str, Any]:
    sd = np.sqrt(learner.surrogate.inflation * learner.seen.variance)
    return {
        "nodes": len(sd),
        "effective_nodes": effective_size(_log_share(learner)),
        "unexplored": float(_share(learner)[sd > UNSURE].sum()),
    }


def _widths(learner: Learner, seed: int) -> dict[str, Any]:
    """Log-evidence under wider and narrower priors, the surrogate being what it is."""
    found = []
    for factor in WIDTHS:
        prior = learner.model.prior.widened(factor)
        found.append(learner.evidence_at(learner.seen.nodes.like(np.random.default_rng(seed), prior)))
    return {
        "width_factors": np.array(WIDTHS),
        "width_mean": np.array([e.mean for e in found]),
        "width_sd": np.sqrt([e.variance for e in found]),
    }


# ---------------------------------------------------------------------- pictures


def _pictures(learner: Learner, rule: str) -> dict[str, Any]:
    low, high = _frame(learner)
    best = learner.surrogate.observations
    centre = best.x[int(np.argmax(best.y))]
    lines = [np.linspace(a, b, SLICE) for a, b in zip(low, high, strict=True)][:MOST_SLICES]
    x = np.repeat(centre[None], sum(map(len, lines)), axis=0)
    for j, line in enumerate(lines):
        x[j * SLICE : (j + 1) * SLICE, j] = line
    drawn, slices = _drawn(learner, rule, x), {}
    for j, line in enumerate(lines):
        rows = slice(j * SLICE, (j + 1) * SLICE)
        label, value = _along(learner, x[rows], j)
        slices[label] = {"value": value} | {key: column[rows] for key, column in drawn.items()}
        slices[label]["x"] = line
    kept: dict[str, Any] = {"slices": slices}
    if learner.model.dim == 2:
        kept["map"] = _map(learner, rule, low, high)
    return kept


def _map(learner: Learner, rule: str, low: Array, high: Array) -> dict[str, Any]:
    """Mean and score on a grid of MAP by MAP points: rows run along the second parameter."""
    first, second = (np.linspace(a, b, MAP) for a, b in zip(low, high, strict=True))
    x = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    theta = learner.model.prior.to_theta(x)
    free = [i for i, name in enumerate(learner.model.prior.names) if name not in learner.model.prior.fixed]
    grid = {"first": theta[:, free[0]], "second": theta[:, free[1]]} | _drawn(learner, rule, x)
    return {key: column.reshape(MAP, MAP) for key, column in grid.items()}


def _frame(learner: Learner) -> tuple[Array, Array]:
    """Corners (d,) of what the pictures show: the posterior and some way around it, within the prior."""
    x, share = learner.seen.nodes.x, _share(learner)
    centre = share @ x
    spread = np.sqrt(share @ (x - centre) ** 2)
    bounds = np.clip(learner.model.prior.bounds, -REACH, REACH)
    return np.maximum(centre - SPREAD * spread, bounds[0]), np.minimum(centre + SPREAD * spread, bounds[1])


def _along(learner: Learner, x: Array, j: int) -> tuple[str, Array]:
    """Name of the parameter that changes along axis ``j``, and its values; the axis itself if several do."""
    theta, names = learner.model.prior.to_theta(x), learner.model.prior.names
    changing = [i for i in range(len(names)) if np.ptp(theta[:, i]) > 1e-12 * np.abs(theta[:, i]).max()]
    return (names[changing[0]], theta[:, changing[0]]) if len(changing) == 1 else (f"axis {j + 1}", x[:, j])


def _drawn(learner: Learner, rule: str, x: Array) -> dict[str, Array]:
    """Surrogate and acquisition at ``x`` (m, d), in calls of sizes that are compiled already."""
    m, size, n = len(x), sum(CANDIDATES), len(learner.seen.mean)
    mean, variance = (part[:m] for part in learner.surrogate.predict(_padded(x, n)))
    view, surrogate = learner.view(), learner.surrogate
    padded = _padded(x, size)
    blocks = [padded[i : i + size] for i in range(0, len(padded), size)]
    score = np.concatenate([scores(rule, surrogate.spec, view, block) for block in blocks])[:m]
    return {"mean": mean, "sd": np.sqrt(variance), "score": np.where(np.isfinite(score), score, np.nan)}


def _padded(x: Array, size: int) -> Array:
    return np.vstack([x, np.zeros((-len(x) % size, x.shape[1]))])
