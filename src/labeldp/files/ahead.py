"""Read the next batch while this one is worked on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

__all__ = ["ahead"]

T = TypeVar("T")


def ahead(items: Iterable[T]) -> Iterator[T]:
    """Yield items that a thread fetches, one of them before it is asked for.

    Examples
    --------
    >>> list(ahead(range(5)))
    [0, 1, 2, 3, 4]
    """
    source = ([item] for item in items)
    end: list[T] = []
    with ThreadPoolExecutor(1, "labeldp-ahead") as thread:
        coming = thread.submit(next, source, end)
        while wait([coming]) and (item := coming.result()):  # waits first: one traceback, whoever was quicker
            coming = thread.submit(next, source, end)
            yield item[0]
