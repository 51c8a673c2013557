"""The documents: every page can be reached, and every link leads somewhere."""

import ast
import re
from itertools import pairwise
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


def definitions():
    """Return the names that each module of the package, and each of its classes, defines."""
    names = {}
    for path in (ROOT / "src/labeldp").rglob("*.py"):
        tree = ast.parse(read(path))
        for scope in [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]:
            defined = names.setdefault(getattr(scope, "name", path.stem), set())
            stored = (node for node in ast.walk(scope) if isinstance(node, ast.Attribute))
            defined |= {node.attr for node in stored if isinstance(node.ctx, ast.Store)}
            for node in scope.body:
                targets = [*getattr(node, "targets", []), getattr(node, "target", node)]
                defined |= {getattr(target, "id", getattr(target, "name", None)) for target in targets}
    return names


def test_every_name_of_the_method_is_defined_in_a_module_that_its_section_names():
    names = definitions()
    modules = {path.stem for path in (ROOT / "src/labeldp").rglob("*.py")}
    inference = {path.stem for path in (ROOT / "src/labeldp/inference").glob("*.py")}
    checked, unknown = 0, []
    for section in read(DOCS / "method.md").split("\n## "):
        quoted = set(re.findall(r"`([A-Za-z_][\w.]*)(?:\(G\))?`", section)) - {"code", "bounds", "inference"}
        scopes = quoted & modules | (inference if "`inference`" in section else set())
        classes = {name for scope in scopes for name in names[scope] if name in names}
        known = set().union(*(names[scope] for scope in scopes | classes)) | scopes
        for name in quoted:
            first, *others = name.split(".")
            is_known = first in known and all(b in names[a] for a, b in pairwise([first, *others]))
            unknown += [] if is_known else [(section[:20], name)]
        checked += len(quoted)
    assert not unknown
    assert checked > 80


def test_every_name_of_the_proofs_is_in_the_code():
    paths = [path for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py")]
    words = set(re.findall(r"\w+", "\n".join(map(read, paths))))
    for page in (DOCS / "proofs").glob("*.md"):
        quoted = re.findall(r"`([A-Za-z_][\w.]*)(?:\([^`\n]*\))?`", FENCE.sub("", read(page)))
        assert {name for name in quoted if not words.issuperset(name.split("."))} == set(), page.name
