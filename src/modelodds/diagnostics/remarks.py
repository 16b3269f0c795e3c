"""Remarks on a result that a careful reader would make, in words that say what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats

from modelodds.diagnostics.sensitivity import to_widths
from modelodds.diagnostics.surrogates import coverage, typical_error
from modelodds.verdict import SMALL, commonest_reason, odds_text

if TYPE_CHECKING:
    from modelodds.result import Result

LEAST_POINTS = 8  # observations below which coverage says nothing
SURPRISING = 0.01  # chance, under a perfect surrogate, of so many observations outside two sd
COARSE = 1.0  # nats: leave-one-out errors, near the best, beyond which a surrogate is a sketch
EFFECTIVE = 200.0  # effective nodes below which quadrature itself is in doubt
UNEXPLORED = 0.1  # share of an evidence from unexplored space that is worth a word
FAILED = 0.1  # share of evaluations
IMPROBABLE = 1e-3  # models less probable than this are not worth a warning
UNSURE = 0.5  # nats: log-odds of the two best known no better than this are not settled
WELL_KNOWN = 0.1  # nats: an evidence claimed to be known this well, by however few points, is only noted
SLOPE = (-2.0, -0.3)  # of log sd against log evaluations: believed no steeper, promising from the second on


class Remark(NamedTuple):
    """One remark: ``level`` is "warning" or "note"; ``model`` is "" where it is about all of them."""

    level: str
    model: str
    text: str


def remarks(result: Result) -> list[Remark]:
    """All remarks on a result, warnings first."""
    found = [*_verdict(result), *_failures(result)]
    silent = _silent(result)
    for name in result.names:
        if name in result.diagnostics and name not in silent:
            found += _surrogate(result, name, result.diagnostics[name])
    found += [] if silent else _widths(result)
    return sorted(found, key=lambda remark: remark.level != "warning")


def _surrogate(result: Result, name: str, kept: dict[str, Any]) -> Iterator[Remark]:
    """Remarks on one model's surrogate; what more evaluations would do is said once."""
    level = "warning" if result.probabilities[name] > IMPROBABLE else "note"
    more = _more(result, name)
    for remark in (*_predictions(result, name, kept, level), *_unexplored(name, kept, level)):
        yield remark._replace(text=f"{remark.text}{more}.")
        more = ""
    yield from _nodes(name, kept, level)
    yield from _bounds(name, kept, level)


def _predictions(result: Result, name: str, kept: dict[str, Any], level: str) -> Iterator[Remark]:
    points, _, two = coverage(kept)
    if points < LEAST_POINTS:
        level = level if result.log_evidence_sd[name] > WELL_KNOWN else "note"
        near = f"within {kept['followed']:.0f} nats of its best"
        yield Remark(
            level, name, f"Observations of {name} {near}: {points}, too few to judge its surrogate by"
        )
    elif stats.binom.sf(round((1.0 - two) * points) - 1, points, 0.05) < SURPRISING:
        yield Remark(
            level,
            name,
            f"The surrogate of {name} predicts its own points poorly: only {100 * two:.0f} % of {points} lie "
            "within two standard deviations of what the others predict (95 % expected). Treat its evidence "
            "with care",
        )
    elif typical_error(kept) > COARSE:
        yield Remark(
            level,
            name,
            f"The surrogate of {name} predicts its own points coarsely: they are typically "
            f"{typical_error(kept):.2g} nats from what the others predict. Treat its evidence with care",
        )


def _unexplored(name: str, kept: dict[str, Any], level: str) -> Iterator[Remark]:
    if kept["unexplored"] > UNEXPLORED:
        yield Remark(
            level,
            name,
            f"{100 * kept['unexplored']:.0f} % of the evidence of {name} comes from where its likelihood is "
            "known no better than to a factor of e: it rests on extrapolation",
        )


def _nodes(name: str, kept: dict[str, Any], level: str) -> Iterator[Remark]:
    if kept["effective_nodes"] < EFFECTIVE:
        yield Remark(
            level,
            name,
            f"Only {kept['effective_nodes']:.0f} of {kept['nodes']} quadrature nodes count for {name}: its "
            "posterior is very narrow or oddly shaped. Narrow its prior, or set Method(n_nodes=...) higher.",
        )


def _bounds(name: str, kept: dict[str, Any], level: str) -> Iterator[Remark]:
    """Short length-scales mean trouble, large amplitudes a steep prior; the others are no matter."""
    large = [t for t in kept["at_bounds"] if t == "amplitude at its upper limit"]
    rough = [t for t in kept["at_bounds"] if t.startswith("length") and t.endswith("lower limit")]
    smooth = [t for t in kept["at_bounds"] if t not in (*large, *rough)]
    if rough:
        yield Remark(
            level,
            name,
            f"The surrogate of {name} has its {', '.join(rough)}: the log-likelihood is rougher than it can "
            "follow. Is it noisy? Then return (value, standard error).",
        )
    if large:
        yield Remark(
            "note",
            name,
            f"The log-likelihood of {name} falls by more than its surrogate allows for: some of the prior is "
            "hopelessly far from the data. A narrower prior would need fewer evaluations.",
        )
    if smooth:
        yield Remark(
            "note",
            name,
            f"The surrogate of {name} has its {', '.join(smooth)}: a quadratic says nearly all there is to "
            "say of its log-likelihood.",
        )


def _more(result: Result, name: str) -> str:
    n = evaluations_to_halve(result, name)
    return "" if n is None else f"; about {n} more evaluations of it would halve its uncertainty"


def evaluations_to_halve(result: Result, name: str) -> int | None:
    """Further evaluations of a model after which its log-evidence's sd would be half of what it is.

    From the slope of log sd against the logarithm of the model's evaluations over the second half of the run;
    None where that shows no steady gain.
    """
    history = result.history
    if history.empty or len(history) < 8:
        return None
    is_it = (result.evaluations["model"] == name).to_numpy()
    so_far = np.concatenate([[0], np.cumsum(is_it)])
    rows = history.iloc[len(history) // 2 :]
    after = np.minimum(rows["n_evaluations"].to_numpy(dtype=int), len(is_it))
    counts = so_far[after].astype(float)
    sd = rows[f"log_evidence_sd[{name}]"].to_numpy(dtype=float)
    good = (counts > 0) & np.isfinite(sd) & (sd > 0)
    if good.sum() < 4 or np.ptp(np.log(counts[good])) < 0.1:
        return None
    slope = float(np.polyfit(np.log(counts[good]), np.log(sd[good]), 1)[0])
    if slope > SLOPE[1]:
        return None
    growth: float = 2.0 ** (-1.0 / max(slope, SLOPE[0]))
    return math.ceil(float(so_far[-1]) * (growth - 1.0))


def _verdict(result: Result) -> Iterator[Remark]:
    order = list(result.table().index)
    if len(order) < 2:
        return
    best, second = order[:2]
    mean, sd = result.log_odds(best, second)
    if {best, second} & _silent(result):  # said of the model itself
        return
    if sd > UNSURE:
        yield Remark(
            "warning",
            "",
            f"The log-odds of {best} and {second} are known only to ± {sd:.2g} nats, a factor of "
            f"{odds_text(sd)} either way. More evaluations would narrow this down.",
        )
    if mean < SMALL:
        yield Remark(
            "note",
            "",
            f"The lead of {best} is small: whoever thought {second} {odds_text(mean)} times as probable "
            "beforehand would be left undecided.",
        )
    if result.status in ("interrupted", "open"):
        yield Remark("note", "", "The run had not ended when this result was made.")


def _silent(result: Result) -> set[str]:
    """Models of which no evaluation gave a value."""
    return {name for name, n in result.n_evaluations.items() if 0 < n == result.n_failures[name]}


def _failures(result: Result) -> Iterator[Remark]:
    silent = _silent(result)
    for name, failed in result.n_failures.items():
        share = failed / max(result.n_evaluations[name], 1)
        if name in silent:
            yield Remark(
                "warning",
                name,
                f"No evaluation of {name} gave a value ({commonest_reason(result, name)}): nothing is known "
                "of it. Call its log_likelihood(theta) by hand, for one theta.",
            )
        elif share > FAILED:
            yield Remark(
                "warning",
                name,
                f"{100 * share:.0f} % of the evaluations of {name} failed. Its evidence is that of the "
                "region where they did not: for a likelihood of zero, return -inf instead.",
            )


def _widths(result: Result) -> Iterator[Remark]:
    for name, factor, _, sd, shift, _, best in to_widths(result).itertuples(index=False):
        if best != result.best and sd <= COARSE:
            how = "half as wide" if factor < 1 else "twice as wide"
            yield Remark(
                "note",
                name,
                f"With the priors of {name}'s parameters {how}, its log-evidence would change by "
                f"{shift:+.2g} and {best} would be the most probable model. Be sure of those priors.",
            )
