"""Columns of every flat type, and whatever else in a binary file follows from how its writer cut it.

A writer that cuts by size counts the bytes of labels too. So where row groups, batches and files end, which words
each of them has, in which order, and how it packed the label, all follow from labels, and may show nowhere.
"""

import datetime
import decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from interference import changes, tables
from interference.harness import Way, assert_nothing_leaks, assert_same
from interference.tables import LABEL
from interference.test_files import CUTS, privatized

ROWS = 150
ONE = changes.plain(ROWS)
OTHER = changes.changed(ONE, range(ROWS), changes.SPELLINGS)
PAIR = (ONE, CUTS[0]), (OTHER, CUTS[1])


def some(value):
    """Return a value for each row, and none in some rows."""
    return [None if row % 7 == 3 else value(row) for row in range(ROWS)]


def columns():
    start = datetime.datetime(2020, 1, 1)
    return {
        "view of text": pa.array(some(lambda row: f"text that is not kept in place {row}"), pa.string_view()),
        "view of bytes": pa.array(some(lambda row: b"x" * row), pa.binary_view()),
        "boolean": pa.array(some(lambda row: row % 3 == 0)),
        "nothing": pa.nulls(ROWS),
        "decimal": pa.array(some(lambda row: decimal.Decimal(row) / 4), pa.decimal128(20, 4)),
        "time": pa.array(
            some(lambda row: start + datetime.timedelta(hours=row)), pa.timestamp("us", "Europe/Berlin")
        ),
        "duration": pa.array(some(lambda row: datetime.timedelta(hours=row)), pa.duration("us")),
        "bytes of one length": pa.array(some(lambda row: bytes([row]) * 4), pa.binary(4)),
        "float32": pa.array(some(float), pa.float32()),
        "int8": pa.array(some(lambda row: row % 100), pa.int8()),
        "large text": pa.array(some(str), pa.large_string()),
        "words": pa.array(some(lambda row: "abcde"[row % 5])).dictionary_encode(),
        "numbers as words": pa.array(some(lambda row: row % 5)).dictionary_encode(),
        "one gap": pa.array([row if row != 75 else None for row in range(ROWS)]),
    }


COLUMNS = columns()


def way(to, pieces, **options):
    """Return the way out of a file of pieces, which follow from the labels and from where a writer cut them."""

    def prepare(folder, given):
        (folder / "table.parquet").write_bytes(tables.written(list(pieces(*given))))

    return Way(lambda _: privatized("table.parquet", f"out.{to}", **options), prepare)


def cut(public):
    """Return the pieces of a table with these public columns."""

    def pieces(labels, cuts):
        table = pa.table({**public, LABEL: changes.numbers(labels)})
        return [table.slice(first, last - first) for first, last in pairwise([0, *cuts, ROWS])]

    return pieces


@pytest.mark.parametrize("shuffle", [False, True])
def test_columns_of_every_type(shuffle, tmp_path):
    assert_nothing_leaks(way("parquet", cut(COLUMNS), shuffle=shuffle), *PAIR, tmp_path)


@pytest.mark.parametrize("to", ["parquet", "csv"])
def test_words_that_a_writer_sorted_in_each_piece(to, tmp_path):
    """Words in the order of pieces, each sorted by itself, would tell where pieces end."""
    cells = pa.array([f"w{99 - row // 5:02d}" for row in range(ROWS)])

    def pieces(labels, cuts):
        for first, last in pairwise([0, *cuts, ROWS]):
            here = cells.slice(first, last - first)
            words = pc.unique(here).sort()
            column = pa.DictionaryArray.from_arrays(pc.index_in(here, value_set=words), words)
            yield pa.table({"word": column, LABEL: changes.numbers(labels)[first:last]})

    assert_nothing_leaks(way(to, pieces), *PAIR, tmp_path)


PACKED = {
    "codec": {"compression": {LABEL: "none", "id": "snappy"}},
    "pages": {"use_dictionary": False, "data_page_size": 64, "data_page_version": "2.0"},
    "statistics": {"write_statistics": False, "write_page_index": True},
}


@pytest.mark.parametrize("packed", PACKED)
def test_how_the_label_was_packed(packed, tmp_path):
    """In a Parquet file whose first column is the label."""

    def prepare(folder, given):
        labels, options = given
        table = pa.table({LABEL: changes.numbers(labels), "id": np.arange(ROWS)})
        pq.write_table(table, folder / "table.parquet", **options)

    out = Way(lambda _: privatized("table.parquet", "out.parquet"), prepare)
    assert_same(out, (ONE, {}), (OTHER, PACKED[packed]), tmp_path)
