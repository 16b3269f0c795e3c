"""The report in a real browser: it renders, its plots react, nothing goes wrong or out, a phone will do."""

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from example_result import example_result
from modelodds import Result
from modelodds.report.live import Watched, server
from test_diagnostics import kept
from test_report import nasty_result

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install 'modelodds[browser]'"
)
CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the path: install one"),
    pytest.mark.filterwarnings("default"),  # playwright's own
]
DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
DRAWN = "document.querySelectorAll('.plot .main-svg').length >= 8"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as p:
        chromium = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def until(page: Any, expression: str, seconds: float = 10.0) -> None:
    """Wait for an expression to be true; the page's policy forbids playwright to wait inside of it."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(50)


class Visit:
    """A page opened, with all that it complained of and all that it asked for."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page = browser.new_context(**options).new_page()
        self.page.on("console", lambda m: self.complaints.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("dialog", lambda d: (self.complaints.append("dialog"), d.dismiss()))
        self.page.goto(url)
        until(self.page, DRAWN)


def written(tmp_path: Path, result: Result) -> str:
    return result.report(tmp_path / "report.html").as_uri()


def full_result(n: int = 50) -> Result:
    line = {"value": [0.0, 1.0, 2.0], "mean": [-1.0, 0.0, -1.0], "sd": [0.1] * 3, "score": [0.0, 0.1, 0.0]}
    return example_result(n=n, diagnostics={"York": kept(slices={"slope": line, "noise": line})})


@pytest.mark.parametrize(("device", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
@pytest.mark.parametrize("make", [full_result, example_result, nasty_result])
def test_it_renders_alone_and_without_complaint(
    tmp_path: Path, browser: Any, device: dict[str, Any], scheme: str, make: Any
) -> None:
    visit = Visit(browser, written(tmp_path, make()), offline=True, color_scheme=scheme, **device)
    assert visit.complaints == [] and len(visit.requests) == 1
    beyond = visit.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert beyond <= 0  # nothing to scroll sideways for
    assert visit.page.locator(".verdict").is_visible()
    titled = "getComputedStyle(document.querySelector('td'), '::before').content"
    assert visit.page.evaluate(titled) == ('"probability"' if device is PHONE else "none")
    lines = visit.page.evaluate("document.querySelectorAll('#trace .scatterlayer .trace').length")
    assert lines == 6  # two models: a line and the two edges of its band


def test_plots_react(tmp_path: Path, browser: Any) -> None:
    page = (visit := Visit(browser, written(tmp_path, full_result()), **DESKTOP)).page
    page.locator("#trace").scroll_into_view_if_needed()
    box = page.locator("#trace .nsewdrag").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector("#trace .hoverlayer text")
    assert "evaluations" in page.locator("#trace .hoverlayer").text_content()
    before = page.evaluate("document.getElementById('trace').layout.xaxis.range.slice()")
    page.mouse.down()
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    until(page, f"document.getElementById('trace').layout.xaxis.range[0] > {before[0] + 1}")
    page.select_option("#model", "York")
    titles = "['pair', 'slice'].map((id) => document.getElementById(id).layout.xaxis.title.text)"
    assert page.evaluate(titles) == ["slope", "slope"]
    page.select_option("#across", "noise")
    assert page.evaluate(titles) == ["noise", "noise"]
    page.emulate_media(color_scheme="dark")
    until(page, "document.getElementById('trace').layout.font.color === '#e6e6e6'")
    assert visit.complaints == []


def test_without_draws_there_are_points_and_no_empty_figures(tmp_path: Path, browser: Any) -> None:
    visit = Visit(browser, written(tmp_path, example_result(draws={}, diagnostics={})), **DESKTOP)
    page = visit.page
    assert page.evaluate("document.getElementById('pair').data[1].x.length") > 0
    shown = [page.locator(f"#{each}").is_visible() for each in ("pair", "slice", "leftout", "calibration")]
    assert shown == [True, False, False, False] and visit.complaints == []


def test_names_are_shown_as_they_are(tmp_path: Path, browser: Any) -> None:
    page = Visit(browser, written(tmp_path, nasty_result()), **DESKTOP).page
    assert "<script>alert('x')</script>" in page.locator("#counts .legend").text_content()
    assert "<script>alert('x')</script>" in page.locator("tbody th").first.inner_text()


def test_the_live_page_keeps_up(tmp_path: Path, browser: Any) -> None:
    path = tmp_path / "run.json"
    full_result(20).to_json(path)
    serving = server(Watched(path))
    thread = threading.Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    visit = Visit(browser, f"http://127.0.0.1:{serving.server_address[1]}/", **DESKTOP)
    page = visit.page
    page.wait_for_selector("text=20 evaluations")
    page.select_option("#model", "York")
    full_result(44).to_json(path)
    page.wait_for_selector("text=44 evaluations", timeout=10_000)
    assert page.evaluate("document.getElementById('counts').data[0].x.at(-1)") == 44
    assert page.locator("#model").input_value() == "York"  # what the reader chose stays chosen
    serving.shutdown()
    serving.server_close()
    thread.join()
    page.wait_for_selector("text=does not answer any more", timeout=10_000)
    assert {url.rsplit("/", 1)[0] for url in visit.requests} == {page.url.rstrip("/")}
