"""Runs the user's function once, and turns whatever comes of it into an Outcome."""

import contextlib
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:  # workers import this module, and have no need of priors
    from modelodds.model import Model


@dataclass(frozen=True)
class Outcome:
    """What one evaluation gave.

    Parameters
    ----------
    status
        "ok", or "failed" when there is no usable value.
    value
        The log-likelihood, which may be -inf; NaN when failed.
    standard_error
        Of the value, when the likelihood is noisy.
    reason
        Why it failed.
    seconds
        Time spent in the user's function.
    started, ended
        When it was called and came back, in seconds since 1970.
    host
        The machine it ran on.
    """

    status: Literal["ok", "failed"]
    value: float = np.nan
    standard_error: float = 0.0
    reason: str = ""
    seconds: float = 0.0
    started: float = np.nan
    ended: float = np.nan
    host: str = ""


class _Unusable(Exception):
    """A returned object that is not a log-likelihood; the message says why."""


class _TimedOut(BaseException):
    """The time is up. No Exception, so that no ``except Exception`` in the user's function swallows it."""


def evaluate(model: "Model", theta: ArrayLike, timeout: float | None = None) -> Outcome:
    """Log-likelihood of ``model`` at ``theta``, shape (p,); a failure is an outcome, never an exception."""
    return call(model.log_likelihood, model.vectorized, theta, timeout)


def call(
    log_likelihood: Callable[..., Any], vectorized: bool, theta: ArrayLike, timeout: float | None = None
) -> Outcome:
    """What a model's function gives at ``theta``, shape (p,); this is what workers run."""
    started, start = time.time(), time.perf_counter()
    try:
        point = np.array(theta, dtype=float)  # a copy: the user's function may write into it
        with np.errstate(all="ignore"), _limit(timeout):  # log(0) shows in the value; a warning could raise
            raw = log_likelihood(point[None, :] if vectorized else point)
        outcome = read_value(raw)
    except _TimedOut:
        outcome = Outcome("failed", reason=too_long(timeout))
    except Exception as error:
        outcome = Outcome("failed", reason=describe_error(error))
    seconds = time.perf_counter() - start
    return replace(
        outcome, seconds=seconds, started=started, ended=started + seconds, host=socket.gethostname()
    )


def describe_error(error: BaseException) -> str:
    """An exception in a line."""
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def too_long(timeout: float | None) -> str:
    """The reason of an evaluation that was stopped."""
    return f"stopped: it took longer than {timeout:g} seconds"


@contextlib.contextmanager
def _limit(seconds: float | None) -> Iterator[None]:
    """Raise _TimedOut inside the block when its time is up, where the system has a way to do so.

    Signals reach the main thread alone, and wait while compiled code runs; whoever sent the evaluation out
    has means of its own beside this.
    """
    main = threading.current_thread() is threading.main_thread()
    if seconds is None or not main or not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise _TimedOut

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def read_value(raw: Any) -> Outcome:
    """Read what a log-likelihood returned: a number, or the pair of a number and its standard error.

    An array of shape () or (1,) counts as a number. -inf is a value (likelihood zero), NaN and +inf fail.
    """
    try:
        if isinstance(raw, (tuple, list)) and len(raw) == 2:
            return Outcome("ok", _read_log_likelihood(raw[0]), _read_standard_error(raw[1]))
        return Outcome("ok", _read_log_likelihood(raw))
    except _Unusable as error:
        return Outcome("failed", reason=str(error))


def _read_log_likelihood(raw: Any) -> float:
    value = _read_number(raw, "the log-likelihood")
    if np.isnan(value) or value == np.inf:
        raise _Unusable(
            f"the log-likelihood is {value}; expected a finite number, or -inf for likelihood zero"
        )
    return value


def _read_standard_error(raw: Any) -> float:
    value = _read_number(raw, "the standard error")
    if not 0 <= value < np.inf:
        raise _Unusable(f"the standard error is {value}; expected a finite number, 0 or more")
    return value


def _read_number(raw: Any, what: str) -> float:
    try:
        array = np.asarray(raw)
    except Exception as error:
        raise _Unusable(f"{what} is a {type(raw).__name__} that is not a number ({error})") from error
    masked = np.ma.is_masked(raw)  # numpy reads a masked number as the one beneath the mask
    if masked or array.dtype.kind not in "iuf":
        raise _Unusable(f"{what} is {_describe(raw)}; expected a real number")
    if array.shape not in ((), (1,)):
        raise _Unusable(f"{what} has shape {array.shape}; expected a single number")
    return float(array.item())


def _describe(raw: Any) -> str:
    """A few words on an object that should have been a number."""
    if raw is None:
        return "None (does the function return its result?)"
    if isinstance(raw, (str, bytes, bool, complex, np.generic)):
        return f"the {type(raw).__name__} {raw!r:.40}"
    return f"a {type(raw).__name__}"
