"""``labeldp privatize`` as people type it: what cannot work costs a sentence and an exit code, and no budget."""

import contextlib
import os
import sqlite3
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeldp as ldp
from command_line import files_in, flat, run, said
from helpers import posix_only

ROWS = 400
LABELS = np.random.default_rng(0).uniform(0.5, 4.5, ROWS)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "homes.csv"
    lines = [f"{i % 7},{'north' if i % 3 else 'south'},{label!r}" for i, label in enumerate(LABELS.tolist())]
    path.write_text("\n".join(["rooms,region,price", *lines]) + "\n")
    return path


def order(table, out, *more):
    return ["privatize", table, "-o", out, "--label", "price", "--bounds", 0, 5, "--epsilon", 1, *more]


def test_the_example_works(tmp_path, table):
    out = tmp_path / "private.parquet"
    done = run(*order(table, out, "--ledger", tmp_path / "budget.db", "--limit", 3))
    assert pq.read_schema(out).names == ["rooms", "region", "price"]
    assert pq.read_schema(out).field("rooms").type == pa.int64()
    card = ldp.accounts.Card.parse((tmp_path / "private.parquet.card.json").read_text())
    assert card.terms.cost == ldp.Budget(1)
    assert "ε = 2 left" in done.stderr
    assert done.stdout == ""


def test_another_ledger_with_charges_is_named_before_the_charge(tmp_path, table):
    first, second = tmp_path / "first.db", tmp_path / "second.db"
    ldp.Ledger.open(first)
    (tmp_path / "foreign.db").write_bytes(b"\xff{}\n{}\n")
    (tmp_path / "folder.db").mkdir()
    assert (
        "For people whose labels" not in run(*order(table, tmp_path / "a.csv", "--ledger", second)).stderr
    )  # no charges
    assert "For people whose labels" not in run(*order(table, tmp_path / "b.csv", "--ledger", second)).stderr
    for ledger in ([], ["--ledger", first]):
        done = flat(run(*order(table, tmp_path / "c.csv", *ledger, "--force")).stderr)
        assert f"another ledger has charges, {second}. To charge it" in done
    table.write_text(table.read_text().replace("price", "rent"))
    rent = ["rent" if word == "price" else word for word in order(table, tmp_path / "d.csv", "--ledger", first)]
    done = run(*rent).stderr
    assert "For people whose labels" not in done, "charges of another column"


@pytest.mark.filterwarnings("always:The ledger has charges")
@pytest.mark.parametrize("drop", [[], ["--drop", "price"]])
def test_a_public_column_with_charges_in_the_same_ledger_is_named(tmp_path, table, drop):
    ledger = ["--ledger", tmp_path / "b.db", "--limit", 9]
    warning = "The ledger has charges of 'price', which is public here: leave it out"
    assert warning not in flat(run(*order(table, tmp_path / "a.csv", *ledger)).stderr)
    rooms = ["rooms" if word == "price" else word for word in order(table, tmp_path / "b.csv", *ledger)]
    assert (warning in flat(run(*rooms, *drop).stderr)) == (not drop)
    rest = ["--label", "rooms", "--bounds", 0, 9, "--epsilon", 1, "--ledger", tmp_path / "b.db"]
    if not drop:
        assert warning in flat(run("fit", table, "-o", tmp_path / "model", *rest).stderr)
        assert warning in flat(run("regress", table, "-o", tmp_path / "a.txt", *rest, "--on", "price").stderr)
        assert warning not in flat(run("regress", table, "-o", tmp_path / "b.txt", *rest, "--on", "1").stderr)


@posix_only
def test_ledgers_that_are_locked_or_no_files_are_not_waited_for(tmp_path, table):
    ldp.Ledger.open(tmp_path / "other.db").charge("labels", epsilon=1.0)
    os.mkfifo(tmp_path / "fifo.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = run(*order(table, tmp_path / "a.csv", "--ledger", tmp_path / "own.db"))
    assert "another ledger has charges" in flat(done.stderr)


@pytest.fixture
def telling(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"log_price": np.log(LABELS), "price": LABELS}), path)
    return path


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize(("answer", "code"), [(b"n\n", 130), (b"y\n", 0)])
def test_hints_are_on_the_screen_before_the_charge_and_ask(tmp_path, telling, answer, code):
    """A terminal of its own, because nothing less counts as one."""
    import pty

    ours, theirs = pty.openpty()
    words = order(telling, tmp_path / "out.parquet", "--ledger", tmp_path / "b.db")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    os.write(ours, answer)
    command = [sys.executable, "-m", "labeldp", *map(str, words)]
    with subprocess.Popen(command, stdin=theirs, stderr=theirs, env=environment) as process:  # noqa: S603
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # a terminal without anybody at its other end
            while piece := os.read(ours, 4096):  # while it runs: a terminal that nobody reads is full soon
                shown += piece
    os.close(ours)
    assert process.returncode == code, shown
    assert b"For you alone: The column 'log_price'" in shown
    assert files_in(tmp_path) == sorted(
        ["in.parquet", *(["b.db", "out.parquet", "out.parquet.card.json"] * (code == 0))]
    )


def test_logs_say_the_same_whatever_gives_labels_away(tmp_path, telling):
    """Standard error is no terminal here, even if colours are forced."""
    harmless = tmp_path / "harmless.parquet"
    pq.write_table(pa.table({"log_price": np.ones(ROWS), "price": LABELS}), harmless)
    for source in (telling, harmless):
        done = run(*order(source, tmp_path / f"{source.stem}.csv"), FORCE_COLOR="1")
        assert "For you alone" not in done.output
        assert "Hints on columns that may give labels away are shown on a terminal only." in done.stderr


MISTAKES = {
    "text as the label": ({"--label": "region"}, "If it is text, name another column as --label"),
    "no label": ({"IN": "empty.csv"}, "--missing drop"),
    "no label, and dropped": ({"IN": "empty.csv", "--missing": "drop"}, "no row of the table has a label"),
}
"""Bad values of single options are in `test_options`, files with two purposes in `test_file_paths`."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_cost_a_sentence_and_nothing_else(place, table, mistake):
    (place / "empty.csv").write_text("a,price\nx,\n")
    changes, sentence = MISTAKES[mistake]
    options = {"-o": "out.csv", "--label": "price", "--epsilon": 1, "--ledger": "b.db", **changes}
    source = options.pop("IN", "homes.csv")
    words = [word for pair in options.items() for word in pair]
    assert sentence in flat(run("privatize", source, "--bounds", 0, 5, *words, code=2).stderr)
    assert files_in(place) == ["empty.csv", "homes.csv"]


def test_the_ledger_refuses_with_its_own_code(tmp_path, table):
    ledger = ("--ledger", tmp_path / "budget.db")
    run(*order(table, tmp_path / "a.csv", *ledger, "--limit", 1))
    assert "Nothing was spent" in said(*order(table, tmp_path / "b.csv", *ledger), code=3)
    assert "has the limit" in said(*order(table, tmp_path / "c.csv", *ledger, "--limit", 2), code=3)
    assert "--ledger FILE" in said(*order(table, tmp_path / "d.csv", "--limit", 2), code=2)
    assert files_in(tmp_path) == ["a.csv", "a.csv.card.json", "budget.db", "homes.csv"]
    book = ldp.Ledger.open(tmp_path / "budget.db")
    assert book.total == ldp.Budget(1)
