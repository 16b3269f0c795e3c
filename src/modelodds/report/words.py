"""The report's text and tables as HTML. Everything that comes from the user passes through `escape`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from modelodds.diagnostics import surrogates_table, to_widths
from modelodds.diagnostics.remarks import COARSE
from modelodds.result import Result
from modelodds.verdict import counts, plus_minus, verdict

MOST_REASONS = 8
PAPER = (
    "H. Chai, J.-F. Ton, R. Garnett, M. A. Osborne. Automated Model Selection with Bayesian Quadrature. "
    "Proceedings of the 36th International Conference on Machine Learning, PMLR 97:931–940, 2019."
)
BIBTEX = """\
@inproceedings{chai2019automated,
  title     = {Automated Model Selection with {Bayesian} Quadrature},
  author    = {Chai, Henry and Ton, Jean-Fran{\\c{c}}ois and Garnett, Roman and Osborne, Michael A.},
  booktitle = {Proceedings of the 36th International Conference on Machine Learning},
  series    = {Proceedings of Machine Learning Research},
  volume    = {97},
  pages     = {931--940},
  year      = {2019},
}"""


def opening(result: Result) -> str:
    """Verdict, table and remarks."""
    return (
        f'<p class="verdict">{prose(verdict(result))}</p>'
        f'<p class="quiet">{prose(counts(result))} {prose(result.message)}</p>'
        f"{_odds_table(result)}{_remarks(result)}"
    )


def closing(result: Result) -> str:
    """Diagnostics in figures, sensitivity, failures, settings, citation."""
    return "".join(
        [
            _surrogates(result),
            _widths(result),
            _failures(result),
            _settings(result),
            "<h2>Citation</h2><p>modelodds builds on the method of</p>"
            f"<blockquote>{escape(PAPER)}</blockquote><pre>{escape(BIBTEX)}</pre>",
        ]
    )


def prose(text: str) -> str:
    """Text as HTML, a number kept together with its sign of per cent."""
    return escape(text).replace(" %", "\u00a0%")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are HTML already; the first column is the row's title."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(map(_cell, head[1:], rest))}</tr>' for first, *rest in rows
    )
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(title: str, cell: str) -> str:
    """A cell that knows its column's title: on a phone it stands before the value."""
    return f'<td data-title="{title}">{cell}</td>' if title else f"<td>{cell}</td>"


def _odds_table(result: Result) -> str:
    rows = []
    for name, row in result.table().iterrows():
        share = 100.0 * float(row["probability"])
        bar = f'<span class="bar"><span style="width:{share:.1f}%"></span></span>'
        rows.append(
            [
                escape(str(name)),
                f"{bar}{plus_minus(row['probability'], row['probability_sd'], 4)}",
                plus_minus(row["log_evidence"], row["log_evidence_sd"], 2),
                plus_minus(row["log_bayes_factor"], row["log_bayes_factor_sd"], 2),
                f"{row['evaluations']:.0f}",
                f"{row['failures']:.0f}",
            ]
        )
    head = ["model", "probability", "log-evidence", "log Bayes factor", "evaluations", "failures"]
    return table(head, rows)


def _remarks(result: Result) -> str:
    found = result.checks()
    if not found and not result.diagnostics:
        return '<p class="remark">No surrogates are kept with it: there is nothing to check it by.</p>'
    if not found:
        return '<p class="remark good">No remarks: nothing in the diagnostics calls for caution.</p>'
    items = "".join(
        f'<li class="remark {remark.level}"><b>{remark.level.capitalize()}.</b> {prose(remark.text)}</li>'
        for remark in found
    )
    return f'<ul class="remarks">{items}</ul>'


def _surrogates(result: Result) -> str:
    found = surrogates_table(result)
    if found.empty:
        return ""
    rows = [
        [
            escape(str(name)),
            f"{row['points']:.0f}",
            f"{100 * row['within_1_sd']:.0f} %",
            f"{100 * row['within_2_sd']:.0f} %",
            f"{row['typical_error']:.2g}",
            f"{row['effective_nodes']:.0f} of {row['nodes']:.0f}",
            f"{100 * row['unexplored']:.2g} %",
            f"{row['inflation']:.2g}",
            escape(f"{row['kernel']}{'; ' + row['at_bounds'] if row['at_bounds'] else ''}"),
        ]
        for name, row in found.iterrows()
    ]
    head = ["model", "points near the best", "left out, within 1 sd", "within 2 sd", "typical error (nats)"]
    head += ["effective nodes", "evidence from unexplored space", "variance widened by", "kernel"]
    return (
        "<h2>Surrogates in figures</h2>"
        "<p>A surrogate that predicts well has about 68 % of the left-out points within one standard "
        "deviation and 95 % within two; more is caution, less is overconfidence.</p>" + table(head, rows)
    )


def _widths(result: Result) -> str:
    found = to_widths(result)
    if found.empty:
        return ""
    rows = []
    for row in found.to_dict("records"):
        rows.append([escape(row["model"]), "half as wide" if row["factor"] < 1 else "twice as wide"])
        if row["log_evidence_sd"] > COARSE:
            rows[-1] += ["not known: too few evaluations there", "", "", ""]
        else:
            evidence = plus_minus(row["log_evidence"], row["log_evidence_sd"], 2)
            rows[-1] += [evidence, f"{row['shift']:+.2f}", f"{row['probability']:.3f}", escape(row["best"])]
    head = ["model", "its parameters' priors", "log-evidence", "change", "its probability", "most probable"]
    return (
        "<h2>If the parameters' priors were other</h2><p>One model's priors changed at a time, all of its "
        "parameters together, about their centres; wider ones by what the surrogate extrapolates.</p>"
        + table(head, rows)
    )


def _failures(result: Result) -> str:
    failed = result.evaluations[result.evaluations["status"] == "failed"]
    if failed.empty:
        return ""
    reasons = Counter(zip(failed["model"], failed["reason"], strict=True)).most_common(MOST_REASONS)
    rows = [[escape(str(model)), escape(str(reason)), str(n)] for (model, reason), n in reasons]
    return "<h2>Evaluations that failed</h2>" + table(["model", "reason", "times"], rows)


def _settings(result: Result) -> str:
    kept = result.settings
    run = {
        "method": result.method,
        "seed": "not an integer" if result.seed is None else str(result.seed),
        "evaluations": str(len(result.evaluations)),
        "modelodds' own time": f"{result.overhead_seconds:.1f} s",
    }
    parts = [
        "<h2>To reproduce it</h2>",
        "<p>The same models, method, seed, budget and stopping rule give the same run on one machine.</p>",
        _pairs("Run", run),
        _pairs("Versions", kept.get("versions", {"modelodds": result.version})),
        *(_pairs(f"Priors of {name}", prior) for name, prior in kept.get("priors", {}).items()),
        _pairs("Options of the method", kept.get("method", {})),
    ]
    return "".join(parts)


def _pairs(title: str, values: dict[str, Any]) -> str:
    if not values:
        return ""
    rows = [[escape(str(key)), escape(str(value))] for key, value in values.items()]
    return f"<details><summary>{escape(title)}</summary>{table(['', ''], rows)}</details>"
