"""Tables in files: read in batches, written completely or not at all."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from labeldp.tabular.arrow import arrow

if TYPE_CHECKING:
    from labeldp.files.file_release import FileRelease, privatize_file
    from labeldp.files.tables import Table, open_table
    from labeldp.files.writer import TableWriter

__all__ = ["FileRelease", "Table", "TableWriter", "open_table", "privatize_file"]

_MODULES = {"Table": "tables", "open_table": "tables", "TableWriter": "writer"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    arrow()
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'file_release')}"), name)
