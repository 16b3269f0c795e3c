"""A run as a curve: what a method said after n evaluations, and how far that was from the truth.

Errors are of the log-odds of the two truly most probable models, in nats, and of the posterior model
probabilities (the largest of them).
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from modelodds.problems.base import Problem
from modelodds.result import Result

RECORDS = 40  # a run's curve is thinned to about this many rows


class Pair(NamedTuple):
    """The two truly most probable models, and their true log-odds."""

    first: str
    second: str
    log_odds: float

    @classmethod
    def of(cls, problem: Problem) -> "Pair":
        """The pair of ``problem``."""
        truth = log_joint(problem)
        first, second = np.argsort(-truth, kind="stable")[:2]
        names = [m.name for m in problem.models]
        return cls(names[first], names[second], float(truth[first] - truth[second]))


def log_joint(problem: Problem) -> np.ndarray:
    """True log of prior probability times evidence of every model, (k,)."""
    return np.array(problem.log_evidence) + np.log([m.prior_probability for m in problem.models])


def curve(problem: Problem, result: Result) -> pd.DataFrame:
    """One row per recorded number of evaluations, the run's end last.

    Columns: ``n_evaluations``, ``log_odds``, ``log_odds_sd``, ``z_error``.
    """
    pair, history = Pair.of(problem), result.history
    prior = np.log([m.prior_probability for m in problem.models])
    a, b = pair.first, pair.second
    shift = float(prior[result.names.index(a)] - prior[result.names.index(b)])
    cross = f"log_evidence_cov[{a}, {b}]", f"log_evidence_cov[{b}, {a}]"
    # Models may have been apart for a while: there is no covariance then.
    covariance = next((history[c].fillna(0.0).to_numpy() for c in cross if c in history), 0.0)
    variance = history[f"log_evidence_sd[{a}]"] ** 2 + history[f"log_evidence_sd[{b}]"] ** 2 - 2 * covariance
    z = history[[f"probability[{m}]" for m in result.names]].to_numpy()
    frame = pd.DataFrame(
        {
            "n_evaluations": history.n_evaluations.astype(int),
            "log_odds": history[f"log_evidence[{a}]"] - history[f"log_evidence[{b}]"] + shift,
            "log_odds_sd": np.sqrt(np.maximum(variance, 0.0)),
            "z_error": np.abs(z - special.softmax(log_joint(problem))).max(1),
        }
    )
    end = result.log_odds(a, b)
    last = np.array(list(result.probabilities.values()))
    frame.loc[frame.index[-1], ["log_odds", "log_odds_sd", "z_error"]] = [
        end[0],
        end[1],
        np.abs(last - special.softmax(log_joint(problem))).max(),
    ]
    return frame.reset_index(drop=True)


def thinned(rows: pd.DataFrame, records: int = RECORDS) -> pd.DataFrame:
    """Rows evenly spread, the last one included."""
    if len(rows) <= records:
        return rows
    return rows.iloc[np.unique(np.linspace(0, len(rows) - 1, records).round().astype(int))]


def settled_at(n: np.ndarray, error: np.ndarray, within: float) -> float:
    """Evaluations after which ``error`` never leaves ``within`` again; infinite if it ends outside."""
    outside = np.flatnonzero(~(np.abs(error) <= within))
    if len(outside) == 0:
        return float(n[0])
    return float(n[outside[-1] + 1]) if outside[-1] + 1 < len(n) else float("inf")
