"""Rules for choosing the next evaluation, one file each."""

from modelodds.acquisition.base import Acquisition, Aux, Rivals, View
from modelodds.acquisition.log_odds import LogOdds
from modelodds.acquisition.mutual_information import MutualInformation
from modelodds.acquisition.uncertainty import Uncertainty
from modelodds.acquisition.variance import Variance

ACQUISITIONS: dict[str, Acquisition] = {
    "mutual_information": MutualInformation(),
    "log_odds": LogOdds(),
    "variance": Variance(),
    "uncertainty": Uncertainty(),
}

__all__ = [
    "ACQUISITIONS",
    "Acquisition",
    "Aux",
    "LogOdds",
    "MutualInformation",
    "Rivals",
    "Uncertainty",
    "Variance",
    "View",
]
