"""ε = +∞, the last row of the paper's tables: the identity, only ever asked for by name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from labeldp.card_format import register
from labeldp.channels.identity import IdentityChannel
from labeldp.mechanisms.base import Mechanism, channel_field

__all__ = ["NoPrivacy"]


@register("no-privacy")
@dataclass(frozen=True, slots=True, kw_only=True)
class NoPrivacy(Mechanism):
    """Release labels as they are. **Not private**; for the non-private end of a comparison.

    Examples
    --------
    >>> NoPrivacy().verify().checked
    'NOT PRIVATE: every label is released as it is'
    """

    private: ClassVar[bool] = False
    epsilon: ClassVar[float] = math.inf  # type: ignore[misc]
    channel: IdentityChannel = channel_field()

    def __reduce__(self) -> tuple[type[NoPrivacy], tuple[()]]:
        return NoPrivacy, ()

    @property
    def domain(self) -> tuple[float, float]:
        """All numbers."""
        return -math.inf, math.inf

    def _build(self) -> IdentityChannel:
        return IdentityChannel()
