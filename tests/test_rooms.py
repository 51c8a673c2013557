"""The library's rooms: each imports only rooms above it, and no two modules share a name.

Both lists of known exceptions may only shrink: an entry that is no longer needed fails too.
"""

import ast
from collections import Counter
from pathlib import Path

import labeldp

SOURCE = Path(labeldp.__file__).parent

ROOMS = [
    *("_arrays", "errors", "_names", "_values", "_paths", "_atomic", "_reading", "_array_files", "_schema"),
    *("randomness", "channels", "noise", "histogram", "card_format", "mechanisms", "ledger", "priors", "release"),
    *("cards", "tabular", "estimators", "audit", "testing", "comparison", "planning", "datasets"),
]
"""From top to bottom."""

WAYS_IN_AND_OUT = ["files", "spark", "report"]
"""Below all rooms; none imports another."""

USERS = ["jobs", "page", "cli"]
"""Below these: what a command does, and the two ways to ask for it. Each may import what stands before it."""

KNOWN_IMPORTS: dict[tuple[str, str], set[str]] = {}
"""(room, room that it must not import): modules that still do."""

KNOWN_NAMES = {
    "base",
}
"""Names of several modules."""


def imported_rooms(path):
    """Return the rooms that a module imports anywhere in its code."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "labeldp" and len(parts) > 1:
                yield parts[1]


def allowed(room):
    """Return the rooms that one may import."""
    if room in USERS:
        return {*ROOMS, *WAYS_IN_AND_OUT, *USERS[: USERS.index(room) + 1]}
    if room in WAYS_IN_AND_OUT:
        return {*ROOMS, room}
    return set(ROOMS[: ROOMS.index(room) + 1])


def modules():
    """Yield the path of each module, and its room; the package's own `__init__` may import any room."""
    for path in sorted(SOURCE.rglob("*.py")):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room != "__init__":
            yield path, room


def test_rooms_import_only_rooms_above_them():
    everything = {*ROOMS, *WAYS_IN_AND_OUT, *USERS}
    assert {room for _, room in modules()} <= everything, "a new room needs its place in the order"
    wrong = {}
    for path, room in modules():
        for other in set(imported_rooms(path)) & everything - allowed(room):
            wrong.setdefault((room, other), set()).add(path.relative_to(SOURCE).as_posix())
    assert wrong == KNOWN_IMPORTS


def test_no_two_modules_share_a_name():
    counted = Counter(path.stem for path, _ in modules() if not path.stem.startswith("__"))
    assert {name for name, count in counted.items() if count > 1} == KNOWN_NAMES


def test_mutation_testing_names_modules_and_tests_that_exist():
    from benchmarks.mutants import ROOMS as MUTATED

    tests = Path(__file__).parent
    assert all((SOURCE / module).exists() for module in MUTATED)
    assert all((tests / name).exists() for names in MUTATED.values() for name in names)
