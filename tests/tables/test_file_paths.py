"""Where things are written: no file has two purposes, nothing goes with a folder, a refusal is free."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeldp as ldp
from command_line import invoke
from helpers import posix_only
from labeldp._atomic import atomic_folder
from labeldp.tables.paths import refuse_same
from tables.file_cases import refused, release

LABELS = np.random.default_rng(0).uniform(0, 5, 200)


@pytest.fixture(autouse=True)
def table(place):
    pq.write_table(pa.table({"id": np.arange(200), "price": LABELS}), "in.parquet")


def run(*words):
    asked = ["--label", "price", "--bounds", "0", "5", "--epsilon", "1"]
    return invoke("privatize", *words, *asked)


def snapshot(place):
    return {str(path): path.read_bytes() for path in place.rglob("*") if path.is_file()}


CLASHES = {
    "ledger is the card": "-o a.parquet --ledger a.parquet.card.json --limit 3",
    "ledger is the card, by force": "-o a.parquet --ledger a.parquet.card.json --limit 3 --force",
    "ledger is the card, by another way": "-o a.parquet --ledger fold/../a.parquet.card.json --limit 3",
    "old ledger is the card": "-o old.parquet --ledger old.parquet.card.json --force",
    "report is the card": "-o a.parquet --report a.parquet.card.json",
    "report is the ledger": "-o a.parquet --report b.jsonl --ledger b.jsonl --force",
    "ledger is the table": "-o a.parquet --ledger a.parquet",
    "table is the source": "-o in.parquet --force",
    "table is the source behind a link": "-o link.parquet --force",
    "ledger is the source": "-o a.parquet --ledger in.parquet",
    "ledger is the signature": "-o a.parquet --ledger a.parquet.card.json.sig --limit 3",
    "signature is the source behind a link": "-o s.parquet",
    "a folder as the signature": "-o f.parquet --ledger b.jsonl",
    "report is the source": "-o a.parquet --report in.parquet --force",
    "ledger below the table": "-o a.parquet --ledger a.parquet/deep/budget.jsonl --limit 3",
    "a new folder": "-o new/ --format csv --ledger b.jsonl",
    "an old folder": "-o fold --format csv --force --ledger b.jsonl",
    "a link to a folder": "-o sl --force --ledger b.jsonl",
    "a file as a folder": "-o fil/ --force --ledger b.jsonl",
    "a folder as the report": "-o a.parquet --report fold --force --ledger b.jsonl",
    "the folder of the source": "-o ./ --force --ledger b.jsonl",
}


@posix_only
@pytest.mark.parametrize("clash", CLASHES)
def test_no_place_serves_two_purposes_and_nothing_is_spent(place, clash):
    (place / "fold").mkdir()
    ldp.Ledger.open("old.parquet.card.json", limit=ldp.Budget(3))
    (place / "real").mkdir()
    (place / "sl").symlink_to("real")
    (place / "link.parquet").symlink_to("in.parquet")
    (place / "fil").touch()
    (place / "s.parquet.card.json.sig").symlink_to("in.parquet")
    (place / "f.parquet.card.json.sig").mkdir()
    (place / "f.parquet.card.json.sig" / "mine").touch()
    before = snapshot(place)
    done = run("in.parquet", *CLASHES[clash].split())
    assert done.exit_code in (2, 3), done.output
    assert "Traceback" not in done.output
    assert snapshot(place) == before


def test_a_name_that_is_too_long_is_refused_before_the_charge(place):
    for length in (243, 235, 221):  # for the table, its card, and the signature of that
        error = (OSError, ldp.errors.ParameterError)  # Windows has another one for each disk
        assert "too long" in str(refused("in.parquet", f"{'a' * length}.parquet", error=error))


def test_a_ledger_that_is_open_already_is_kept_apart_too(place):
    ledger = ldp.Ledger.open("out.csv.card.json", limit=ldp.Budget(3))
    with pytest.raises(ldp.errors.ParameterError, match="lie in one place"):
        release("in.parquet", "out.csv", ledger=ledger, force=True)
    assert ledger.charges == ()


@posix_only
def test_inputs_are_found_behind_folders_and_links(place):
    (place / "d").mkdir()
    (place / "d" / "a.csv").touch()
    (place / "elsewhere.csv").touch()
    (place / "d" / "b.csv").symlink_to(place / "elsewhere.csv")
    (place / "hard.csv").hardlink_to(place / "d" / "a.csv")
    for target in ("d/a.csv", "elsewhere.csv", "hard.csv", "d"):
        with pytest.raises(ldp.errors.ParameterError):
            refuse_same({"the table": target}, {"the source": "d"})
    refuse_same({"the table": "c.csv", "the card": None}, {"the source": "d"})


@pytest.mark.parametrize("other", ["out", "out/budget"])
def test_names_that_differ_in_case_only_are_one_place_unless_there_are_two(place, other):
    outputs = {"the table": place / "Out", "the ledger": place / other}
    with pytest.raises(ldp.errors.ParameterError, match="name another"):
        refuse_same(outputs, {})
    for name in ("Out", "out"):
        (place / name).mkdir(exist_ok=True)
    if not (place / "Out").samefile(place / "out"):
        refuse_same(outputs, {})


def test_what_appears_in_a_folder_while_another_is_written_is_lost_without_a_last_look(place):
    def look():
        if Path("out/budget.jsonl").exists():
            raise ldp.errors.ParameterError("it holds other files")

    Path("out").mkdir()
    with pytest.raises(ldp.errors.ParameterError, match="other files"), atomic_folder("out", check=look):
        Path("out/budget.jsonl").write_text("spent")
    assert os.listdir("out") == ["budget.jsonl"]
    with atomic_folder("out"):
        pass
    assert os.listdir("out") == []


def nested_files(place):
    for number, folder in enumerate(("data", "data/sub", "data/sub/deep")):
        (place / folder).mkdir()
        pq.write_table(pa.table({"id": [number], "price": [2.5]}), place / folder / f"{number}.parquet")


def test_folders_in_a_folder_are_read_and_each_file_once(place):
    """A label that is released twice costs twice, and is charged once."""
    nested_files(place)
    (place / "data/again").symlink_to("sub")
    (place / "data/self").symlink_to(".")
    release("data")
    ids = [line.split(",")[0] for line in Path("out.csv").read_text().splitlines()[1:]]
    assert ids == ["0", "1", "2"]


@posix_only
@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_a_file_with_two_names_is_refused_by_both(place, kind):
    nested_files(place)
    if kind == "symbolic":
        (place / "data/again.parquet").symlink_to("0.parquet")
    else:
        (place / "data/again.parquet").hardlink_to("data/0.parquet")
    complaint = str(refused("data", error=ldp.errors.DataError))
    assert "same file" in complaint
    assert "data/again" in complaint
    assert "0.parquet" in complaint
