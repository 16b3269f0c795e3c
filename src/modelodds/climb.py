"""Uphill from a model's best observation, so that none is given up for a slope's foot.

Acquisitions weigh what the surrogate can imagine, and that is little above the best value seen; on the flank
of a sharp likelihood that is far from the top. So a model is climbed, in phases:

- ``hint``: a step to where a model that shares parameters is best, as far as these go; where parts of it can
  be exchanged, one for each;
- ``wide``: steps within a length-scale of the model's own surrogate, which knows of other modes;
- ``close``: steps by a Gaussian process of its own, of the observations that matter here, the best ones and
  those nearest to the best. It goes to the most promising point of a box around the best observation, whose
  sides are in proportion to the length-scales. Steps that gain what was promised make the box larger, others
  smaller (as in TuRBO, Eriksson et al. 2019);
- ``leap``: steps to where in the prior a gain is most probable, on the scale that is not squashed; if parts
  can be exchanged, by all models that have such parts (`family.py`), and to where one of them is changed;
- ``elsewhere``: close steps from the best observation at some distance, for as long as they find more than
  the model's surrogate expected: it does not know of a mode whose foot alone was seen.

Where a leap promises far more than the next step of a climb, steps and leaps take turns: the top of a ridge
is not worth twenty evaluations while most of the prior may be hundreds of nats better.

A phase ends after several steps of little gain, or where less than a nat can be hoped for; the climb ends
with the last, and begins again as the session grows, or at once where an evaluation finds ten nats more; when
a model that shares parameters has found so much more, its hint is tried although the climb rests.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from modelodds.hints import Hints
from modelodds.precision import jit64
from modelodds.surrogate.fit import Fit, fit
from modelodds.surrogate.gp import GP, Spec, condition, predict
from modelodds.surrogate.means import n_basis
from modelodds.surrogate.observations import Observations
from modelodds.surrogate.squash import Squash
from modelodds.surrogate.surrogate import CONTENDERS, Surrogate

Array = NDArray[np.float64]

SPEC = Spec("any", "full_quadratic")
NEAREST, HIGHEST = 2, 3  # observations in the local surrogate, as multiples of the dimension, ...
LEAST = 10  # ... plus this many of each, and of the highest as many as a quadratic has coefficients
FIRST, LARGEST, SMALLEST = 0.5, 2.0, 1e-3  # half-width of the box, in standard normal coordinates
LONGER = 10.0  # no side of it differs from the typical one by more than this factor
AGAIN = 4.0  # a climb that begins where the last one ended has a box larger than that by this factor
GROWN, SHRUNK = 2.0, 0.5  # its factors after steps that gain ...
GOOD, POOR = 0.5, 0.1  # ... more, or less, than these shares of what was promised
WORTH = 1.0  # nats of gain that make a step worth its while, ...
HOPE = 2.0  # ... hoped for at this many standard deviations
# steps of less gain, in a row, that end a phase; so many leaps per parameter, and hints per hint
MISSES = {"hint": 1, "wide": 3, "close": 5, "leap": 2, "elsewhere": 3}
TOGETHER = {"hint": 1, "wide": 3, "close": 3, "leap": 1, "elsewhere": 1}  # most steps out at once
EXPECTED = 0.1  # nats of expected gain that a leap needs
PARTS = 3  # times as many leaps where parts can be exchanged, as one of them is soon missed, ...
CHANCE = 0.02  # ... as long as a far better point (below) is so probable
CRAWLING, FARTHER = ("wide", "close"), 50.0  # phases that leaps cut in on, if they promise so much more
UNTOLD = 0.5  # share of a value's variance that what is out must leave, for a step there to be its own
GROWTH, IDLE = 1.5, 2.5  # a climb begins again when the session has grown by this factor; after one in vain
WRONG = 10.0  # nats above all else that show, wherever they are found, that a climb was on the wrong hill
APART = 1.0  # distance, in some coordinate, of an excursion's start from all that was climbed before
NEAR = 0.3  # a hint no farther from the last in any coordinate is the same
DARING = 0.5  # standard deviations that count for a point
POINTS = 512  # points that a step is chosen from
SAME = 1e-9  # points no farther apart are one
FEW = 64  # points of a prediction are padded to a multiple of this


def _loss(x: Array, spec: Spec, gp: GP) -> jax.Array:
    mean, variance = predict(spec, gp, x)
    return -jnp.sum(mean + DARING * jnp.sqrt(variance))


_condition = jit64(condition, static=("spec",))
_predict = jit64(predict, static=("spec",))
_loss_and_grad = jit64(jax.value_and_grad(_loss), static=("spec",))


class Step(NamedTuple):
    """A step that is out."""

    x: Array  # (d,)
    before: float  # the best value before it
    promise: float  # nats above that
    expected: float  # the value that the model's own surrogate expects
    aside: bool = False  # whether it leaves the climb's way


class Ended(NamedTuple):
    """How the last climb ended."""

    top: float  # the best value
    radius: float  # of the box


class Known(NamedTuple):
    """What a climb may look at."""

    surrogate: Surrogate
    barren: list[Array]  # points (d,) that gave nothing
    inside: Callable[[Array], NDArray[np.bool_]]  # which of points (m, d) may be asked for
    everywhere: Array  # (m, d) points of the prior
    hints: Hints  # where another model says this one may be good
    straight: Callable[[Array], tuple[Array, Array]]  # mean and variance at (m, d), on no squashed scale

    def low(self) -> Observations:
        """The observations, and the barren points as low as the lowest of them."""
        seen = self.surrogate.observations
        if not self.barren:
            return seen
        return seen.add(np.array(self.barren), np.full(len(self.barren), seen.y.min()))

    def hope(self, x: Array) -> float:
        """Nats above the best observation that the model's own surrogate hopes for at ``x`` (d,)."""
        mean, variance = self.surrogate.predict(x[None])
        return float(mean[0] + HOPE * np.sqrt(variance[0]))

    def step(self, found: tuple[Array, float] | None, before: float) -> Step | None:
        """A step to a point that was found, with its promise."""
        if found is None:
            return None
        mean, _ = self.surrogate.predict(found[0][None])
        expected = self.surrogate.offset + float(self.surrogate.squash.log_likelihood(mean)[0])
        return Step(found[0], before, found[1], expected)


class Climb:
    """One model's climb: where it steps next, and when it rests."""

    def __init__(
        self, bounds: Array, rng: np.random.Generator, in_parts: bool = False, patience: float = 1.0
    ) -> None:
        self.bounds, self.rng, self._patience = bounds, rng, patience
        self._in_parts = in_parts  # whether there are parts that can be exchanged
        self.out: dict[int, Step] = {}  # the steps that are out
        self._highest = -np.inf  # value of the last step that gained
        self._phases = list(MISSES)  # those to come, the present one first
        self._misses = 0  # steps of it, in a row, that gained little
        self._radius, self._fit = FIRST, cast(Fit | None, None)  # the box, and its surrogate
        self._top, self._ended = -np.inf, Ended(-np.inf, FIRST)
        self._gained = True  # whether the present climb has; the first one counts
        self._hinted: list[Array] = []  # the last that were tried
        self._hints, self._theirs = 1, -np.inf  # how many there are at a time; the best of their model
        self._begun: list[Array] = []  # where excursions began
        self._elsewhere: Array | None = None  # (d,) where the present one has come to
        self._strayed = False  # whether the last step left its way
        self._seen = -np.inf  # the best of all evaluations
        self._look_at = 0.0  # evaluations of the session at which the next climb begins; 0 during a climb

    @property
    def going_on(self) -> bool:
        """Whether the climb has not come to its end."""
        return bool(self.out) or self._look_at == 0.0

    def due(self, query: int) -> bool:
        """Whether the session's evaluation of number ``query`` may be a step of it."""
        left = self._most_misses() - self._misses
        return query >= self._look_at and len(self.out) < min(TOGETHER[self._phases[0]], left)

    def heard(self, y: float, noise: float) -> None:
        """Take note of an evaluation, whatever it was made for."""
        found = y - 2.0 * np.sqrt(noise)
        if self.resting and found > self._seen + WRONG:
            self._look_at = 0.0
        self._seen = max(self._seen, y)

    @property
    def resting(self) -> bool:
        """Whether one has ended and the next has not begun."""
        return self._look_at > 0.0

    def tip(self, known: Known) -> Array | None:
        """While it rests: a hint of a model that has found far more since the last; it may wake the climb."""
        if known.hints.theirs < self._theirs + WRONG:
            return None
        found = self._hint_step(known)
        return None if found is None or _among(known.surrogate.observations.x, found.x) else found.x

    def rest(self, query: int) -> None:
        """End it for now; ``query`` is the number of an evaluation that is, or might have been, its last."""
        self.out.clear()
        self._phases, self._look_at = list(MISSES), (GROWTH if self._gained else IDLE) * (query + 1)
        self._misses, self._radius, self._elsewhere, self._gained = 0, FIRST, None, False

    def step(self, query: int, known: Known) -> Array | None:
        """The next point, to be evaluated as number ``query``; None where the climb has come to its end."""
        seen, self._look_at = np.vstack([known.surrogate.observations.x, *self._steps()]), 0.0
        while self._phases:
            found = getattr(self, f"_{self._phases[0]}_step")(known)
            if found is not None and not _among(seen, found.x):
                aside = self._aside(known, found.promise)
                if aside is not None and not _among(seen, aside.x):
                    found = aside
                self.out[query], self._strayed = found, found.aside
                return np.asarray(found.x)
            if self.out:  # they may find more than they promise
                return None
            self._next_phase()
        self.rest(query)
        return None

    def _aside(self, known: Known, promise: float) -> Step | None:
        """Every other time, a leap in place of a step that promises next to nothing beside it."""
        if self._strayed or self._phases[0] not in CRAWLING:
            return None
        leap = self._leap(known, FARTHER * max(promise, WORTH))
        return None if leap is None else leap._replace(aside=True)

    def _most_misses(self) -> int:
        """Misses that end the present phase: fewer where patience is short."""
        phase, d = self._phases[0], self.bounds.shape[1]
        leaps = int(d * (PARTS if self._in_parts else 1))
        most: dict[str, int] = {"leap": leaps, "hint": self._hints}
        return max(1, round(self._patience * MISSES[phase] * most.get(phase, 1)))

    def _next_phase(self) -> None:
        if self._phases[0] == "close":
            self._ended = Ended(self._top, self._radius)
        self._phases, self._misses, self._radius = self._phases[1:], 0, FIRST

    def told(self, query: int, y: float, noise: float = 0.0) -> None:
        """Take in what a step has found; minus infinity if nothing."""
        step = self.out.pop(query)
        gain = y - step.before - 2.0 * np.sqrt(noise)
        if step.aside:
            if gain > WORTH:
                self._highest, self._gained, self._misses, self._radius = y, True, 0, FIRST
            return
        if gain > WORTH:
            self._highest = y
        elif self._highest > step.before + WORTH and self._phases[0] != "elsewhere":
            return  # another has gained since this one was chosen
        if gain > GOOD * step.promise:
            self._radius = min(GROWN * self._radius, LARGEST)
        elif gain < POOR * step.promise:
            self._radius = max(SHRUNK * self._radius, SMALLEST)
        gained = gain > WORTH
        if gained and self._phases[0] == "elsewhere":
            self._elsewhere, gained = step.x, y > step.expected + WORTH
        elif gained and self._phases[0] == "leap":
            self._phases = ["close", *self._phases]
        self._gained |= gained
        self._misses = 0 if gained else self._misses + 1
        if self._misses >= self._most_misses():
            self._next_phase()
        if not self._phases:
            self.rest(query)

    # ------------------------------------------------------------------ phases

    def _hint_step(self, known: Known) -> Step | None:
        self._hints = max(1, len(known.hints.points))
        new = [x for x in known.hints.points if all(np.abs(x - old).max() >= NEAR for old in self._hinted)]
        if len(new) < 2:  # all will have been tried
            self._theirs = known.hints.theirs
        if not new:
            return None
        best = new[int(np.argmax(known.surrogate.predict(np.array(new))[0]))] if len(new) > 1 else new[0]
        self._hinted = [*self._hinted, best][-self._hints :]
        return known.step((best, WORTH), known.surrogate.observations.best)

    def _wide_step(self, known: Known) -> Step | None:
        seen, surrogate = known.surrogate.observations, known.surrogate
        reach = np.minimum(np.exp(np.asarray(surrogate.gp.hyper.log_lengthscale)), 1.0)
        top = seen.best_x
        predict = _apart(self._steps(), surrogate.predict, surrogate.with_pending)
        around = self._around(top, reach * self.rng.standard_normal((POINTS, len(reach))))
        return known.step(_most_promising(predict, around[known.inside(around)]), seen.best)

    def _close_step(self, known: Known) -> Step | None:
        seen = known.surrogate.observations
        again = seen.best < self._ended.top + WORTH  # where the last climb ended
        if again and self._radius == FIRST:
            self._radius = min(FIRST, AGAIN * self._ended.radius)
        self._top = seen.best
        found = self._close(int(np.argmax(seen.y)), known)
        if found is None or (again and known.hope(found[0]) < WORTH):  # by now the model's surrogate knows
            return None
        return known.step(found, seen.best)

    def _leap_step(self, known: Known) -> Step | None:
        return self._leap(known, EXPECTED)

    def _one_part(self, known: Known) -> Array:
        """The best observation, one of its exchangeable parts as in each point of the prior, (m, d)."""
        blocks, points = np.array(known.surrogate.spec.blocks), known.everywhere
        part = blocks[self.rng.integers(len(blocks), size=len(points))]
        mixed = np.tile(known.surrogate.observations.best_x, (len(points), 1))
        np.put_along_axis(mixed, part, np.take_along_axis(points, part, 1), 1)
        return mixed

    def _leap(self, known: Known, least: float) -> Step | None:
        """A step to where in the prior a gain is most probable, if ``least`` nats are likely.

        Or, if there are exchangeable parts, to where a far better point is most probable, there or where the
        best observation has another one of its parts.
        """
        points, worth = known.everywhere, WORTH
        if self._in_parts:
            points, worth = np.vstack([points, self._one_part(known)]), WRONG
        allowed = points[known.inside(points)]
        if len(allowed) == 0:
            return None
        mean, variance = known.straight(allowed)
        sd = np.sqrt(variance)
        off = (mean - worth) / sd
        expected = sd * (np.exp(-0.5 * off**2) / np.sqrt(2.0 * np.pi) + off * special.ndtr(off))
        if expected.max() < least or (self._in_parts and off.max() < special.ndtri(CHANCE)):
            return None
        best = int(np.argmax(off))
        promise = max(WORTH, float(mean[best] + DARING * sd[best]))
        return known.step((allowed[best], promise), known.surrogate.observations.best)

    def _elsewhere_step(self, known: Known) -> Step | None:
        seen = known.surrogate.observations
        if self._elsewhere is None:
            climbed = [seen.best_x, *self._begun]
            apart = np.all([np.abs(seen.x - x).max(1) > APART for x in climbed], axis=0)
            if not apart.any():
                return None
            self._elsewhere = seen.x[int(np.argmax(np.where(apart, seen.y, -np.inf)))]
            self._begun.append(self._elsewhere)
            self._misses = MISSES["elsewhere"] - 1  # unless the first step gains, it is the last
        index = int(np.argmin(np.abs(seen.x - self._elsewhere).max(1)))
        return known.step(self._close(index, known), float(seen.y[index]))

    def _close(self, index: int, known: Known) -> tuple[Array, float] | None:
        """The most promising point of the box around an observation, by a surrogate of what matters there."""
        seen = known.low()
        near, squash = local(seen, index)
        top, data = seen.x[index], near.data(True, float(seen.y[index]), squash)
        self._fit = fit(SPEC, data, True, None if self._fit is None else self._fit.vector, 1, 30, CONTENDERS)
        gp = _condition(spec=SPEC, hyper=self._fit.hyper(len(top)), data=data)
        lengthscale = np.exp(np.asarray(gp.hyper.log_lengthscale))
        sides = np.clip(lengthscale / np.exp(np.log(lengthscale).mean()), 1.0 / LONGER, LONGER)

        def with_out(x: Array) -> GP:
            more = near.add(x, seen.y[index] + squash.log_likelihood(_moments(x, gp)[0]))
            data = more.data(True, float(seen.y[index]), squash)
            return cast(GP, _condition(spec=SPEC, hyper=gp.hyper, data=data))

        moments = _apart(self._steps(), functools.partial(_moments, own=gp), with_out)
        around = self._around(top, self._radius * sides * self.rng.uniform(-1.0, 1.0, (POINTS, len(top))))
        first = _most_promising(moments, around[known.inside(around)])
        if first is None:
            return None
        lower = np.clip(top - self._radius * sides, *self.bounds)
        upper = np.clip(top + self._radius * sides, *self.bounds)
        refined = _refined(gp, first[0], lower, upper)[None]
        return (_most_promising(moments, refined) if known.inside(refined).all() else None) or first

    def _steps(self) -> list[Array]:
        """Where the steps that are out have gone."""
        return [step.x for step in self.out.values()]

    def _around(self, top: Array, reach: Array) -> Array:
        """Points (POINTS, d) at most ``reach`` (POINTS, d) from ``top`` (d,), most of them nearer."""
        size = np.exp(self.rng.uniform(np.log(0.03), 0.0, size=(len(reach), 1)))
        return np.clip(top + size * reach, *self.bounds)


def local(seen: Observations, index: int) -> tuple[Observations, Squash]:
    """The observations that matter around one of them, and the scale on which they are followed."""
    n, d = seen.x.shape
    p = n_basis(SPEC.mean, d)
    near = np.argsort(((seen.x - seen.x[index]) ** 2).sum(1), kind="stable")[: NEAREST * d + LEAST]
    high = np.argsort(-seen.y, kind="stable")[: HIGHEST * d + LEAST + p]
    followed = max(Squash.some(d).followed, float(np.sort(seen.gap(seen.y[index]))[min(p + d, n // 2)]))
    kept = np.union1d(near, high)
    return Observations(seen.x[kept], seen.y[kept], seen.noise[kept]), Squash(followed, followed)


def _among(seen: Array, x: Array) -> bool:
    """Whether ``x`` (d,) is one of the points ``seen`` (n, d)."""
    return bool((np.abs(seen - x) < SAME).all(1).any())


def _most_promising(predict: Callable[[Array], tuple[Array, Array]], x: Array) -> tuple[Array, float] | None:
    """The most promising of points ``x`` (m, d) and its promise; None where there is no hope of a gain."""
    if len(x) == 0:
        return None
    mean, variance = predict(x)
    sd = np.sqrt(variance)
    if (mean + HOPE * sd).max() < WORTH:
        return None
    promise = mean + DARING * sd
    best = int(np.argmax(promise))
    return x[best], float(promise[best])


def _apart(
    steps: list[Array], predict: Callable[..., tuple[Array, Array]], with_out: Callable[[Array], GP]
) -> Callable[[Array], tuple[Array, Array]]:
    """Predictions that promise nothing where the steps that are out will tell most of what there is."""
    if not steps:
        return predict
    gp = with_out(np.array(steps))

    def untold(x: Array) -> tuple[Array, Array]:
        (mean, variance), left = predict(x), predict(x, gp)[1]
        return np.where(left > UNTOLD * variance, mean, -np.inf), left

    return untold


def _moments(x: Array, gp: GP | None = None, own: GP | None = None) -> tuple[Array, Array]:
    """Mean and variance at ``x`` (m, d) by ``gp``, or by ``own``."""
    padded = np.vstack([x, np.zeros((-len(x) % FEW, x.shape[1]))])
    mean, variance = _predict(spec=SPEC, gp=own if gp is None else gp, x=padded)
    return np.asarray(mean)[: len(x)], np.asarray(variance)[: len(x)]


def _refined(gp: GP, start: Array, lower: Array, upper: Array) -> Array:
    """Point ``start`` (d,) moved to where the promise is largest."""

    def loss(x: Array) -> tuple[float, Array]:
        value, grad = _loss_and_grad(x[None], spec=SPEC, gp=gp)
        value, grad = float(value), np.asarray(grad).ravel()
        if not np.isfinite(value) or not np.all(np.isfinite(grad)):
            return 1e12, np.zeros_like(grad)
        return value, grad

    limits = optimize.Bounds(lower, upper)
    found = optimize.minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": 30}
    )
    return np.asarray(found.x)
