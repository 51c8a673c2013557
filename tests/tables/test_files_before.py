"""What cannot work is refused before the charge: no budget is spent on a table that fails."""

import os
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeldp as ldp
from labeldp.tables import open_table
from tables.file_cases import refused, release

ROWS = 300
LABELS = np.random.default_rng(0).uniform(0, 5, ROWS)


def write(path, array, labels=LABELS, required=(), **more):
    """Write a table with a public column, labels and more columns; those required are never null."""
    table = pa.table({"c": array, "price": labels, **more})
    fields = [field.with_nullable(field.name not in required) for field in table.schema]
    table = pa.Table.from_arrays(table.columns, schema=pa.schema(fields))
    pq.write_table(table, path)


def column(path, name="c"):
    table = open_table(path)
    return [value for batch in table.batches([name]) for value in batch.column(0).to_pylist()]


def test_parquet_that_is_damaged_in_another_column(place):
    write("in.parquet", np.arange(ROWS))
    chunk = pq.ParquetFile("in.parquet").metadata.row_group(0).column(0)
    data = bytearray((place / "in.parquet").read_bytes())
    start = chunk.data_page_offset
    data[start : start + 40] = bytes(40)  # the header of its only page, and what follows
    (place / "in.parquet").write_bytes(data)
    for out in ("out.parquet", "out.csv"):
        assert "damaged" in str(refused("in.parquet", out))


# ---- types --------------------------------------------------------------------------------------------------

FLAT = {
    "string_view": pa.array(["a", None, ""] * 100, pa.string_view()),
    "binary_view": pa.array([b"a"] * ROWS, pa.binary_view()),
    "binary": pa.array([b"\xff"] * ROWS),
    "fixed": pa.array([b"\xff\xfe"] * ROWS, pa.binary(2)),
    "dictionary of binary": pa.array([b"\xff"] * ROWS).dictionary_encode(),
    "half": pa.array(np.ones(ROWS, np.float16)),
    "small decimal": pa.array([Decimal("1.10"), None, Decimal("0.00")] * 100, pa.decimal32(5, 2)),
    "large decimal": pa.array([Decimal("1.10")] * ROWS, pa.decimal256(50, 2)),
    "duration": pa.array(range(ROWS), pa.duration("ms")),
    "time": pa.array(range(ROWS), pa.time64("ns")),
    "zoned": pa.array(range(ROWS), pa.timestamp("ns", "Europe/Berlin")),
    "null": pa.nulls(ROWS),
}
NESTED = {
    "list": pa.array([[1]] * ROWS),
    "struct": pa.array([{"a": 1}] * ROWS),
    "map": pa.array([[("a", 1)]] * ROWS, pa.map_(pa.string(), pa.int64())),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)] * ROWS, pa.binary(16))),
}


@pytest.mark.parametrize("kind", FLAT)
def test_a_type_is_written_or_refused_before_the_charge(kind):
    """One row has no label and is left out: rows of every type can be taken."""
    labels = np.where(np.arange(ROWS) == 5, np.nan, LABELS)
    write("in.parquet", FLAT[kind], labels)
    ways = [("out.parquet", True), ("out.csv", False)]
    for out, shuffle in ways:
        ledger = ldp.Ledger()
        written = True
        try:
            release("in.parquet", out, ledger=ledger, shuffle=shuffle, missing="drop")
        except ldp.LabelDPError:
            written = False
        assert ledger.total == ldp.Budget(1 if written else 0)
        assert written or out != "out.parquet"
        if written and out == "out.parquet":
            expected = FLAT[kind].to_pylist()[:5] + FLAT[kind].to_pylist()[6:]
            assert sorted(map(str, column(out))) == sorted(map(str, expected))


@pytest.mark.parametrize("kind", NESTED)
def test_a_nested_type_is_refused_with_how_to_leave_its_column_out(kind):
    write("in.parquet", NESTED[kind])
    error = refused("in.parquet", "out.parquet")
    assert error.option == "drop"
    assert "'c'" in str(error)
    release("in.parquet", "out.parquet", drop=["c"])
    assert open_table("out.parquet").schema.names == ["price"]


# ---- dictionaries -------------------------------------------------------------------------------------------


def test_the_order_of_a_dictionary_does_not_show_in_a_shuffled_table():
    """The order of first use in the input is what a shuffle hides."""
    values = [str(i) for i in np.random.default_rng(1).permutation(ROWS).tolist()]
    write("in.parquet", pa.array(values).dictionary_encode())
    release("in.parquet", "out.parquet", shuffle=True)
    after = column("out.parquet")
    assert sorted(after) == sorted(values)
    file = pq.ParquetFile("out.parquet", read_dictionary=["c"])
    words = file.read_row_group(0)["c"].chunk(0).dictionary.to_pylist()
    assert words == list(dict.fromkeys(after))


# ---- what a writer cannot write --------------------------------------------------------------------------

FEW = 40
FEW_LABELS = np.linspace(1, 4, FEW)
FORMATS = {"csv": "out.csv", "parquet": "out.parquet"}


def write_few(values, name="c"):
    """Write a table with a public column and labels, in a format that holds everything."""
    table = pa.table({name: values, "price": FEW_LABELS})
    pq.write_table(table, "in.parquet")


FAR = {
    "after 9999": pa.array([1 << 30] * FEW, pa.date32()),
    "before 1": pa.array([-1_000_000] * FEW, pa.date32()),
    "microseconds": pa.array([1 << 62] * FEW, pa.timestamp("us")),
    "zoned": pa.array([-(1 << 62)] * FEW, pa.timestamp("ms", "Europe/Berlin")),
    "the last hour, further east": pa.array([253_402_300_799] * FEW, pa.timestamp("s", "Europe/Berlin")),
    "an unknown zone": pa.array([1] * FEW, pa.timestamp("s", "Nowhere/Land")),
}


@pytest.mark.parametrize("kind", FAR)
def test_dates_that_text_does_not_have_are_refused_before_the_charge(place, kind):
    write_few(FAR[kind])
    for out in ("out.csv", "out.tsv"):
        assert "cannot hold" in str(refused("in.parquet", out))
    release("in.parquet", "out.parquet")


def test_values_that_are_not_of_their_type_are_refused_before_the_charge(place):
    data = pa.py_buffer(b"\xe9" * FEW)
    bad = pa.Array.from_buffers(pa.string(), FEW, [None, pa.py_buffer(np.arange(FEW + 1, dtype=np.int32)), data])
    pq.write_table(pa.table({"c": bad, "price": FEW_LABELS}), "in.parquet")
    for out in FORMATS.values():
        assert "or they are damaged" in str(refused("in.parquet", out))


NAMES = [
    *("", " ", "#N/A", " lead", "a\nb", "a\r", 'q"q', "a,b", "=1+1", "_x0041_", "-", "é", "a.b", "\u202e", "1e5"),
    "\U0001f600",
]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_a_column_name_comes_back_as_it_was_or_is_refused_before_the_charge(place, name, format):
    pq.write_table(pa.table({"c": ["v"] * FEW, name: ["w"] * FEW, "price": FEW_LABELS}), "in.parquet")
    ledger, out = ldp.Ledger(), FORMATS[format]
    try:
        release("in.parquet", out, ledger=ledger)
    except ldp.LabelDPError:
        assert ledger.charges == ()
        assert not os.path.exists(out)
        assert format == "csv"
        assert {*"\r\n"} & {*name}
    else:
        assert open_table(out).schema.names == ["c", name, "price"]


def test_names_that_no_card_could_list_are_refused_before_the_charge(place):
    for name in ("x" * (1 << 21), "\U0001f600" * (1 << 18)):  # which takes 12 characters there
        write_few(["v"] * FEW, name=name)
        for out in FORMATS.values():
            assert "shorten them" in str(refused("in.parquet", out))


def test_a_writer_alone_writes_no_date_that_cannot_be_read(place):
    """`predict` and users of `ldp.tables.TableWriter` have no pass before: rows are tried as they are written."""
    batch = pa.record_batch({"c": FAR["after 9999"]})
    with (
        pytest.raises(ldp.errors.ParameterError, match="CSV cannot hold"),
        ldp.tables.TableWriter("out.csv", batch.schema) as out,
    ):
        out.write(batch)
    assert not os.path.exists("out.csv")
