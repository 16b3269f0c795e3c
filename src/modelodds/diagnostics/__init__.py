"""Whether a result can be trusted, and what it would take to change the verdict.

`remarks` puts it in words; the rest are the figures behind them, computed from what a `Result` keeps.
"""

from modelodds.diagnostics.remarks import Remark, evaluations_to_halve, remarks
from modelodds.diagnostics.sensitivity import to_prior_odds, to_widths
from modelodds.diagnostics.surrogates import (
    Coverage,
    calibration,
    coverage,
    left_out_errors,
    surrogates_table,
    typical_error,
)

__all__ = [
    "Coverage",
    "Remark",
    "calibration",
    "coverage",
    "evaluations_to_halve",
    "left_out_errors",
    "remarks",
    "surrogates_table",
    "to_prior_odds",
    "to_widths",
    "typical_error",
]
