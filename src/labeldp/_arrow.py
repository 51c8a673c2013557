"""PyArrow, imported where it is used: it is an extra."""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

from labeldp.errors import MissingExtraError

__all__ = ["Arrow", "arrow"]


class Arrow(NamedTuple):
    """The parts of PyArrow that are used here."""

    core: ModuleType
    csv: ModuleType
    compute: ModuleType
    parquet: ModuleType


def arrow() -> Arrow:
    """Return PyArrow, or say which extra brings it."""
    try:
        import pyarrow  # noqa: PLC0415
        import pyarrow.compute  # noqa: PLC0415
        import pyarrow.csv  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError(
            "tables in files need PyArrow, which is not installed: pip install 'labeldp[files]'"
        ) from None
    return Arrow(pyarrow, pyarrow.csv, pyarrow.compute, pyarrow.parquet)
