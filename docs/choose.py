"""The page "Choose your ε": figures that the library computes for it, and the script that makes them live."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import labeldp as ldp
from labeldp.evidence.choices import choice_html

STATIC = Path("src", "labeldp", "app", "page", "static")
FIGURES = "<!-- figures -->"


def figures() -> str:
    """Return what the page shows before anyone moves a slider, with the table for all that they may choose."""
    return choice_html(ldp.preview(rows=20_000, bounds=(0, 200), epsilon=1.0))


def setup(app: Any, root: Path) -> None:
    """Put the figures into choose.md, and the local page's script and style beside it."""

    def on_config(_: Any, config: Any) -> None:
        config.html_static_path += [str(root / STATIC / f"choices.{kind}") for kind in ("js", "css")]

    def on_source(_: Any, page: str, content: list[str]) -> None:
        if page == "choose":
            content[0] = content[0].replace(FIGURES, figures())

    def on_html(app: Any, page: str, *_: object) -> None:
        if page == "choose":
            app.add_css_file("choices.css")
            app.add_css_file("choose.css")
            app.add_js_file("choices.js", loading_method="defer")

    app.connect("config-inited", on_config)
    app.connect("source-read", on_source)
    app.connect("html-page-context", on_html)
