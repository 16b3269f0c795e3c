"""Result: what a comparison found, in one type for our method and for every baseline."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modelodds import correlated, odds, verdict
from modelodds.errors import ResultError

if TYPE_CHECKING:  # pandas takes a quarter of a second to import: only where a table is made
    import pandas as pd

    from modelodds.diagnostics import Remark

Array = NDArray[np.float64]
NEGLIGIBLE = 1e-12  # models less probable than this have no say in an average


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Which of k models the data favour, and how sure that is. Made by `Result.build`.

    Attributes
    ----------
    names : list of str
        The k models, in the user's order; arrays below follow it.
    prior_probabilities : array, shape (k,)
        Prior probabilities of the models; they sum to one.
    log_evidence_mean, log_evidence_cov : array, shapes (k,) and (k, k)
        Gaussian belief on the (natural) log-evidences.
    probabilities_mean, probabilities_cov : array, shapes (k,) and (k, k)
        Mean and covariance of the posterior model probabilities.
    draws : dict of str to array, shape (m, p)
        Equally weighted posterior draws of each model's parameters, fixed ones included.
    parameters : dict of str to tuple of str
        Names of the p parameters of each model.
    evaluations : DataFrame
        One row per evaluation, in order: id, model, the parameters of all models (NaN where a model has no
        such parameter), log_likelihood, standard_error, status ("ok" or "failed"), reason, seconds.
    history : DataFrame
        The belief as it grew: n_evaluations, then log_evidence[name], log_evidence_sd[name] and
        probability[name] for each model.
    status, message : str
        Why the run stopped: in one word for programs, in a sentence for people.
    method : str
        What produced the result.
    seed : int or None
        Seed of the run, where it was an int.
    version : str
        Version of the library.
    overhead_seconds : float
        Time spent outside the user's likelihoods.
    diagnostics : dict of str to dict
        What is kept of each model's surrogate, by model (``diagnostics/examine.py`` lists it); empty for a
        method without one. `checks` reads it.
    settings : dict
        The method's options, the priors in words, and the versions the run was made with.
    """

    names: list[str]
    prior_probabilities: Array
    log_evidence_mean: Array
    log_evidence_cov: Array
    probabilities_mean: Array
    probabilities_cov: Array
    draws: dict[str, Array]
    parameters: dict[str, tuple[str, ...]]
    evaluations: pd.DataFrame
    history: pd.DataFrame
    status: str
    message: str
    method: str
    seed: int | None
    version: str
    overhead_seconds: float
    diagnostics: dict[str, dict[str, Any]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def build(
        cls,
        *,
        names: Sequence[str],
        prior_probabilities: ArrayLike,
        log_evidence_mean: ArrayLike,
        log_evidence_cov: ArrayLike,
        draws: Mapping[str, ArrayLike],
        parameters: Mapping[str, Sequence[str]],
        evaluations: pd.DataFrame,
        history: pd.DataFrame,
        status: str,
        message: str,
        method: str,
        version: str,
        seed: int | None = None,
        overhead_seconds: float = 0.0,
        diagnostics: Mapping[str, dict[str, Any]] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Result:
        """Make a result from a belief on the log-evidences; attributes as in the class.

        Prior probabilities need not be normalised.
        """
        prior = _normalised(prior_probabilities)
        mean, cov = np.array(log_evidence_mean, dtype=float), np.array(log_evidence_cov, dtype=float)
        _check_belief(len(names), prior, mean, cov)
        z_mean, z_cov = correlated.moments(mean, cov, np.log(prior))
        return cls(
            names=list(names),
            prior_probabilities=prior,
            log_evidence_mean=mean,
            log_evidence_cov=cov,
            probabilities_mean=z_mean,
            probabilities_cov=z_cov,
            draws={name: np.array(draws[name], dtype=float) for name in names if name in draws},
            parameters={name: tuple(parameters[name]) for name in names},
            evaluations=evaluations.reset_index(drop=True),
            history=history.reset_index(drop=True),
            status=status,
            message=message,
            method=method,
            seed=None if seed is None else int(seed),
            version=version,
            overhead_seconds=float(overhead_seconds),
            diagnostics=dict(diagnostics or {}),
            settings=dict(settings or {}),
        )

    @property
    def probabilities(self) -> dict[str, float]:
        """Posterior probability of each model; they sum to one."""
        return self._by_name(self.probabilities_mean)

    @property
    def probability_sd(self) -> dict[str, float]:
        """Standard deviation of each posterior probability."""
        return self._by_name(np.sqrt(np.diag(self.probabilities_cov)))

    @property
    def log_evidence(self) -> dict[str, float]:
        """Natural log of each model's evidence."""
        return self._by_name(self.log_evidence_mean)

    @property
    def log_evidence_sd(self) -> dict[str, float]:
        """Standard deviation of each log-evidence."""
        return self._by_name(np.sqrt(np.diag(self.log_evidence_cov)))

    @property
    def best(self) -> str:
        """Name of the most probable model."""
        return self.names[self._ranking()[0]]

    @property
    def n_evaluations(self) -> dict[str, int]:
        """Number of evaluations of each model, failed ones included."""
        return self._count(self.evaluations)

    @property
    def n_failures(self) -> dict[str, int]:
        """Number of failed evaluations of each model."""
        return self._count(self.evaluations[self.evaluations["status"] == "failed"])

    def log_bayes_factor(self, a: str, b: str) -> tuple[float, float]:
        """Mean and standard deviation of log evidence(a) − log evidence(b)."""
        flat = np.zeros(len(self.names))
        return odds.log_odds(
            self.log_evidence_mean, self.log_evidence_cov, flat, self._index(a), self._index(b)
        )

    def log_odds(self, a: str, b: str) -> tuple[float, float]:
        """Mean and standard deviation of the log posterior odds: Bayes factor times prior odds."""
        prior = np.log(self.prior_probabilities)
        return odds.log_odds(
            self.log_evidence_mean, self.log_evidence_cov, prior, self._index(a), self._index(b)
        )

    def table(self) -> pd.DataFrame:
        """One row per model, best first; Bayes factors are against the best."""
        order = [self.names[i] for i in self._ranking()]
        factors = np.array([self.log_bayes_factor(name, order[0]) for name in order])
        evidence = self._column(self.log_evidence, order)
        columns = {
            "probability": self._column(self.probabilities, order),
            "probability_sd": self._column(self.probability_sd, order),
            "log_evidence": evidence,
            "log_evidence_sd": self._column(self.log_evidence_sd, order),
            "log10_evidence": evidence / np.log(10.0),
            "log_bayes_factor": factors[:, 0],
            "log_bayes_factor_sd": factors[:, 1],
            "log10_bayes_factor": factors[:, 0] / np.log(10.0),
            "evaluations": self._column(self.n_evaluations, order),
            "failures": self._column(self.n_failures, order),
        }
        import pandas as pd

        return pd.DataFrame(columns, index=pd.Index(order, name="model"))

    def summary(self) -> str:
        """The verdict in plain language, the table, the counts and why the run stopped."""
        return verdict.summary(self)

    def checks(self) -> list[Remark]:
        """What a careful reader would remark on: see :mod:`modelodds.diagnostics`."""
        from modelodds.diagnostics import remarks

        return remarks(self)

    def posterior(self, name: str, draws: int = 1000, rng: int | np.random.Generator = 0) -> pd.DataFrame:
        """Posterior draws of one model's parameters, resampled from those kept; one column per parameter."""
        import pandas as pd

        kept = self._draws(name)
        rows = np.random.default_rng(rng).choice(len(kept), size=draws, replace=draws > len(kept))
        return pd.DataFrame(kept[rows], columns=list(self.parameters[name]))

    def average(self, fn: Callable[[str, Array], Any], draws: int = 1000) -> Any:
        """Model-averaged expectation: Σ_i z_i E[fn(name_i, theta)] over at most `draws` draws of each model.

        Parameters
        ----------
        fn : callable
            Called as `fn(name, theta)` with theta (p,); returns a float or an array, always of one shape.
        draws : int
            Most draws to use of each model.
        """
        terms = [
            z * np.mean([fn(name, theta) for theta in self._some_draws(name, draws)], axis=0)
            for name, z in self.probabilities.items()
            if z > NEGLIGIBLE
        ]
        return np.sum(terms, axis=0)

    def report(self, path: str | os.PathLike[str], title: str | None = None) -> Path:
        """Write one HTML file that tells this result: verdict, warnings, plots to play with, settings.

        It needs no network, then or ever.

        Parameters
        ----------
        path : path
            Where to write it; an older file there is replaced.
        title : str, optional
            What to head it with; the models' names otherwise.

        Returns
        -------
        Path
            Where it was written.
        """
        from modelodds.report import write

        return write(self, path, title)

    def to_arviz(self, name: str | None = None) -> Any:
        """ArviZ's ``InferenceData``: the posterior of model ``name``, or of the best, and all the rest.

        See :func:`modelodds.adapters.to_arviz`; needs ``pip install 'modelodds[arviz]'``.
        """
        from modelodds.adapters.arviz import to_arviz

        return to_arviz(self, name)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the whole result as strict JSON; `from_json` gives back every float to its last bit."""
        from modelodds import storage

        storage.write(path, {each.name: getattr(self, each.name) for each in fields(self)})

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Result:
        """Read a result that `to_json` wrote, of this version or an earlier one."""
        from modelodds import storage

        found = {"diagnostics": {}, "settings": {}} | storage.read(path)  # the first files had neither
        expected = {each.name for each in fields(cls)}
        if found.keys() != expected:
            odd = ", ".join(sorted(found.keys() ^ expected))
            raise ResultError(
                f"{path} has missing or unknown fields ({odd}); it may have been edited by hand."
            )
        return cls(**found)

    def __repr__(self) -> str:
        shares = ", ".join(
            f"{name} {p:.3g} ± {self.probability_sd[name]:.2g}" for name, p in self.probabilities.items()
        )
        return f"Result({shares}; {len(self.evaluations)} evaluations, {self.status})"

    def __str__(self) -> str:
        return self.summary()

    def _ranking(self) -> list[int]:
        """Positions of the models, most probable first; hopeless ones by their log-evidence."""
        posterior = self.log_evidence_mean + np.log(self.prior_probabilities)
        return [int(i) for i in np.lexsort([-posterior, -self.probabilities_mean])]

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise ResultError(
                f"There is no model named {name!r}; the models are {', '.join(map(repr, self.names))}."
            )
        return self.names.index(name)

    def _draws(self, name: str) -> Array:
        kept = self.draws.get(self.names[self._index(name)], np.empty((0, 0)))
        if len(kept) == 0:
            raise ResultError(f"No posterior draws were kept for {name!r}; give it more evaluations.")
        return kept

    def _some_draws(self, name: str, most: int) -> Array:
        kept = self._draws(name)
        return kept if len(kept) <= most else self.posterior(name, most).to_numpy()

    def _by_name(self, values: Array) -> dict[str, float]:
        return dict(zip(self.names, values.tolist(), strict=True))

    def _count(self, rows: pd.DataFrame) -> dict[str, int]:
        counts = rows["model"].value_counts()
        return {name: int(counts.get(name, 0)) for name in self.names}

    def _column(self, by_name: Mapping[str, float], order: list[str]) -> NDArray[Any]:
        return np.array([by_name[name] for name in order])


def _normalised(prior_probabilities: ArrayLike) -> Array:
    prior = np.asarray(prior_probabilities, dtype=float)
    if not (np.isfinite(prior).all() and (prior > 0).all()):
        raise ResultError(f"Prior probabilities must be finite and above zero, not {prior.tolist()}.")
    return np.asarray(prior / prior.sum())


def _check_belief(k: int, prior: Array, mean: Array, cov: Array) -> None:
    if prior.shape != (k,) or mean.shape != (k,) or cov.shape != (k, k):
        shapes = f"{prior.shape}, {mean.shape} and {cov.shape}"
        raise ResultError(
            f"With {k} models, prior, mean and covariance need shapes ({k},), ({k},) and ({k}, {k}), "
            f"not {shapes}."
        )
    if np.isnan(mean).any() or np.isposinf(mean).any() or np.isneginf(mean).all():
        raise ResultError(
            f"Log-evidences must be numbers, or -inf for some but not all, not {mean.tolist()}."
        )
    if not np.isfinite(cov).all() or (np.diag(cov) < 0).any():
        raise ResultError("The covariance of the log-evidences must be finite, its diagonal not negative.")
