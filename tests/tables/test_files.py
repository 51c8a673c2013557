"""Tables in files: what is read is what is there, and what is written appears whole or not at all."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeldp as ldp
from labeldp.errors import LabelError, ParameterError
from labeldp.tables import TableWriter, open_table
from labeldp.tables.batches import label_values

SECRET = "31415.92653"  # noqa: S105 (a label)


def write(path, table, **options):
    with TableWriter(path, table.schema, **options) as out:
        for batch in table.to_batches():
            out.write(batch)
    return path


def read(path, **options):
    table = open_table(path, **options)
    return pa.Table.from_batches(list(table.batches()), table.schema)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_text_is_kept_as_written(tmp_path, name):
    columns = {
        "id": ["007", "0x1", ""],
        "say": ['a "b", c', "two\nlines", "tab\there"],
        "day": ["1.2.24", "NA", "1e3"],
    }
    table = pa.table(columns)
    got = read(write(tmp_path / name, table), as_written=True)
    assert got.to_pydict() == columns


def test_pipes_are_refused():
    for option in ({"source": "-", "out": "out.csv"}, {"source": "in.csv", "out": "-", "format": "csv"}):
        with pytest.raises(ParameterError, match="pipe"):
            ldp.privatize_file(**option, label="b", bounds=(0, 5), epsilon=1)
    with pytest.raises(ParameterError, match="pipe"):
        TableWriter("-", pa.schema({"a": pa.int64()}), "csv")


BAD = {
    "ragged.csv": b"a,price\n1,2\n1\n",
    "empty.csv": b"",
    "twice.csv": b"a,a\n1,2\n",
    "neither.csv": b"a,price\n\x81,2\n",
    "no.parquet": b"hello",
    "cut.parquet": b"PAR1abc",
    "a.arrow": b"ARROW1",
    "a.xls": b"",
    "no.csv.gz": b"\x1f\x8bnope",
    "name.xlsx": b"a",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_with_a_sentence(tmp_path, name):
    (tmp_path / name).write_bytes(BAD[name])
    with pytest.raises(ldp.errors.DataError) as caught:
        read(tmp_path / name, as_written=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [f"a,price\n1,2\n{SECRET}\n", f"a,price\n1,2\n1,{SECRET}x\n", f'a,price\n1,2\n1,"{SECRET}\n']
)
def test_errors_never_quote_the_file(tmp_path, content):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(ldp.LabelDPError) as caught:
        read(tmp_path / "t.csv", as_written=True, label="price")
    error = caught.value
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__ or error.__context__


# ---- writing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_nothing_appears_if_something_goes_wrong(tmp_path, name, set_constants):
    set_constants({"tables.writer.GROUP_ROWS": 10})
    table = pa.table({"a": np.arange(100)})
    with pytest.raises(ZeroDivisionError), TableWriter(f"{tmp_path}/{name}", table.schema) as out:  # noqa: PT012
        out.write(table.to_batches()[0])
        _ = 1 / 0
    assert list(tmp_path.iterdir()) == []


def test_metadata_is_left_behind(tmp_path):
    fields = [pa.field("a", pa.int8(), metadata={"note": SECRET})]
    table = pa.table([[1]], schema=pa.schema(fields, metadata={"pandas": SECRET}))
    assert SECRET.encode() not in write(tmp_path / "t.parquet", table).read_bytes()


# ---- labels -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, None, 3], pa.int8()),
        pa.array([1, None, 3], pa.uint64()),
        pa.array([1, float("inf"), 3], pa.float32()),
        pa.array([1, float("nan"), 3], pa.float64()),
        pa.array([1, None, 3], pa.float64()).dictionary_encode(),
        pa.array([Decimal(1), None, Decimal(3)]),
        pa.chunked_array([[1.0], [None, 3.0]]),
    ],
    ids=lambda array: str(array.type),
)
def test_numbers_of_all_kinds_are_labels(array):
    values, gone = label_values(array, allow_missing=True)
    np.testing.assert_array_equal(values, [1, np.nan, 3])
    assert gone.tolist() == [False, True, False]
    with pytest.raises(LabelError, match="missing or not finite, first in row 2:"):
        label_values(array)


@pytest.mark.parametrize("array", [pa.array(["1"]), pa.array([[1]])])
def test_other_things_are_no_labels(array, tmp_path):
    pq.write_table(pa.table({"price": array}), tmp_path / "t.parquet")
    with pytest.raises(LabelError, match="convert"):
        open_table(tmp_path / "t.parquet", label="price")
