"""The report: whole in itself, escaped, and served live to this machine alone."""

import base64
import hashlib
import http.client
import json
import re
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from example_result import example_evaluations, example_result
from modelodds import Result
from modelodds.cli import app
from modelodds.errors import ResultError
from modelodds.report import load, page
from modelodds.report.data import page_data, plain
from modelodds.report.live import Watched, server
from test_diagnostics import kept

NASTY = "<script>alert('x')</script>&\"</script><!--\u2028"


def nasty_result() -> Result:
    """A result all of whose texts are hostile."""
    evaluations = example_evaluations(["Bath", "York"], 30, failures=3)
    evaluations["model"] = evaluations["model"].replace("Bath", NASTY)
    evaluations["reason"] = np.where(evaluations["status"] == "failed", NASTY, "")
    evaluations = evaluations.rename(columns={"slope": NASTY})
    r = example_result(
        names=[NASTY, "York"],
        evaluations=evaluations,
        parameters={NASTY: (NASTY,), "York": (NASTY, "noise")},
        draws={NASTY: np.arange(9.0)[:, None], "York": np.arange(18.0).reshape(9, 2)},
        history=example_result().history.rename(columns=lambda c: c.replace("Bath", NASTY)),
        message=NASTY,
        method=NASTY,
        diagnostics={NASTY: kept(at_bounds=[f"length-scale of {NASTY} at its lower limit"])},
        settings={"priors": {NASTY: {NASTY: NASTY}}, "versions": {"modelodds": NASTY}},
    )
    return r


class Elements(HTMLParser):
    """Tags with their attributes, the contents of scripts, and all text outside of them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text += data


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"mean": [-3.0]},
        {"mean": np.linspace(-10, -60, 8), "failures": 4},
        {"mean": (0.0, -np.inf), "n": 0},
        {"diagnostics": {"Bath": kept()}},
        {"draws": {}},
    ],
)
def test_it_is_whole_and_says_what_the_result_says(tmp_path: Path, changes: dict[str, Any]) -> None:
    r = example_result(**changes)
    path = r.report(tmp_path / "out.html", title="Towns")
    assert [p.name for p in tmp_path.iterdir()] == ["out.html"]
    found = Elements(path.read_text(encoding="utf-8"))
    outward = [(tag, a) for tag, a in found.tags if {"src", "href", "action", "srcset"} & a.keys()]
    assert not outward and path.stat().st_size < 2_000_000
    text = " ".join(found.text.split())
    assert text.startswith("Towns") and r.summary().split("\n")[0].replace(" %", "\u00a0%")[:40] in found.text
    for name in r.names:
        assert name in text
    for remark in r.checks():
        assert remark.text.replace(" %", "\u00a0%") in found.text


def test_nothing_of_the_users_becomes_markup() -> None:
    plain_page, nasty_page = Elements(page(example_result())), Elements(page(nasty_result()))
    assert [tag for tag, _ in nasty_page.tags].count("script") == 3
    assert len(nasty_page.scripts) == len(plain_page.scripts) == 3
    assert "alert" not in nasty_page.scripts[1] and nasty_page.scripts[2] == plain_page.scripts[2]
    assert json.loads(nasty_page.scripts[0])["names"] == [NASTY, "York"]
    assert (
        nasty_page.text.count("<script>alert('x')</script>") >= 6
    )  # as text, in title, table, settings, ...


def test_only_its_own_scripts_may_run() -> None:
    found = Elements(page(example_result()))
    policy = next(a["content"] for tag, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in found.scripts[1:]]
    assert all(f"'sha256-{h}'" in str(policy) for h in hashes)
    assert "connect-src 'none'" in str(policy) and "default-src 'none'" in str(policy)
    assert "'unsafe-inline'" not in str(re.search("script-src [^;]*", str(policy)))


def test_no_remarks_is_praise_only_where_there_was_something_to_check() -> None:
    assert "nothing to check it by" in page(example_result())
    healthy = page(example_result(diagnostics={"Bath": kept()}))
    assert "No remarks" in healthy and "nothing to check it by" not in healthy


def test_data_is_plain() -> None:
    assert plain([1 / 3, np.nan, -np.inf, 2]) == [0.333333, None, None, 2.0]
    data = page_data(example_result(diagnostics={"Bath": kept()}))
    json.dumps(data, allow_nan=False)
    assert data["trace"]["mean"][0][-1] == pytest.approx(example_result().probabilities["Bath"], rel=1e-4)
    assert len(data["models"]["Bath"]["left_out"]["observed"]) == 20
    assert data["counts"]["each"][0][-1] == example_result().n_evaluations["Bath"]


# ---------------------------------------------------------------------- files and commands


def test_results_and_ledgers_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run.db").write_bytes(b"")
    with pytest.raises(ResultError, match="There is no file"):
        load(tmp_path / "none.json")
    monkeypatch.setitem(sys.modules, "modelodds.ledger", None)
    with pytest.raises(ResultError, match="cannot read ledgers; save the result with"):
        load(tmp_path / "run.db")
    ledger = ModuleType("modelodds.ledger")
    ledger.load_result = lambda path: example_result()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "modelodds.ledger", ledger)
    assert load(tmp_path / "run.db").names == ["Bath", "York"]


def test_the_command_writes_beside_the_result(tmp_path: Path) -> None:
    example_result().to_json(tmp_path / "towns.json")
    done = CliRunner().invoke(app, ["report", str(tmp_path / "towns.json")])
    assert done.exit_code == 0 and "towns.html" in done.output
    assert (tmp_path / "towns.html").is_file()
    done = CliRunner().invoke(app, ["report", str(tmp_path / "none.json")])
    assert done.exit_code == 2 and "There is no file" in done.output
    done = CliRunner().invoke(app, ["watch", str(tmp_path / "none.json")])
    assert done.exit_code == 2 and "There is no file" in done.output


# ---------------------------------------------------------------------- live


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A saved result and the port it is served at."""
    path = tmp_path / "run.json"
    example_result(n=20).to_json(path)
    serving = server(Watched(path))
    thread = threading.Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    yield path, serving.server_address[1]
    serving.shutdown()
    serving.server_close()
    thread.join()


def get(port: int, path: str, host: str = "localhost") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path, headers={"Host": f"{host}:{port}"})
    answer = connection.getresponse()
    status, text = answer.status, answer.read().decode()
    connection.close()
    return status, text


def test_the_live_page_follows_the_file(served: tuple[Path, int]) -> None:
    path, port = served
    status, text = get(port, "/")
    assert status == 200 and 'data-live="true"' in text and "connect-src 'self'" in text
    state = json.loads(get(port, "/state?known=")[1])
    assert "20 evaluations" in state["opening"] and state["data"]["names"] == ["Bath", "York"]
    assert get(port, f"/state?known={state['version']}")[0] == 304
    example_result(n=40).to_json(path)
    status, text = get(port, f"/state?known={state['version']}")
    assert status == 200 and "40 evaluations" in json.loads(text)["opening"]
    path.write_text("{", encoding="utf-8")
    status, text = get(port, "/state?known=")
    assert status == 503 and "is not JSON" in text


def test_the_live_page_is_for_this_machine(served: tuple[Path, int]) -> None:
    _, port = served
    assert get(port, "/", host="evil.example")[0] == 403
    assert get(port, "/etc/passwd")[0] == 404
    assert get(port, "/", host="127.0.0.1")[0] == 200
