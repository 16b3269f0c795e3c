"""The surrogate of one model as its observations come in: when to refit, and how far to trust it."""

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from modelodds.method import Method
from modelodds.precision import jit64
from modelodds.surrogate.fit import Fit, fit, unflatten
from modelodds.surrogate.gp import GP, Spec, condition, predict
from modelodds.surrogate.observations import Observations

Array = NDArray[np.float64]

FULL_REFIT_GROWTH = 1.3  # several starts and all kernels whenever the observations have grown by this factor
SURPRISE = 2.5  # standard deviations off that make the next refit due at once
FORGET = 0.9  # weight of a prediction against the next one in the surrogate's record
DOUBT = (4.0, 2.0)  # the record starts as if this many predictions had been off by this variance ratio

_condition = jit64(condition, static=("spec",))
_predict = jit64(predict, static=("spec",))


class Surrogate:
    """A Gaussian process on one log-likelihood, relative to the best observation."""

    def __init__(self, d: int, method: Method) -> None:
        self.method = method
        self.observations = Observations.empty(d)
        self.offset = -np.inf  # what the surrogate's zero stands for
        self.gp: Any = None
        self.spec = Spec("matern52" if method.kernel == "auto" else method.kernel, method.mean)
        self._vector: Array | None = None  # hyperparameters, flat
        self._fitted_at = 0
        self._full_fit_at = 0
        self._surprised = False
        self._record: list[float] = []

    def tell(self, x: Array, y: float, noise: float) -> None:
        """Take in one observation; the surrogate catches up in :meth:`update`."""
        if self.gp is not None and np.isfinite(y):
            mean, variance = self.predict(x[None])
            ratio = (y - self.offset - mean[0]) ** 2 / (variance[0] + noise + 1e-4)
            self._record.append(min(ratio, 100.0))
            self._surprised |= ratio > SURPRISE**2
        self.observations = self.observations.add(x, y, noise)

    @property
    def inflation(self) -> float:
        """Factor on the surrogate's variances that its record of predictions asks for, at least 1.

        Each observation was predicted before it was made; the mean squared error in units of the predicted variance,
        recent predictions weighing more, tells how overconfident the fit has been.
        """
        weight = FORGET ** np.arange(len(self._record))[::-1]
        total = weight @ np.array(self._record) + DOUBT[0] * DOUBT[1]
        return max(1.0, float(total / (weight.sum() + DOUBT[0])))

    def update(self) -> None:
        """Refit the hyperparameters if it pays, and condition on all observations."""
        n, data = len(self.observations), self.observations.data(self.method.shaped_noise)
        if self._vector is None or n >= FULL_REFIT_GROWTH * self._full_fit_at:
            self._refit(full=True)
        elif self._surprised or n >= self._fitted_at + max(1, n // 10):
            self._refit(full=False)
        self.offset = self.observations.best
        self.gp = _condition(spec=self.spec, hyper=unflatten(self._vector, data.x.shape[1]), data=data)
        self._surprised = False

    def _refit(self, full: bool) -> None:
        data, log_space = self.observations.data(self.method.shaped_noise), self.method.fit == "log"
        kernels = ("matern52", "squared_exponential") if full and self.method.kernel == "auto" else (self.spec.kernel,)
        starts, iterations = (3, 100) if full else (0, 30)
        fits: dict[Spec, Fit] = {}
        for kernel in kernels:
            spec = Spec(kernel, self.spec.mean)
            fits[spec] = fit(spec, data, log_space, self._vector, starts, iterations)
        self.spec = min(fits, key=lambda spec: fits[spec].loss)
        self._vector = fits[self.spec].vector
        self._fitted_at = len(self.observations)
        if full:
            self._full_fit_at = len(self.observations)

    def with_pending(self, x: Array) -> GP:
        """The same GP as if points ``x`` (m, d) had been observed at its own mean there.

        The mean stays as it is and the covariance shrinks, which is all that is known before the values arrive.
        """
        mean = np.array([self.predict(point[None])[0][0] for point in x])  # one by one: one shape to compile
        extended = self.observations.add(x, self.offset + mean)
        data = extended.data(self.method.shaped_noise, self.offset)
        return cast(GP, _condition(spec=self.spec, hyper=self.gp.hyper, data=data))

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Mean, relative to ``offset``, and variance at ``x`` (m, d)."""
        mean, variance = _predict(spec=self.spec, gp=self.gp, x=x)
        return np.asarray(mean), np.asarray(variance)
