"""Labels that are released again where no ledger counts: whoever does that is warned, whichever way they leave."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

from labeldp.errors import RepeatedReleaseWarning

__all__ = ["warn_if_seen"]

_seen: dict[int, weakref.ref[Any]] = {}


def warn_if_seen(labels: Any, stacklevel: int = 3) -> None:
    """Warn if this very object, whatever is in it, was released before without a ledger."""
    try:
        reference = weakref.ref(labels)
    except TypeError:  # a list, say
        return
    old = _seen.get(id(labels))
    if old is not None and old() is labels:
        warnings.warn(
            "these labels were released before: each release costs epsilon again, and the costs add up. "
            "Keep one release and reuse it, or pass a ledger that counts.",
            RepeatedReleaseWarning,
            stacklevel=stacklevel,
        )
    for key in [key for key, other in _seen.items() if other() is None]:
        del _seen[key]
    _seen[id(labels)] = reference
