"""Draw docs/page/*.png by walking through the page in Chromium: ``python docs/page_pictures.py``."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

from labeldp.app.page import serve

OUT = Path(__file__).with_name("page")
SIZE = {"width": 900, "height": 900}
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")


def write_table(path: Path) -> None:
    """Write synthetic flats as a spreadsheet exports them in much of Europe."""
    rng = np.random.default_rng(19)
    towns, lines = ["Köln", "Bonn", "Aachen"], ["rooms;area;town;built;rent"]
    for _ in range(20_000):
        rooms = int(rng.integers(1, 7))
        area = 16 * rooms + rng.gamma(4, 5)
        rent = min(3000, max(150, 190 + 8.5 * area + rng.normal(0, 120)))
        built = "" if rng.random() < 0.02 else str(rng.integers(1900, 2024))
        lines.append(f"{rooms};{area:.1f};{rng.choice(towns)};{built};{rent:.2f}".replace(".", ","))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8-sig")


def draw(tab: Any, name: str, height: int) -> None:
    """Keep the top of the page as two small pictures, in light and dark."""
    tab.wait_for_load_state()
    tab.wait_for_timeout(700)
    tab.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    tab.set_viewport_size({**SIZE, "height": height})
    for scheme, ending in (("dark", "-dark"), ("light", "")):
        path = OUT / f"{name}{ending}.png"
        tab.emulate_media(color_scheme=scheme)
        tab.screenshot(path=path)
        Image.open(path).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)


def walk(tab: Any) -> None:
    """Go from a table to the list of releases."""
    tab.get_by_role("button", name="flats.csv").click()
    tab.get_by_label("rent is private").check()
    tab.get_by_role("button", name="Read the table").click()
    tab.get_by_role("button", name="Continue with").wait_for()
    draw(tab, "table", 800)
    tab.get_by_role("button", name="Continue with").click()
    tab.get_by_label("Lowest possible").fill("0")
    tab.get_by_label("Highest possible").fill("3000")
    draw(tab, "column", 760)
    tab.get_by_role("button", name="Continue to the budget").click()
    tab.get_by_label("Limit").fill("3")
    tab.get_by_label("Privacy budget (ε)", exact=True).fill("1")
    tab.get_by_text("None is chosen yet").wait_for(state="detached")  # the server has said what it gives
    draw(tab, "budget", 900)
    tab.get_by_role("button", name="Review the release").click()
    tab.get_by_role("button", name="Release").wait_for()
    draw(tab, "release", 700)
    tab.get_by_role("button", name="Release").click()
    tab.get_by_role("heading", name="Released", level=1).wait_for(timeout=120_000)
    draw(tab, "done", 1000)
    tab.get_by_role("link", name="All releases").click()
    tab.get_by_role("heading", name="Verify and share past releases").wait_for()
    draw(tab, "releases", 660)
    tab.get_by_role("button", name="Close labeldp").click()


def main() -> None:
    """Serve a folder with one table, and walk."""
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as parent, sync_playwright() as tool:
        folder = Path(parent, "tables")
        folder.mkdir()
        write_table(folder / "flats.csv")
        said: list[str] = []
        ready = threading.Event()

        def say(text: str) -> None:
            said.append(text)
            ready.set()

        server = threading.Thread(target=serve, args=(folder,), kwargs={"browse": False, "say": say}, daemon=True)
        server.start()
        ready.wait()
        browser = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page(viewport=SIZE, color_scheme="light")
        tab.goto(said[0].split()[-1])
        walk(tab)
        browser.close()
        server.join()


if __name__ == "__main__":
    main()
