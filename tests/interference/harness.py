"""Non-interference: two inputs that differ in labels only, and everything that leaves is equal.

`assert_same` is the test with replay, `run` a run without it. The inputs are in `changes`, what leaves is in
`outputs`, and what is held still is in `replay`.
"""

import importlib
import pkgutil
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import labeldp
from interference.outputs import Observed, differences, observed
from interference.replay import UNWRITTEN, Tape, seams, stillness

OTHERS = {"spark", "__main__"}
"""Packages that need more than this harness does, and programs."""


def modules() -> Iterator[ModuleType]:
    """Yield all modules of the library that this harness is for."""
    for found in pkgutil.walk_packages(labeldp.__path__, "labeldp."):
        if not OTHERS & set(found.name.split(".")):
            yield importlib.import_module(found.name)


list(modules())  # what is imported during the first run only would make a difference


@dataclass(frozen=True)
class Way:
    """A way out: ``act`` gets the input, runs in a folder of its own, and returns what the caller would get.

    Before it, ``prepare`` puts files into that folder, and ``stdin`` says what comes through standard input.
    """

    act: Callable[[Any], Any]
    prepare: Callable[[Path, Any], None] = lambda folder, given: None
    stdin: Callable[[Any], bytes] = lambda given: b""


def run(way: Way, given: Any, folder: Path, before: Tape | None = None) -> tuple[Observed, Tape]:
    """Run a way out on one input, with replay if there was a run before; return what left, and the tape.

    Every run is in a folder of the same name, ``folder / "now"``, since names of files leave as well.
    """
    now = folder / "now"
    shutil.rmtree(now, ignore_errors=True)
    now.mkdir(parents=True)
    way.prepare(now, given)
    stdin = way.stdin(given)
    with stillness(UNWRITTEN[before is not None]), seams(before) as tape:
        left = observed(lambda: way.act(given), now, stdin)
    left.calls = tape.calls, tape.mismatch
    left.words = tape.outside
    return left, tape


def compared(way: Way, one: Any, other: Any, folder: Path) -> tuple[Observed, dict[str, str]]:
    """Return what left for the first input, and where the second differs; channels give out the same for both."""
    first, tape = run(way, one, folder)
    second, _ = run(way, other, folder, tape)
    return first, differences(first, second)


def assert_same(way: Way, one: Any, other: Any, folder: Path) -> Observed:
    """Return what left for the first input, if no output depends on which of the two it is."""
    first, found = compared(way, one, other, folder)
    assert found == {}, found
    return first


def assert_nothing_leaks(way: Way, one: Any, other: Any, folder: Path) -> Observed:
    """Return what left for the first input, which works, if no output depends on which of the two it is."""
    first = assert_same(way, one, other, folder)
    assert first.error is None, first.error
    return first


def overspending(way: Way, one: Any, other: Any, folder: Path) -> bool:
    """Return whether channels and noise spend more than ledgers were charged before; inputs are single labels."""
    _, tape = run(way, one, folder)
    _, again = run(way, other, folder, tape)
    return tape.overspent(again, len(one), sum(bool(a != b) for a, b in zip(one, other, strict=True)))
