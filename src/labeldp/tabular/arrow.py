"""PyArrow, imported where it is used: it is an extra."""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

from labeldp.errors import MissingExtraError

__all__ = ["Arrow", "arrow", "need_arrow"]


class Arrow(NamedTuple):
    """The parts of PyArrow that most need."""

    core: ModuleType
    compute: ModuleType


def need_arrow() -> None:
    """Say which extra brings PyArrow, if it is not installed."""
    try:
        import pyarrow  # noqa: F401, PLC0415
    except ImportError:
        raise MissingExtraError(
            "tables in files need PyArrow, which is not installed: pip install 'labeldp[files]'"
        ) from None


def arrow() -> Arrow:
    """Return PyArrow, or say which extra brings it."""
    need_arrow()
    import pyarrow  # noqa: PLC0415
    import pyarrow.compute  # noqa: PLC0415

    return Arrow(pyarrow, pyarrow.compute)
