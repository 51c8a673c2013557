"""Paths that cannot be written, named or followed are refused in words, before anything is charged."""

import os
from contextlib import chdir

import pytest

from command_line import files_in, said
from helpers import posix_only

pytestmark = posix_only
ODD = {
    "not UTF-8": (os.fsdecode(b"out\xff\xfe"), "not valid UTF-8"),
    "null": ("out\0", "null character"),
    "long": ("x" * 300, "too long"),
    "long beside": ("x" * 240, "too long"),
    "long in letters of two bytes": ("é" * 125, "too long"),
    "loop": ("loop", "leads back to itself"),
}
RELEASE = ["--label", "price", "--bounds", "0", "5", "--epsilon", "1"]


@pytest.fixture
def folder(tmp_path):
    with chdir(tmp_path):
        with open("in.csv", "w", encoding="utf-8") as file:
            file.write("area,price\n" + "".join(f"{k},{1 + k % 3}\n" for k in range(60)))
        for name in ("loop", "loop.csv", "loop.html", "loop.jsonl"):
            os.symlink(name, name)
        yield tmp_path


OPTIONS = {
    "-o": ".csv",
    "--ledger": ".jsonl",
    "IN": ".csv",
    "fit -o": ".csv",
}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("kind", ODD)
def test_an_odd_name_is_refused_before_the_charge(folder, kind, option):
    """Each of the files that a command names is checked by the same rule."""
    if kind.startswith("long ") and option in ("IN", "--ledger"):
        pytest.skip("nothing is written beside it")
    name, message = ODD[kind]
    paths = {
        "IN": "in.csv",
        "-o": "out.csv",
        "--ledger": "budget.jsonl",
        option.removeprefix("fit "): f"{name}{OPTIONS[option]}",
    }
    source, before = paths.pop("IN"), files_in(folder)
    words = [word for pair in paths.items() for word in pair]
    code = 3 if option == "--ledger" and kind == "loop" else 2
    output = said("fit" if option == "fit -o" else "privatize", source, *words, *RELEASE, code=code)
    assert message in output or kind == "loop" or "Usage:" in output  # Typer refuses what no shell can pass
    assert files_in(folder) == before
