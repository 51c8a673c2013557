"""How long the server lives: until its page is closed for a while, and never less than its work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

CLOSED = 60.0
"""Seconds after which a page that said good-bye is not expected back."""

LEAVE = 2.0
"""Seconds for a last page to load its style."""

IDLE = 1800.0
"""Seconds without any request, where a page cannot say good-bye: it has no JavaScript, or its tab was killed."""


class Lifetime:
    """Which pages are open, and when something was heard last.

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
    >>> life.hear("a page"); life.forget("a page")
    >>> now = 59.0; life.is_over()
    False
    >>> now = 61.0; life.is_over()
    True
    """

    def __init__(self, busy: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._busy, self._clock, self._lock = busy, clock, threading.Lock()
        self._pages: set[str] = set()
        self._gone: set[str] = set()
        self._heard = clock()
        self._left = False
        self.is_closed = False

    def touch(self) -> None:
        """Note that a request came."""
        with self._lock:
            self._heard = self._clock()

    def hear(self, page: str) -> None:
        """Note that a page is open, unless it said good-bye: that may overtake what it said before."""
        with self._lock:
            self._pages |= {page} - self._gone
            self._left, self._heard = not self._pages, self._clock()

    def forget(self, page: str) -> None:
        """Note that a page was closed, or left for another."""
        with self._lock:
            self._pages.discard(page)
            self._gone.add(page)
            self._left, self._heard = not self._pages, self._clock()

    def close(self) -> None:
        """End as soon as no work is being done."""
        self.is_closed = True

    def is_over(self) -> bool:
        """Whether nobody is there any more."""
        with self._lock:
            if self._busy():
                self._heard = self._clock()
                return False
            silence = self._clock() - self._heard
            limit = LEAVE if self.is_closed else CLOSED if self._left else IDLE
            return silence > limit
