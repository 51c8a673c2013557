"""Tries labeldp where nothing but its wheel is installed; run by `make dist`, with that environment's Python.

Uses the standard library only: pytest would bring packages that a user does not have.
"""

from __future__ import annotations

import doctest
import subprocess
import sys
import sysconfig
from importlib.metadata import metadata, version
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import labeldp

FILES = [
    "py.typed",
    "evidence/accuracy_suite.json",
    "app/report/style.css",
    "app/report/base.html",
    "app/page/templates",
]
TABLE = ["--label", "price", "--bounds", "0", "5", "--epsilon", "1"]
MISSING = {
    "files": [
        ["privatize", "homes.csv", "-o", "private.csv", *TABLE],
        ["fit", "homes.csv", "-o", "model", *TABLE],
        ["predict", "model", "homes.csv", "-o", "priced.csv"],
    ],
    "excel": [["privatize", "homes.xlsx", "-o", "private.csv", *TABLE]],
    "plots": [["compare", "homes.csv", "--label", "price", "--bounds", "0", "5", "--public", "--plot", "x.png"]],
    "page": [["page", "--no-open"]],
}


def order(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a labeldp command as a user would, and return what it said."""
    command = Path(sysconfig.get_path("scripts"), "labeldp")
    return subprocess.run([command, *words], cwd=cwd, capture_output=True, encoding="utf-8", check=False)  # noqa: S603


def try_files() -> None:
    """The wheel's own package is imported, and brings all that is not Python."""
    assert "site-packages" in labeldp.__file__, f"the source tree is tried, not the wheel: {labeldp.__file__}"
    assert labeldp.__version__ == version("labeldp")
    missing = [name for name in FILES if not Path(str(files("labeldp").joinpath(name))).exists()]
    assert not missing, f"the wheel lacks {missing}"


def try_first_example() -> None:
    """The first example of README, as the package index shows it, gives what it says."""
    text = metadata("labeldp").get_payload()
    example = text.split("```python\n")[1].split("```")[0]
    test = doctest.DocTestParser().get_doctest(example, {}, "README", None, None)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert test.examples
    assert runner.run(test).failed == 0


def try_demo(folder: Path) -> None:
    """The demo trains its models, and says which extra would draw them."""
    done = order("demo", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "labeldp[plots]" in done.stdout + done.stderr


def try_extras(folder: Path) -> None:
    """Every command that needs an extra names it and writes nothing."""
    (folder / "homes.csv").write_text("rooms,price\n3,2.5\n4,3.5\n", encoding="utf-8")
    (folder / "homes.xlsx").write_bytes(b"no table")
    card = labeldp.privatize([2.5, 3.5], epsilon=1.0, bounds=(0, 5)).to_card()
    (folder / "homes.card.json").write_text(card, encoding="utf-8")
    before = sorted(folder.rglob("*"))
    for extra, commands in MISSING.items():
        for words in commands:
            done = order(*words, cwd=folder)
            assert done.returncode, f"{words} did what it cannot do"
            assert f"labeldp[{extra}]" in done.stderr, f"{words} does not name {extra}: {done.stderr}"
    message = ""
    try:
        from labeldp.spark import privatize  # noqa: F401
    except ImportError as error:
        message = str(error)
    assert "labeldp[spark]" in message, message
    assert sorted(folder.rglob("*")) == before


def main() -> None:
    """Try everything, and say what holds."""
    try_files()
    try_first_example()
    with TemporaryDirectory() as place:
        try_demo(Path(place))
        try_extras(Path(place))
    print(f"labeldp {version('labeldp')} works alone on Python {sys.version.split()[0]}: files, README's first ")
    print("example, demo; commands without their extra name it")


if __name__ == "__main__":
    main()
