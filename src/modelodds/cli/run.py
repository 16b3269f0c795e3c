"""``modelodds run FILE`` and ``modelodds resume RUN``: compare the models of a file or a study."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from modelodds.cli.ending import check_writable, finish, plain_errors, refuse

SHOWN = 12  # last lines of a traceback in the user's file
MODULE = "modelodds_models"  # the name the user's file runs under; not "__main__", so its guard stays shut

Json = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the result here; Result.from_json reads it.")
]
ReportFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a report here: one .html file.")]
Figure = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a figure here: .png, .pdf or .svg.")]
Stop = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="End it by 'BestIsBest(0.99) | WallTime(3600)', say; else when the answer is settled.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress, only the answer.")]


@dataclass(frozen=True)
class Options:
    """What a run was started with, as its ledger keeps it; None is what the study says, or the usual."""

    file: str
    budget: int | None = None
    seed: int | None = None
    method: str | None = None
    batch: int | None = None
    workers: int | None = None
    timeout: float | None = None
    retries: int | None = None
    max_failures: int | None = None
    stop: str | None = None


def run(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Python file that defines models, a list or a function of one; or a TOML study.",
        ),
    ],
    budget: Annotated[
        int | None,
        typer.Option(metavar="N", help="Most evaluations to make, of all models together; a study may say."),
    ] = None,
    stop: Stop = None,
    ledger: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep every evaluation here; a run that is there already goes on."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", help="Processes that evaluate side by side; else it is done in turn."),
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Same seed, same run; 0 by default.")] = None,
    method: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="default, or paper: the method of Chai et al. (2019)."),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(metavar="N", help="Points chosen at a time; 1 by default.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="How long an evaluation may take.")
    ] = None,
    retries: Annotated[
        int | None, typer.Option(metavar="N", help="How often a failed evaluation is made again.")
    ] = None,
    max_failures: Annotated[
        int | None, typer.Option(metavar="N", help="How many may fail before the run ends.")
    ] = None,
    reuse: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="RUN", help="Another run's ledger, whose evaluations serve this one; may be repeated."
        ),
    ] = None,
    json: Json = None,
    figure: Figure = None,
    report: ReportFile = None,
    quiet: Quiet = False,
) -> None:
    """Compare the models that FILE defines.

    \b
    modelodds run models.py --budget 200
    modelodds run models.py --budget 200 --ledger run.db --workers 8 --report odds.html
    modelodds run study.toml

    With --ledger, run the same command again after a crash, or with a larger --budget, and it goes on where
    it was; if it was settled, --stop 'Never()' or a stricter rule has it go on. Meanwhile,
    `modelodds status run.db` says where it stands.

    Exit codes: 0 it ran, 1 too many evaluations failed or the executor broke, 2 the input is at fault, 3 the
    ledger is in use, 130 interrupted.
    """  # noqa: D301 - \b keeps the examples' lines apart
    check_writable(json, report, figure=figure)
    options = Options(
        str(file.resolve()), budget, seed, method, batch, workers, timeout, retries, max_failures, stop
    )
    with plain_errors():
        result = _compare(file, options, ledger, reuse or [], quiet)
    finish(result, json, figure, report)


def resume(
    ledger: Annotated[Path, typer.Argument(metavar="RUN", help="The ledger of a run.")],
    budget: Annotated[
        int | None,
        typer.Option(metavar="N", help="Another budget than before, earlier evaluations included."),
    ] = None,
    stop: Stop = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Another number of processes than before.")
    ] = None,
    json: Json = None,
    figure: Figure = None,
    report: ReportFile = None,
    quiet: Quiet = False,
) -> None:
    """Go on with a run that `modelodds run --ledger` began.

    \b
    modelodds resume run.db
    modelodds resume run.db --budget 400

    It is done as it was begun, from the same file. Exit codes are those of `modelodds run`.
    """  # noqa: D301 - \b keeps the examples' lines apart
    check_writable(json, report, figure=figure)
    with plain_errors():
        from modelodds.ledger import standing

        started = standing(ledger).study
        if "file" not in started:
            refuse(f"{ledger} was begun from Python; run that script again, and it goes on from there.")
        known: dict[str, Any] = {name: started.get(name) for name in Options.__dataclass_fields__}
        given: dict[str, Any] = {"budget": budget, "workers": workers, "stop": stop}
        options = Options(**{**known, **{k: v for k, v in given.items() if v is not None}})
        result = _compare(Path(options.file), options, ledger, [], quiet)
    finish(result, json, figure, report)


def _compare(file: Path, options: Options, ledger: Path | None, reuse: list[Path], quiet: bool) -> Any:
    from modelodds.comparison import compare
    from modelodds.executors import Workers
    from modelodds.failures import Failures
    from modelodds.ledger import Ledger
    from modelodds.stopping import rule
    from modelodds.study import Study, load_study

    if file.suffix == ".toml":
        study = load_study(file)
    else:
        study = Study(load_models(file), None, 0, "default", 1, None, None, Failures())
    budget, usual = _first(options.budget, study.budget), study.failures
    if budget is None:
        refuse("how many evaluations? Give --budget, such as --budget 200.")
    failures = Failures(
        _first(options.retries, usual.retries),
        _first(options.timeout, usual.timeout),
        _first(options.max_failures, usual.max_failures),
    )
    path, workers = _first(ledger, study.ledger), _first(options.workers, study.workers)
    if reuse and path is None:
        refuse("--reuse needs a --ledger for the new run.")
    with Workers(workers) if workers is not None else contextlib.nullcontext() as executor:
        return compare(
            study.models,
            budget=budget,
            stop=study.stop if options.stop is None else rule(options.stop),
            method=_first(options.method, study.method),
            batch=_first(options.batch, study.batch),
            executor=executor,
            ledger=None if path is None else Ledger(path, reuse, asdict(options)),
            rng=_first(options.seed, study.seed),
            progress=not quiet,
            failures=failures,
        )


def _first(*values: Any) -> Any:
    """The first that is not None."""
    return next((value for value in values if value is not None), None)


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
    _send_by_value(module)
    sys.path.insert(0, str(file.resolve().parent))
    _guarded(file, "running it", lambda: exec(code, module.__dict__))
    return module


def _send_by_value(module: ModuleType) -> None:
    """Have workers, which cannot import the file, be sent what is in it."""
    import cloudpickle

    cloudpickle.register_pickle_by_value(module)


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
