"""Read the next batch while this one is worked on."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

__all__ = ["ahead"]

T = TypeVar("T")
_DEPTH = 2


def ahead(items: Iterable[T]) -> Iterator[T]:
    """Yield items that a thread fetches, at most two of them before they are asked for.

    Examples
    --------
    >>> list(ahead(range(5)))
    [0, 1, 2, 3, 4]
    """
    waiting: queue.Queue[tuple[str, T | BaseException | None]] = queue.Queue(_DEPTH)
    stop = threading.Event()

    def put(kind: str, item: T | BaseException | None) -> bool:
        while not stop.is_set():
            try:
                waiting.put((kind, item), timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def fetch() -> None:
        try:
            if all(put("item", item) for item in items):
                put("end", None)
        except BaseException as error:
            put("error", error)

    thread = threading.Thread(target=fetch, name="labeldp-ahead", daemon=True)
    thread.start()
    try:
        while True:
            kind, item = waiting.get()
            if kind == "end":
                return
            if kind == "error":
                raise item  # type: ignore[misc]
            yield item  # type: ignore[misc]
    finally:
        stop.set()
        thread.join()
