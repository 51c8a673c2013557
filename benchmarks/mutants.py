"""Mutants of the privacy-critical modules, and whether the tests notice them: ``make mutants``.

mutmut changes one thing at a time in a copy of the tree; a mutant that all tests of its module let through has
survived. Survivors are listed with what was changed.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from rich.console import Console

from benchmarks.report import Sheet

ROOT = Path(__file__).parent.parent
MODULES = [
    *(f"exact/{name}.py" for name in ("proof", "sampling", "table", "window", "shift")),
    *(f"exact/{name}.py" for name in ("probabilities", "integers", "word_sources", "row_words", "row_ids")),
    "mechanisms/base.py",
    *(f"accounts/{name}.py" for name in ("budget", "ledger", "ledger_file", "terms", "card")),
    *(f"release/{name}.py" for name in ("plan", "arrays", "stream", "label_access", "queries")),
]
"""What is mutated: where a mistake costs privacy. The quick tests of its package must detect it."""

SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = ["src/labeldp/{module}"]
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = [
    "-p", "no:xdist", "-p", "no:cacheprovider", "-m", "not slow", "-k", "not warned_of and not whoever",
]
also_copy = ["conftest.py", "README.md", "docs", "examples"]
type_check_command = {types}
do_not_mutate_patterns = {words}
timeout_constant = 10.0
timeout_multiplier = 2.0
track_dependencies = false
"""
# Tests of the line that a warning names are left out: mutmut's own frame is between.
WORDS = [r"raise \w*(Error|_error)\(", r"warn\(", r'yield "', r'^\s*f?"[^"]* [^"]* [^"]*"']
"""Lines with messages for people: their text does not concern privacy, and is not mutated."""
CONFTEST = """
import pytest

pytest.Item._nodeid = property(lambda self: self.nodeid)  # mutmut 3.8 asks for it, and pytest has it no more


def pytest_sessionfinish(session, exitstatus):
    if exitstatus == 2 and session.testsfailed:  # a test file that cannot be imported any more has noticed too
        session.exitstatus = 1
"""
BESIDE = {"mechanisms": ["accounts"]}
"""Packages whose tests are run besides those of a module's own: cards are mechanisms in text."""


def tests_of(module: str) -> list[str]:
    """Return the folders of tests that must detect a mutant of a module."""
    package = module.partition("/")[0]
    return [package, *BESIDE.get(package, [])]


NOTICED = {"killed", "timeout", "caught by type check", "segfault"}


@dataclass
class Copy:
    """A copy of the tree in which a module is mutated."""

    folder: Path
    module: str
    children: int

    @classmethod
    def of(cls, folder: Path, module: str, children: int) -> Copy:
        copy = folder / module.replace("/", "-").removesuffix(".py")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "mutants*", "__pycache__"))
        checker = str(Path(__file__).with_name("mutant_types.py"))
        settings = SETTINGS.format(
            module=module,
            tests=json.dumps([f"tests/{test}" for test in tests_of(module)]),
            types=json.dumps([sys.executable, checker, "mypy", f"src/labeldp/{module}"]),
            words=json.dumps(WORDS),
        )
        with open(copy / "pyproject.toml", "a", encoding="utf-8") as stream:
            stream.write(settings)
        (copy / "conftest.py").write_text(CONFTEST, encoding="utf-8")
        return cls(copy, module, children)

    def run(self, *mutants: str) -> dict[str, str]:
        """Run some mutants, or all; return {mutant: its fate, and for survivors the change}."""
        self._mutmut("run", "--max-children", str(self.children), *mutants, shown=True)
        lines = self._mutmut("results", "--all", "true").splitlines()
        found = dict(line.strip().split(": ", 1) for line in lines if ": " in line)
        if mutants:
            found = {name: found[name] for name in mutants}
        if not found or set(found.values()) <= {"not checked"}:
            raise RuntimeError(f"no mutant of {self.module} was run: its tests may fail without any mutant")
        return {name: fate if fate in NOTICED else self._change(name, fate) for name, fate in found.items()}

    def _change(self, name: str, fate: str) -> str:
        """Return what a mutant changes; ``mutmut show`` says the same and takes seconds for each."""
        source = (self.folder / "mutants/src/labeldp" / self.module).read_text(encoding="utf-8")
        mutant = name.rpartition(".")[2]
        original = f"{mutant.rpartition('_')[0]}_orig"
        found = {node.name: node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}
        before, after = (
            [line.replace(one, "") for line in source.splitlines()[found[one].lineno - 1 : found[one].end_lineno]]
            for one in (original, mutant)
        )
        lines = difflib.unified_diff(before, after, n=0, lineterm="")
        change = [line for line in lines if line[:1] in ("+", "-") and line[:3] not in ("+++", "---")]
        return "\n".join([fate, *change])

    def _mutmut(self, *arguments: str, shown: bool = False) -> str:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        out = None if shown else subprocess.PIPE
        command = [sys.executable, "-m", "mutmut", *arguments]
        done = subprocess.run(command, cwd=self.folder, env=environment, stdout=out, text=True, check=False)
        return done.stdout or ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", default=MODULES, help="such as accounts/terms.py; all by default")
    parser.add_argument("--out", type=Path, default=Path("mutants.json"), help="where results are kept")
    parser.add_argument("--again", action="store_true", help="only those that survived the last time")
    parser.add_argument("--tonight", action="store_true", help="one module, another each day")
    parser.add_argument(
        "--least", type=float, default=0.0, help="fail where a smaller part is noticed, such as 0.9"
    )
    parser.add_argument("--children", type=int, default=os.cpu_count() or 1, help="how many at a time")
    chosen = parser.parse_args()
    unknown = sorted(set(chosen.modules) - set(MODULES))
    if unknown:
        parser.error(f"no module of that name: {', '.join(unknown)}; there are {', '.join(MODULES)}")
    if chosen.tonight:
        chosen.modules = [MODULES[date.today().toordinal() % len(MODULES)]]
    kept = json.loads(chosen.out.read_text()) if chosen.out.exists() else {}
    console = Console()
    failed = False
    sheet = Sheet("Mutants", ["module", "mutants", "noticed", "by types", "survived", "score"])
    for module in chosen.modules:
        before = kept.get(module, {}) if chosen.again else {}
        names = [name for name, fate in before.items() if fate not in NOTICED]
        if names or not before:
            with tempfile.TemporaryDirectory() as folder:
                kept[module] = before | Copy.of(Path(folder), module, chosen.children).run(*names)
            chosen.out.write_text(json.dumps(kept, indent=1))
        fates = Counter(fate.partition("\n")[0] for fate in kept[module].values())
        noticed, total = sum(fates[fate] for fate in NOTICED), sum(fates.values())
        counts = [total, noticed, fates["caught by type check"], total - noticed]
        sheet.rows.append([module, *map(str, counts), f"{noticed / max(1, total):.1%}"])
        failed |= noticed < chosen.least * total
        console.print(f"{module}: {dict(fates)}")
        for name, fate in kept[module].items():
            if "\n" in fate:
                console.print(f"{name} {fate}", markup=False, highlight=False)
    console.print(sheet.rich())
    if failed:
        sys.exit(f"a part smaller than {chosen.least:.1%} was noticed: write tests for what survived")


if __name__ == "__main__":
    main()
