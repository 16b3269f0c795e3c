"""The paper's experiment on quasar spectra (Chai et al. 2019, section 6.2): one damped absorber, or two.

On each of 20 real spectra every method gets 150 evaluations in total, those with a surrogate start from 25
random points of each model's prior, and all is repeated five times. Errors are of the log-odds of one
absorber over two, in nats; the truth is that of ``results/dla/truth.csv``.

A method may have no estimate yet, or none that it believes (bridge sampling keeps such to itself): then the
log-odds are missing in the runs' file and count as 0, what one would say knowing nothing. ``bridge_told`` is
bridge sampling that tells whatever it has.
"""

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from modelodds.apps.dla import models, truth
from modelodds.apps.dla.survey import entry
from modelodds.baselines import METHODS as BASELINES
from modelodds.baselines import bridge, ours, reversible_jump
from modelodds.baselines.base import IGNORANCE
from modelodds.baselines.base import in_turn as one_by_one
from modelodds.baselines.bridge import Bridge
from modelodds.baselines.bridge import bridge as bridge_estimate
from modelodds.errors import OptionError
from modelodds.method import resolve_method
from modelodds.model import Model
from modelodds.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OUT = Path("results/dla/curves.csv.gz")
BUDGET = 150
START = {"initial": 0.0, "initial_extra": 25, "design": "random"}  # random points per model to begin with
CHECKED = (50, 100, 150)  # evaluations at which the favoured model is looked at

IGNORANT = 0.5 * IGNORANCE  # nats: an uncertainty that stands for having no estimate

Run = Callable[[list[Model], int], Result]


def _ours(preset: str, **changes: Any) -> Run:
    return lambda m, seed: ours.run(m, BUDGET, seed, resolve_method(preset, **START, **changes))


class Told(Bridge):
    """Bridge sampling that tells its estimate however uncertain it is."""

    def estimate(self) -> tuple[float, float]:
        """Log-evidence and its variance; NaN before there is one."""
        if len(self.proposed) < 2:
            return np.nan, np.nan
        _, posterior = self._halves()
        proposed = [point for _, point in self.proposed]
        return bridge_estimate(self._log_ratios(posterior), self._log_ratios(proposed))


def _in_turn(preset: str, rule: str) -> Run:
    return _ours(preset, acquisition=rule, allocation="in_turn")


METHODS: dict[str, Run] = {
    "default": _ours("default"),
    "paper": _ours("paper"),
    "round_robin": _in_turn("paper", "uncertainty"),
    "bridge": lambda m, seed: bridge.run(m, BUDGET, seed),
    "bridge_told": lambda m, seed: one_by_one(m, BUDGET, seed, Told, "bridge_told"),
    "reversible_jump": lambda m, seed: reversible_jump.run(m, BUDGET, seed),
    "reversible_jump_acceptance": lambda m, seed: reversible_jump.run(
        m, BUDGET, seed, estimator="acceptance"
    ),
    "default_own_start": lambda m, seed: ours.run(m, BUDGET, seed),
    "round_robin_default": _in_turn("default", "uncertainty_capped"),
}
METHOD_NAMES = tuple(METHODS)[:7]  # those of the experiment; the others on request


class Task(NamedTuple):
    """One run; the repeat's number is the method's seed."""

    spectrum: str
    repeat: int
    method: str


def tasks(spectra: Iterable[str], repeats: Iterable[int], methods: Iterable[str]) -> list[Task]:
    """All runs, repeat by repeat, so that an unfinished sweep has all methods on the same spectra."""
    spectra, methods = list(spectra), list(methods)
    return [Task(s, r, m) for r in repeats for s in spectra for m in methods]


def check_method(name: str) -> None:
    """Complain about a method that is not one of the experiment's."""
    if name not in METHODS:
        also = " (it has its own way to start)" if name in BASELINES else ""
        raise OptionError(f"There is no method {name!r} here{also}; there are {', '.join(METHODS)}.")


def work(task: Task) -> list[dict[str, Any]]:
    """The rows of one run."""
    (one, two), _ = truth.stored(task.spectrum, (1, 2))
    pair = models(entry(task.spectrum).spectrum(), absorbers=(1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = METHODS[task.method](pair, task.repeat)
    return [task._asdict() | row for row in rows(result, one - two)]


def rows(result: Result, log_odds_true: float) -> list[dict[str, Any]]:
    """What a run said of the first model over the second, from its first estimate to its end."""
    a, b = result.names
    history = result.history
    found = np.array(history[f"log_evidence[{a}]"] - history[f"log_evidence[{b}]"])
    found[-1] = result.log_bayes_factor(a, b)[0]
    sd = history[[f"log_evidence_sd[{name}]" for name in (a, b)]].max(axis=1).to_numpy()
    found = np.where(np.isfinite(found) & (sd < IGNORANT), found, np.nan)
    return [
        {
            "n_evaluations": int(n),
            "log_odds": float(f"{value:.7g}"),
            "log_odds_true": float(f"{log_odds_true:.7g}"),
        }
        for n, value in zip(history.n_evaluations, found, strict=True)
    ]


# ---------------------------------------------------------------------- statistics


def at(runs: pd.DataFrame, n: int) -> pd.DataFrame:
    """The last row of every run with at most ``n`` evaluations, with ``error``, ``right`` and ``told``."""
    before = runs[runs.n_evaluations <= n].sort_values("n_evaluations")
    last = before.groupby(["spectrum", "repeat", "method"], sort=False).tail(1)
    said = last.log_odds.fillna(0.0)
    right = np.sign(said) == np.sign(last.log_odds_true)
    error = (said - last.log_odds_true).abs()
    return last.assign(error=error, right=right, told=last.log_odds.notna())


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """Errors at the full budget, the favoured model at three budgets, and paired tests of ours.

    Tests are one-sided t-tests that ours errs less: over spectra (each the mean of its repeats) and runs.
    """
    end = at(runs, BUDGET)
    errors = end.pivot(index=["spectrum", "repeat"], columns="method", values="error")
    table = []
    for method in [m for m in METHODS if m in errors]:
        error = errors[method].dropna()
        row: dict[str, Any] = {
            "method": method,
            "runs": len(error),
            "mean": error.mean(),
            "median": error.median(),
            "told": end[end.method == method].told.mean(),
            "s.e.": error.groupby(level="spectrum").mean().sem(),
        }
        for n in CHECKED:
            here = at(runs[runs.method == method], n)
            row[f"right at {n}"] = here.right.mean() if len(here) else np.nan
        for ours_ in ("default", "paper"):
            row[f"t, {ours_}"], row[f"t runs, {ours_}"] = _less(errors, ours_, method)
        table.append(row)
    return pd.DataFrame(table)


def _less(errors: pd.DataFrame, ours_: str, method: str) -> tuple[float, float]:
    """P-values that ``ours_`` errs less than ``method``: over spectra, and over runs."""
    if ours_ not in errors or method == ours_:
        return np.nan, np.nan
    both = errors[[ours_, method]].dropna()
    means = both.groupby(level="spectrum").mean()
    if len(means) < 3:
        return np.nan, np.nan
    tests = (stats.ttest_rel(part[ours_], part[method], alternative="less") for part in (means, both))
    p, q = (float(t.pvalue) for t in tests)
    return p, q


# ---------------------------------------------------------------------- figure


def mean_curves(runs: pd.DataFrame, every: int = 5, first: int = 50) -> pd.DataFrame:
    """Mean error of every method after n evaluations and its standard error over spectra.

    Columns: ``method``, ``n_evaluations``, ``error``, ``se``.
    """
    found = []
    for n in range(first, BUDGET + 1, every):
        here = at(runs, n)
        means = here.groupby(["method", "spectrum"]).error.mean()
        for method, error in means.groupby(level="method"):
            found.append({"method": method, "n_evaluations": n, "error": error.mean(), "se": error.sem()})
    return pd.DataFrame(found)


def figure(runs: pd.DataFrame) -> "Figure":
    """Mean absolute error of the log-odds against evaluations: figure 3 of the paper."""
    from matplotlib.figure import Figure

    from modelodds.plots import style

    drawing = Figure(figsize=(7.0, 4.8), layout="constrained")
    axes = drawing.subplots()
    curves = mean_curves(runs)
    for i, method in enumerate(m for m in METHODS if m in set(curves.method)):
        line = curves[curves.method == method]
        low, high = line.error - line.se, line.error + line.se
        axes.fill_between(
            line.n_evaluations,
            low.clip(lower=0.1 * line.error),
            high,
            color=style(i)["color"],
            alpha=0.12,
            lw=0,
        )
        axes.plot(line.n_evaluations, line.error, label=method.replace("_", " "), lw=1.8, **style(i))
    axes.set(yscale="log", xlabel="evaluations, both models", ylabel="error of the log-odds, nats")
    axes.set_title(
        f"One damped absorber or two: mean over {runs.spectrum.nunique()} spectra, ± standard error",
        fontsize=11,
        loc="left",
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.92", linewidth=0.8)
    drawing.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return drawing
