"""Rules for choosing the next evaluation, one file each."""

from modelodds.acquisition.base import Acquisition, Aux, Rivals, View
from modelodds.acquisition.log_odds import LogOdds
from modelodds.acquisition.model_choice import Difference, GaussianModelChoice, ModelChoice
from modelodds.acquisition.mutual_information import MutualInformation
from modelodds.acquisition.uncertainty import Uncertainty
from modelodds.acquisition.variance import Variance
from modelodds.evidence import CAP

ACQUISITIONS: dict[str, Acquisition] = {
    "mutual_information": MutualInformation(),
    "log_odds": LogOdds(),
    "variance": Variance(),
    "uncertainty": Uncertainty(),
    "uncertainty_capped": Uncertainty(cap=CAP),
    "model_choice": ModelChoice(),
    "model_choice_gaussian": GaussianModelChoice(),
    "difference": Difference(),
}

__all__ = [
    "ACQUISITIONS",
    "Acquisition",
    "Aux",
    "Difference",
    "GaussianModelChoice",
    "LogOdds",
    "ModelChoice",
    "MutualInformation",
    "Rivals",
    "Uncertainty",
    "Variance",
    "View",
]
