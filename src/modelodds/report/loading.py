"""Results from files: a saved result, or the ledger of a run."""

import os
from importlib import import_module
from pathlib import Path

from modelodds.errors import ResultError
from modelodds.result import Result


def load(path: str | os.PathLike[str]) -> Result:
    """The result in ``path``: JSON as `Result.to_json` writes it, or a run's ledger (``.db``)."""
    file = Path(path)
    if not file.is_file():
        raise ResultError(f"There is no file {file}; give a result (.json) or the ledger of a run (.db).")
    if file.suffix == ".json":
        return Result.from_json(file)
    try:
        load_result = import_module("modelodds.ledger").load_result
    except ModuleNotFoundError as error:
        raise ResultError(
            f"{file} is not a .json file, and this modelodds cannot read ledgers; save the result with "
            "Result.to_json and give that file."
        ) from error
    result: Result = load_result(file)
    return result
