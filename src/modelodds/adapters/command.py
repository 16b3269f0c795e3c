"""Log-likelihoods computed by programs of any language, run once per evaluation.

The program gets its parameters as JSON on its standard input, ``{"slope": 1.2, "offset": 0.3}``, and wherever
one of its arguments says ``{slope}``. The last line it prints is the log-likelihood: a number, a number and
its standard error, or JSON with ``log_likelihood`` and, if need be, ``standard_error``. An exit code other
than 0 is a failure, whose reason is the last line of its standard error.
"""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modelodds.errors import CommandError, OptionError

PATIENCE = 2.0  # seconds between asking a program to end and ending it


@dataclass(frozen=True)
class Command:
    """A program as a log-likelihood: ``Model("slow", Command(["./simulate"], ["slope"]), prior)``.

    Parameters
    ----------
    arguments
        The program and its arguments; ``{name}`` in them stands for the value of a parameter.
    names
        The parameters in the order of theta: the prior's names.
    folder
        Where to run it; here by default.
    environment
        Variables to set beside those there are.
    """

    arguments: Sequence[str]
    names: Sequence[str]
    folder: str | os.PathLike[str] | None = None
    environment: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        for what in ("arguments", "names"):
            value = getattr(self, what)
            if isinstance(value, str) or not all(isinstance(item, str) for item in value):
                raise OptionError(f"{what} must be a list of strings, not {value!r}.")
            object.__setattr__(self, what, tuple(value))
        if not self.arguments or not self.arguments[0]:
            raise OptionError("arguments must begin with the program to run.")

    def __call__(self, theta: ArrayLike) -> float | tuple[Any, Any]:
        """The log-likelihood at ``theta`` (p,), with its standard error if the program tells one."""
        values = dict(zip(self.names, np.asarray(theta, dtype=float).tolist(), strict=True))
        return read_output(self._run([_filled(a, values) for a in self.arguments], json.dumps(values)))

    def _run(self, arguments: list[str], text: str) -> str:
        environment = None if self.environment is None else {**os.environ, **self.environment}
        try:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.folder,
                env=environment,
                encoding="utf-8",
                errors="replace",
                start_new_session=os.name == "posix",  # so that what it starts in turn can be ended with it
            )
        except (OSError, ValueError) as error:
            raise CommandError(f"{arguments[0]} cannot be run: {error}") from None
        with process:
            try:
                output, errors = process.communicate(text)
            except BaseException:  # its time is up, or Ctrl-C
                _end(process)
                raise
        if process.returncode != 0:
            code = process.returncode
            how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise CommandError(f"{arguments[0]} {how}: {_last_line(errors) or 'it said nothing of why'}")
        return output


def _filled(argument: str, values: Mapping[str, float]) -> str:
    for name, value in values.items():
        argument = argument.replace("{" + name + "}", repr(value))
    return argument


def _end(process: "subprocess.Popen[str]") -> None:
    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, number) if os.name == "posix" else process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
            return


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def read_output(output: str) -> float | tuple[Any, Any]:
    """The log-likelihood in what a program printed, and its standard error if that is there."""
    line = _last_line(output)
    if not line:
        raise CommandError("it printed nothing; its last line must be the log-likelihood")
    with contextlib.suppress(ValueError):
        numbers = [float(word) for word in line.replace(",", " ").split()]
        if len(numbers) in (1, 2):
            return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])
    with contextlib.suppress(ValueError):
        found = json.loads(line)
        if isinstance(found, dict) and "log_likelihood" in found:
            value = found["log_likelihood"]
            return (value, found["standard_error"]) if "standard_error" in found else value
    raise CommandError(
        f"its last line is {line[:60]!r}; expected the log-likelihood, alone or with its standard error"
    )
