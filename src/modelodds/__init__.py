"""Which of several models the data favour, and how sure that is, in few evaluations of costly likelihoods."""

from modelodds._version import __version__
from modelodds.compare import compare
from modelodds.errors import ModelOddsError
from modelodds.method import Method
from modelodds.model import Model
from modelodds.prior import Prior
from modelodds.result import Result
from modelodds.session import Query, Session

__all__ = [
    "Method",
    "Model",
    "ModelOddsError",
    "Prior",
    "Query",
    "Result",
    "Session",
    "__version__",
    "compare",
]
