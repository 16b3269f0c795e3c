"""Plain JSON for results: every float comes back to its last bit, every array and table with its dtype.

Strict JSON has no NaN and no infinities. They are written as null, "Infinity" and "-Infinity" where a number
is expected. Floats are written in Python's shortest form that reads back as the same double.
"""

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from modelodds.errors import ResultError

FORMAT = "modelodds-result"
FORMAT_VERSION = 1
_INFINITIES = {math.inf: "Infinity", -math.inf: "-Infinity"}
_FROM_TEXT = {text: number for number, text in _INFINITIES.items()}


def write(path: str | os.PathLike[str], fields: dict[str, Any]) -> None:
    """Write `fields` to `path`; an older file there is replaced only once the new one is complete."""
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "fields": {k: encode(v) for k, v in fields.items()},
    }
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    partial.write_text(json.dumps(document, allow_nan=False, indent=1, ensure_ascii=False), encoding="utf-8")
    partial.replace(target)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read back what `write` wrote, or say what is wrong with the file."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ResultError(f"{path} is not JSON ({error}); give a file written by Result.to_json.") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ResultError(f"{path} does not hold a result; give a file written by Result.to_json.")
    if document.get("format_version") != FORMAT_VERSION:
        raise ResultError(
            f"{path} has format version {document.get('format_version')}, this modelodds reads version "
            f"{FORMAT_VERSION}; read it with the version of modelodds that wrote it."
        )
    return {name: decode(value) for name, value in document["fields"].items()}


def encode(value: Any) -> Any:
    """JSON for a number, string, None, list, tuple, string-keyed dict, array or table."""
    match value:
        case None | str() | bool() | int():
            return value
        case float():
            return {"number": _number(value)}
        case np.generic():
            return encode(value.item())
        case list() | tuple():
            return {type(value).__name__: [encode(item) for item in value]}
        case dict():
            return {"dict": {key: encode(item) for key, item in value.items()}}
        case np.ndarray():
            return {
                "array": [_cell(x) for x in value.ravel()],
                "dtype": str(value.dtype),
                "shape": list(value.shape),
            }
        case pd.DataFrame():
            return {
                "table": [_encode_column(str(name), column) for name, column in value.items()],
                "rows": len(value),
            }
    raise ResultError(f"A {type(value).__name__} cannot be written to JSON.")


def decode(value: Any) -> Any:
    """Inverse of `encode`."""
    match value:
        case {"number": number}:
            return _float(number)
        case {"list": items}:
            return [decode(item) for item in items]
        case {"tuple": items}:
            return tuple(decode(item) for item in items)
        case {"dict": items}:
            return {key: decode(item) for key, item in items.items()}
        case {"array": cells, "dtype": dtype, "shape": shape}:
            return np.array(_cells(cells, dtype), dtype=dtype).reshape(shape)
        case {"table": columns, "rows": rows}:
            return pd.DataFrame({c["name"]: _decode_column(c) for c in columns}, index=pd.RangeIndex(rows))
    return value


def _encode_column(name: str, column: "pd.Series[Any]") -> dict[str, Any]:
    return {"name": name, "dtype": str(column.dtype), "values": [_cell(x) for x in column]}


def _decode_column(column: dict[str, Any]) -> "pd.Series[Any]":
    decoded: pd.Series[Any] = pd.Series(_cells(column["values"], column["dtype"]), dtype=column["dtype"])
    return decoded


def _cell(x: Any) -> Any:
    """One entry of an array or column; the dtype beside it says how to read it back."""
    x = x.item() if isinstance(x, np.generic) else x
    return _number(x) if isinstance(x, float) else x


def _cells(cells: list[Any], dtype: str) -> list[Any]:
    return [_float(x) for x in cells] if dtype.startswith("float") else cells


def _number(x: float) -> float | str | None:
    return None if math.isnan(x) else _INFINITIES.get(x, x)


def _float(x: float | str | None) -> float:
    return math.nan if x is None else _FROM_TEXT[x] if isinstance(x, str) else float(x)
