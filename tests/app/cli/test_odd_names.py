"""No option and no name of a file or column ends a command in a traceback, or charges a ledger without output."""

import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labeldp as ldp
from command_line import invoke
from fuzzing import tries
from labeldp.app.cli import EXIT_CODES

ROWS = 40

NAMES = [
    *("out", "price", "a b", "", "-", ".", "é", "\U0001f600", "A", "*", "[a]", "~", "=1+1", "a,b", 'q"q', " lead"),
    *("a\nb", "a\r", "a\tb", "\x07", "\x1b[31m", "\u202e", "\ufffe", "\uffff", "a\0b", "_x0041_", "NUL", "loop"),
    *("\udcff\udcfe", "\ud800", "x" * 200, "x" * 231, "x" * 245, "x" * 300, "é" * 120, "fifo", "sub/x", "no/x"),
]
ENDINGS = [".csv", ".tsv", ".csv.gz", ".xlsx", ".parquet", ".arrow", ".txt", "/", ""]
VALUES = [
    *(["v"], ["a\x01"], ["\uffff"], ["x" * 40_000], ["日本"], [10**17], [float("inf")], [None]),
    *(pa.array([value], kind) for value, kind in [(10**17, pa.timestamp("s")), (1 << 62, pa.timestamp("us"))]),
    *(pa.array([value], kind) for value, kind in [(1 << 30, pa.date32()), (-(1 << 30), pa.date32())]),
    pa.array([1 << 62], pa.timestamp("ns", "Europe/Berlin")),
    pa.array([[10**17]], pa.list_(pa.timestamp("s"))),
]

names = st.one_of(st.sampled_from(NAMES), st.text(st.characters(exclude_characters="/"), max_size=8))
files = st.builds(str.__add__, names, st.sampled_from(ENDINGS)).filter(lambda name: name[:1] != "/")
BOUNDS = st.sampled_from([["5", "0"], ["1e15", "1000000000000001"], ["0", "1e-11"], ["nan", "1"], ["0", "1e200"]])
ENCODINGS = ["utf-7", "idna", "punycode", "utf-16", "utf-32", "cp1252", "hz", "big5", "undefined", "zip", "utf-8"]
MARKS = st.sampled_from([",", ";", "tab", ".", "space", "\udcff", "\0", "1", '"', "a,b,c"])
WRITTEN = {
    **dict.fromkeys(["--separator", "--decimal", "--thousands", "--na", "--sheet"], MARKS),
    "--encoding": st.sampled_from(ENCODINGS),
}
mostly = st.sampled_from([True] * 9 + [False])


def usually(value, other):
    """Return what is mostly an ordinary value, so that a command gets as far as its charge."""
    return mostly.flatmap(lambda plain: st.just(value) if plain else other)


@st.composite
def commands(draw, command):
    """Return the words of a command, and the ledger in them."""
    out = draw(st.one_of(files, st.sampled_from(ENDINGS).map("out{}".format)))
    ledger = draw(usually("budget.db", files))
    sources = st.sampled_from(["in.parquet", "in.parquet", "in.csv"])
    words = [command, draw(usually(draw(sources), files)), "-o", out, "--ledger", ledger]
    words += ["--label", draw(usually("price", names)), "--bounds", *draw(usually(["0", "5"], BOUNDS))]
    words += ["--epsilon", draw(usually("1", st.sampled_from(["0", "-1", "1e9", "nan", "x", "0.001"])))]
    if command == "privatize":
        words += ["--mechanism", draw(usually("laplace", names))]
    extras = {
        "--drop": names,
        "--format": st.sampled_from(["csv", "xlsx", "parquet", "odd"]),
        "--limit": st.sampled_from(["3", "0.5", "inf", "-1"]),
        "--missing": st.sampled_from(["error", "drop", "odd"]),
        **WRITTEN,
        **({"--for": st.sampled_from(["training", "statistics", "values"])} if command == "privatize" else {}),
        **({"--features": names, "--categories": names} if command == "fit" else {}),
    }
    for option in draw(st.lists(st.sampled_from(sorted(extras)), max_size=2, unique=True)):
        words += [option, draw(extras[option])]
    words += draw(st.sampled_from([[], [], ["--force"]]))
    return words, out, ledger


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder for folders of examples; what is written to the folder above one stays here."""
    return tmp_path_factory.mktemp("names")


def enter(home, monkeypatch, column, values):
    """Make a new folder with a table in it, a link that leads to itself and a pipe, and work there."""
    folder = home / str(len(os.listdir(home))) / "in"
    (folder / "sub").mkdir(parents=True)
    monkeypatch.chdir(folder)
    for name in ("loop", *(f"loop{ending}" for ending in ENDINGS if "/" not in ending and ending)):
        os.symlink(name, name)
    if hasattr(os, "mkfifo"):
        os.mkfifo("fifo")
    Path("in.csv").write_text("area,price\n" + "1.5,2.5\n" * ROWS)
    many = pa.concat_arrays([pa.array(values)] * ROWS)
    table = pa.table({"area": np.arange(ROWS) * 1.5, "price": np.linspace(1, 4, ROWS)})
    pq.write_table(table, "in.parquet")
    with suppress(pa.ArrowInvalid, UnicodeEncodeError):  # a file of this format cannot have it
        pq.write_table(table.append_column(column, many), "in.parquet")


def run(words):
    """Run a command, which ends with a known code and without a traceback."""
    assert not any(word.startswith("/") for word in words)  # an example stays in its folder
    done = invoke(*words)
    assert done.exit_code in EXIT_CODES, (words, done.output)
    return done.exit_code


def is_charged(ledger):
    """Whether there is a ledger with charges in it."""
    try:
        return bool(ldp.Ledger.open(ledger, create=False).charges)
    except (ldp.LabelDPError, OSError):
        return False


def found_at(path):
    """Return what tells the file or folder at a path from another, or None if there is none."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):  # a name that no disk takes is a ValueError
        return None
    return status.st_ino, status.st_mtime_ns


def check(words, out, ledger):
    """Run a command; it charges its ledger if and only if its output is there."""
    before = found_at(out)
    code = run(words)
    is_there = found_at(out) != before
    assert is_charged(ledger) == is_there == (code == 0), (words, code, os.listdir("."))


@pytest.mark.slow
@tries(150)
@given(st.sampled_from(["privatize"] * 4 + ["fit"]).flatmap(commands), names, st.sampled_from(VALUES))
def test_a_command_charges_if_and_only_if_there_is_output(home, command, column, values):
    with pytest.MonkeyPatch.context() as monkeypatch:
        enter(home, monkeypatch, column, values)
        check(*command)


OPTIONS = st.sampled_from(["-o", "--out", "--trust", "--column", "--keep"])


@pytest.mark.slow
@tries(60)
@given(
    st.sampled_from(["explain", "verify", "report", "ledger", "predict", "preview", "audit"]),
    st.lists(files, min_size=1, max_size=2),
    st.lists(st.tuples(OPTIONS, names), max_size=2),
)
def test_no_other_command_ends_in_a_traceback(home, command, paths, options):
    with pytest.MonkeyPatch.context() as monkeypatch:
        enter(home, monkeypatch, "c", ["v"])
        run([command, *paths, *(word for pair in options for word in pair)])
