"""Pictures of a saved result for the documentation, and screenshots of its report.

modelodds demo && python benchmarks/docs_images.py modelodds-demo.json

The screenshots need playwright (``pip install 'modelodds[browser]'``) and a Chromium on the path.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from modelodds import Result, plots

IMAGES = Path(__file__).parents[1] / "docs" / "img"
SCREENS = {  # width, height, colour scheme, whether it is a phone
    "report-desktop": (1280, 1560, "light", False),
    "report-phone": (390, 1400, "dark", True),
}


def pictures(result: Result) -> None:
    plots.evidences_figure(result).savefig(IMAGES / "evidences.png", dpi=90)
    plots.surrogate_figure(result, result.best).savefig(IMAGES / "surrogate.png", dpi=90)


def screenshots(result: Result, folder: Path) -> None:
    from playwright.sync_api import sync_playwright

    page_file = result.report(folder / "report.html")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (width, height, scheme, phone) in SCREENS.items():
            size = {"width": width, "height": height}
            page = browser.new_page(viewport=size, color_scheme=scheme, is_mobile=phone, has_touch=phone)
            page.goto(page_file.as_uri())
            page.wait_for_selector("#calibration .main-svg")
            page.wait_for_timeout(500)
            page.screenshot(path=IMAGES / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    saved = Result.from_json(sys.argv[1])
    pictures(saved)
    with tempfile.TemporaryDirectory() as scratch:
        screenshots(saved, Path(scratch))
