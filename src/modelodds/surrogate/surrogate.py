"""The surrogate of one model as its observations come in: when to refit, and how far to trust it."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from modelodds.method import Method
from modelodds.precision import jit64
from modelodds.surrogate.exchange import Blocks
from modelodds.surrogate.fit import Fit, fit
from modelodds.surrogate.gp import GP, Data, Spec, condition, predict
from modelodds.surrogate.kernels import KERNELS
from modelodds.surrogate.means import n_basis
from modelodds.surrogate.observations import Observations
from modelodds.surrogate.squash import Squash

Array = NDArray[np.float64]

AUTO = ("matern52", "squared_exponential")  # the kernels that "auto" chooses from ...
CONTENDERS: tuple[int, ...] = tuple(list(KERNELS).index(name) for name in AUTO)  # ... by position
FULL_REFIT_GROWTH = 1.4  # several starts and all kernels whenever the observations have grown by this factor
SURPRISE = 2.5  # standard deviations off that make the next refit due at once
ROUGH = CONTENDERS[:1]  # what is squashed has a kink in its scale, ...
FLAT = 0.05  # ... and a mean whose typical coefficient is this, in nats: next to constant
SPARE = 3  # observations beyond a quadratic's coefficients that let it be believed all the way down, ...
QUADRATIC = 2.0  # ... if all else varies by no more than this, in nats
STARTS = 3  # of a full refit
FEW = 64  # points of a prediction are padded to a multiple of this
FORGET = 0.9  # weight of a prediction against the next one in the surrogate's record
DOUBT = (4.0, 2.0)  # the record starts as if this many predictions had been off by this variance ratio

_condition = jit64(condition, static=("spec",))
_predict = jit64(predict, static=("spec",))


class Surrogate:
    """A Gaussian process on one log-likelihood, relative to the best observation."""

    def __init__(self, d: int, method: Method, blocks: Blocks = ()) -> None:
        self.method = method
        self.observations = Observations.empty(d)
        self.offset = -np.inf  # what the surrogate's zero stands for
        self.gp: Any = None
        self.spec = Spec("any" if method.kernel == "auto" else method.kernel, method.mean, blocks)
        self.squash = Squash.none(d)
        self._fits: dict[Squash, Fit] = {}  # the last of each scale
        self._fitted_at = 0
        self._full_fit_at = 0
        self._surprised = False
        self._record: list[float] = []
        self.freedom: float | None = None  # where it is shared with other models (``coupling.py``): the
        self.extend: Callable[[Array], GP] | None = None  # lack of freedom, and the GP with pending points

    def tell(self, x: Array, y: float, noise: float) -> None:
        """Take in one observation; the surrogate catches up in :meth:`update`."""
        if self.gp is not None:
            mean, variance = self.predict(x[None])
            gap = np.array(self.offset - y)
            noise_seen = noise * float(self.squash.slope(gap)) ** 2
            ratio = float((-self.squash(gap) - mean[0]) ** 2 / (variance[0] + noise_seen + 1e-4))
            self._record.append(min(ratio, 100.0))
            self._surprised |= ratio > SURPRISE**2
        self.observations = self.observations.add(x, y, noise)

    @property
    def record(self) -> list[float]:
        """Squared errors of its predictions before each observation, in units of their variance."""
        return self._record

    @property
    def inflation(self) -> float:
        """Factor on the variances for what they leave out, at least 1: the record times the freedom."""
        if not self.method.calibrated:
            return 1.0
        freedom = self._lack_of_freedom() if self.freedom is None else self.freedom
        return max(1.0, self._past_errors()) * freedom

    def _past_errors(self) -> float:
        """Mean squared error of past predictions in units of their variance, recent ones weighing more.

        Each observation was predicted before it was made, so this tells how overconfident the fit has been.
        """
        weight = FORGET ** np.arange(len(self._record))[::-1]
        total = weight @ np.array(self._record) + DOUBT[0] * DOUBT[1]
        return float(total / (weight.sum() + DOUBT[0]))

    def _lack_of_freedom(self) -> float:
        """(n / (n - p))^2, as in generalised cross-validation, for n observations and p coefficients.

        A quadratic through barely more points than it has coefficients fits them all and proves nothing.
        Observations count by how closely they are to be followed.
        """
        data = self._data()
        n = float((data.mask / (1.0 + data.noise)).sum())
        p = self._coefficients()
        return (max(n, p + 1.0) / max(n - p, 1.0)) ** 2

    def _coefficients(self) -> int:
        return n_basis(self.spec.mean, self.observations.x.shape[1], self.spec.blocks)

    def _next_test(self) -> float:
        """Observations at which the quadratic is tested: SPARE more than it needs, then twice that."""
        spare = self._full_fit_at - self._coefficients()
        return self._coefficients() + (SPARE if spare < SPARE else 2 * spare)

    def update(self) -> None:
        """Refit the hyperparameters if it pays, and condition on all observations."""
        n = len(self.observations)
        if not self._fits or n >= min(FULL_REFIT_GROWTH * self._full_fit_at, self._next_test()):
            self._refit(full=True)
        elif self._surprised or n >= self._fitted_at + max(1, n // 10):
            self._refit(full=False)
        data = self._data()
        self.offset = self.observations.best
        self.gp = _condition(spec=self.spec, hyper=self._fits[self.squash].hyper(data.x.shape[1]), data=data)
        self._surprised = False

    def _data(self) -> Data:
        return self.observations.data(self.method.shaped_noise, squash=self.squash)

    def _refit(self, full: bool) -> None:
        """Search the hyperparameters; in ``full``, from several starts, over all kernels and both scales."""
        self._fitted_at = len(self.observations)
        if not full:
            self._fits[self.squash] = self._fitted(self.squash, 0, 30)
            return
        self._full_fit_at = len(self.observations)
        gap, losses = self.observations.gap(), {}
        for squash in self._scales():
            self._fits[squash] = self._fitted(squash, STARTS, 100)
            losses[squash] = self._fits[squash].loss - float(np.log(squash.slope(gap)).sum())
        exact, d = Squash.exact(), self.observations.x.shape[1]
        if exact in losses and self._fits[exact].hyper(d).log_amplitude > np.log(QUADRATIC):
            del losses[exact]
        self.squash = min(losses, key=lambda squash: losses[squash])

    def _fitted(self, squash: Squash, starts: int, iterations: int) -> Fit:
        """The search on one scale: from ``starts``, and from where it last ended."""
        last = self._fits.get(squash)
        kernels: tuple[int, ...] = (0,)
        if last is not None and not starts:
            kernels = (last.kernel,)
        elif self.spec.kernel == "any":
            kernels = CONTENDERS if squash.straight else ROUGH
        return fit(
            self.spec,
            self.observations.data(self.method.shaped_noise, squash=squash),
            self.method.fit == "log",
            None if last is None else last.vector,
            starts,
            iterations,
            kernels,
            None if squash.straight else FLAT,
        )

    def _scales(self) -> list[Squash]:
        """The scales to choose from: straight, and squashed or exact where anything is so far below."""
        d, gap = self.observations.x.shape[1], self.observations.gap()
        scales = [Squash.none(d)]
        if self.method.squash == "none":
            return scales
        if (gap > Squash.some(d).followed).any():
            scales.append(Squash.some(d))
            scales.append(Squash.more(d))
        if 0 < self._coefficients() <= len(gap) - SPARE and (gap > Squash.none(d).followed).any():
            scales.append(Squash.exact())
        return scales

    def with_pending(self, x: Array) -> GP:
        """The same GP as if points ``x`` (m, d) had been observed at its own mean there.

        The mean stays as it is and the covariance shrinks, which is all that is known before the values
        arrive.
        """
        if self.extend is not None:
            return self.extend(x)
        extended = self.observations.add(x, self.offset + self.squash.log_likelihood(self.predict(x)[0]))
        data = extended.data(self.method.shaped_noise, self.offset, self.squash)
        return cast(GP, _condition(spec=self.spec, hyper=self.gp.hyper, data=data))

    def predict(self, x: Array, gp: GP | None = None) -> tuple[Array, Array]:
        """Mean and variance at ``x`` (m, d) of the squashed log-likelihood, relative to ``offset``.

        By its own GP, or by one that :meth:`with_pending` has made.
        """
        return self._moments(self.gp if gp is None else gp, x)

    def straight(self, x: Array) -> tuple[Array, Array]:
        """Mean and variance at ``x`` (m, d) of the log-likelihood as it is, not squashed.

        Squashed, it can fall no further than a few times its scale, and seems known everywhere.
        """
        squash = Squash.none(x.shape[1])
        if self.squash.straight or squash not in self._fits:
            return self.predict(x)
        data = self.observations.data(self.method.shaped_noise, squash=squash)
        gp = _condition(spec=self.spec, hyper=self._fits[squash].hyper(x.shape[1]), data=data)
        return self._moments(gp, x)

    def _moments(self, gp: GP, x: Array) -> tuple[Array, Array]:
        m = len(x)
        if m % FEW:  # padded, so that few points, however many, are one shape to compile
            x = np.vstack([x, np.zeros((-m % FEW, x.shape[1]))])
        mean, variance = _predict(spec=self.spec, gp=gp, x=x)
        return np.asarray(mean)[:m], np.asarray(variance)[:m]
