"""What cannot work is refused before the charge: no budget is spent on a table that fails."""

import os
import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeldp as ldp
from labeldp.errors import LabelDPError
from labeldp.files import open_table, privatize_file

ROWS = 300
LABELS = np.random.default_rng(0).uniform(0, 5, ROWS)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def release(source, out, **options):
    fixed = {"label": "price", "bounds": (0, 5), "epsilon": 1, "mechanism": "two-point"}
    return privatize_file(source, out, **fixed, **options)


def write(path, array, labels=LABELS):
    """Write a table with a public column and labels."""
    table = pa.table({"c": array, "price": labels})
    if str(path).endswith("parquet"):
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)


def refused(source, out, **options):
    """Return the complaint; nothing is spent, and nothing is left."""
    before = sorted(os.listdir())
    ledger = ldp.Ledger()
    with pytest.raises(LabelDPError) as caught:
        release(source, out, ledger=ledger, **options)
    assert ledger.charges == ()
    assert sorted(os.listdir()) == before
    return str(caught.value)


def column(path, name="c"):
    table = open_table(path)
    return [value for batch in table.batches([name]) for value in batch.column(0).to_pylist()]


# ---- text ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
@pytest.mark.parametrize("far", [False, True])
def test_text_in_another_code_far_down(place, monkeypatch, out, far):
    monkeypatch.setattr("labeldp.files.text_files.BLOCK", 1024)
    lines = [b"name,price", *(b"a,%.3f" % y for y in LABELS)]
    lines.insert(len(lines) if far else 1, b"caf\xe9,2.5")
    (place / "in.csv").write_bytes(b"\n".join(lines) + b"\n")
    assert "not UTF-8" in refused("in.csv", out)


def test_arrow_that_is_damaged_in_another_column(place):
    data = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xe9")]
    )
    write("in.arrow", data, [2.5])
    assert "damaged" in refused("in.arrow", "out.arrow")


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
    assert "extension types of nested values" in refused("in.arrow", out)


def test_an_extension_type_of_flat_values_is_kept():
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((ROWS, 2, 2)))
    for array in (KINDS["uuid"], tensors, wrapped(pa.array(range(ROWS)))):
        write("in.arrow", array)
        release("in.arrow", "out.arrow", force=True)
        assert open_table("out.arrow").schema.field("c").type == array.type
        assert next(open_table("out.arrow").batches(["c"])).column(0).equals(array)


@pytest.mark.parametrize("kind", ["binary_view", "binary", "fixed", "uuid", "dictionary of binary"])
def test_bytes_are_no_text(kind):
    write("in.arrow", KINDS[kind])
    assert "CSV cannot hold the column 'c'" in refused("in.arrow", "out.csv")


def test_views_of_text_are_text():
    write("in.arrow", KINDS["string_view"])
    release("in.arrow", "out.csv")
    assert column("out.csv") == ["a", "", ""] * 100


# ---- columns without nulls ----------------------------------------------------------------------------------


def required(path, names, **columns):
    fields = [pa.field(name, data.type, nullable=name not in names) for name, data in columns.items()]
    table = pa.table(list(columns.values()), schema=pa.schema(fields))
    if path.endswith("parquet"):
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)


@pytest.mark.parametrize("out", ["out.parquet", "out.arrow", "out.csv"])
@pytest.mark.parametrize("names", [{"c"}, {"price"}, {"c", "price"}])
def test_columns_that_are_never_null_stay_so(names, out):
    required("in.parquet", names, c=pa.array([1, 2]), price=pa.array([1.0, 2.0]))
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
        "c": pa.array([{"a": 1}, None, {"a": 2}], pa.struct([field])),
        "list": pa.array([[1], None, []], pa.list_(field)),
        "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), field)),
    }
    required(source, set(), price=pa.array([1.0, 2.0, None]), **shapes)
    release(source, out, missing="drop")
    for name, array in shapes.items():
        assert column(out, name) == array.to_pylist()[:2]


@pytest.mark.parametrize("out", ["out.parquet", "out.arrow"])
def test_a_column_is_never_null_only_if_no_file_has_nulls(place, out):
    (place / "in").mkdir()
    required("in/1.parquet", {"c"}, c=pa.array([1, 2]), price=pa.array([1.0, 2.0]))
    required("in/2.parquet", set(), c=pa.array([None, 4]), price=pa.array([1.0, 2.0]))
    release("in", out)
    assert open_table(out).schema.field("c").nullable
    assert column(out) == [1, 2, None, 4]


@pytest.mark.parametrize("out", ["out.parquet", "out.arrow"])
def test_a_column_with_nulls_that_is_said_to_have_none_is_refused_before_the_charge(out):
    required("in.arrow", {"c"}, c=pa.array([1, None]), price=pa.array([1.0, 2.0]))
    assert "damaged" in refused("in.arrow", out)


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


def test_one_file_keeps_its_short_indices():
    data = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 150, pa.int8()), ["x", "y"])
    write("in.arrow", data)
    release("in.arrow", "out.arrow")
    assert open_table("out.arrow").schema.field("c").type == data.type


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


# ---- folders ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["99999999999999999999", "--5", "-0", "007", "٣", "1_0", "+1"])
def test_odd_names_of_folders_are_text(place, value):
    folder = place / "in" / f"x={value}"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"c": range(ROWS), "price": LABELS}), folder / "a.parquet")
    release("in", "out.parquet")
    assert set(column("out.parquet", "x")) == {value}


@pytest.mark.parametrize("value", [0, -5, 2024, 10**18 - 1, 1 - 10**18])
def test_whole_numbers_are_numbers(place, value):
    folder = place / "in" / f"x={value}"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"price": LABELS}), folder / "a.parquet")
    assert set(column("in", "x")) == {value}


def parts(place, *kinds, label=False):
    (place / "in").mkdir()
    for i, (kind, values) in enumerate(kinds):
        here = pa.array(values, kind)
        there = pa.array([1.0, 2.0, 3.0])
        names = {"c": there, "price": here} if label else {"c": here, "price": there}
        pq.write_table(pa.table(names), place / "in" / f"{i}.parquet")


@pytest.mark.parametrize(
    "kinds",
    [
        [(pa.int64(), [1, 2, 2**53 + 1]), (pa.float64(), [1.5, 2.0, 3.0])],
        [(pa.decimal128(9, 2), [Decimal(1), Decimal(2), Decimal(3)]), (pa.int8(), [1, 2, 3])],
        [(pa.uint64(), [1, 2, 2**64 - 1]), (pa.int64(), [1, 2, 3])],
        [(pa.float32(), [1, 2, 3]), (pa.decimal128(9, 2), [Decimal(1), Decimal(2), Decimal(3)])],
    ],
)
def test_labels_may_be_other_numbers_in_other_files(place, kinds):
    parts(place, *kinds, label=True)
    assert release("in", "out.parquet").terms.rows == 6


@pytest.mark.parametrize(
    "kinds",
    [
        [(pa.int64(), [1, 2, 2**53 + 1]), (pa.float64(), [1.5, 2.0, 3.0])],
        [(pa.int64(), [1, 2, 3]), (pa.string(), ["a", "b", "c"])],
        [(pa.timestamp("s"), [1, 2, 3]), (pa.timestamp("ns"), [1, 2, 3])],
        [(pa.uint64(), [1, 2, 2**64 - 1]), (pa.int64(), [1, 2, 3])],
    ],
)
def test_other_columns_must_have_a_type_that_holds_all(place, kinds):
    parts(place, *kinds)
    assert "types of the column 'c' differ between files" in refused("in", "out.parquet")


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([(pa.int16(), [1, 2, 3]), (pa.int64(), [1, 2, 3])], pa.int64()),
        ([(pa.int32(), [1, 2, 3]), (pa.float64(), [1.5, 2, 3])], pa.float64()),
        ([(pa.uint32(), [1, 2, 3]), (pa.int32(), [1, 2, 3])], pa.int64()),
        ([(pa.null(), [None] * 3), (pa.string(), ["a", "b", "c"])], pa.string()),
    ],
)
def test_types_that_fit_into_one_are_one(place, kinds, expected):
    parts(place, *kinds)
    release("in", "out.parquet")
    assert open_table("out.parquet").schema.field("c").type == expected
    assert column("out.parquet") == [*kinds[0][1], *kinds[1][1]]
