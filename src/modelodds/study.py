"""Studies in TOML: models that are programs, compared without a line of Python.

Every complaint has the line it is about. Paths are relative to the study's own folder.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, NoReturn

import numpy as np

from modelodds.adapters.command import Command
from modelodds.errors import ModelOddsError, StudyError
from modelodds.failures import Failures
from modelodds.method import PRESETS
from modelodds.model import Model, check_models
from modelodds.prior import Prior
from modelodds.stopping import Rule, rule

Place = tuple[str | int, ...]  # where in a study: ("models", 0, "prior", "slope")


@dataclass(frozen=True)
class Study:
    """What a study's file says; None where it says nothing."""

    models: tuple[Model, ...]
    budget: int | None
    seed: int
    method: str
    batch: int
    workers: int | None
    ledger: FilePath | None
    failures: Failures
    stop: Rule | None = None


def load_study(path: str | os.PathLike[str]) -> Study:
    """Read a study, or say in which line it is wrong."""
    try:
        text = FilePath(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StudyError(f"there is no file {path}.") from None
    except OSError as error:
        raise StudyError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise StudyError(f"{path} is not text in UTF-8, as TOML is.") from None
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"{path} is not TOML: {error}.") from None
    except RecursionError:
        raise StudyError(f"{path} is nested too deep.") from None
    return _Reader(str(path), locate(text)).study(content)


class _Reader:
    """Turns a parsed file into a study; complains with line numbers."""

    def __init__(self, path: str, lines: dict[Place, int]) -> None:
        self.path, self.lines = path, lines
        self.folder = FilePath(path).resolve().parent

    def study(self, content: dict[str, Any]) -> Study:
        known = "budget stop seed method batch workers ledger timeout retries max_failures models"
        self._known_keys(content, (), known.split())
        models = content.get("models")
        if not isinstance(models, list) or not models or not all(isinstance(m, dict) for m in models):
            self._complain(("models",), "there must be models, each under a heading [[models]]")
        made = tuple(self._model(m, ("models", i)) for i, m in enumerate(models))
        self._guard(("models",), lambda: check_models(made))
        method = self._text(content, ("method",), "default")
        if method not in PRESETS:
            self._complain(("method",), f"method {method!r} is not known; use one of {', '.join(PRESETS)}")
        ledger, stop = (self._text(content, (key,), "") for key in ("ledger", "stop"))
        return Study(
            models=made,
            budget=self._whole(content, ("budget",), 1),
            seed=self._whole(content, ("seed",), 0) or 0,
            method=method,
            batch=self._whole(content, ("batch",), 1) or 1,
            workers=self._whole(content, ("workers",), 1),
            ledger=self.folder / ledger if ledger else None,
            failures=self._failures(content),
            stop=self._guard(("stop",), lambda: rule(stop)) if "stop" in content else None,
        )

    def _failures(self, content: dict[str, Any]) -> Failures:
        timeout = self._positive(content, ("timeout",), None)
        retries = self._whole(content, ("retries",), 0) or 0
        return Failures(retries, timeout, self._whole(content, ("max_failures",), 0))

    def _model(self, content: dict[str, Any], at: Place) -> Model:
        self._known_keys(content, at, ["name", "command", "prior", "prior_probability", "cost"])
        name = self._text(content, (*at, "name"), None)
        command = content.get("command")
        if not isinstance(command, list) or not command or not all(isinstance(c, str) for c in command):
            self._complain((*at, "command"), 'command must be a list of strings, such as ["./simulate"]')
        priors = content.get("prior", {})
        if not isinstance(priors, dict):
            self._complain((*at, "prior"), "prior must be a table, from parameters to distributions")
        components = {p: self._component(value, (*at, "prior", p)) for p, value in priors.items()}
        prior = self._guard((*at, "prior"), lambda: Prior(components))
        run = self._guard((*at, "command"), lambda: Command(command, tuple(components), str(self.folder)))
        probability = self._positive(content, (*at, "prior_probability"), 1.0) or 1.0
        cost = self._positive(content, (*at, "cost"), 1.0) or 1.0
        made: Model = self._guard(at, lambda: Model(name, run, prior, probability, cost=cost))
        return made

    def _component(self, value: Any, at: Place) -> Any:
        """A number, or a frozen distribution."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        if not isinstance(value, dict):
            example = '{ distribution = "norm", loc = 0, scale = 1 }'
            self._complain(at, f"{at[-1]} must be a number, which fixes it, or a distribution: {example}")
        given = {k: v for k, v in value.items() if k != "distribution"}
        name = self._text(value, (*at, "distribution"), None)
        distribution = self._distribution(name, (*at, "distribution"))
        if name == "uniform" and set(given) == {"low", "high"}:
            low, high = (self._number(given[k], (*at, k)) for k in ("low", "high"))
            given = {"loc": low, "scale": high - low}
        shapes = [s.strip() for s in (distribution.shapes or "").split(",") if s.strip()]
        self._known_keys(given, at, [*shapes, "loc", "scale"], f"{name} takes")
        numbers = {key: self._number(v, (*at, key)) for key, v in given.items()}
        missing = [s for s in shapes if s not in numbers]
        if missing:
            self._complain(at, f"{name} needs {', '.join(missing)} as well")
        frozen = self._guard(at, lambda: distribution(**numbers))
        self._guard(at, lambda: Prior({str(at[-1]): frozen}))
        return frozen

    def _distribution(self, name: str, at: Place) -> Any:
        from scipy import stats

        known = [n for n in dir(stats) if isinstance(getattr(stats, n), stats.rv_continuous)]
        if name not in known:
            near = difflib.get_close_matches(name, known, 3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            self._complain(at, f"scipy.stats has no continuous distribution {name!r}{hint}")
        return getattr(stats, name)

    # ------------------------------------------------------------------ single values

    def _known_keys(
        self, content: dict[str, Any], at: Place, known: list[str], what: str = "known are"
    ) -> None:
        for key in content:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"{what} {', '.join(known)}"
                self._complain((*at, key), f"{key!r} is not known here; {hint}")

    def _text(self, content: dict[str, Any], at: Place, default: str | None) -> str:
        value = content.get(str(at[-1]), default)
        if not isinstance(value, str) or (default is None and not value.strip()):
            said = f", not {value!r}" if str(at[-1]) in content else ""
            self._complain(at, f"{at[-1]} must be given, as text in quotes{said}")
        return value

    def _whole(self, content: dict[str, Any], at: Place, least: int) -> int | None:
        value = content.get(str(at[-1]))
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**31:
            self._complain(at, f"{at[-1]} must be a whole number, {least} or more, not {value!r}")
        return value

    def _positive(self, content: dict[str, Any], at: Place, default: float | None) -> float | None:
        if str(at[-1]) not in content:
            return default
        value = self._number(content[str(at[-1])], at)
        if value <= 0:
            self._complain(at, f"{at[-1]} must be above 0, not {value:g}")
        return value

    def _number(self, value: Any, at: Place) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._complain(at, f"{at[-1]} must be a number, not {value!r}")
        try:
            number = float(value)
        except OverflowError:
            number = np.inf
        if not np.isfinite(number):
            self._complain(at, f"{at[-1]} must be a finite number, not {value}")
        return number

    # ------------------------------------------------------------------ complaints

    def _guard(self, at: Place, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except ModelOddsError as error:
            self._complain(at, str(error).rstrip("."))

    def _complain(self, at: Place, what: str) -> NoReturn:
        line = next((self.lines[at[:n]] for n in range(len(at), 0, -1) if at[:n] in self.lines), 1)
        raise StudyError(f"{self.path}, line {line}: {what}{'' if what.endswith('?') else '.'}")


_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADING = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_ASSIGNMENT = re.compile(rf"\s*({_DOTTED})\s*=")


def locate(text: str) -> dict[Place, int]:
    """The line, from 1, of every heading and key of a TOML text; what is nested in a line is on that line."""
    found: dict[Place, int] = {}
    counts: dict[Place, int] = {}  # of headings in double brackets
    at: Place = ()
    for number, line in enumerate(text.splitlines(), 1):
        if heading := _HEADING.match(line):
            at = ()
            parts = _parts(heading[2])
            for i, part in enumerate(parts):
                at = (*at, part)
                if i == len(parts) - 1 and heading[1] == "[[":
                    found.setdefault(at, number)
                    counts[at] = counts.get(at, 0) + 1
                if at in counts:
                    at = (*at, counts[at] - 1)
            found.setdefault(at, number)
        elif assignment := _ASSIGNMENT.match(line):
            place = (*at, *_parts(assignment[1]))
            for n in range(len(at) + 1, len(place) + 1):
                found.setdefault(place[:n], number)
    return found


def _parts(dotted: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_KEY, dotted)]
