"""The library's packages: each imports only packages above it, and no two modules share a name."""

import ast
from collections import Counter
from pathlib import Path

import labeldp
from conftest import TOGETHER

SOURCE = Path(labeldp.__file__).parent

PACKAGES = [
    *("errors", "_values", "_atomic"),
    *("exact", "mechanisms", "accounts", "release", "tables", "learning", "inference", "spark", "evidence", "app"),
    "__main__",
]
"""From top to bottom; a package imports only what stands before it."""

SHARED_NAMES = {"base"}
"""Names of several modules."""


def imported_packages(path):
    """Return the packages that a module imports anywhere in its code."""
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


def modules():
    """Yield the path of each module, and its package; the library's own `__init__` may import any package."""
    for path in sorted(SOURCE.rglob("*.py")):
        package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if package != "__init__":
            yield path, package


def test_packages_import_only_packages_above_them():
    assert {package for _, package in modules()} == set(PACKAGES)
    wrong = {
        f"{path.relative_to(SOURCE).as_posix()} imports {other}"
        for path, package in modules()
        for other in set(imported_packages(path)) & set(PACKAGES[PACKAGES.index(package) + 1 :])
    }
    assert not wrong


def test_no_two_modules_share_a_name():
    counted = Counter(path.stem for path, _ in modules() if not path.stem.startswith("__"))
    assert {name for name, count in counted.items() if count > 1} == SHARED_NAMES


def exported(path):
    """Return the names in ``__all__`` of a package."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def test_no_module_is_called_like_a_name_that_its_package_exports():
    """Importing the module later would put it in the place of the function."""
    for path in SOURCE.rglob("__init__.py"):
        assert not exported(path) & {module.stem for module in path.parent.iterdir()}, path.parent.name


def test_mutation_testing_names_modules_and_tests_that_exist():
    from benchmarks.mutants import MODULES, tests_of

    tests = Path(__file__).parent
    assert [module for module in MODULES if not (SOURCE / module).exists()] == []
    assert all((tests / folder).is_dir() for module in MODULES for folder in tests_of(module))


def test_files_whose_tests_run_together_exist():
    assert {*TOGETHER} <= {path.stem for path in Path(__file__).parent.rglob("test_*.py")}
