"""Models that share parameters: when their surrogates are joined, and what follows for their evidences.

A group's joint Gaussian process (``surrogate/coupled.py``) is fitted beside the models' own surrogates. While
it explains the observations better than these do, every member's surrogate is the joint process as seen from
that model, and their evidences are correlated. Else the models are on their own, as without coupling.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelodds.acquisition.base import View
from modelodds.evidence import expm1_cut
from modelodds.learner import Learner
from modelodds.method import Method
from modelodds.precision import Array as JaxArray
from modelodds.precision import jit64
from modelodds.surrogate.coupled import Coupled, CoupledData, CoupledHyper, CoupledSpec
from modelodds.surrogate.coupled_fit import MARGIN, CoupledFit, fit, gain, unflatten
from modelodds.surrogate.gp import GP, Spec, features, moments, prior_covariance
from modelodds.surrogate.means import n_basis
from modelodds.surrogate.observations import SHAPE
from modelodds.surrogate.sharing import Sharing
from modelodds.surrogate.squash import Squash
from modelodds.surrogate.surrogate import QUADRATIC, SPARE

Array = NDArray[np.float64]

GROWTH = 1.4  # observations of a group grow by this factor between searches from several starts ...
SHARE = 0.1  # ... and by this share between searches from where the last one ended
BUCKETS = (128, 256, 448, 768, 1280, 2048, 3072, 4096)
"""Sizes that a group's observations are padded to."""

HOPELESS = 10.0  # nats by which a way of joining explains the observations too badly to be searched in full
RELATED = 0.8  # least correlation with some other member that makes a model one of the group
THINNED = 2  # one in so many of the nodes behind a covariance between evidences
MOVED = 0.02  # nats that others' observations may move an evidence by before its nodes are seen anew


class Projected(NamedTuple):
    """A member's log-evidence as a weighted sum over nodes."""

    x: Array  # (S, d)
    weight: Array  # (S,)
    on_data: Array  # (n,)
    on_basis: Array  # (p,)
    mean: float  # of the sum, relative to the model's zero
    features: tuple[JaxArray, JaxArray]  # (n, S) and (p, S): of the nodes themselves


def _project(
    spec: Spec, gp: GP, x: JaxArray, weight: JaxArray
) -> tuple[JaxArray, JaxArray, JaxArray, tuple[JaxArray, JaxArray]]:
    v, s = features(spec, gp, x)
    return v @ weight, s @ weight, weight @ moments(spec, gp, x, v, s)[0], (v, s)


def _prior_between(
    spec: Spec, gp: GP, one: JaxArray, first: JaxArray, two: JaxArray, second: JaxArray, apart: JaxArray
) -> JaxArray:
    """Prior covariance of two weighted sums over nodes, all as the model of ``gp`` sees them."""
    return second @ prior_covariance(spec, gp.hyper, two, one, apart) @ first


def _original_between(
    spec: Spec, gp: GP, one: Projected, x: JaxArray, apart: JaxArray, factor: JaxArray, two: Projected
) -> JaxArray:
    """Covariance of two evidences in the original space, relative to their means.

    ``x``, ``apart`` and ``factor`` are the nodes of ``two`` as the model of ``one``, of ``gp``, sees them.
    """
    kernel = factor * prior_covariance(spec, gp.hyper, x, one.x, apart)
    cov = kernel - two.features[0].T @ one.features[0] + two.features[1].T @ one.features[1]
    return two.weight @ expm1_cut(cov) @ one.weight


_unflatten_64 = jit64(unflatten, static=("spec",))
_project_64 = jit64(_project, static=("spec",))
_prior_between_64 = jit64(_prior_between, static=("spec",))
_original_between_64 = jit64(_original_between, static=("spec",))


class Mode(NamedTuple):
    """One way of joining a group."""

    exact: bool  # whether observations are followed all the way down, as one quadratic
    nested: bool  # whether all is one function, of which the smaller models are slices


FREE, NESTED, QUADRATIC_NESTED = Mode(False, False), Mode(False, True), Mode(True, True)


class Group:
    """Models that share parameters."""

    def __init__(self, sharing: Sharing, learners: Sequence[Learner], method: Method) -> None:
        self.sharing, self.method = sharing, method
        self.learners = [learners[i] for i in sharing.members]
        kernel = "any" if method.kernel == "auto" else method.kernel
        self.spec, self.plain = CoupledSpec(kernel, method.mean, sharing.has), Spec(kernel, method.mean)
        self.active = False
        self.gain = -np.inf  # nats by which the joint process explains the observations better
        self.joint: Coupled | None = None
        self.mode = FREE
        self._own: list[GP | None] = [None] * len(self.learners)
        self._views: list[GP | None] = [None] * len(self.learners)
        self._fits: dict[Mode, CoupledFit] = {}  # the last of each, ...
        self._gains: dict[Mode, float] = {}  # ... and what it gained when all were tried
        self._fitted_at, self._full_at = 0, 0
        self._scales = [learner.surrogate.squash for learner in self.learners]
        self._seen: list[tuple[Array, Array, float, float] | None] = [None] * len(self.learners)
        self._covariance: tuple[list[Projected], Array] | None = None

    # ------------------------------------------------------------------ surrogates

    def release(self) -> None:
        """Give the members' surrogates their own scales back, so that they can learn what is new."""
        if self.mode.exact:
            for learner, squash in zip(self.learners, self._scales, strict=True):
                learner.surrogate.squash = squash

    def update(self) -> None:
        """Join the members' surrogates, or part them, once these have learnt what is new."""
        held = self._views if self.active else self._own
        told = [learner.surrogate.gp is not gp for learner, gp in zip(self.learners, held, strict=True)]
        for i, learner in enumerate(self.learners):
            if learner.surrogate.gp is not None and learner.surrogate.gp.borrowed is None:
                self._own[i] = learner.surrogate.gp
        if any(told) or not self._ready():
            changed = self._ready() and self._refit()
            self.active = self.active and self._ready() and self._condition(changed)
            if not self.active:
                self._part()
                return
            self._join([t or changed for t in told])
        if self.mode.exact:
            for learner in self.learners:
                learner.surrogate.squash = Squash.exact()

    def _ready(self) -> bool:
        return all(
            learner.surrogate.gp is not None and not learner.support.bounded for learner in self.learners
        )

    @property
    def common(self) -> float:
        """The zero of the joint process: the best observation of all members."""
        return max(learner.surrogate.observations.best for learner in self.learners)

    def _level(self, i: int) -> float:
        return self.learners[i].surrogate.observations.best - self.common

    def _data(self, exact: bool, pending: Mapping[int, Array] | None = None) -> CoupledData:
        """All members' observations on one scale, padded: as their own surrogates see them, or ``exact``.

        ``pending`` are points (m, d) of members that count as observed at the mean.
        """
        parts = []
        for i, (learner, own) in enumerate(zip(self.learners, self._own, strict=True)):
            assert own is not None
            real, seen = np.asarray(own.data.mask) > 0, learner.surrogate.observations
            x, y, noise = (np.asarray(part)[real] for part in own.data[:3])
            if exact:
                x, y, noise = seen.x, seen.y - seen.best, seen.noise
            if pending and i in pending:
                points = pending[i]
                mean = learner.surrogate.predict(points)[0]
                depth = np.maximum(0.0, -mean - learner.surrogate.squash.followed)
                shaped = (SHAPE * depth * self.method.shaped_noise) ** 2
                x, y, noise = np.vstack([x, points]), np.append(y, mean), np.append(noise, shaped)
            size = len(y)
            parts.append(
                (self.sharing.embed(i, x), y + self._level(i), noise, np.ones(size), np.full(size, i))
            )
        x, y, noise, mask, model = (np.concatenate(p) for p in zip(*parts, strict=True))
        pad = next((b for b in BUCKETS if b >= len(y)), len(y)) - len(y)
        y, noise, mask = (np.append(part, np.zeros(pad)) for part in (y, noise, mask))
        model = np.append(model, np.zeros(pad, dtype=int))
        return CoupledData(np.vstack([x, np.zeros((pad, x.shape[1]))]), y, noise, mask, model)

    def _refit(self) -> bool:
        """Search the hyperparameters where that is due; whether they, or the scale, have changed."""
        n = sum(len(learner.surrogate.observations) for learner in self.learners)
        scales = [learner.surrogate.squash for learner in self.learners]
        rescaled = self.active and scales != self._scales and not self.mode.exact
        full = not self._fits or n >= min(GROWTH * self._full_at, self._next_test()) or rescaled
        due = self.active and n >= self._fitted_at + max(1, int(SHARE * n))
        self._scales = scales
        if not (full or due):
            return False
        self._fitted_at = n
        if not full:
            self._fits[self.mode] = self._fitted(self.mode, False)
            self.gain = self._gain(self.mode)
            self.active = self.gain > MARGIN and self._related(self.mode)
            return True
        self._full_at = n
        self._gains |= (gains := {mode: self._searched(mode) for mode in self._modes(n)})
        if QUADRATIC_NESTED in gains and not self._is_quadratic(n):
            del gains[QUADRATIC_NESTED]
        self.mode = max(gains, key=lambda mode: gains[mode])
        self.gain = gains[self.mode]
        self.active = self.gain > MARGIN and self._related(self.mode)
        return True

    def _searched(self, mode: Mode) -> float:
        """Gain of a way of joining, searched from several starts unless that is seen to be in vain.

        A search from where the last one ended mostly gets to within a nat of them, in a tenth of their time.
        """
        if self._gains.get(mode, 0.0) < -HOPELESS:
            self._fits[mode] = self._fitted(mode, False)
            if (gain := self._gain(mode)) < -HOPELESS:
                return gain
        self._fits[mode] = self._fitted(mode, True)
        return self._gain(mode)

    def _related(self, mode: Mode) -> bool:
        """Whether every member goes together with another one.

        Without that a joint process has nothing to tell, and makes its members share their length-scales.
        """
        between = self._joined(mode).between - np.eye(len(self.learners))
        return bool((between.max(axis=1) >= RELATED).all())

    def _modes(self, n: int) -> list[Mode]:
        """The ways there are; a function that some see squashed is no slice of one that others do not."""
        modes = [FREE]
        if all(squash.straight for squash in self._scales):
            modes.append(NESTED)
        return [*modes, QUADRATIC_NESTED] if self._testable(n) else modes

    def _fitted(self, mode: Mode, full: bool) -> CoupledFit:
        own, data = [gp for gp in self._own if gp is not None], self._data(mode.exact)
        return fit(self.spec, self.sharing, data, own, self._fits.get(mode), full, mode.nested)

    def _gain(self, mode: Mode) -> float:
        own, log_slope = [gp for gp in self._own if gp is not None], 0.0
        if mode.exact:
            for learner, squash in zip(self.learners, self._scales, strict=True):
                log_slope += float(np.log(squash.slope(learner.surrogate.observations.gap())).sum())
        data = self._data(mode.exact)
        return gain(self.spec, self.sharing, self._fits[mode], data, own, mode.nested, log_slope)

    def _next_test(self) -> float:
        """Observations at which one quadratic for all is tested: SPARE to spare, then half as many again."""
        least = n_basis(self.spec.mean, len(self.sharing.names))
        spare = self._full_at - least
        return least + SPARE if spare < SPARE else self._full_at + max(1, spare // 2)

    def _testable(self, n: int) -> bool:
        """Whether all might be one quadratic: there are the observations to tell, and some are far below."""
        least = n_basis(self.spec.mean, len(self.sharing.names))
        far = any(
            (learner.surrogate.observations.gap() > Squash.none(learner.model.dim).followed).any()
            for learner in self.learners
        )
        return self.method.squash != "none" and 0 < least <= n - SPARE and far

    def _is_quadratic(self, n: int) -> bool:
        """Whether the fit that follows everything leaves next to nothing to the kernel, and has proof."""
        joint = self._joined(QUADRATIC_NESTED)
        small = np.asarray(joint.hyper.log_amplitude).max() <= np.log(QUADRATIC)
        return bool(small and joint.coefficients() <= n - SPARE)

    def _joined(self, mode: Mode) -> Coupled:
        found = self._fits[mode]
        tied = float(mode.nested)
        hyper = _unflatten_64(spec=self.spec, vector=found.vector, kernel=found.kernel, tied=tied)
        hyper = CoupledHyper(*(np.asarray(part) for part in hyper))
        return Coupled.of(self.sharing, self.spec, hyper, self._data(mode.exact))

    def _condition(self, changed: bool) -> bool:
        """Condition the joint process on all that is known; whether the arithmetic could."""
        if changed or self.joint is None:
            self.joint = self._joined(self.mode)
        else:
            self.joint = self.joint.conditioned(self._data(self.mode.exact))
        return bool(np.isfinite(np.asarray(self.joint.factors.white)).all())

    def _join(self, anew: list[bool]) -> None:
        """Give every member its view of the joint process; those ``anew`` are to see their nodes anew."""
        assert self.joint is not None
        self._covariance = None
        freedom = self._freedom()
        self._views = [self.joint.view(i, self._level(i)) for i in range(len(self.learners))]
        for i, learner in enumerate(self.learners):
            learner.surrogate.gp = self._views[i]
            learner.surrogate.freedom = freedom
            learner.surrogate.extend = partial(self._extended, i)
            if anew[i] or not self._nudge(i):
                learner.refresh()
                self._seen[i] = None

    def _part(self) -> None:
        """Leave every member to its own surrogate."""
        for learner, own in zip(self.learners, self._own, strict=True):
            if learner.surrogate.gp is not own:
                learner.surrogate.gp = own
                learner.refresh()
            learner.surrogate.freedom = learner.surrogate.extend = None
        self.joint, self._covariance = None, None
        self._seen = [None] * len(self.learners)
        self.mode = FREE

    def _freedom(self) -> float:
        """(n / (n - p))^2 of the group, as a model's own surrogate has it."""
        assert self.joint is not None
        data, p = self.joint.data, self.joint.coefficients()
        n = float((np.asarray(data.mask) / (1.0 + np.asarray(data.noise))).sum())
        return float((max(n, p + 1.0) / max(n - p, 1.0)) ** 2)

    def _extended(self, i: int, x: Array) -> GP:
        """Member ``i``'s view once points ``x`` (m, d) of it are observed."""
        assert self.joint is not None
        return self.joint.conditioned(self._data(self.mode.exact, {i: x})).view(i, self._level(i))

    # ------------------------------------------------------------------ evidences

    def _nudge(self, i: int) -> bool:
        """Move member ``i``'s evidence by what others' observations say, if that is little.

        To first order, log a moves as the mean over the nodes by their mass does, and its variance as that
        of the sum. Its nodes are seen anew once that is no longer little, or it is evaluated itself.
        """
        seen = self._seen[i]
        if seen is None:
            return False
        x, weight, mean, variance = seen
        now = self._projected(self._views[i], x, weight)
        change = now.mean - mean
        if abs(change) > MOVED:
            return False
        own = self._between(self._views, i, now, i, now)
        self.learners[i].nudge(change, min(1.0, own / variance))
        return True

    def _projected(self, gp: GP | None, x: Array, weight: Array) -> Projected:
        on_data, on_basis, mean, own = _project_64(spec=self.plain, gp=gp, x=x, weight=weight)
        return Projected(x, weight, np.asarray(on_data), np.asarray(on_basis), float(mean), own)

    def _between(self, views: Sequence[GP | None], i: int, one: Projected, j: int, two: Projected) -> float:
        """Covariance of the log-evidences of members ``i`` and ``j``."""
        x, apart, factor = self.elsewhere(i, j, two.x)
        prior = _prior_between_64(
            spec=self.plain,
            gp=views[i],
            one=one.x,
            first=one.weight,
            two=x,
            second=two.weight,
            apart=apart,
        )
        return factor * float(prior) - float(one.on_data @ two.on_data) + float(one.on_basis @ two.on_basis)

    def elsewhere(self, i: int, j: int, x: Array) -> tuple[Array, Array, float]:
        """Points ``x`` of member ``j`` as member ``i`` sees them: where, how far off, how much they count."""
        assert self.joint is not None
        at, apart, factor = self.joint.elsewhere(i, self.sharing.embed(j, x), np.full(len(x), j))
        return at, apart, float(factor[0])

    def _matrix(self, views: Sequence[GP | None], parts: Sequence[Projected]) -> Array:
        g = len(parts)
        cov = np.zeros((g, g))
        for i in range(g):
            for j in range(i + 1):
                cov[i, j] = cov[j, i] = self._between(views, i, parts[i], j, parts[j])
        np.fill_diagonal(cov, np.maximum(cov.diagonal(), 1e-12))
        return cov

    def covariance(self) -> Array:
        """Covariance (g, g) of the members' log-evidences, as the joint process alone has it."""
        return self._evidences()[1]

    def _evidences(self) -> tuple[list[Projected], Array]:
        if self._covariance is None:
            parts = []
            for learner, seen, gp in zip(self.learners, self._seen, self._views, strict=True):
                x, weight = _thinned(learner.view(gp)) if seen is None else seen[:2]
                parts.append(self._projected(gp, x, weight))
            self._covariance = parts, self._matrix(self._views, parts)
            for i, part in enumerate(parts):
                if self._seen[i] is None:
                    self._seen[i] = part.x, part.weight, part.mean, float(self._covariance[1][i, i])
        return self._covariance

    # ------------------------------------------------------------------ search

    def searching(self) -> tuple[list[View], list[Projected], Array]:
        """Members' views with what is out taken as known, their evidences, and these' covariance."""
        assert self.joint is not None
        views, (parts, cov) = self._views, self._evidences()
        points = [[*learner.out.values(), *learner.barren] for learner in self.learners]
        if any(points):
            pending = {i: np.array(mine) for i, mine in enumerate(points) if mine}
            joint = self.joint.conditioned(self._data(self.mode.exact, pending))
            views = [joint.view(i, self._level(i)) for i in range(len(self.learners))]
            parts = [self._projected(gp, part.x, part.weight) for gp, part in zip(views, parts, strict=True)]
            cov = self._matrix(views, parts)
        shown = [learner.view(gp) for learner, gp in zip(self.learners, views, strict=True)]
        return shown, parts, cov

    def original_variance(self, shown: Sequence[View], parts: Sequence[Projected]) -> Array:
        """Variances (g,) of the evidences in the original space, relative to their means."""
        found = []
        for i, (view, part) in enumerate(zip(shown, parts, strict=True)):
            x, apart, factor = self.elsewhere(i, i, part.x)
            own = _original_between_64(
                spec=self.plain, gp=view.gp, one=part, x=x, apart=apart, factor=factor, two=part
            )
            found.append(max(float(own), 1e-12))
        return np.array(found)

    def as_seen_by(self, i: int, parts: Sequence[Projected]) -> tuple[Array, Array, Array]:
        """All members' nodes in member ``i``'s coordinates: (g, S, d), (g, S), (g,)."""
        found = [self.elsewhere(i, j, part.x) for j, part in enumerate(parts)]
        return (
            np.stack([f[0] for f in found]),
            np.stack([f[1] for f in found]),
            np.array([f[2] for f in found]),
        )


def _thinned(view: View) -> tuple[Array, Array]:
    return np.asarray(view.x)[::THINNED], np.asarray(view.weight)[::THINNED] * THINNED
