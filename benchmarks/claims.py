"""What is said of many models, noise, costs and stopping, measured.

``python benchmarks/claims.py [many] [noise] [costs] [stopping] [--problem NAME] [--seeds N] [--jobs 2]``:
every run is kept in results/claims/*.csv, and runs that are there already are skipped. ``--table`` only shows
what there is, ``--page docs/claims.md`` writes it into a page of docs.

- many: ten nested regressions (Legendre polynomials of degree 0 to 9); degree 8 made the data with a strong
  highest coefficient, so eight models are hopeless and two are contenders. Share of the evaluations after the
  initial design that go to the contenders, and the error of their log-odds.
- noise: known problems with normal noise added to the log-likelihood, told with its standard error.
- costs: pairs of models whose evaluations cost 1 and 20; cost until the log-odds stay within 0.1 nats of the
  truth, with costs given and ignored.
- stopping: runs that end when the answer is settled; how often the probability of the best model was off by
  more than the 0.01 claimed.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special, stats

from modelodds import Method, Model, Prior, compare
from modelodds.baselines.ours import run
from modelodds.cli.bench import show
from modelodds.experiments.curves import Pair, log_joint, settled_at
from modelodds.experiments.leaderboard import data_of
from modelodds.experiments.page import markdown_table
from modelodds.experiments.sweep import read, sweep
from modelodds.problems import load
from modelodds.problems.base import Problem

OUT = Path("results/claims")
NOISY = ("regression-2", "tails-2", "plane", "synthetic-2")
PAIRS = ("nested-2", "tails-2", "plane", "synthetic-1", "synthetic-2", "synthetic-3")
STOPPED = ("regression-2", "regression-4", "plane", "rosenbrock", "ring", "tails-2", "tails-4", "lumpy-2")
STOPPED += ("lumpy-4", "nested-3", "synthetic-1", "synthetic-2", "synthetic-3", "links", "epidemic")


class Task(NamedTuple):
    """One run."""

    claim: str
    problem: str
    setting: str
    seed: int


# ---------------------------------------------------------------------- many models


def ten(seed: int) -> Problem:
    """Ten nested regressions, two of them contenders."""
    rng = np.random.default_rng([21, seed])
    t, noise, prior = np.linspace(-1.0, 1.0, 40), 0.3, stats.norm()
    basis = np.polynomial.legendre.legvander(t, 9)
    coefficients = np.append(rng.normal(size=8), 1.5 * rng.choice([-1.0, 1.0]))
    y = basis[:, :9] @ coefficients + noise * rng.normal(size=len(t))

    def model(degree: int) -> Model:
        design = basis[:, : degree + 1]

        def log_likelihood(theta: np.ndarray) -> np.ndarray:
            return np.asarray(stats.norm.logpdf(theta @ design.T, y, noise).sum(1))

        return Model(
            f"degree {degree}",
            log_likelihood,
            Prior({f"c{j}": prior for j in range(degree + 1)}),
            vectorized=True,
        )

    exact = [
        stats.multivariate_normal.logpdf(
            y, cov=basis[:, : n + 1] @ basis[:, : n + 1].T + noise**2 * np.eye(len(t))
        )
        for n in range(10)
    ]
    return Problem(f"ten-{seed}", tuple(model(n) for n in range(10)), tuple(map(float, exact)))


def many(task: Task) -> dict[str, Any]:
    """Where the evaluations of ten models go."""
    problem = ten(task.seed)
    result, pair = run(problem.models, 600, task.seed), Pair.of(problem)
    design = sum(Method().initial_points(m.dim) for m in problem.models)
    later = result.evaluations.model[design:]
    found, sd = result.log_odds(pair.first, pair.second)
    return {
        "contenders' share": float(later.isin([pair.first, pair.second]).mean()),
        "third": float(np.sort(problem.log_evidence)[-1] - np.sort(problem.log_evidence)[-3]),
        "log_odds": found,
        "log_odds_sd": sd,
        "error": found - pair.log_odds,
    }


# ---------------------------------------------------------------------- noise


def noisy(model: Model, sd: Callable[[float], float], rng: np.random.Generator) -> Model:
    """The same model with normal noise on its log-likelihood, whose deviation may depend on it."""

    def log_likelihood(theta: np.ndarray) -> tuple[float, float]:
        value = float(
            model.log_likelihood(theta[None])[0] if model.vectorized else model.log_likelihood(theta)
        )
        return value + sd(value) * rng.normal(), sd(value)

    return Model(model.name, log_likelihood, model.prior, model.prior_probability)


def noise(task: Task) -> dict[str, Any]:
    """Errors with a noisy likelihood."""
    problem = load(task.problem, data_of(task.problem, task.seed))
    rng, top = np.random.default_rng([22, task.seed]), max(problem.log_evidence) + 5.0
    if task.setting == "growing":  # half a nat at the top, more where the likelihood is low

        def sd(value: float) -> float:
            return 0.5 + min(2.5, 0.1 * max(0.0, top - value))
    else:

        def sd(value: float) -> float:
            return float(task.setting)

    models = [
        noisy(m, sd, child) for m, child in zip(problem.models, rng.spawn(len(problem.models)), strict=True)
    ]
    result, pair = run(models, 200, task.seed), Pair.of(problem)
    found, claimed = result.log_odds(pair.first, pair.second)
    return {"log_odds": found, "log_odds_sd": claimed, "error": found - pair.log_odds}


# ---------------------------------------------------------------------- costs


def costs(task: Task) -> dict[str, Any]:
    """Cost until the log-odds are right for good, with costs given and ignored."""
    problem = load(task.problem, data_of(task.problem, task.seed))
    pair, dear = Pair.of(problem), int(task.setting)
    models = [replace(m, cost=20.0 if i == dear else 1.0) for i, m in enumerate(problem.models)]
    spent = {}
    for kind in ("given", "ignored"):
        result = run(models, 50 * max(m.dim for m in models), task.seed, Method(costs=kind))
        history = result.history
        odds = history[f"log_evidence[{pair.first}]"] - history[f"log_evidence[{pair.second}]"]
        n = settled_at(history.n_evaluations.to_numpy(), (odds - pair.log_odds).to_numpy(), 0.1)
        total = np.cumsum([{m.name: m.cost for m in models}[name] for name in result.evaluations.model])
        spent[kind] = float(total[int(n) - 1]) if np.isfinite(n) else float("inf")
    return spent


# ---------------------------------------------------------------------- stopping


def stopping(task: Task) -> dict[str, Any]:
    """Where a run that ends by itself ends, and how far off it is."""
    problem = load(task.problem, data_of(task.problem, task.seed))
    result = compare(problem.models, budget=500, rng=task.seed, progress=False)
    z, true = np.array(list(result.probabilities.values())), special.softmax(log_joint(problem))
    best, pair = int(np.argmax(z)), Pair.of(problem)
    found, sd = result.log_odds(pair.first, pair.second)
    return {
        "status": result.status,
        "evaluations": len(result.evaluations),
        "z_error": float(abs(z[best] - true[best])),
        "right": bool(best == int(np.argmax(true))),
        "log_odds": found,
        "log_odds_sd": sd,
        "error": found - pair.log_odds,
        "truth_error": problem.error,
    }


CLAIMS: dict[str, Callable[[Task], dict[str, Any]]] = {
    "many": many,
    "noise": noise,
    "costs": costs,
    "stopping": stopping,
}
SEEDS = {"many": 50, "noise": 20, "costs": 20, "stopping": 20}
CASES = {
    "many": [("ten", "-")],
    "noise": [(p, s) for p in NOISY for s in ("0.5", "1", "3", "growing")],
    "costs": [(p, s) for p in PAIRS for s in ("0", "1")],
    "stopping": [(p, "-") for p in STOPPED],
}


def work(task: Task) -> Sequence[dict[str, Any]]:
    """The row of one run."""
    return [task._asdict() | CLAIMS[task.claim](task)]


def table(claim: str, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of one claim, summed up."""
    groups = rows.groupby(["problem", "setting"], sort=False)
    found: dict[str, Any] = {"runs": groups.size()}
    if claim == "many":
        found["contenders' share"] = groups["contenders' share"].mean()
        found["least"] = groups["contenders' share"].min()
        found["third model behind by (least)"] = groups.third.min()
    if claim in ("many", "noise"):
        rows = rows.assign(size=rows.error.abs(), off=rows.error.abs() / rows.log_odds_sd)
        groups = rows.groupby(["problem", "setting"], sort=False)
        found |= {
            "median": groups["size"].median(),
            "worst": groups["size"].max(),
            "claimed sd": groups.log_odds_sd.median(),
            "in 1 sd": groups.off.apply(lambda o: float((o <= 1).mean())),
            "in 2 sd": groups.off.apply(lambda o: float((o <= 2).mean())),
        }
    if claim == "costs":
        found |= {"given": groups.given.median(), "ignored": groups.ignored.median()}
        found["ratio"] = found["given"] / found["ignored"]
    if claim == "stopping":
        rows = held(rows)
        groups = rows.groupby(["problem", "setting"], sort=False)
        ended = rows[rows.status == "settled"].groupby(["problem", "setting"], sort=False)
        found |= {
            "settled": groups.status.apply(lambda s: float((s == "settled").mean())),
            "evaluations": groups.evaluations.median(),
            "z error (worst)": groups.z_error.max(),
            "in 0.01": ended.in_z.mean(),
            "odds in 2 sd": ended.in_odds.mean(),
            "right": groups.right.mean(),
        }
    return pd.DataFrame(found).reset_index()


def held(rows: pd.DataFrame) -> pd.DataFrame:
    """Whether each run's claims hold: the probability's 0.01, and two standard deviations of the log-odds."""
    sd = np.hypot(rows.log_odds_sd, np.sqrt(2.0) * rows.truth_error)
    return rows.assign(in_z=rows.z_error <= 0.01, in_odds=rows.error.abs() <= 2.0 * sd)


def verdict(path: Path) -> str:
    """How often a run that ended by itself was wrong by more than it claimed."""
    rows = read(path)
    if rows.empty:
        return ""
    left = [name for name in STOPPED if name not in set(rows.problem)]
    missing = f" Not run yet: {', '.join(left)}; what is said here is not of these." if left else ""
    ended = held(rows[rows.status == "settled"])
    wrong, odds = (int((~claim).sum()) or "none" for claim in (ended.in_z, ended.in_odds))
    return (
        f"Of {len(rows)} runs {len(ended)} settled. The probability of {wrong} of these was off by more than "
        f"the 0.01 that they claim (at most {ended.z_error.max():.2g}), the log-odds of {odds} by more than "
        f"two of their standard deviations.{missing}"
    )


def known(claim: str, path: Path) -> pd.DataFrame:
    """What the runs on file say of a claim, its cases in their order, whichever was done first."""
    rows = read(path)
    if rows.empty:
        return pd.DataFrame()
    place = [CASES[claim].index((problem, str(s))) for problem, s in rows[["problem", "setting"]].to_numpy()]
    return table(claim, rows.iloc[np.argsort(place, kind="stable")])


def page(folder: Path) -> str:
    """The page of docs."""
    files = {claim: folder / f"{claim}.csv" for claim in CLAIMS}
    made = {c: sorted(set(rows.code)) for c, path in files.items() if len(rows := read(path))}
    notice = "; ".join(f"`{claim}` by modelodds {', '.join(codes)}" for claim, codes in made.items())
    tables = {claim: markdown_table(known(claim, path)) for claim, path in files.items()}
    template = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    return template.format(notice=f"{notice or 'none'}.", ended=verdict(files["stopping"]), **tables)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("claims", nargs="*", default=list(CLAIMS))
    parser.add_argument("--problem", nargs="+", help="only these")
    parser.add_argument("--seeds", type=int, help="20 by default, 50 of ten models")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the runs")
    parser.add_argument("--table", action="store_true", help="run nothing")
    parser.add_argument("--page", type=Path, help="write a page of docs")
    arguments = parser.parse_args()
    for claim in arguments.claims or list(CLAIMS):
        cases = [(p, s) for p, s in CASES[claim] if p in (arguments.problem or [p])]
        tasks = [Task(claim, p, s, n) for n in range(arguments.seeds or SEEDS[claim]) for p, s in cases]
        out = arguments.out / f"{claim}.csv"
        if not arguments.table:
            for _ in sweep(tasks, work, out, arguments.jobs):
                pass
        print(claim)
        show(known(claim, out))
    if arguments.page:
        arguments.page.write_text(page(arguments.out), encoding="utf-8")
        print(arguments.page)


if __name__ == "__main__":
    main()
