"""Threads of fits and predictions: pieces of rows are computed at the same time, each by one thread.

Libraries get one thread. So BLAS adds numbers in the same order everywhere, and results do not depend on the
number of threads. Threads of libraries also spin while they wait for each other: on a busy machine, fits with
several took a hundred times as long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController

S = TypeVar("S")
T = TypeVar("T")


@cache
def _libraries() -> Any:
    """Return the controller of all libraries; the search for them takes a while."""
    return ThreadpoolController()


@cache
def worker_count() -> int:
    """Return the number of cores of this process, and at most that of the threads of BLAS."""
    limits: list[int] = [library["num_threads"] for library in _libraries().info()]
    return max(1, min(int(joblib.cpu_count()), *limits))


@contextmanager
def limit_libraries() -> Iterator[None]:
    """Let BLAS and OpenMP use one thread during the block."""
    worker_count()
    with _libraries().limit(limits=1):
        yield


def in_parallel(work: Callable[[S], T], items: Sequence[S]) -> Iterator[T]:
    """Yield the results of work on items, in their order."""

    def quietly(item: S) -> T:
        with np.errstate(all="ignore"):  # which is not inherited by threads
            return work(item)

    workers = min(worker_count(), len(items))
    with limit_libraries():
        if workers < 2:
            yield from map(quietly, items)
            return
        with ThreadPoolExecutor(workers) as pool:
            pending: deque[Future[T]] = deque()
            for item in items:
                pending.append(pool.submit(quietly, item))
                if len(pending) > workers:  # so that few results wait in memory
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
