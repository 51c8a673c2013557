"""Draw docs/report.png from a real release: ``python docs/report.py``.

The top of the report that ``labeldp demo`` writes, in Chromium, in light colours.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from labeldp import Ledger, privatize
from labeldp.app.report import render_report, write_page
from labeldp.evidence.survey import make_survey

OUT = Path(__file__).with_suffix(".png")
SIZE = {"width": 1180, "height": 1903}
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")


def main() -> None:
    """Release the incomes of a synthetic survey, and draw the report."""
    survey = make_survey(20_000)
    release = privatize(survey.income, epsilon=1.0, bounds=survey.bounds, ledger=Ledger())
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tool:
        page = Path(folder, "report.html")
        write_page(page, render_report(release.to_card()))
        browser = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page(viewport=SIZE, color_scheme="light")
        tab.goto(page.as_uri())
        tab.screenshot(path=OUT)
        browser.close()
    Image.open(OUT).quantize(128).save(OUT, optimize=True)


if __name__ == "__main__":
    main()
