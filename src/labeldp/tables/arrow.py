"""PyArrow, imported where it is used: it is an extra."""

from __future__ import annotations

from typing import Any

from labeldp.errors import MissingExtraError


def arrow() -> Any:
    """Return PyArrow, with its functions on arrays, or say which extra brings it."""
    try:
        import pyarrow.compute  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError(
            'tables in files and data frames need PyArrow, which is not installed: pip install "labeldp[files]", '
            'or "labeldp[excel]" for Excel as well (an array of numbers needs none)'
        ) from None
    return pyarrow
