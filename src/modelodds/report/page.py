"""The whole report as one HTML file: text, data, styles and the plotting library; no link to anywhere."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from modelodds.report.data import page_data
from modelodds.report.words import closing, opening
from modelodds.result import Result

UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def write(result: Result, path: str | os.PathLike[str], title: str | None = None) -> Path:
    """Write the report of a result; an older file there is replaced only once the new one is complete."""
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    partial.write_text(page(result, title), encoding="utf-8")
    partial.replace(target)
    return target


def page(result: Result, title: str | None = None, live: bool = False) -> str:
    """The report as HTML.

    A policy in its head lets only the two scripts below run, by their hashes, so that nothing in a model's
    name could, and lets the page reach nothing but, if it is ``live``, the server it came from.
    """
    title = title or f"modelodds: {', '.join(result.names)}"
    scripts = [static("plotly-basic.min.js"), static("report.js")]
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    reach = "'self'" if live else "'none'"
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        f"connect-src {reach}; base-uri 'none'; form-action 'none'"
    )
    return Template(static("report.html")).substitute(
        title=escape(title),
        policy=policy,
        style=static("report.css"),
        live="true" if live else "false",
        opening=opening(result),
        closing=closing(result),
        data=script_json(page_data(result)),
        plotly=scripts[0],
        script=scripts[1],
    )


def script_json(value: object) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    return "".join(UNSAFE.get(character, character) for character in text)


@cache
def static(name: str) -> str:
    """One of the files that a page is made of."""
    return files("modelodds.report").joinpath("static", name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
