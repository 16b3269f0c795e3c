"""The page of docs that holds the paper's claims against what the experiments found.

Every figure on it is computed here from the result files; where these are not complete, the page says so.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from shutil import copyfile

import numpy as np
import pandas as pd

from modelodds.experiments import model_choice, motivation, parts, synthetic
from modelodds.experiments.provenance import made_by
from modelodds.experiments.statistics import mcnemar, mean_over_median, smaller, worst_share
from modelodds.experiments.sweep import read

LEVEL = 0.01  # of significance, the paper's
DATASETS = 100
ENOUGH = 30  # datasets, below which there is no verdict
DIMENSIONS = (1, 2, 3, 4, 5)
BENCHMARKS = {  # the paper's, and the dimensions for which it claims to be better
    "round_robin": DIMENSIONS,
    "bridge": DIMENSIONS,
    "reversible_jump": (1, 2, 3),
}
OWN_SURROGATE = ("default", "default_independent", "round_robin_default")
OTHERS = ("round_robin_default", "default_independent", "monte_carlo", "quasi_monte_carlo", synthetic.EVEN)

TEMPLATE = Path(__file__).with_suffix(".md")
NOTHING = "*(no runs yet)*"


def write(out: Path, results: Path) -> list[Path]:
    """Write the page to ``out`` and its figures beside it, from the files in ``results``."""
    images = out.parent / "img" / "paper"
    copied = _copy(results, images)
    slots = _motivation(results / "motivation")
    slots |= _synthetic(read(results / "synthetic" / synthetic.OUT.name))
    slots |= _heldout(read(results / "heldout" / synthetic.OUT.name))
    slots |= _parts(read(results / "parts" / parts.OUT.name))
    slots |= _model_choice(read(results / "model_choice" / model_choice.OUT.name))
    slots |= {
        "image_motivation": _image(copied, "motivation/evidences", "Evidences and probabilities"),
        "image_synthetic": _image(copied, "synthetic/errors", "Fractional error of z₁ against evaluations"),
        "image_errors": _image(copied, "model_choice/errors", "Fractional error of z₁ under each target"),
        "image_right": _image(copied, "model_choice/right", "Share of right choices against evaluations"),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(TEMPLATE.read_text(encoding="utf-8").format(**slots), encoding="utf-8")
    return [out, *(images / name for name in copied.values())]


def _copy(results: Path, images: Path) -> dict[str, str]:
    """Copy the figures that there are; names in ``images`` by their place in ``results``."""
    found = {}
    for place in ("motivation/evidences", "synthetic/errors", "model_choice/errors", "model_choice/right"):
        source = results / f"{place}.svg"
        if source.exists():
            images.mkdir(parents=True, exist_ok=True)
            found[place] = source.relative_to(results).as_posix().replace("/", "_")
            copyfile(source, images / found[place])
    return found


def _image(copied: dict[str, str], place: str, text: str) -> str:
    return f"![{text}](img/paper/{copied[place]})" if place in copied else NOTHING


def _notice(rows: pd.DataFrame, methods: Sequence[str], dimensions: Iterable[int]) -> str:
    """A warning where runs are missing, and which code made those that there are."""
    if rows.empty:
        return NOTHING
    warning = ""
    counts = rows.groupby(["d", "method"]).dataset.nunique()
    there = [int(counts.get((d, method), 0)) for d in dimensions for method in methods]
    short = [n for n in there if n < DATASETS]
    if short:
        has = f"{min(short)} to {max(short)}" if min(short) < max(short) else f"{max(short)}"
        pairs = f"{len(short)} of {len(there)} pairs of method and dimension"
        says = f"Not the whole experiment: {pairs} have {has} datasets, not {DATASETS}."
        warning = f'!!! warning "Incomplete"\n\n    {says}\n\n'
    return f"{warning}Made by modelodds {codes_by_method(rows, methods)}."


def codes_by_method(rows: pd.DataFrame, methods: Iterable[str]) -> str:
    """Which code made which methods' runs, those of one code together."""
    by = made_by(rows).groupby(rows.method).agg(lambda codes: ", ".join(sorted(set(codes))))
    found: dict[str, list[str]] = {}
    for method in synthetic.in_order(by.index, methods):
        found.setdefault(str(by[method]), []).append(f"`{method}`")
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{code} ({', '.join(names)})" for code, names in found.items())


# ---------------------------------------------------------------------- sections


def _motivation(folder: Path) -> dict[str, str]:
    text = folder / "evidences.txt"
    says = text.read_text(encoding="utf-8").strip() if text.exists() else NOTHING
    return {"motivation": says, "enough": f"{motivation.ENOUGH}"}


def _synthetic(rows: pd.DataFrame) -> dict[str, str]:
    slots = {"level": f"{LEVEL}", "notice_synthetic": _notice(rows, synthetic.METHOD_NAMES, DIMENSIONS)}
    if rows.empty:
        return slots | dict.fromkeys(
            ("claims", "tally", "concentration", "spread", "speed_up", "speed_up_acquisition", "costs"),
            NOTHING,
        )
    wide = synthetic.final_errors(rows)
    verdicts = claims(wide)
    tables = {
        "claims": verdicts,
        "concentration": concentration(wide),
        "spread": spread(rows),
        "speed_up": bounded(synthetic.speed_up(rows)),
        "speed_up_acquisition": bounded(synthetic.speed_up(rows, theirs="round_robin_default")),
        "costs": synthetic.costs(rows),
    }
    return slots | {"tally": tally(verdicts)} | {name: markdown_table(t) for name, t in tables.items()}


def _heldout(rows: pd.DataFrame) -> dict[str, str]:
    if rows.empty:
        return {"notice_heldout": NOTHING, "heldout": NOTHING}
    made = f"Made by modelodds {codes_by_method(rows, synthetic.METHOD_NAMES)}."
    table = synthetic.summary(rows).dropna(axis="columns", how="all")  # without tests against absent methods
    return {"notice_heldout": made, "heldout": markdown_table(table)}


def bounded(table: pd.DataFrame) -> pd.DataFrame:
    """``table`` of speed-ups, an infinite one as being above what was tried."""
    if table.empty:
        return table
    budget = table["ours there at"] * table["saved"]
    tried = {"needs": table["of"], "factor": table["of"] / budget}
    return table.assign(
        **{
            name: [
                _cell(value) if np.isfinite(value) else f"> {_cell(most)}"
                for value, most in zip(table[name], bound, strict=True)
            ]
            for name, bound in tried.items()
        }
    )


def _parts(rows: pd.DataFrame) -> dict[str, str]:
    if rows.empty:
        return {"notice_parts": NOTHING, "parts": NOTHING}
    made = f"Made by modelodds {codes_by_method(rows, parts.METHOD_NAMES)}."
    return {"notice_parts": made, "parts": markdown_table(parts.summary(rows))}


def _model_choice(rows: pd.DataFrame) -> dict[str, str]:
    notice = _notice(rows, model_choice.METHOD_NAMES, model_choice.DIMENSIONS)
    tables = {
        "choice_claims": choice_claims,
        "agreement": model_choice.agreement,
        "choices": model_choice.choices,
        "z_errors": model_choice.z_errors,
    }
    made = {name: NOTHING if rows.empty else markdown_table(make(rows)) for name, make in tables.items()}
    return {"notice_model_choice": notice} | made


# ---------------------------------------------------------------------- tables


def claims(wide: pd.DataFrame) -> pd.DataFrame:
    """The paper's comparisons, and those past it: means, p-values, and whether each claim holds.

    Parameters
    ----------
    wide : DataFrame
        Final errors, as `synthetic.final_errors` gives them.
    """
    table = []
    for rival in (*BENCHMARKS, *OTHERS):
        claimed = BENCHMARKS.get(rival, ())
        for d in DIMENSIONS:
            if rival not in wide or d not in wide.index.get_level_values("d"):
                continue
            errors = wide.xs(d, level="d")
            row: dict[str, object] = {"against": rival, "d": d, "claimed": "yes" if d in claimed else "no"}
            row["its mean"] = errors[rival].mean()
            for ours in ("default", "paper"):
                if ours in errors:
                    p, n = smaller(errors[ours], errors[rival]), len(errors[[ours, rival]].dropna())
                    row |= {f"mean, {ours}": errors[ours].mean(), f"t, {ours}": p.t}
                    says = _verdict(p.t, n, *(CLAIMED if d in claimed else UNCLAIMED))
                    row |= {f"Wilcoxon, {ours}": p.wilcoxon, f"holds, {ours}": says}
            table.append(row)
    return pd.DataFrame(table)


CLAIMED, UNCLAIMED = ("holds", "does not hold"), ("smaller", "not shown")


def _verdict(p: float, n: int, yes: str = CLAIMED[0], no: str = CLAIMED[1]) -> str:
    if np.isnan(p) or n < ENOUGH:
        return "too few runs"
    return yes if p < LEVEL else no


def tally(verdicts: pd.DataFrame) -> str:
    """How many of the paper's claims hold, in words, and of other comparisons with its benchmarks."""
    parts = []
    claimed = verdicts.claimed == "yes"
    beyond = ~claimed & verdicts.against.isin(list(BENCHMARKS))
    for ours, name in (("default", "Our default"), ("paper", "The paper preset")):
        if f"holds, {ours}" in verdicts:
            hold = verdicts[f"holds, {ours}"].isin([CLAIMED[0], UNCLAIMED[0]])
            parts.append(
                f"{name}: {int(hold[claimed].sum())} of the paper's {int(claimed.sum())} claims hold, and "
                f"its error is smaller in {int(hold[beyond].sum())} of {int(beyond.sum())} comparisons with "
                "the same benchmarks that the paper does not claim."
            )
    return "\n".join(parts)


def concentration(wide: pd.DataFrame) -> pd.DataFrame:
    """How much of a method's mean error a few datasets make, and which."""
    table = []
    for d, errors in wide.groupby(level="d"):
        for method in wide.columns:
            error = errors[method].dropna().droplevel("d")
            if len(error):
                worst = error.nlargest(3).index
                row = {"d": d, "method": method, "mean": error.mean(), "median": error.median()}
                row |= {"worst five": worst_share(error), "which": ", ".join(str(i) for i in worst)}
                table.append(row)
    return pd.DataFrame(table)


def spread(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean over median of final errors, of z_1 and of the log-odds, for the methods that have our surrogate.

    ``alike`` is that of z_1 if the errors of the log-odds had one normal distribution on all datasets: a
    fractional error of z_1 is 1 - z_1 times that of the log-odds, to first order.
    """
    rng, table = np.random.default_rng(0), []
    rows = rows[rows.method.isin(OWN_SURROGATE)]
    ends = rows.sort_values("n_evaluations").groupby(["d", "dataset", "method"], as_index=False).tail(1)
    for (d, method), end in ends.groupby(["d", "method"]):
        alike = np.abs(rng.normal(size=(1000, len(end)))) * (1.0 - end.z1_true.to_numpy())
        of_z, of_log_odds = synthetic.errors(end), (end.log_odds - end.log_odds_true).abs()
        row = {"d": d, "method": method, "n": len(end), "z₁": mean_over_median(of_z)}
        row |= {"log-odds": mean_over_median(of_log_odds)}
        table.append(row | {"alike": float((alike.mean(1) / np.median(alike, 1)).mean())})
    return pd.DataFrame(table)


def choice_claims(rows: pd.DataFrame) -> pd.DataFrame:
    """What the paper says of [z_1 > z_2] with Gaussian evidences, tested on the paper preset's surrogate.

    That it is no worse than a benchmark is not refuted unless it is shown to be worse.
    """
    table = []
    errors, target = synthetic.final_errors(rows), "paper_choice_gaussian"
    tests = [(1, other, f"error of z₁ no larger than {other}'s") for other in BENCHMARKS]
    tests += [(2, other, f"error of z₁ larger than {other}'s") for other in BENCHMARKS]
    tests.append((2, "paper", "error of z₁ larger than when z₁ is the target"))
    for d, other, claim in tests:
        if {target, other} <= set(errors.columns) and d in errors.index.get_level_values("d"):
            wide = errors.xs(d, level="d")[[other, target]].dropna()
            p = smaller(wide[other], wide[target]).t
            words = ("does not hold", "not refuted") if "no larger" in claim else CLAIMED
            row = {"claim": claim, "d": d, "n": len(wide), "its mean": wide[target].mean()}
            row |= {"the other's": wide[other].mean(), "test": "paired t", "p": p}
            table.append(row | {"verdict": _verdict(p, len(wide), *words)})
    end = model_choice.at(rows, 2, 1.0)
    right = end.assign(right=model_choice.right(end)).pivot(index="dataset", columns="method", values="right")
    if {"paper", target} <= set(right.columns):
        both = right[["paper", target]].dropna().astype(bool)
        found = mcnemar(both["paper"], both[target])
        p = found.p if found.ours > found.theirs else 1.0
        row = {"claim": "right less often than when z₁ is the target", "d": 2, "n": len(both)}
        row |= {"its mean": both[target].mean(), "the other's": both["paper"].mean(), "test": "McNemar"}
        table.append(row | {"p": found.p, "verdict": _verdict(p, len(both))})
    return pd.DataFrame(table)


def markdown_table(frame: pd.DataFrame) -> str:
    """A table in Markdown, numbers to three digits."""
    if frame.empty:
        return NOTHING
    numbers = [pd.api.types.is_numeric_dtype(frame[name]) for name in frame.columns]
    lines = [
        "| " + " | ".join(map(str, frame.columns)) + " |",
        "|" + "|".join("---:" if number else "---" for number in numbers) + "|",
    ]
    for row in frame.itertuples(index=False):
        lines.append("| " + " | ".join(_cell(value) for value in row) + " |")
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, float | np.floating):
        if np.isnan(value):
            return "–"
        return "∞" if np.isinf(value) else f"{float(value):.3g}"
    return str(value)
