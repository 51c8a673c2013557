"""When the server ends: a while after its last page was closed, and never while it works."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

CLOSED = 60.0
"""Seconds after which a page that was closed is not expected back."""

LEAVE = 2.0
"""Seconds for a last page to load its style."""

IDLE = 1800.0
"""Seconds without any request, where a page cannot say that it is closed: without JavaScript, or after a crash."""


class Lifetime:
    """Which pages are open, and when the last request came.

    Parameters
    ----------
    busy : callable
        Whether work is being done: then nothing ends.
    clock : callable
        Seconds that only grow.

    Examples
    --------
    >>> now = 0.0
    >>> life = Lifetime(lambda: False, lambda: now)
    >>> life.open_page("a page"); life.close_page("a page")
    >>> now = 59.0; life.is_over()
    False
    >>> now = 61.0; life.is_over()
    True
    """

    def __init__(self, busy: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._busy, self._clock, self._lock = busy, clock, threading.Lock()
        self._open: set[str] = set()
        self._closed: set[str] = set()
        self._last = clock()
        self.is_closed = False

    def touch(self) -> None:
        """Note that a request came."""
        self._last = self._clock()

    def open_page(self, page: str) -> None:
        """Note that a page is open, unless it was closed: that message may overtake this one."""
        with self._lock:
            self._open |= {page} - self._closed
            self.touch()

    def close_page(self, page: str) -> None:
        """Note that a page was closed, or left for another."""
        with self._lock:
            self._open.discard(page)
            self._closed.add(page)
            self.touch()

    def close(self) -> None:
        """End as soon as no work is being done."""
        self.is_closed = True

    def is_over(self) -> bool:
        """Whether nobody is there any more."""
        with self._lock:
            if self._busy():
                self.touch()
            is_left = self._closed and not self._open
            limit = LEAVE if self.is_closed else CLOSED if is_left else IDLE
            return self._clock() - self._last > limit
