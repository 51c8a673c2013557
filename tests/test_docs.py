"""The documents: every page can be reached, and every link leads somewhere."""

import re
from pathlib import Path

import typer

from labeldp.app import cli

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NO_PAGES = ("gallery/", "reference/generated/", "_templates/")
PAGES = [
    page
    for page in sorted([*DOCS.rglob("*.md"), *DOCS.rglob("*.rst")])
    if not page.relative_to(DOCS).as_posix().startswith(NO_PAGES)
]
SOURCES = [page for page in [*ROOT.glob("*.md"), *PAGES, *ROOT.glob("benchmarks/*.md")] if page.suffix == ".md"]
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]\[]*\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]+))?\)")
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INCLUDE = re.compile(r"^```\{include\} (\S+)\n```$", re.MULTILINE)


def read(path):
    return path.read_text(encoding="utf-8")


def anchors(path):
    """Return the anchors that GitHub and the site make of the headings of a file, or of what it includes."""
    if path == DOCS / "reference/cli.md":  # written by the build
        return {f"labeldp-{name}" for name in typer.main.get_command(cli.app).commands}
    text = FENCE.sub("", INCLUDE.sub(lambda match: read(path.parent / match[1]), read(path)))
    headings = [
        re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line) for line in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    ]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_of_a_document_leads_to_a_file_and_an_anchor_that_exist():
    broken = []
    for source in SOURCES:
        for target, anchor in LINK.findall(re.sub(r"`[^`\n]*`", "", FENCE.sub("", read(source)))):
            path = source.parent / target if target else source
            if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
                broken.append(f"{source.relative_to(ROOT)}: {target}#{anchor}")
    assert not broken


def test_every_page_is_reached_from_a_table_of_contents():
    entries = {DOCS / "index"}
    for page in PAGES:
        for line in "\n".join(TOCTREE.findall(read(page))).split("\n"):
            entries.add((page.parent / line.rpartition("<")[2].rstrip(">")).resolve())
    assert {page for page in PAGES if page.with_suffix("") not in entries} == set()


def test_every_symbol_of_the_method_is_a_name_in_the_code():
    """Words in code of docs/method.md, but for its own path and mathematical expressions."""
    text = (ROOT / "docs/method.md").read_text("utf-8")
    quoted = {word for code in re.findall(r"`([A-Za-z_][\w.]*)(?:\(G\))?`", text) for word in code.split(".")}
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "src/labeldp").rglob("*.py"))
    modules = {path.stem for path in (ROOT / "src/labeldp").rglob("*.py")} | {"learning", "inference", "release"}
    names = set(re.findall(r"(?:^|\W)(?:def|class) (\w+)", source)) | set(
        re.findall(r"(\w+)(?:: [^\n]+)? =", source)
    )
    names |= set(re.findall(r"^    (\w+): ", source, re.M)) | modules
    assert len(quoted) > 60
    assert quoted - names == set()
