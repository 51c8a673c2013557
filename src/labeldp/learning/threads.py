"""Threads of numerical libraries.

They get no more threads than there are free cores. Their threads spin while they wait for each
other: if another process or a container's quota takes the core of one, all wait, thousands of times in a fit.
Such fits took a hundred times as long.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController

_LOAD = Path("/proc/loadavg")

S = TypeVar("S")
T = TypeVar("T")


def usable_cores() -> int:
    """Return how many cores this process may use, by its affinity and its container's quota."""
    return max(1, int(joblib.cpu_count()))


def idle_cores() -> int:
    """Return how many of these nobody else is using now; at least one."""
    return max(1, min(usable_cores(), (os.cpu_count() or 1) - count_others()))


def count_others() -> int:
    """Return how many threads of other processes run or wait for a core now; 0 if the system does not say."""
    try:
        running = int(_LOAD.read_text().split()[3].split("/")[0])
        return max(0, running - sum(_is_running(task) for task in Path("/proc/self/task").iterdir()))
    except (OSError, ValueError, IndexError):
        return 0


def _is_running(task: Path) -> bool:
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0] == "R"
    except (OSError, IndexError):  # it has ended
        return False


@cache
def _pools() -> Any:
    """Return the pools of all libraries: a search that takes a while, and all that matter are loaded by now."""
    return ThreadpoolController()


@contextmanager
def limit_threads(count: int) -> Iterator[None]:
    """Keep the pools of BLAS and OpenMP to so many threads, or to fewer if they had fewer."""
    pools = _pools()
    limits = {pool["prefix"]: min(count, pool["num_threads"]) for pool in pools.info()}
    with pools.limit(limits=limits):
        yield


def in_parallel(work: Callable[[S], T], items: Sequence[S]) -> Iterator[T]:
    """Yield the results of work on items, in their order; on idle cores, as many as BLAS may use."""

    def quietly(item: S) -> T:
        with np.errstate(all="ignore"):  # which is not inherited by threads
            return work(item)

    cores = min(idle_cores(), len(items), *(pool["num_threads"] for pool in _pools().info()))
    if cores < 2:
        yield from map(quietly, items)
        return
    with limit_threads(1), ThreadPoolExecutor(cores) as pool:
        pending: deque[Future[T]] = deque()
        for item in items:
            pending.append(pool.submit(quietly, item))
            if len(pending) > cores:  # so that few results wait in memory
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
