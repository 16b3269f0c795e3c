"""The code in the documentation: its blocks, running them, and writing down what they print.

A page is a program: its ``python`` blocks run in order, in one namespace. A ``text`` block after one of them
is what it printed, word by word unless ``<!-- may vary -->`` stands between. ``<!-- needs: NAME -->`` before
a block says that it wants an optional package.

    python tests/doc_pages.py docs/ten-minutes.md ...     # runs the pages and writes their text blocks anew
"""

import contextlib
import importlib.util
import io
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r"(?:<!-- needs: (?P<needs>\w+) -->\n)?```python\n(?P<code>.*?)```\n"
    r"(?:\n(?P<vary><!-- may vary -->\n)?```text\n(?P<text>.*?)```\n)?",
    re.DOTALL,
)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


@dataclass(frozen=True)
class Block:
    """One block of code, what it needs, and what it is said to print (None if nothing is said)."""

    code: str
    needs: str | None
    text: str | None
    vary: bool
    line: int
    span: tuple[int, int]  # of the text in the page


def blocks(page: str) -> list[Block]:
    return [
        Block(
            m["code"],
            m["needs"],
            m["text"],
            bool(m["vary"]),
            page[: m.start("code")].count("\n"),
            m.span("text"),
        )
        for m in BLOCK.finditer(page)
    ]


def missing(block: Block) -> bool:
    return block.needs is not None and importlib.util.find_spec(block.needs) is None


def run(block: Block, name: str, space: dict[str, Any]) -> str:
    """What the block prints."""
    printed = io.StringIO()
    code = compile("\n" * block.line + block.code, name, "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, space)
    return printed.getvalue()


def agree(said: str, printed: str) -> bool:
    """Whether texts are the same, numbers up to a quarter or 0.05: on other machines runs go otherwise."""
    words = [re.sub(r"\s+", " ", NUMBER.sub("#", text)).strip() for text in (said, printed)]
    pairs = zip(*([float(n) for n in NUMBER.findall(text)] for text in (said, printed)), strict=False)
    return words[0] == words[1] and all(abs(a - b) <= max(0.05, 0.25 * abs(a)) for a, b in pairs)


def update(path: Path) -> None:
    """Run a page and write its text blocks anew; those of blocks that cannot run here stay as they are."""
    page, space, changes = path.read_text(encoding="utf-8"), {"__name__": "page"}, []
    for block in blocks(page):
        if not missing(block):
            printed = run(block, str(path), space)
            if block.text is not None:
                changes.append((block.span, printed))
    for (start, end), text in reversed(changes):
        page = page[:start] + text + page[end:]
    path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    pages = [Path(argument).resolve() for argument in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for each in pages:
            update(each)
