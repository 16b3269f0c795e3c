"""Statistics of paired runs: errors on the same datasets, and choices that were right or wrong."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

LEVEL = 0.95  # of the intervals


class Paired(NamedTuple):
    """P-values of one-sided paired tests; NaN where there is nothing to test."""

    t: float
    wilcoxon: float


def smaller(ours: pd.Series, theirs: pd.Series) -> Paired:
    """Tests that errors ``ours`` are smaller than ``theirs``, matched by their index; from three pairs on."""
    both = pd.concat([ours, theirs], axis=1).dropna().to_numpy()
    if len(both) < 3 or (both[:, 0] == both[:, 1]).all():
        return Paired(np.nan, np.nan)
    t = stats.ttest_rel(both[:, 0], both[:, 1], alternative="less").pvalue
    return Paired(float(t), float(stats.wilcoxon(both[:, 0], both[:, 1], alternative="less").pvalue))


class Share(NamedTuple):
    """A share of trials and its exact (Clopper and Pearson's) interval."""

    value: float
    low: float
    high: float


def share(right: ArrayLike) -> Share:
    """Share of ``right`` (n,) choices."""
    hits = np.asarray(right, dtype=bool)
    found = stats.binomtest(int(hits.sum()), hits.size).proportion_ci(LEVEL, "exact")
    return Share(float(hits.mean()), float(found.low), float(found.high))


class Discordant(NamedTuple):
    """Trials in which one of two methods alone was right, and McNemar's exact two-sided p-value."""

    ours: int
    theirs: int
    p: float


def mcnemar(ours: ArrayLike, theirs: ArrayLike) -> Discordant:
    """Compare right and wrong choices (n,) of two methods on the same trials."""
    a, b = np.asarray(ours, dtype=bool), np.asarray(theirs, dtype=bool)
    first, second = int((a & ~b).sum()), int((b & ~a).sum())
    p = stats.binomtest(first, first + second).pvalue if first + second else 1.0
    return Discordant(first, second, float(p))


def worst_share(errors: ArrayLike, n: int = 5) -> float:
    """Share of the sum of ``errors`` that the ``n`` largest have: near one where the mean is an accident."""
    found: NDArray[np.float64] = np.sort(np.asarray(errors, dtype=float))[::-1]
    return float(found[:n].sum() / found.sum()) if found.sum() > 0 else float("nan")


def mean_over_median(values: pd.Series) -> float:
    """How heavy the tail is; not a number where the median is zero."""
    return float(values.mean() / values.median()) if values.median() else np.nan
