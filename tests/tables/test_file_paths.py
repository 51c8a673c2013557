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
from labeldp.app.card_files import read_card_file
from labeldp.errors import ParameterError
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
    "ledger is the table": "-o a.parquet --ledger a.parquet",
    "table is the source": "-o in.parquet --force",
    "table is the source behind a link": "-o link.parquet --force",
    "ledger is the source": "-o a.parquet --ledger in.parquet",
    "ledger below the table": "-o a.parquet --ledger a.parquet/deep/budget.db --limit 3",
    "a new folder": "-o new/ --format csv --ledger b.db",
    "an old folder": "-o fold --format csv --force --ledger b.db",
    "a link to a folder": "-o sl --force --ledger b.db",
    "a file as a folder": "-o fil/ --force --ledger b.db",
    "the folder of the source": "-o ./ --force --ledger b.db",
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
    before = snapshot(place)
    done = run("in.parquet", *CLASHES[clash].split())
    assert done.exit_code in (2, 3), done.output
    assert "Traceback" not in done.output
    assert snapshot(place) == before


def test_a_name_that_is_too_long_is_refused_before_the_charge(place):
    for length in (243, 235, 225):  # for the table, its card, and the card while it is written
        error = (OSError, ParameterError)  # Windows has another one for each disk
        assert "too long" in str(refused("in.parquet", f"{'a' * length}.parquet", error=error))


def test_a_ledger_that_is_open_already_is_kept_apart_too(place):
    ledger = ldp.Ledger.open("out.csv.card.json", limit=ldp.Budget(3))
    with pytest.raises(ParameterError, match="lie in one place"):
        release("in.parquet", "out.csv", ledger=ledger, force=True)
    assert ledger.charges == ()


@posix_only
def test_one_file_by_two_names_is_one_place(place):
    (place / "a.csv").touch()
    (place / "hard.csv").hardlink_to(place / "a.csv")
    (place / "link.csv").symlink_to(place / "a.csv")
    for target in ("hard.csv", "link.csv", "A.csv", "a.csv/b"):
        with pytest.raises(ParameterError):
            refuse_same({"the table": target}, {"the source": "a.csv"})
    refuse_same({"the table": "c.csv", "the card": None}, {"the source": "a.csv"})


def test_a_table_is_one_file(place):
    (place / "data").mkdir()
    (place / "data" / "in.parquet").write_bytes((place / "in.parquet").read_bytes())
    assert "one file" in str(refused("data", error=ldp.errors.DataError))


def test_what_appears_in_a_folder_while_another_is_written_is_lost_without_a_last_look(place):
    def look():
        if Path("out/budget.db").exists():
            raise ParameterError("it holds other files")

    Path("out").mkdir()
    with pytest.raises(ParameterError, match="other files"), atomic_folder("out", check=look):
        Path("out/budget.db").write_text("spent")
    assert os.listdir("out") == ["budget.db"]
    with atomic_folder("out"):
        pass
    assert os.listdir("out") == []


IRREGULAR = (
    {
        "fifo": os.mkfifo,
        "device": lambda path: os.symlink("/dev/zero", path),
        "loop": lambda path: os.symlink(path, path),
        "dangling link": lambda path: os.symlink("no such file", path),
        "folder": os.mkdir,
    }
    if hasattr(os, "mkfifo")
    else {}
)
OPENED = {
    "table": ("bad.csv", lambda: refused("bad.csv", error=(OSError, ldp.LabelDPError))),
    "ledger": ("bad.db", lambda: ldp.Ledger.open("bad.db", create=False)),
    "card": ("bad.json", lambda: read_card_file(Path("bad.json"))),
    "model": ("bad", lambda: ldp.load_model("bad")),
}


@posix_only
def test_a_fifo_that_takes_the_name_of_a_ledger_between_look_and_open_is_refused_at_once(place, monkeypatch):
    os.mkfifo("bad.db")
    monkeypatch.setattr("labeldp._atomic.regular_status", lambda path: None)
    with pytest.raises(ldp.errors.LedgerError, match="regular"):
        ldp.Ledger.open("bad.db", create=False)


@pytest.mark.parametrize("entry", OPENED)
@pytest.mark.parametrize("kind", IRREGULAR)
def test_a_path_that_is_no_regular_file_is_refused_at_once(place, kind, entry):
    name, look = OPENED[entry]
    IRREGULAR[kind](name)
    if entry == "table":
        look()
        return
    with pytest.raises((OSError, ldp.LabelDPError)):
        look()
