"""Ground truths that no formula gives: computed once, stored with their errors, read when a problem is made.

``python -m modelodds.problems nile synthetic-2 --seeds 0:100`` computes those of two problems and
writes them to ``truths/nile.csv`` and ``truths/synthetic.csv`` beside this file; seeds that are there already
are skipped.

Adaptive importance sampling: nodes of the prior first; then a mixture of Student-t distributions (`nodes.py`)
is refitted to the weighted nodes, at a rising power of the likelihood, until they lie where the mass is; then
independent scrambled sets from the final mixture give the log-evidence and, by their spread, its error. A
family that knows a better way has it as ``solve``.
"""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from modelodds.errors import ProblemError
from modelodds.model import Model
from modelodds.nodes import Mixture, Nodes, effective_size, seeded

Array = NDArray[np.float64]

FOLDER = Path(__file__).parent / "truths"
COLUMNS = ("problem", "seed", "model", "log_evidence", "error")


class Truth(NamedTuple):
    """A log-evidence and its standard error, in nats."""

    log_evidence: float
    error: float


def log_likelihoods(model: Model, x: Array) -> Array:
    """Log-likelihoods (n,) at internal coordinates ``x`` (n, d)."""
    theta = model.prior.to_theta(x)
    if model.vectorized:
        return np.asarray(model.log_likelihood(theta), dtype=float)
    return np.array([model.log_likelihood(t) for t in theta], dtype=float)


def importance(
    model: Model,
    seed: int = 0,
    n_search: int = 2**13,
    n_final: int = 2**15,
    replicates: int = 16,
    components: int = 8,
) -> Truth:
    """Log-evidence of one model by adaptive importance sampling."""
    rng = np.random.default_rng(seed)
    mixture = _adapted(model, rng, n_search, components)
    found = np.empty(replicates)
    for r in range(replicates):
        nodes = Nodes.from_prior(model.prior, n_final, rng)
        nodes = nodes if mixture is None else nodes.with_mixture(mixture)
        found[r] = special.logsumexp(nodes.log_weight + log_likelihoods(model, nodes.x))
    top = found.max()
    shares = np.exp(found - top)  # unbiased as evidences, not as their logarithms
    error = shares.std(ddof=1) / shares.mean() / np.sqrt(replicates)
    return Truth(float(top + np.log(shares.mean())), float(error))


def _adapted(model: Model, rng: np.random.Generator, n: int, components: int) -> Mixture | None:
    """Mixture that follows the posterior, or None where the prior is close enough."""
    nodes = Nodes.from_prior(model.prior, n, rng)
    values, power, best = log_likelihoods(model, nodes.x), 0.0, -np.inf
    mixture: Mixture | None = None
    for _ in range(100):
        full = nodes.log_weight + values
        effective = effective_size(full)
        if power == 1.0 and effective <= 1.05 * best:
            break
        best = effective if power == 1.0 else best
        power = _next_power(nodes.log_weight, values, n)
        tempered = nodes.log_weight + power * values
        weight = np.exp(tempered - tempered.max())
        start = seeded(nodes.x, weight, components, rng) if mixture is None or power < 1.0 else mixture
        mixture = start.refitted(nodes.x, weight)
        nodes = Nodes.from_prior(model.prior, n, rng).with_mixture(mixture)
        values = log_likelihoods(model, nodes.x)
    return mixture


def _next_power(log_weight: Array, values: Array, n: int) -> float:
    """Largest power of the likelihood that leaves a twentieth of the nodes effective."""

    def surplus(power: float) -> float:
        return effective_size(log_weight + power * values) - 0.05 * n

    if surplus(1.0) >= 0.0:
        return 1.0
    if surplus(1e-12) <= 0.0:
        return 1e-12
    return float(optimize.brentq(surplus, 1e-12, 1.0, xtol=1e-14, rtol=1e-3))


def stored(problem: str, seed: int, models: tuple[Model, ...]) -> tuple[tuple[float, ...], float]:
    """Log-evidences of ``models``, in their order, and the largest error, from the stored tables."""
    rows = {row["model"]: row for row in _rows(problem) if row["seed"] == str(seed)}
    missing = [m.name for m in models if m.name not in rows]
    if missing:
        raise ProblemError(
            f"No ground truth is stored for {problem}, seed {seed} ({', '.join(missing)}); compute it with "
            f"python -m modelodds.problems {problem} --seeds {seed}"
        )
    found = [rows[m.name] for m in models]
    return tuple(float(r["log_evidence"]) for r in found), max(float(r["error"]) for r in found)


def known_seeds(problem: str) -> list[int]:
    """Seeds of the data whose ground truth is stored."""
    return sorted({int(row["seed"]) for row in _rows(problem)})


def store(problem: str, seed: int, truths: dict[str, Truth]) -> None:
    """Append the truths of one problem and seed."""
    path = _path(problem)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        for model, truth in truths.items():
            writer.writerow([problem, seed, model, f"{truth.log_evidence:.6f}", f"{truth.error:.2g}"])


def _path(problem: str) -> Path:
    return FOLDER / f"{problem.partition('-')[0]}.csv"


def _rows(problem: str) -> list[dict[str, str]]:
    if not _path(problem).exists():
        return []
    with _path(problem).open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["problem"] == problem]


def compute(
    problem: str, seed: int, models: tuple[Model, ...], by: Callable[[Model], Truth] = importance
) -> None:
    """Compute and store the truths of one problem, unless they are there already."""
    there = {row["model"] for row in _rows(problem) if row["seed"] == str(seed)}
    store(problem, seed, {model.name: by(model) for model in models if model.name not in there})
