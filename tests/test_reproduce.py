"""The paper's experiments: statistics, tables, figures, the page, and the commands that make them."""

from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy import special, stats
from typer.testing import CliRunner

from example_result import example_result
from modelodds.baselines import METHODS
from modelodds.cli import app
from modelodds.experiments import model_choice, motivation, page, parts, synthetic
from modelodds.experiments.figures import choices_figure, errors_figure, save
from modelodds.experiments.pace import Pace, in_words, watched
from modelodds.experiments.provenance import code_version
from modelodds.experiments.statistics import mcnemar, share, smaller, worst_share
from modelodds.experiments.sweep import read
from modelodds.plots import evidence_densities, evidences_figure


def invoke(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


def curve(d: int, dataset: int, method: str, errors: dict[int, float], z1_true: float = 0.5) -> pd.DataFrame:
    """A run whose fractional error of z_1 after n evaluations is as given."""
    n, error = list(errors), np.array(list(errors.values()))
    return pd.DataFrame(
        {"d": d, "dataset": dataset, "method": method, "n_evaluations": n, "z1": z1_true * (1 + error),
         "log_odds": 0.0, "z1_true": z1_true, "log_odds_true": 0.0, "seconds": 2.0, "code": code_version()}
    )  # fmt: skip


def experiment(scale: dict[str, float], dimensions: tuple[int, ...] = (1, 2), n: int = 8) -> pd.DataFrame:
    """Made-up runs of methods whose errors are of the given sizes and shrink with the evaluations."""
    runs = []
    for d in dimensions:
        for i in range(n):
            rng = np.random.default_rng([d, i])
            truth = rng.uniform(0.2, 0.8)
            for method, size in scale.items():
                error = size * rng.exponential()
                steps = {k * d: error * 50 / k for k in range(10, 51, 5)}
                runs.append(curve(d, i, method, steps, truth))
    return pd.concat(runs, ignore_index=True)


SIZES = {"default": 0.01, "paper": 0.05, "round_robin": 0.1, "bridge": 0.3, "reversible_jump": 0.2}


# ---------------------------------------------------------------------- statistics


def test_paired_tests_are_scipys_and_matched_by_dataset() -> None:
    rng = np.random.default_rng(0)
    a, b = pd.Series(rng.exponential(size=20)), pd.Series(rng.exponential(1.5, size=20))
    found = smaller(a.sample(frac=1, random_state=0), b)
    assert found.t == pytest.approx(stats.ttest_rel(a, b, alternative="less").pvalue)
    assert found.wilcoxon == pytest.approx(stats.wilcoxon(a, b, alternative="less").pvalue)
    assert np.isnan(smaller(a[:2], b)).all() and np.isnan(smaller(a, a)).all()


def test_shares_come_with_clopper_and_pearsons_interval() -> None:
    found = share([True] * 18 + [False] * 2)
    assert found.value == 0.9
    assert found.low == pytest.approx(stats.beta.ppf(0.025, 18, 3))
    assert found.high == pytest.approx(stats.beta.ppf(0.975, 19, 2))


def test_mcnemar_looks_at_the_trials_on_which_two_methods_differ() -> None:
    ours = [True] * 10 + [False] * 2 + [True] * 50
    theirs = [False] * 10 + [True] * 2 + [True] * 50
    assert mcnemar(ours, theirs) == (10, 2, pytest.approx(2 * stats.binom.cdf(2, 12, 0.5)))
    assert mcnemar(ours, ours) == (0, 0, 1.0)


def test_worst_share() -> None:
    assert worst_share([1.0, 1.0, 1.0, 97.0], 1) == pytest.approx(0.97)
    assert np.isnan(worst_share([0.0, 0.0]))


# ---------------------------------------------------------------------- synthetic


def test_curves_hold_their_last_value_between_records() -> None:
    rows = pd.concat([curve(1, 0, "m", {10: 0.4, 20: 0.2}), curve(1, 1, "m", {15: 0.3, 20: 0.1})])
    wide = synthetic.along(rows, synthetic.errors(rows))
    assert list(wide.columns) == [15, 20]  # before 15 the second run said nothing
    np.testing.assert_allclose(wide, [[0.4, 0.2], [0.3, 0.1]])


def test_speed_up_counts_to_where_the_error_stays() -> None:
    ours = {10: 0.4, 20: 0.1, 30: 0.04, 40: 0.03, 50: 0.02}
    theirs = {10: 0.4, 20: 0.3, 30: 0.02, 40: 0.2, 50: 0.1, 100: 0.02, 200: 0.01}
    short = {n: e for n, e in theirs.items() if n <= 50}
    rows = pd.concat([curve(1, i, "default", ours) for i in range(3)])
    with_short = pd.concat([rows, *(curve(1, i, "round_robin", short) for i in range(4))])
    found = synthetic.speed_up(with_short).set_index("statistic").loc["mean"]
    assert found.n == 3 and found.error == pytest.approx(0.02) and found["their error"] == pytest.approx(0.1)
    assert found.needs == np.inf and found.of == 50 and found["ours there at"] == 20
    assert found.saved == pytest.approx(2.5)
    assert tuple(page.bounded(synthetic.speed_up(with_short))[["needs", "factor"]].iloc[0]) == ("> 50", "> 1")
    with_long = pd.concat([with_short, *(curve(1, i, "round_robin_long", theirs) for i in range(3))])
    found = synthetic.speed_up(with_long).set_index("statistic").loc["mean"]
    assert (found.needs, found.of, found.factor) == (100, 200, 2.0)
    assert found["their error"] == pytest.approx(0.1)  # still at our budget
    assert "round_robin_long" not in synthetic.final_errors(with_long)
    assert synthetic.speed_up(rows).empty


def test_the_long_run_is_round_robin_with_more_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(models: Any, budget: int, seed: int) -> Any:
        asked.append(budget)
        return METHODS["monte_carlo"](models, budget, seed)

    monkeypatch.setitem(METHODS, "round_robin", run)
    rows = synthetic.work(synthetic.Task(1, 0, "round_robin_long"))
    assert asked == [200] and rows[-1]["n_evaluations"] == 200 and rows[-1]["method"] == "round_robin_long"
    synthetic.check_method("round_robin_long")


def test_costs_are_medians_by_dimension() -> None:
    found = synthetic.costs(experiment(SIZES))
    assert list(found.d) == [1, 2] and (found[list(SIZES)] == 2.0).all(axis=None)
    assert synthetic.costs(experiment(SIZES).drop(columns="seconds")).empty


# ---------------------------------------------------------------------- model choice


def test_variants_differ_from_their_preset_in_the_target_alone() -> None:
    for preset in ("default", "paper"):
        for name, rule in model_choice.TARGETS.items():
            ((_, method),) = model_choice.METHODS[f"{preset}_{name}"].options
            assert method == synthetic_method(preset, rule)
    assert set(model_choice.METHOD_NAMES) <= set(model_choice.METHODS)
    with pytest.raises(ValueError, match="no method 'paper_mutual_information'"):
        model_choice.check_method("paper_mutual_information")


def synthetic_method(preset: str, rule: str) -> Any:
    from modelodds.method import resolve_method

    return resolve_method(preset, acquisition=rule, coupling="independent")


def test_parts_are_the_paper_preset_but_for_what_they_name() -> None:
    from modelodds.method import PRESETS

    for name, change in parts.CHANGES.items():
        ((_, method),) = parts.METHODS[name].options
        unlike = {option for option, value in vars(method).items() if value != vars(PRESETS["paper"])[option]}
        assert unlike == set(change) and unlike
        assert all(f"{option}={value}" in parts.in_words(name) for option, value in change.items())
    with pytest.raises(ValueError, match="no method 'bridge'"):
        parts.check_method("bridge")


def test_parts_are_tested_against_the_preset() -> None:
    rows = experiment({"paper": 0.3, "paper_fit": 0.01, "paper_nodes": 0.3, "default": 0.01}, (3,), n=40)
    table = parts.summary(rows).set_index("method")
    assert list(table.index) == ["paper", "paper_nodes", "paper_fit", "default"]
    assert table.t["paper_fit"] < 0.01 < table.t["paper_nodes"] and np.isnan(table.t["paper"])
    assert table["mean"]["paper_fit"] < table["mean"]["paper"] and table.changed["paper_fit"] == "fit=log"


def test_a_choice_is_right_when_it_is_on_the_truths_side() -> None:
    rows = pd.DataFrame({"z1": [0.6, 0.4, 0.6, 0.4, 0.5], "z1_true": [0.9, 0.1, 0.1, 0.9, 0.9]})
    assert list(model_choice.right(rows)) == [True, True, False, False, False]


def test_choices_are_counted_at_two_stages() -> None:
    late = [
        curve(1, i, "default", {20: 1.5, 50: 0.0}, 0.4) for i in range(6)
    ]  # 1.0, then 0.4: right at the end
    early = [curve(1, i, "bridge", {20: 0.0, 50: 1.5 if i < 2 else 0.0}, 0.4) for i in range(6)]
    found = model_choice.choices(pd.concat([*late, *early])).set_index(["share", "method"])
    assert list(found.right) == [0.0, 1.0, 1.0, pytest.approx(4 / 6)]
    at_end = found.loc[(1.0, "bridge")]
    assert (at_end["ours alone"], at_end["it alone"], at_end["McNemar"]) == (2, 0, 0.5)
    assert found.loc[(0.4, "bridge"), "it alone"] == 6
    assert found.loc[(1.0, "default"), ["McNemar"]].isna().all()
    assert found.loc[(1.0, "default"), "low"] == pytest.approx(0.025 ** (1 / 6))


def test_agreement_is_to_the_last_digit() -> None:
    same, other = {20: 0.1, 50: 0.01}, {20: 0.1, 50: 0.01001}
    runs = [curve(2, i, "default_independent", same) for i in range(3)]
    runs += [curve(2, i, "default_choice", same) for i in range(2)]
    runs += [curve(2, i, "default_difference", same if i else other) for i in range(3)]
    runs += [curve(2, 0, m, same) for m in ("paper_choice", "paper_difference")]
    found = model_choice.agreement(pd.concat(runs)).set_index("method")
    assert found.loc["default_choice", "as"] == "default_independent" and len(found) == 3
    assert list(found.loc["paper_difference", ["as", "runs", "the same"]]) == ["paper_choice", 1, 1]
    assert list(found.loc["default_choice", ["runs", "the same"]]) == [2, 2]
    assert list(found.loc["default_difference", ["runs", "the same"]]) == [3, 2]


def test_runs_are_borrowed_from_the_same_code_alone() -> None:
    ran = pd.concat([curve(1, i, "default", {20: 0.1, 50: 0.2}) for i in range(3)], ignore_index=True)
    ran.loc[ran.dataset == 1, "code"] = "other"
    tasks = synthetic.tasks([1], range(3), ["default", "default_choice"])
    found = pd.DataFrame(model_choice.borrowed(tasks, pd.DataFrame(), ran))
    assert set(found.dataset) == {0, 2} and len(found) == 4
    assert {row["dataset"] for row in model_choice.borrowed(tasks, ran[ran.dataset == 0], ran)} == {2}
    assert model_choice.borrowed(tasks, ran, pd.DataFrame()) == []


# ---------------------------------------------------------------------- time left


def test_time_left_is_by_kind_and_shared_by_workers() -> None:
    pace = Pace(["a", "a", "b", "b", "c"], workers=2)
    assert pace.time_left() is None and in_words(None) == "time left not known yet"
    pace.done("a", 10.0)
    pace.done("b", 100.0)
    assert pace.time_left() == pytest.approx((10 + 100 + 55) / 2)  # c is expected to take the average
    for kind in "abc":
        pace.done(kind, float("nan"))
    assert pace.time_left() == 0.0
    assert [in_words(s) for s in (12, 150, 5400)] == ["12 s left", "2 min left", "1 h 30 min left"]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_sweep_is_watched(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modelodds.experiments.pace.time.perf_counter", iter(range(10**6)).__next__)
    tasks, text = synthetic.tasks([1], range(40), ["m"]), StringIO()
    console = Console(file=text, force_terminal=terminal, width=90)
    runs = ([task._asdict() | {"seconds": 3.0}] for task in tasks)
    assert len(list(watched(runs, tasks, ("d", "method"), 1, console))) == 40
    shown = text.getvalue()
    if terminal:
        assert "40/40" in shown and "0 s left" in shown
    else:
        lines = shown.splitlines()
        assert 18 <= len(lines) <= 20 and lines[-1] == "modelodds: 40/40 runs, 0 s left"


# ---------------------------------------------------------------------- motivation


def test_evidences_are_drawn_as_their_beliefs_say() -> None:
    result = example_result(mean=(-10.0, -14.0), sd=0.5)
    drawn = evidence_densities(result)
    for i, centre in enumerate((0.0, -4.0)):
        grid, height = drawn.log_evidence[i], drawn.log_evidence_density[i]
        mean = height @ grid / height.sum()
        assert mean == pytest.approx(centre, abs=0.01)
        assert np.sqrt(height @ (grid - mean) ** 2 / height.sum()) == pytest.approx(0.5, rel=0.02)
    best = drawn.names[0]
    assert drawn.probability.mean() == pytest.approx(result.probabilities[best], abs=0.002)
    assert drawn.probability.std() == pytest.approx(result.probability_sd[best], rel=0.05)


@pytest.mark.parametrize("sd", [1e-9, 0.4, 300.0])
def test_the_figure_of_evidences_is_drawn_for_any_belief(sd: float) -> None:
    figure = evidences_figure(example_result(mean=(-10.0, -11.0, -900.0), sd=sd))
    figure.draw_without_rendering()
    lines = [line for axes in figure.axes for line in axes.lines]
    assert lines and all(np.isfinite(np.asarray(line.get_ydata(), dtype=float)).all() for line in lines)


def test_the_models_of_the_motivation_differ_by_what_is_said() -> None:
    """Log-odds by a grid over the prior: sure enough to be the example, and in favour of the truth."""
    z = stats.norm.ppf((np.arange(60) + 0.5) / 60)
    theta = np.stack(np.meshgrid(0.5 + 0.5 * z, -0.3 + 0.7 * z), axis=-1).reshape(-1, 2)
    log_a = [np.logaddexp.reduce([m.log_likelihood(t) for t in theta]) for m in motivation.models()]
    assert 5.5 < log_a[0] - log_a[1] < 6.5


def test_the_motivation_in_words() -> None:
    assert [motivation.relative(sd) for sd in (0.1, 2.0, 9.0)] == [
        "± 10 %",
        "within a factor of 7",
        "unknown",
    ]
    says = motivation.in_words(example_result(mean=(-10.0, -16.0), sd=0.5))
    assert "± 53 % (Bath) and ± 53 % (York)" in says and "probability of Bath is 0.99" in says


# ---------------------------------------------------------------------- figures and the page


def test_figures_have_a_panel_per_dimension_and_a_line_per_method(tmp_path: Path) -> None:
    rows = experiment(SIZES | {"paper_choice_gaussian": 0.4})
    figure = errors_figure(rows, list(SIZES))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["d = 1, 8 datasets", "d = 2, 8 datasets"]
    assert [[line.get_label() for line in axes.lines] for axes in figure.axes] == [list(SIZES)] * 2
    (default,) = [line for line in figure.axes[1].lines if line.get_label() == "default"]
    wide = synthetic.final_errors(rows).default.xs(2, level="d")
    assert np.asarray(default.get_ydata())[-1] == pytest.approx(wide.mean())
    paths = save(figure, tmp_path / "deep" / "errors")
    first = [path.read_bytes() for path in paths]
    assert [path.suffix for path in paths] == [".png", ".svg"] and all(len(b) > 10_000 for b in first)
    assert [p.read_bytes() for p in save(errors_figure(rows, list(SIZES)), tmp_path / "errors")] == first
    panels = choices_figure(rows).axes
    assert len(panels) == 4 and "paper_choice_gaussian" in [line.get_label() for line in panels[0].lines]


def test_claims_are_held_against_the_tests() -> None:
    wide = synthetic.final_errors(experiment(SIZES, n=30))
    table = page.claims(wide).set_index(["against", "d"])
    p = smaller(wide.default.xs(1, level="d"), wide.bridge.xs(1, level="d"))
    row = table.loc[("bridge", 1)]
    assert row["t, default"] == pytest.approx(p.t) and p.t < 0.01 and row["holds, default"] == "holds"
    swapped = wide.rename(columns={"bridge": "default", "default": "bridge"})
    assert (
        page.claims(swapped).set_index(["against", "d"]).loc[("bridge", 1), "holds, default"]
        == "does not hold"
    )
    assert page.claims(wide[:20]).iloc[0]["holds, default"] == "too few runs"
    assert table.loc[("reversible_jump", 2), "claimed"] == "yes"
    says = page.tally(page.claims(wide))
    assert "6 of the paper's 6 claims" in says and "smaller in 0 of 0 comparisons" in says
    even = table.xs(synthetic.EVEN, level="against").iloc[0]
    assert even.claimed == "no" and even["holds, default"] in page.UNCLAIMED


def test_the_papers_claims_on_model_choice() -> None:
    rows = experiment({"paper": 0.02, "round_robin": 0.03, "paper_choice_gaussian": 0.5}, n=40)
    table = page.choice_claims(rows)
    assert list(table.verdict[:3]) == ["does not hold", "holds", "holds"]  # no larger: refuted
    assert list(table["the other's"][:2]) == pytest.approx([0.03, 0.03], rel=0.5)
    wide = synthetic.final_errors(rows).xs(2, level="d")
    assert table.p[2] == pytest.approx(smaller(wide.paper, wide.paper_choice_gaussian).t)
    hits = [
        model_choice.at(rows[rows.method == m], 2, 1.0).sort_values("dataset")
        for m in ("paper", "paper_choice_gaussian")
    ]
    assert table.p[3] == pytest.approx(mcnemar(*(model_choice.right(h) for h in hits)).p)
    same = page.choice_claims(
        experiment({"paper": 0.02, "round_robin": 0.02, "paper_choice_gaussian": 0.02}, n=40)
    )
    assert list(same.verdict) == ["not refuted", "does not hold", "does not hold", "does not hold"]
    assert set(page.choice_claims(rows[rows.dataset < 9]).verdict) == {"too few runs"}


def test_errors_of_z_spread_by_what_z_is_even_if_those_of_log_odds_do_not() -> None:
    rng, n = np.random.default_rng(3), 4000
    log_odds, error = rng.normal(scale=3.0, size=n), 1e-4 * rng.normal(size=n)
    end = {"d": 1, "dataset": range(n), "method": "default", "n_evaluations": 50}
    rows = pd.DataFrame({**end, "log_odds": log_odds + error, "log_odds_true": log_odds})
    rows = rows.assign(z1=special.expit(rows.log_odds), z1_true=special.expit(log_odds))
    found = page.spread(rows).iloc[0]
    assert found["log-odds"] == pytest.approx(np.sqrt(2 / np.pi) / stats.norm.ppf(0.75), rel=0.05)
    assert found["z₁"] == pytest.approx(found.alike, rel=0.1) and found.alike > 1.5 * found["log-odds"]


def test_the_page_says_what_is_missing_and_which_code_it_was(tmp_path: Path) -> None:
    results, out = tmp_path / "results", tmp_path / "docs" / "paper.md"
    page.write(out, results)
    assert out.read_text().count("no runs yet") >= 10 and "{" not in out.read_text()
    rows = experiment(SIZES, n=5)
    for name in ("synthetic", "model_choice", "parts", "heldout"):
        (results / name).mkdir(parents=True)
        rows.to_csv(results / name / "curves.csv.gz", index=False)
    save(errors_figure(rows, list(SIZES)), results / "synthetic" / "errors")
    written = page.write(out, results)
    text = out.read_text()
    assert written[1].exists() and "](img/paper/synthetic_errors.svg)" in text
    assert "23 of 30 pairs" not in text and "have 0 to 5 datasets, not 100" in text
    assert f"Made by modelodds {code_version()}." in text
    assert "{" not in text and "| round_robin | 1 | yes |" in text
    untouched = text[text.index("### Datasets that nobody") : text.index("### Where the means")]
    assert f"| 1 | {synthetic.EVEN} | 5 |" in untouched
    ours = rows.method.isin(["default", "paper"])
    rows.assign(code=np.where(ours, "a", "b")).to_csv(results / "synthetic" / "curves.csv.gz", index=False)
    page.write(out, results)
    made = "Made by modelodds a (`default`, `paper`); b (`round_robin`, `bridge`, `reversible_jump`)."
    assert made in out.read_text()


def test_the_pages_figures_are_those_of_the_results(tmp_path: Path) -> None:
    root = Path(__file__).parents[1]
    if not (root / "results").exists():
        pytest.skip("no results here")
    page._copy(root / "results", tmp_path)
    for path in tmp_path.iterdir():
        there = (root / "docs" / "img" / "paper" / path.name).read_bytes()
        assert there == path.read_bytes(), f"{path.name}: run `modelodds reproduce page`"


def test_markdown_tables() -> None:
    table = page.markdown_table(pd.DataFrame({"a": [1, 2], "p": [0.012345, np.nan], "what": ["x", "y"]}))
    assert table.splitlines() == [
        "| a | p | what |", "|---:|---:|---|", "| 1 | 0.0123 | x |", "| 2 | – | y |",
    ]  # fmt: skip


# ---------------------------------------------------------------------- commands


def test_reproduce_model_choice_borrows_runs_and_draws(tmp_path: Path) -> None:
    out, methods = (
        tmp_path / "model_choice" / "curves.csv.gz",
        ["--method", "monte_carlo", "--method", "bridge"],
    )
    words = ["--datasets", "2", "--dimension", "1", "--jobs", "0"]
    ran = tmp_path / "synthetic" / "curves.csv.gz"
    assert invoke("reproduce", "synthetic", *words, "--method", "bridge", "--out", str(ran)).exit_code == 0
    done = invoke("reproduce", "model-choice", *words, *methods, "--out", str(out), "--markdown")
    assert done.exit_code == 0, done.output
    assert "| d | share | method | n | silent | right |" in done.output
    rows, columns = read(out), ["d", "dataset", "method", "n_evaluations", "z1"]
    assert list(rows.columns[:8]) == [*columns, "log_odds", "z1_true", "log_odds_true"]
    assert set(rows.method) == {"monte_carlo", "bridge"} and set(rows.dataset) == {0, 1}
    pd.testing.assert_frame_equal(  # with their seconds: they were not run again
        rows[rows.method == "bridge"].reset_index(drop=True), read(ran)
    )
    for name in ("errors.png", "errors.svg", "right.png", "right.svg"):
        assert (out.parent / name).stat().st_size > 5000


def test_reproduce_parts_borrows_runs_and_tests_them(tmp_path: Path) -> None:
    ran, out = (tmp_path / name / "curves.csv.gz" for name in ("synthetic", "parts"))
    ran.parent.mkdir()
    experiment({"paper": 0.3, "default": 0.01}, (1,), n=1).to_csv(ran, index=False)
    words = ["--dimension", "1", "--datasets", "1", "--jobs", "0", "--method", "paper"]
    done = invoke("reproduce", "parts", *words, "--method", "paper_estimate", "--out", str(out), "--markdown")
    assert done.exit_code == 0, done.output
    assert "| 1 | paper_estimate | weights=capped, estimate=mean | 1 |" in done.output
    rows = read(out)
    assert set(rows.method) == {"paper", "paper_estimate"} and rows.n_evaluations.max() == 50
    assert len(rows[rows.method == "paper"]) == len(read(ran)) // 2


def test_runs_of_other_code_are_told_of_and_redone(tmp_path: Path) -> None:
    out = tmp_path / "curves.csv.gz"
    words = ["reproduce", "synthetic", "--dimension", "1", "--datasets", "2", "--method", "bridge",
             "--jobs", "0", "--out", str(out)]  # fmt: skip
    assert "other code" not in invoke(*words).output
    rows = read(out)
    rows.assign(code=rows.code.where(rows.dataset == 0)).to_csv(out, index=False)  # as before it was noted
    done = invoke(*words)
    assert "has runs of other code: 1 by unknown" in done.output and code_version() in done.output
    assert "other code" not in invoke(*words, "--redo").output
    assert set(read(out).code) == {code_version("bridge")} and len(read(out)) == len(rows)


def test_runs_done_together_are_the_runs_of_processes(tmp_path: Path) -> None:
    found = []
    for name, how in {"one": ["--jobs", "0"], "two": ["--together", "2"]}.items():
        out = tmp_path / name / "curves.csv"
        words = ["reproduce", "synthetic", "--dimension", "1", "--datasets", "3", "--method", "monte_carlo"]
        done = invoke(*words, *how, "--out", str(out))
        assert done.exit_code == 0, done.output
        found.append(read(out).sort_values(["dataset", "n_evaluations"]).reset_index(drop=True))
    pd.testing.assert_frame_equal(*(frame.drop(columns="seconds") for frame in found))


def test_bad_requests_are_refused_in_words(tmp_path: Path) -> None:
    none = str(tmp_path / "none.csv.gz")
    for words, says in [
        (("model-choice", "--table", "--out", none), "There are no runs"),
        (("model-choice", "--method", "best"), "There is no method 'best'"),
    ]:
        done = invoke("reproduce", *words)
        assert done.exit_code == 2 and says in done.output and "Traceback" not in done.output
