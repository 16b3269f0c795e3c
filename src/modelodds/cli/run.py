"""``modelodds run FILE.py``: compare the models that a file defines."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from modelodds.cli.ending import check_writable, finish, plain_errors, refuse

SHOWN = 12  # last lines of a traceback in the user's file
MODULE = "modelodds_models"  # the name the user's file runs under; not "__main__", so its guard stays shut


def run(
    file: Annotated[
        Path, typer.Argument(help="Python file that defines models: a list, or a function returning one.")
    ],
    budget: Annotated[int, typer.Option(help="Most evaluations to make, of all models together.")],
    seed: Annotated[int, typer.Option(help="Same seed, same run.")] = 0,
    method: Annotated[
        str, typer.Option(help="default, or paper: Chai et al. (2019) to the letter.")
    ] = "default",
    batch: Annotated[int, typer.Option(help="Points chosen at a time.")] = 1,
    json: Annotated[
        Path | None, typer.Option(help="Write the result here; Result.from_json reads it.")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Write a figure here: .png, .pdf or .svg.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report here: one .html file.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress, only the answer.")] = False,
) -> None:
    """Compare the models that FILE defines.

    Exit codes: 0 it ran, 1 too many evaluations failed, 2 the input is at fault, 130 interrupted.
    """
    check_writable(json, figure, report)
    with plain_errors():
        from modelodds.comparison import compare

        models = load_models(file)
        result = compare(models, budget=budget, method=method, batch=batch, rng=seed, progress=not quiet)
    finish(result, json, figure, report)


def load_models(file: Path) -> Any:
    """What the file calls ``models``, called if it is a function; compare() checks what is in it."""
    module = _execute(file)
    if not hasattr(module, "models"):
        refuse(f"{file} defines no models; end it with a list such as models = [Model(...), Model(...)].")
    models = module.models
    if callable(models):
        models = _guarded(file, "calling models()", models)
    if not isinstance(models, Iterable) or isinstance(models, str | bytes):
        refuse(
            f"models in {file} is a {type(models).__name__}; make it a list of Model, "
            "or a function returning one."
        )
    return models


def _execute(file: Path) -> ModuleType:
    """The file as a module, its own folder importable as under ``python FILE.py``."""
    module = ModuleType(MODULE)
    module.__file__ = str(file)
    code = _compile(file)
    sys.modules[MODULE] = module  # dataclasses and pickle look their module up
    sys.path.insert(0, str(file.resolve().parent))
    _guarded(file, "running it", lambda: exec(code, module.__dict__))
    return module


def _compile(file: Path) -> Any:
    try:
        return compile(file.read_bytes(), str(file), "exec")
    except FileNotFoundError:
        refuse(f"there is no file {file}.")
    except OSError as error:
        refuse(f"{file} cannot be read: {error.strerror}.")
    except SyntaxError as error:
        where = f"line {error.lineno}: " if error.lineno else ""
        refuse(f"{file} is not Python: {where}{error.msg}.")
    except ValueError as error:  # null bytes
        refuse(f"{file} is not Python: {error}.")


def _guarded(file: Path, doing: str, call: Callable[[], Any]) -> Any:
    """What ``call()`` returns; if it raises, the end of the user's own traceback."""
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit() in the file too
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != str(file):
            trace = trace.tb_next  # frames of ours
        text = "".join(traceback.format_exception(type(error), error, trace)).rstrip().splitlines()
        refuse("\n".join([f"{file} raised an error, {doing}:", *text[-SHOWN:]]))
