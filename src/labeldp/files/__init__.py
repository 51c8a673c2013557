"""Tables in files: read in batches, written completely or not at all."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from labeldp.tabular.arrow import arrow

if TYPE_CHECKING:
    from labeldp.files.dialect import Dialect
    from labeldp.files.file_release import FileRelease, privatize_file
    from labeldp.files.opening import open_table
    from labeldp.files.tables import Table
    from labeldp.files.writer import TableWriter

__all__ = ["Dialect", "FileRelease", "Table", "TableWriter", "open_table", "privatize_file"]

_MODULES = {"Dialect": "dialect", "Table": "tables", "open_table": "opening", "TableWriter": "writer"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    arrow()
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'file_release')}"), name)
