"""What a result says, in words a reader who is no statistician can act on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modelodds.result import Result

Z95 = 1.959963984540054  # half-width of a 95 % interval of the standard normal
LN10 = math.log(10.0)
SMALL = math.log(3.0)  # log-odds of a lead "not worth more than a bare mention" (Kass & Raftery 1995)
EVEN = math.log(1.1)  # log-odds that nobody would call a lead, however precisely they are known
LOST = 100.0  # nats: log-odds less certain than this are not known at all
MOST_SHARES = 4  # models named with their share of the probability


def summary(result: Result) -> str:
    """Verdict, table, counts and why the run stopped, warnings if there are any: one paragraph each."""
    parts = [verdict(result), table_text(result), f"{counts(result)} {result.message}".strip()]
    warned = sum(remark.level == "warning" for remark in result.checks())
    if warned:
        parts.append(f"{warned} warning{'' if warned == 1 else 's'}: see result.checks(), or the report.")
    return "\n\n".join(parts)


def verdict(result: Result) -> str:
    """One or two sentences: which model is favoured, by how much, and whether that is settled."""
    order = list(result.table().index)
    if len(order) == 1:
        return _evidence(result, order[0])
    best, second = order[:2]
    equal = _equal_priors(result)
    by = "The data" if equal else "The data and the prior probabilities together"
    mean, sd = result.log_odds(best, second)
    odds = _odds_sentence(best, second, mean, sd, by)
    shares = _shares(result, order) if len(order) > 2 and sd <= LOST else ""
    return odds + shares + ("" if equal else " The odds include the prior probabilities of the models.")


def counts(result: Result) -> str:
    """How many evaluations each model had, and how many of all failed."""
    each = result.n_evaluations
    total, failed = sum(each.values()), sum(result.n_failures.values())
    spent = ", ".join(f"{name} {n}" for name, n in each.items())
    split = f" ({spent})" if len(each) > 1 and total else ""
    failures = f", of which {failed} failed ({commonest_reason(result)})" if failed else ""
    return f"{total} evaluation{'' if total == 1 else 's'}{split}{failures}."


def commonest_reason(result: Result, model: str | None = None) -> str:
    """Why most of the evaluations that failed did so: of one model, or of all."""
    table = result.evaluations
    failed = (table["status"] == "failed") & ((table["model"] == model) | (model is None))
    reasons = table.loc[failed, "reason"].value_counts()
    reason, times = str(reasons.index[0]), int(reasons.iloc[0])
    return f"{reason}" if len(reasons) == 1 else f"{times} times {reason}"


def table_text(result: Result) -> str:
    """The table of the result in aligned columns, a mean and its standard deviation together."""
    table = result.table()
    pairs = {"probability": 4, "log_evidence": 2, "log_bayes_factor": 2}
    columns = {"model": list(table.index)}
    for name, digits in pairs.items():
        values = zip(table[name], table[f"{name}_sd"], strict=True)
        columns[name.replace("_", " ")] = [plus_minus(mean, sd, digits) for mean, sd in values]
    if len(table) == 1:
        del columns["probability"], columns["log bayes factor"]
    counted = ("evaluations", "failures") if table["failures"].any() else ("evaluations",)
    columns |= {name: [str(n) for n in table[name]] for name in counted}
    return align({_TITLES.get(name, name): cells for name, cells in columns.items()})


_TITLES = {"log evidence": "log-evidence", "log bayes factor": "log Bayes factor"}


def odds_text(log_odds: float, digits: int = 2) -> str:
    """Odds to one as text: 0.45, 3.2, 160; beyond 10^4 either way, as a power of ten."""
    power = log_odds / LN10
    if abs(power) > 4.0:
        return f"10^{power:.{max(digits - 1, 0)}f}"
    value = float(f"{math.exp(log_odds):.{digits}g}")
    decimals = max(digits - 1 - math.floor(math.log10(value)), 0)
    return f"{value:.{decimals}f}"


def _odds_sentence(best: str, second: str, mean: float, sd: float, by: str) -> str:
    """What the odds say: nothing, a clear lead, a small one, a well-measured tie, or too little seen."""
    if math.isinf(mean):
        return f"{best} is favoured beyond any odds over {second}, whose evidence is zero."
    if sd > LOST:
        return f"The evaluations so far say nothing about the odds between {best} and {second}."
    middle, low, high = _interval(mean, sd)
    interval = f" (95 % interval {low} to {high})" if sd > 0.0 else ""
    lowest, highest = mean - Z95 * sd, mean + Z95 * sd
    if lowest > 0.0 and highest > EVEN:
        small = ": too small a lead to choose by" if highest < SMALL else ""
        return f"{best} is favoured {middle} : 1 over {second}{interval}{small}."
    if lowest > -SMALL and highest < SMALL:
        return f"{by} favour neither {best} nor {second}: the odds are {middle} : 1{interval}."
    return (
        f"The evaluations so far do not tell {best} and {second} apart: the odds are {middle} : 1 for {best}"
        f", but could well be anything from {low} to {high} : 1 (95 % interval). "
        "More evaluations would narrow this down."
    )


def _interval(mean: float, sd: float) -> tuple[str, str, str]:
    """Odds and the ends of their 95 % interval, with as many digits as it takes to tell them apart."""
    numbers = (mean, mean - Z95 * sd, mean + Z95 * sd)
    for digits in (2, 3, 4):
        middle, low, high = (odds_text(number, digits) for number in numbers)
        if len({middle, low, high}) == 3:
            break
    else:
        middle, low, high = (odds_text(number, 3) for number in numbers)
    return middle, low, high


def _shares(result: Result, order: list[str]) -> str:
    """With more than two models the odds over the runner-up are not the whole story."""
    named = order if len(order) <= MOST_SHARES + 1 else order[:MOST_SHARES]
    shares = [f"{name} {_percent(result.probabilities[name])}" for name in named]
    rest = sum(result.probabilities[name] for name in order[len(named) :])
    if len(named) < len(order):
        shares.append(f"the other {len(order) - len(named)} together {_percent(rest)}")
    return f" Probabilities of the {len(order)} models: {', '.join(shares)}."


def _percent(share: float) -> str:
    """A share in whole per cent, or as a bound where rounding would make it 0 or 100."""
    if share < 0.005:
        return "under 0.5 %"
    return "over 99.5 %" if share > 0.995 else f"{100 * share:.0f} %"


def _evidence(result: Result, name: str) -> str:
    mean, sd = result.log_evidence[name], result.log_evidence_sd[name]
    if sd > LOST:
        return f"The evaluations so far say nothing about the evidence of {name}."
    tens = f"{plus_minus(mean / LN10, sd / LN10, 2)} in powers of ten"
    return f"The log-evidence of {name} is {plus_minus(mean, sd, 2)} ({tens}); no other model was given."


def _equal_priors(result: Result) -> bool:
    return bool(max(result.prior_probabilities) - min(result.prior_probabilities) < 1e-12)


def plus_minus(mean: float, sd: float, digits: int) -> str:
    """`mean ± sd` with at least `digits` decimals, more for a small sd; a small mean in powers of ten."""
    if 0.0 < mean < 10.0 ** (1 - digits):
        return f"{mean:.1e} ± {sd:.1e}"
    if 1e-9 <= sd < 10.0**-digits:
        digits = -math.floor(math.log10(sd))
    return f"{mean:.{digits}f} ± {sd:.{digits}f}"


def align(columns: dict[str, list[str]]) -> str:
    """Left-align the first column and right-align the rest, under their titles."""
    rows = [list(columns), *map(list, zip(*columns.values(), strict=True))]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = []
    for first, *rest in rows:
        right = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *right]))
    return "\n".join(lines)
