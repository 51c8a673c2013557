"""Links for names of the library that docstrings write short: `register` is `labeldp.mechanisms.register`."""

from __future__ import annotations

from typing import Any

__all__ = ["setup"]

KINDS = {"class", "exception", "function"}


def _resolve(app: Any, _env: Any, node: Any, content: Any) -> Any:
    """Return a link to the one class or function of a name that was not found otherwise, or None."""
    short = node.get("reftarget", "")
    if node.get("refdomain") != "py" or "." in short:
        return None
    domain = app.env.get_domain("py")
    names = [
        name for name, entry in domain.objects.items() if entry.objtype in KINDS and name.endswith(f".{short}")
    ]
    names = [name for name in names if not name.startswith("labeldp.spark.")]
    if len(names) != 1:
        return None
    role = domain.objects[names[0]].objtype
    return domain.resolve_xref(app.env, node["refdoc"], app.builder, role, names[0], node, content)


def setup(app: Any) -> dict[str, bool]:
    """Let Sphinx ask here last."""
    app.connect("missing-reference", _resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
