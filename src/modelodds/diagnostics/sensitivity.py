"""How the verdict would change with the models' prior probabilities and with the widths of their priors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modelodds import correlated, odds

if TYPE_CHECKING:
    import pandas as pd

    from modelodds.result import Result

Array = NDArray[np.float64]

PRIOR_ODDS = np.logspace(-2.0, 2.0, 41)


def to_prior_odds(result: Result, name: str, factors: ArrayLike = PRIOR_ODDS) -> Array:
    """Probability of model ``name``, its prior odds against all others multiplied by each factor, (f,)."""
    i = result.names.index(name)
    found = []
    for factor in np.atleast_1d(np.asarray(factors, dtype=float)):
        log_prior = np.log(result.prior_probabilities)
        log_prior[i] += np.log(factor)
        z, _ = correlated.moments(result.log_evidence_mean, result.log_evidence_cov, log_prior)
        found.append(z[i])
    return np.array(found)


def to_widths(result: Result) -> pd.DataFrame:
    """What happens when one model's parameter priors are made narrower or wider, model by model.

    Returns
    -------
    DataFrame
        One row per model and factor: model, factor, log_evidence and its sd then, shift (of the
        log-evidence), probability (of that model then) and best (the most probable model then).
    """
    import pandas as pd

    rows = []
    for i, name in enumerate(result.names):
        kept = result.diagnostics.get(name, {})
        for factor, mean, sd in zip(*(kept.get(f"width_{key}", ()) for key in KEYS), strict=True):
            location, scale = result.log_evidence_mean.copy(), np.sqrt(np.diag(result.log_evidence_cov))
            location[i], scale[i] = mean, sd
            z, _ = odds.moments(location, scale, np.log(result.prior_probabilities))
            shift = float(mean - result.log_evidence_mean[i])
            best = result.names[int(np.argmax(z))]
            rows.append((name, float(factor), float(mean), float(sd), shift, float(z[i]), best))
    return pd.DataFrame(rows, columns=COLUMNS)


KEYS = ("factors", "mean", "sd")
COLUMNS = ["model", "factor", "log_evidence", "log_evidence_sd", "shift", "probability", "best"]
