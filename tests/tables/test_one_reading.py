"""A release is of one reading of one file: every pass has the bytes of the first one, or nothing is written."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import labeldp as ldp
from labeldp.app.file_job import FileJob
from labeldp.app.inputs import Columns, read_rows
from labeldp.app.model_predictions import predict_file
from labeldp.app.regression import regress_file
from labeldp.errors import DataError
from labeldp.tables import opening, source_file

PAY = np.random.default_rng(1).integers(10_000, 90_000, 200)
AGE = np.random.default_rng(2).integers(18, 80, 200)
ABOUT = {"label": "pay", "bounds": (0, 100_000), "epsilon": 1.0}
FORMATS = ["csv", "csv.gz", "parquet", "xlsx"]
ENTRIES = ["privatize", "fit", "regress", "predict"]


def write(path, **columns):
    frame = pd.DataFrame(columns)
    kind = path.partition(".")[2]
    {"parquet": frame.to_parquet, "xlsx": frame.to_excel}.get(kind, frame.to_csv)(path, index=False)


def newer_export(path):
    """Write another table, whose columns have another order, or in Parquet other names."""
    write(path, **({"age": PAY, "pay": AGE} if path.endswith("parquet") else {"pay": PAY, "age": AGE}))


def replace(path):
    newer_export(f"new{path}")
    os.replace(f"new{path}", path)


def grow(path):
    with open(path, "ab") as file:
        file.write(b"40,12345\n")


def run(entry, source):
    """Run a command, or what fits and regressions read a table with, and return the rows that were read."""
    ledger = ldp.Ledger(limit=ldp.Budget(epsilon=9))
    if entry == "privatize":
        ldp.privatize_file(source, "out.csv", **ABOUT, mechanism="two-point")
        return pd.read_csv("out.csv")["age"].tolist()
    if entry == "predict":
        predict_file("model", source, "out.csv")
        return pd.read_csv("out.csv")["age"].tolist()
    if entry == "rows":
        rows = read_rows(FileJob(source=source, labels=("pay",)), Columns())
        return rows.public.to_pydict(), rows.labels.tolist()
    fit = regress_file if entry == "regress" else ldp.fit_file
    return fit(source, "out.csv", **ABOUT, ledger=ledger)


@pytest.fixture
def changed_after_opening(monkeypatch):
    """Return a function after which every table is changed as soon as it is open."""
    open_table = opening.open_table

    def arrange(change):
        def changing(source, *args, **options):
            table = open_table(source, *args, **options)
            change(source)
            return table

        monkeypatch.setattr(opening, "open_table", changing)

    return arrange


@pytest.fixture
def source(request, place):
    path = f"in.{request.param}"
    write(path, age=AGE, pay=PAY)
    ldp.fit_file(path, "model", **ABOUT, ledger=ldp.Ledger(limit=ldp.Budget(epsilon=9)))
    return path


@pytest.mark.parametrize("entry", ["privatize", "predict", "rows"])
@pytest.mark.parametrize("source", FORMATS, indirect=True)
def test_a_newer_file_of_the_same_name_is_not_read(changed_after_opening, source, entry):
    expected = run(entry, source)
    for path in ("out.csv", "out.csv.card.json"):
        Path(path).unlink(missing_ok=True)
    changed_after_opening(replace)
    assert run(entry, source) == expected


@pytest.mark.parametrize("change", [newer_export, grow])
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("source", FORMATS, indirect=True)
def test_a_file_written_to_in_place_is_refused_and_nothing_is_written(
    changed_after_opening, source, entry, change
):
    before = sorted(os.listdir())
    changed_after_opening(change)
    with pytest.raises(DataError, match="changed while it was read"):
        run(entry, source)
    assert sorted(os.listdir()) == before


def test_a_file_replaced_while_it_is_opened_is_refused(monkeypatch, place):
    write("in.csv", age=AGE, pay=PAY)
    open_handle = source_file.regular_handle
    monkeypatch.setattr(source_file, "regular_handle", lambda path: (open_handle(path), replace(path.name))[0])
    with pytest.raises(DataError, match="changed while it was read"):
        source_file.SourceFile(Path("in.csv"))
