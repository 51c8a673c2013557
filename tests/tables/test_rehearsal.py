"""Nothing is charged without output: all that a writer will do with the public part is tried before the charge."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeldp as ldp
from tables.file_cases import refused, release

ROWS = 40
LABELS = np.linspace(1, 4, ROWS)
FORMATS = {"csv": "out.csv", "parquet": "out.parquet"}


def write(values, name="c"):
    """Write a table with a public column and labels, in a format that holds everything."""
    table = pa.table({name: values, "price": LABELS})
    pq.write_table(table, "in.parquet")


FAR = {
    "after 9999": pa.array([1 << 30] * ROWS, pa.date32()),
    "before 1": pa.array([-1_000_000] * ROWS, pa.date32()),
    "microseconds": pa.array([1 << 62] * ROWS, pa.timestamp("us")),
    "zoned": pa.array([-(1 << 62)] * ROWS, pa.timestamp("ms", "Europe/Berlin")),
    "the last hour, further east": pa.array([253_402_300_799] * ROWS, pa.timestamp("s", "Europe/Berlin")),
    "an unknown zone": pa.array([1] * ROWS, pa.timestamp("s", "Nowhere/Land")),
}


@pytest.mark.parametrize("kind", FAR)
def test_dates_that_text_does_not_have_are_refused_before_the_charge(place, kind):
    write(FAR[kind])
    for out in ("out.csv", "out.tsv"):
        assert "cannot hold" in str(refused("in.parquet", out))
    release("in.parquet", "out.parquet")


def test_values_that_are_not_of_their_type_are_refused_before_the_charge(place):
    data = pa.py_buffer(b"\xe9" * ROWS)
    bad = pa.Array.from_buffers(pa.string(), ROWS, [None, pa.py_buffer(np.arange(ROWS + 1, dtype=np.int32)), data])
    pq.write_table(pa.table({"c": bad, "price": LABELS}), "in.parquet")
    for out in FORMATS.values():
        assert "or they are damaged" in str(refused("in.parquet", out))


NAMES = [
    *("", " ", "#N/A", " lead", "a\nb", "a\r", 'q"q', "a,b", "=1+1", "_x0041_", "-", "é", "a.b", "\u202e", "1e5"),
    "\U0001f600",
]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_a_column_name_comes_back_as_it_was_or_is_refused_before_the_charge(place, name, format):
    pq.write_table(pa.table({"c": ["v"] * ROWS, name: ["w"] * ROWS, "price": LABELS}), "in.parquet")
    ledger, out = ldp.Ledger(), FORMATS[format]
    try:
        release("in.parquet", out, ledger=ledger)
    except ldp.LabelDPError:
        assert ledger.charges == ()
        assert not os.path.exists(out)
        assert format == "csv"
        assert {*"\r\n"} & {*name}
    else:
        assert ldp.tables.open_table(out).schema.names == ["c", name, "price"]


def test_names_that_no_card_could_list_are_refused_before_the_charge(place):
    for name in ("x" * (1 << 21), "\U0001f600" * (1 << 18)):  # which takes 12 characters there
        write(["v"] * ROWS, name=name)
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
