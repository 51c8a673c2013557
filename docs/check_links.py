"""Check a built site: every link, anchor and picture is there, and nothing is loaded from elsewhere.

``python docs/check_links.py build/site`` lists what is broken, and fails if anything is.
"""

from __future__ import annotations

import os
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

NOT_LOADED = {"canonical", "next", "prev", "search", "index", "author", "copyright"}


class Page(HTMLParser):
    """The ids of a page, its links, what it loads, and its picture for links."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.pictures: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note ids, links and what is loaded."""
        values = {name: value for name, value in attrs if value}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" or values.get("rel") in NOT_LOADED:
            self.links |= {values["href"]} if "href" in values else set()
        elif tag != "base":
            self.loads |= {values[name] for name in ("src", "href", "data") if name in values}
        if values.get("property") == "og:image":
            self.pictures.add(values["content"])


def broken_links(site: Path) -> list[str]:
    """Return one line for each link of the site that leads nowhere, and for each thing loaded from elsewhere."""
    pages = {file: Page(file) for file in sorted(site.rglob("*.html")) if "_static" not in file.parts}
    problems = []
    for file, page in pages.items():
        name = file.relative_to(site)
        problems += [f"{name}: loads {url}" for url in sorted(page.loads) if urlsplit(url).netloc]
        for url in sorted(page.pictures):
            if not (site / "_static" / url.partition("/_static/")[2]).is_file():
                problems.append(f"{name}: {url} does not exist")
        for url in sorted(page.links | page.loads):
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            path = Path(os.path.normpath(file.parent / unquote(parts.path))) if parts.path else file
            path = path / "index.html" if path.is_dir() else path
            anchor = unquote(parts.fragment)
            if not path.exists():
                problems.append(f"{name}: {url} does not exist")
            elif anchor and path in pages and anchor not in pages[path].ids:
                problems.append(f"{name}: {url} has no such anchor")
    return problems


if __name__ == "__main__":
    problems = broken_links(Path(sys.argv[1]))
    print("\n".join(problems) or "all links lead somewhere")
    sys.exit(bool(problems))
