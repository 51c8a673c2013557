"""Which mutants the type checker notices, for mutmut: mypy's report, as JSON, of what is wrong in mutants alone.

Runs in mutmut's folder. What mypy also says of the copy that was not changed, it says of every copy; that is no
mutant's fault.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MUTANT = re.compile(r"^(.*)__mutmut_(\d+|orig)$")


def functions(path: Path) -> list[tuple[int, int, str, str]]:
    """Return first line, last line, name and number of each mutant in a file, and of what they are mutants of."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = [(node, MUTANT.match(node.name)) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [(node.lineno, node.end_lineno or 0, found[1], found[2]) for node, found in named if found]


def main(path: str) -> None:
    cache = Path(tempfile.gettempdir(), f"labeldp-mutant-types-{os.getuid()}")
    command = [sys.executable, "-m", "mypy", "--output=json", f"--cache-dir={cache}", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    places = functions(Path(path))
    said = []
    for line in done.stdout.splitlines():
        error = json.loads(line)
        if error["severity"] == "error" and Path(error["file"]) == Path(path):
            said += [(name, which, error) for a, b, name, which in places if a <= error["line"] <= b]
    always = {(name, error["message"]) for name, which, error in said if which == "orig"}
    for name, which, error in said:
        if which != "orig" and (name, error["message"]) not in always:
            print(json.dumps(error))


if __name__ == "__main__":
    main(sys.argv[-1])
