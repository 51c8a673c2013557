"""Links of Markdown files, written for a reader of the repository, made to work on the site.

A page of the site may include a file from elsewhere, such as CHANGELOG.md. A link to that file then leads to its
page, a link to any other file that the site does not have leads to the repository.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

LINK = re.compile(r"(!?)(\[[^\]\[]*\])\((?![a-z]+:|[#/])([^)\s#]*)(#[^)\s]*)?\)")
NOTEBOOK = re.compile(r"^( *)\.\. container:: sphx-glr-download sphx-glr-download-jupyter$", re.MULTILINE)
INCLUDE = re.compile(r"^```\{include\} (\S+)\n```$", re.MULTILINE)
HEADING = re.compile(r"(#+) ")
PARAMETERS = re.compile(r"<dl>\s*((?:<dd>.*?</dd>\s*)+)</dl>", re.DOTALL)


class Repository:
    """Which files of a repository are pages of its site."""

    def __init__(self, root: Path, url: str) -> None:
        self.root, self.docs, self.url = root, root / "docs", url
        self.page: dict[Path, str] = {}
        self.source: dict[str, Path] = {}
        for file in sorted([*self.docs.rglob("*.md"), *self.docs.glob("reference/*.rst")]):
            page = file.relative_to(self.docs)
            included = INCLUDE.search(file.read_text(encoding="utf-8"))
            source = Path(os.path.normpath(file.parent / included[1])) if included else file
            self.source[page.with_suffix("").as_posix()] = source
            self.page[source] = page.as_posix()

    def rewrite(self, text: str, file: Path) -> str:
        """Return the Markdown text of a file with links that work on the site."""

        def replace(match: re.Match[str]) -> str:
            picture, label, target, anchor = match[1], match[2], match[3], match[4] or ""
            path = Path(os.path.normpath(file.parent / target))
            if path in self.page:
                return f"{label}(/{self.page[path]}{anchor})"
            example = self.docs / "gallery" / (path.stem + ".rst")
            if path == self.root / "examples":
                return f"{label}(/gallery/index.rst)"
            if path.parent == self.root / "examples" and example.exists():
                return f"{label}(/gallery/{example.name})"
            if path.is_relative_to(self.docs) and path.exists():
                return f"{picture}{label}(/{path.relative_to(self.docs).as_posix()})"
            kind = "tree" if path.is_dir() else "blob"
            return f"{label}({self.url}/{kind}/main/{path.relative_to(self.root).as_posix()}{anchor})"

        return LINK.sub(replace, text)

    def source_of(self, page: str) -> str | None:
        """Return the file that a page is written in, relative to the root."""
        if page.startswith("gallery/"):
            path = self.root / "examples" / f"{page.removeprefix('gallery/')}.py"
            return path.relative_to(self.root).as_posix() if path.exists() else None
        source = self.source.get(page)
        return source.relative_to(self.root).as_posix() if source else None


def nest_headings(text: str) -> str:
    """Return Markdown text whose first heading is its title, and in which no level of headings is left out."""
    levels: list[int] = []
    fence = False
    lines = []
    for line in text.split("\n"):
        fence ^= line.startswith("```")
        heading = None if fence else HEADING.match(line)
        if heading:
            level = len(heading[1])
            while len(levels) > 1 and levels[-1] >= level:
                levels.pop()
            levels.append(level)
            lines.append("#" * len(levels) + line[level:])
        else:
            lines.append(line)
    return "\n".join(lines)


def lines_of_parameters(match: re.Match[str]) -> str:
    """Return a signature's parameters, which Sphinx writes as definitions without terms, as lines."""
    return '<div class="parameters">' + re.sub("(</?)dd>", r"\1div>", match[1]) + "</div>"


def notebook_url(repository: str, page: str) -> str:
    """Return where an example opens as a notebook that runs; .binder/ says what is installed there."""
    return f"https://mybinder.org/v2/gh{urlsplit(repository).path}/main?labpath=examples/{Path(page).name}.ipynb"


def setup(app: Any, root: Path, url: str) -> None:
    """Rewrite what Sphinx reads, tidy what it made of it, and say where each page is edited."""
    repository = Repository(root, url)

    def on_source(app: Any, page: str, content: list[str]) -> None:
        file = root / "docs" / f"{page}.md"
        if page.startswith("gallery/plot_"):
            content[0] = NOTEBOOK.sub(
                rf"\g<0>\n\n\1  `Open as a notebook <{notebook_url(url, page)}>`_\n\n\g<0>", content[0]
            )
        if not file.exists():
            return
        source = repository.source[page]
        text = repository.rewrite(content[0], file)
        if source != file:
            app.env.note_dependency(str(source))
            included = repository.rewrite(source.read_text(encoding="utf-8"), source)
            text = nest_headings(INCLUDE.sub(lambda _: included, text))
        content[0] = text

    def on_html(_: Any, page: str, template: str, context: dict[str, Any], tree: object) -> None:
        if "body" in context:
            context["body"] = PARAMETERS.sub(lines_of_parameters, context["body"])
        context["source_path"] = repository.source_of(page)
        if context["source_path"] is None:
            context["theme_use_edit_page_button"] = False

    def on_doctree(_: Any, tree: Any) -> None:
        from docutils import nodes  # noqa: PLC0415  (only the build has it)

        for code in tree.findall(nodes.literal_block):  # a doctest ends with an empty line: of no use to readers
            if code.rawsource == code.astext():
                code.rawsource = code.rawsource.rstrip()
                code.children = [nodes.Text(code.rawsource)]
        for head in tree.findall(nodes.thead):
            for cell in head.findall(nodes.entry):
                if not cell.astext().strip():  # for readers who hear the table
                    cell.append(nodes.paragraph("", "", nodes.inline("", "what", classes=["visually-hidden"])))

    app.connect("source-read", on_source)
    app.connect("doctree-read", on_doctree)
    app.connect("html-page-context", on_html)
