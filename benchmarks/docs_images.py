"""The documentation's pictures and screenshots, into docs/img.

``python benchmarks/docs_images.py`` runs the demo, looks at its live page on the way and at its report at the
end, on a desktop and on a phone, and draws the figures. It takes about two minutes.

The screenshots need playwright (``pip install 'modelodds[browser]'``) and a Chromium on the path.
"""

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from modelodds import Model, Prior, Result, compare, plots
from modelodds.problems.links import spector_models
from modelodds.report.live import Watched, server
from modelodds.stopping import Never

IMAGES = Path(__file__).parents[1] / "docs" / "img"
BUDGET = 150  # the demo's own
SCREENS = {  # width, height, colour scheme, whether it is a phone
    "desktop": (1280, 1560, "light", False),
    "phone": (390, 1400, "dark", True),
}
LIVE_AT = 80  # evaluations after which the live page is looked at


def two_humps(theta: np.ndarray) -> float:
    """A log-likelihood for the method's page: one parameter, two modes."""
    return float(
        np.logaddexp(stats.norm.logpdf(theta[0], 0.8, 0.3), stats.norm.logpdf(theta[0], -0.9, 0.4) - 1.0)
    )


def method_figures() -> None:
    prior = Prior({"x": stats.norm(0, 1)})
    models = [
        Model("two humps", two_humps, prior),
        Model("one hump", lambda theta: stats.norm.logpdf(theta[0], 0.2, 0.6), prior),
    ]
    few = compare(models, budget=18, stop=Never(), progress=False)
    save(plots.surrogate_figure(few, "two humps"), "surrogate-early")
    save(plots.evidences_figure(few), "evidences-early")


def demo_figures(result: Result) -> None:
    save(plots.probabilities_figure(result), "demo", dpi=150)
    save(plots.evidences_figure(result), "evidences")
    save(plots.surrogate_figure(result, result.best), "surrogate")
    save(plots.corner_figure(result, result.best), "corner")


def save(figure: Any, name: str, dpi: int = 90) -> None:
    figure.savefig(IMAGES / f"{name}.png", dpi=dpi)
    print(f"docs/img/{name}.png", flush=True)


def demo(folder: Path) -> Result:
    """The demo's result; its live page is photographed while it runs."""
    ledger, found = folder / "demo.db", []

    def run() -> None:
        found.append(compare(spector_models(), budget=BUDGET, ledger=ledger, progress=False))

    running = threading.Thread(target=run)
    running.start()
    while not ledger.exists():
        time.sleep(0.1)
    time.sleep(1.0)
    with served(ledger) as address, pages() as open_page:
        for name in SCREENS:
            page = open_page(name, address)
            while int(page.locator(".quiet").first.inner_text().split()[0]) < LIVE_AT:
                page.wait_for_timeout(200)
            shoot(page, f"live-{name}")
    running.join()
    return found[0]


@contextmanager
def served(path: Path) -> Iterator[str]:
    """The address of the live page of a ledger."""
    serving = server(Watched(path))
    thread = threading.Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{serving.server_address[1]}/"
    serving.shutdown()
    serving.server_close()
    thread.join()


@contextmanager
def pages() -> Iterator[Any]:
    """A function that opens an address on one of the screens."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])

        def open_page(name: str, address: str) -> Any:
            width, height, scheme, phone = SCREENS[name]
            size = {"width": width, "height": height}
            page = browser.new_page(viewport=size, color_scheme=scheme, is_mobile=phone, has_touch=phone)
            page.goto(address)
            page.wait_for_selector("#odds .main-svg")
            return page

        yield open_page
        browser.close()


def shoot(page: Any, name: str) -> None:
    page.wait_for_timeout(500)
    page.screenshot(path=IMAGES / f"{name}.png")
    print(f"docs/img/{name}.png", flush=True)


def main() -> None:
    method_figures()
    with tempfile.TemporaryDirectory() as scratch:
        result = demo(Path(scratch))
        demo_figures(result)
        page_file = result.report(Path(scratch) / "report.html")
        with pages() as open_page:
            for name in SCREENS:
                shoot(open_page(name, page_file.as_uri()), f"report-{name}")


if __name__ == "__main__":
    main()
