"""What cannot work is refused before the charge: no budget is spent on a table that fails."""

import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeldp as ldp
from file_cases import refused, release
from labeldp.errors import LabelDPError
from labeldp.files import open_table

ROWS = 300
LABELS = np.random.default_rng(0).uniform(0, 5, ROWS)


def write(path, array, labels=LABELS, required=(), **more):
    """Write a table with a public column, labels and more columns; those required are never null."""
    table = pa.table({"c": array, "price": labels, **more})
    fields = [field.with_nullable(field.name not in required) for field in table.schema]
    table = pa.Table.from_arrays(table.columns, schema=pa.schema(fields))
    if str(path).endswith("parquet"):
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)


def column(path, name="c"):
    table = open_table(path)
    return [value for batch in table.batches([name]) for value in batch.column(0).to_pylist()]


def test_arrow_that_is_damaged_in_another_column(place):
    data = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xe9")]
    )
    write("in.arrow", data, [2.5])
    assert "damaged" in str(refused("in.arrow", "out.arrow"))


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

KINDS = {
    "string_view": pa.array(["a", None, ""] * 100, pa.string_view()),
    "binary_view": pa.array([b"a"] * ROWS, pa.binary_view()),
    "binary": pa.array([b"\xff"] * ROWS),
    "fixed": pa.array([b"\xff\xfe"] * ROWS, pa.binary(2)),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([uuid.UUID(int=1).bytes] * ROWS, pa.binary(16))),
    "dictionary of binary": pa.array([b"\xff"] * ROWS).dictionary_encode(),
    "dictionary of view": pa.DictionaryArray.from_arrays(
        pa.array([0] * ROWS, pa.int8()), pa.array(["a"], pa.string_view())
    ),
    "interval": pa.array([(1, 2, 3)] * ROWS, pa.month_day_nano_interval()),
    "half": pa.array(np.ones(ROWS, np.float16)),
    "large decimal": pa.array([Decimal("1.10")] * ROWS, pa.decimal256(50, 2)),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([ROWS], pa.int32()), pa.array([7])),
    "list_view": pa.array([[1]] * ROWS, pa.list_view(pa.int64())),
    "union": pa.UnionArray.from_sparse(pa.array([0] * ROWS, pa.int8()), [pa.array([1] * ROWS)]),
    "duration": pa.array(range(ROWS), pa.duration("ms")),
    "time": pa.array(range(ROWS), pa.time64("ns")),
    "zoned": pa.array(range(ROWS), pa.timestamp("ns", "Europe/Berlin")),
    "null": pa.nulls(ROWS),
    "many": pa.array([[1.0, 2.0]] * ROWS, pa.list_(pa.float32(), 2)),
    "map": pa.array([[("a", 1)]] * ROWS, pa.map_(pa.string(), pa.int64())),
    "list of words": pa.ListArray.from_arrays(
        pa.array(range(ROWS + 1), pa.int32()), pa.array(["a", "b", "c"] * 100).dictionary_encode()
    ),
}


ODD = {"runs", "union", "list_view", "null", "dictionary of view"}
"""What Arrow itself cannot do everything with."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_type_is_written_or_refused_before_the_charge(kind):
    """One row has no label and is left out: rows of every type can be taken."""
    labels = np.where(np.arange(ROWS) == 5, np.nan, LABELS)
    write("in.arrow", KINDS[kind], labels)
    ways = [("out.arrow", False), ("out.parquet", True), ("out.csv", False), ("out.arrows", True)]
    for out, shuffle in ways:
        ledger = ldp.Ledger()
        written = True
        try:
            release("in.arrow", out, ledger=ledger, shuffle=shuffle, missing="drop")
        except LabelDPError:
            written = False
        assert ledger.total == ldp.Budget(1 if written else 0)
        assert written or kind in ODD or not out.startswith("out.arrow")
        if written and out != "out.csv":
            expected = KINDS[kind].to_pylist()[:5] + KINDS[kind].to_pylist()[6:]
            assert sorted(map(str, column(out))) == sorted(map(str, expected))


def wrapped(array):
    return pa.ExtensionArray.from_storage(pa.opaque(array.type, "some type", "some vendor"), array)


NOTED = pa.struct([pa.field("a", pa.int64(), metadata={"note": "3.14159"})])
WRAPPED = {
    "notes": wrapped(pa.array([{"a": 1}] * ROWS, NOTED)),
    "notes in a list": wrapped(
        pa.array([[1]] * ROWS, pa.list_(pa.field("a", pa.int64(), metadata={"note": "3.14"}), 1))
    ),
    "unused words": wrapped(pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int8()), ["a", "3.14159"])),
    "union": wrapped(KINDS["union"]),
    "union in a struct": pa.StructArray.from_arrays([wrapped(KINDS["union"])], ["d"]),
    "runs": wrapped(KINDS["runs"]),
}


@pytest.mark.parametrize("out", ["out.arrow", "out.parquet"])
@pytest.mark.parametrize("kind", WRAPPED)
def test_an_extension_type_of_nested_values_is_refused(kind, out):
    """What lies under a union, words that no row uses, and notes on inner fields would leave with it."""
    write("in.arrow", WRAPPED[kind])
    assert "extension types of nested values" in str(refused("in.arrow", out))


def test_an_extension_type_of_flat_values_is_kept():
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((ROWS, 2, 2)))
    for array in (KINDS["uuid"], tensors, wrapped(pa.array(range(ROWS)))):
        write("in.arrow", array)
        release("in.arrow", "out.arrow", force=True)
        assert open_table("out.arrow").schema.field("c").type == array.type
        assert next(open_table("out.arrow").batches(["c"])).column(0).equals(array)


def test_bytes_are_no_text_and_views_of_text_are():
    for kind in ("binary_view", "binary", "fixed", "uuid", "dictionary of binary"):
        write("in.arrow", KINDS[kind])
        assert "CSV cannot hold the column 'c'" in str(refused("in.arrow", "out.csv"))
    write("in.arrow", KINDS["string_view"])
    release("in.arrow", "out.csv")
    assert column("out.csv") == ["a", "", ""] * 100


# ---- columns without nulls ----------------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["out.parquet", "out.arrow", "out.csv"])
@pytest.mark.parametrize("names", [{"c"}, {"price"}, {"c", "price"}])
def test_columns_that_are_never_null_stay_so(names, out):
    write("in.parquet", [1, 2], [1.0, 2.0], required=names)
    release("in.parquet", out)
    assert column(out) == [1, 2]
    if out != "out.csv":
        assert {field.name for field in open_table(out).schema if not field.nullable} == names


@pytest.mark.parametrize("out", ["out.parquet", "out.arrow"])
@pytest.mark.parametrize("source", ["in.parquet", "in.arrow"])
def test_inner_fields_that_are_never_null_are_written(source, out):
    """One row has no label and is left out: rows are taken, which puts nulls under those that are null."""
    field = pa.field("a", pa.int64(), nullable=False)
    shapes = {
        "struct": pa.array([{"a": 1}, None, {"a": 2}], pa.struct([field])),
        "list": pa.array([[1], None, []], pa.list_(field)),
        "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), field)),
    }
    write(source, [1, 2, 3], [1.0, 2.0, None], **shapes)
    release(source, out, missing="drop")
    for name, array in shapes.items():
        assert column(out, name) == array.to_pylist()[:2]


def test_a_column_is_never_null_only_if_no_file_has_nulls(place):
    (place / "in").mkdir()
    write("in/1.parquet", [1, 2], [1.0, 2.0], required=["c"])
    write("in/2.parquet", [None, 4], [1.0, 2.0])
    for out in ("out.parquet", "out.arrow"):
        release("in", out)
        assert open_table(out).schema.field("c").nullable
        assert column(out) == [1, 2, None, 4]


def test_a_column_with_nulls_that_is_said_to_have_none_is_refused_before_the_charge():
    write("in.arrow", [1, None], [1.0, 2.0], required=["c"])
    for out in ("out.parquet", "out.arrow"):
        assert "damaged" in str(refused("in.arrow", out))


# ---- dictionaries -------------------------------------------------------------------------------------------

SHAPES = {
    "plain": lambda words: words,
    "struct": lambda words: pa.StructArray.from_arrays([words], ["d"]),
    "list": lambda words: pa.ListArray.from_arrays(pa.array(range(ROWS + 1), pa.int32()), words),
}


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("out", ["out.arrow", "out.parquet"])
@pytest.mark.parametrize("shape", SHAPES)
def test_each_file_may_have_words_of_its_own(place, shape, out, shuffle):
    (place / "in").mkdir()
    for k in range(3):
        words = [f"{k}, {i}" for i in range(100)]
        data = pa.DictionaryArray.from_arrays(pa.array([i % 100 for i in range(ROWS)], pa.int8()), words)
        write(place / "in" / f"{k}.arrow", SHAPES[shape](data))
    release("in", out, shuffle=shuffle)
    before, after = column("in"), column(out)
    if shuffle:
        before, after = sorted(before, key=str), sorted(after, key=str)
    assert before == after
    assert len(set(map(str, after))) == 300


def test_the_first_file_may_have_no_words(place):
    (place / "in").mkdir()
    for i, values in enumerate([[None, None], ["a", None], ["b", "a"]]):
        kind = pa.dictionary(pa.int32(), pa.string())
        write(place / "in" / f"{i}.arrow", pa.array(values, kind), [1.0, 2.0])
    for out in ("out.arrow", "out.parquet"):
        release("in", out)
        assert column(out) == [None, None, "a", None, "b", "a"]


def test_row_groups_may_have_words_of_their_own():
    words = [f"{i}" for i in range(ROWS)]
    schema = pa.schema([("c", pa.dictionary(pa.int8(), pa.string())), ("price", pa.float64())])
    with pq.ParquetWriter("in.parquet", schema) as out:
        for k in range(3):
            data = pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), words[100 * k : 100 * k + 100])
            out.write_table(pa.table([data, LABELS[:100]], schema=schema))
    for name in ("out.arrow", "out.parquet", "out.csv"):
        release("in.parquet", name)
        assert column(name) == (words if name != "out.csv" else list(map(int, words)))


@pytest.mark.parametrize("out", ["out.arrow", "out.parquet"])
@pytest.mark.parametrize("make", [str, float, lambda i: f"{i}".encode()], ids=["text", "floats", "bytes"])
def test_the_order_of_words_follows_from_the_words_alone(monkeypatch, out, make):
    """The order of first use in the input is what a shuffle hides."""
    monkeypatch.setattr("labeldp.files.writer.GROUP_ROWS", 100)
    values = [make(i) for i in np.random.default_rng(1).permutation(ROWS).tolist()]
    write("in.arrow", pa.array(values).dictionary_encode())
    release("in.arrow", out, shuffle=True)
    if out.endswith("parquet"):
        file = pq.ParquetFile(out, read_dictionary=["c"])
        pieces = [file.read_row_group(k)["c"].chunk(0) for k in range(file.num_row_groups)]
    else:
        pieces = [batch.column("c") for batch in pa.ipc.open_file(out).read_all().to_batches()]
    assert len(pieces) == 3
    assert sorted(value for piece in pieces for value in piece.to_pylist()) == sorted(values)
    pieces = [piece for piece in pieces if pa.types.is_dictionary(piece.type)]
    assert pieces or out.endswith("parquet")  # where only text has a dictionary
    for piece in pieces:
        used = values if out.endswith("arrow") else piece.to_pylist()
        assert piece.dictionary.to_pylist() == sorted(used, key=str)


def test_whether_a_dictionary_is_ordered_does_not_show_how_batches_were_cut(place):
    kind = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    schema = pa.schema([("c", kind), ("price", pa.float64())])
    kinds = set()
    for pieces in ([(["a", "b", "c"], [0, 1, 2, 0])], [(["a", "b"], [0, 1]), (["a", "b", "c"], [2, 0])]):
        with pa.ipc.new_stream("in.arrows", schema) as out:
            for words, places in pieces:
                data = pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), words, ordered=True)
                out.write_batch(pa.record_batch([data, pa.array(LABELS[: len(places)])], schema=schema))
        done = release("in.arrows", "out.arrow", force=True)
        kinds.add(open_table("out.arrow").schema.field("c").type)
        assert done.types_changed["c"] == (str(kind), str(pa.dictionary(pa.int8(), pa.string())))
    assert kinds == {pa.dictionary(pa.int8(), pa.string())}


# ---- types in several files ---------------------------------------------------------------------------------

EXACT = [Decimal(1), Decimal(2), Decimal(3)]
LARGE = (pa.int64(), [1, 2, 2**53 + 1]), (pa.uint64(), [1, 2, 2**64 - 1])
FLOATS = pa.float64(), [1.5, 2.0, 3.0]


def parts(place, *kinds, label=False):
    """Write a file for each type, of the label or of another column."""
    (place / "in").mkdir()
    for i, (kind, values) in enumerate(kinds):
        pair = pa.array(values, kind), pa.array([1.0, 2.0, 3.0])
        write(place / "in" / f"{i}.parquet", *(pair[::-1] if label else pair))


@pytest.mark.parametrize(
    "kinds",
    [
        (LARGE[0], FLOATS),
        (LARGE[1], (pa.int64(), [1, 2, 3])),
        ((pa.decimal128(9, 2), EXACT), (pa.int8(), [1, 2, 3])),
        ((pa.float32(), [1, 2, 3]), (pa.decimal128(9, 2), EXACT)),
    ],
)
def test_labels_may_be_other_numbers_in_other_files(place, kinds):
    parts(place, *kinds, label=True)
    assert release("in", "out.parquet").terms.rows == 6


@pytest.mark.parametrize(
    "kinds",
    [
        (LARGE[0], FLOATS),
        (LARGE[1], (pa.int64(), [1, 2, 3])),
        ((pa.int64(), [1, 2, 3]), (pa.string(), ["a", "b", "c"])),
        ((pa.timestamp("s"), [1, 2, 3]), (pa.timestamp("ns"), [1, 2, 3])),
    ],
)
def test_other_columns_must_have_a_type_that_holds_all(place, kinds):
    parts(place, *kinds)
    assert "types of the column 'c' differ between files" in str(refused("in", "out.parquet"))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((pa.int16(), [1, 2, 3]), (pa.int64(), [1, 2, 3]), pa.int64()),
        ((pa.int32(), [1, 2, 3]), FLOATS, pa.float64()),
        ((pa.uint32(), [1, 2, 3]), (pa.int32(), [1, 2, 3]), pa.int64()),
        ((pa.null(), [None] * 3), (pa.string(), ["a", "b", "c"]), pa.string()),
    ],
)
def test_types_that_fit_into_one_are_one(place, one, other, expected):
    parts(place, one, other)
    release("in", "out.parquet")
    assert open_table("out.parquet").schema.field("c").type == expected
    assert column("out.parquet") == [*one[1], *other[1]]
