"""Every code block of the documentation runs, and prints what the page says it prints."""

from pathlib import Path
from typing import Any

import pytest

from doc_pages import ROOT, agree, blocks, missing, run

PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT / "docs")))
def test_the_page_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {"__name__": "page"}
    for block in blocks(path.read_text(encoding="utf-8")):
        if missing(block):
            continue
        printed = run(block, str(path), space)
        if block.text is not None:
            same = bool(printed) if block.vary else agree(block.text, printed)
            assert same, f"{path}, line {block.line}, prints\n{printed}"


def test_agreement() -> None:
    assert agree("a 1.00\n", "a  1.01") and agree("37 % of 100", "38 % of 110")
    assert not agree("a 1.0", "b 1.0") and not agree("a 1.0", "a 1.5") and not agree("a 1", "a 1 2")


def test_every_python_block_is_found() -> None:
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        assert len(blocks(page)) == page.count("```python\n"), path
