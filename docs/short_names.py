"""Links for what docstrings write short: `register` is `labeldp.mechanisms.register`, docs/audit.md a page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

__all__ = ["setup"]

KINDS = {"class", "exception", "function"}
PAGES = [page.read_text(encoding="utf-8") for page in Path(__file__).parent.glob("reference/*.rst")]
NAMES = re.findall(r"^   ([A-Z]\w+)(?<!Error)(?<!Warning)$", "\n".join(PAGES), re.M)
CLASSES = rf"\b(?:{'|'.join(NAMES)})\b"
"""The classes that have a page, as a pattern; errors are linked without it."""


def _resolve(app: Any, _env: Any, node: Any, content: Any) -> Any:
    """Return a link for a name that was not found otherwise, or None.

    It leads to the one class or function of this name, or to the method that all mechanisms share.
    """
    if node.get("refdomain") != "py":
        return None
    short = node.get("reftarget", "")
    domain = app.env.get_domain("py")
    known = {name for name, entry in domain.objects.items() if entry.objtype in KINDS and not entry.aliased}
    names = [name for name in known if name.endswith(f".{short}") and not name.startswith("labeldp.spark.")]
    names += [
        name for name in [f"labeldp.mechanisms.Mechanism.{short.rpartition('.')[2]}"] if name in domain.objects
    ]
    if len(names) != 1:
        return None
    role = domain.objects[names[0]].objtype
    return domain.resolve_xref(app.env, node["refdoc"], app.builder, role, names[0], node, content)


def _link(_app: Any, _kind: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Link classes among the types of parameters and results, and documents by their path in the repository."""
    for place, line in enumerate(lines):
        head, colon, kind = line.partition(" : ")
        if colon and re.fullmatch(r"[\w*, ]+", head):
            lines[place] = head + colon + re.sub(CLASSES, r"`\g<0>`", kind)
        elif re.fullmatch(CLASSES, line):
            lines[place] = f"`{line}`"
        else:
            lines[place] = re.sub(r"(?:``)?docs/([\w/-]+)\.md(?:``)?", r":doc:`/\1`", line)


def setup(app: Any) -> dict[str, bool]:
    """Let Sphinx ask here last."""
    app.setup_extension("sphinx.ext.autodoc")  # has the second event
    app.connect("missing-reference", _resolve)
    app.connect("autodoc-process-docstring", _link, priority=400)  # before napoleon formats it
    return {"parallel_read_safe": True, "parallel_write_safe": True}
