"""Which of several models the data favour, and how sure that is, in few evaluations of costly likelihoods.

The names below are imported when they are first used, so that ``import modelodds`` and the command line's
help do not wait for JAX and SciPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from modelodds._version import __version__

if TYPE_CHECKING:
    from modelodds.adapters.command import Command
    from modelodds.comparison import compare
    from modelodds.errors import ModelOddsError
    from modelodds.failures import Failures
    from modelodds.ledger import Ledger
    from modelodds.method import Method
    from modelodds.model import Model
    from modelodds.prior import Prior
    from modelodds.result import Result
    from modelodds.session import Query, Session

__all__ = [
    "Command",
    "Failures",
    "Ledger",
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

_HOME = {
    "Command": "adapters.command",
    "Failures": "failures",
    "Ledger": "ledger",
    "Method": "method",
    "Model": "model",
    "ModelOddsError": "errors",
    "Prior": "prior",
    "Query": "session",
    "Result": "result",
    "Session": "session",
    "compare": "comparison",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
