"""Any table as public columns and labels: data frames, CSV, Parquet and Excel, read in batches."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labeldp.tables.dialect import Dialect
    from labeldp.tables.feature_encoder import TableEncoder
    from labeldp.tables.opening import open_table
    from labeldp.tables.writer import TableWriter

__all__ = [
    "Dialect",
    "TableEncoder",
    "TableWriter",
    "open_table",
]

_MODULES = {
    "Dialect": "dialect",
    "TableEncoder": "feature_encoder",
    "TableWriter": "writer",
    "open_table": "opening",
}


def __getattr__(name: str) -> Any:
    """Import a module when it is asked for: PyArrow is an extra, and scikit-learn is slow to import."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from labeldp.tables.arrow import arrow  # noqa: PLC0415

    arrow()
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
