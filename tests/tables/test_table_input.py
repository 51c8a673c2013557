"""What is wrong with a table, and how it is cut, follows from its rows; not from where a block of bytes ended."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeldp as ldp
from labeldp.tables import open_table
from tables.file_cases import refused, release

ROWS = 400
SHORT, LONG = "1", "3.14159265358979"


@pytest.fixture(autouse=True)
def small_blocks(set_constants):
    set_constants(
        {
            "tables.text_tables.BLOCK": 8192,
            "tables.text_tables.LONGEST_ROW": 1024,
            "tables.batches.CELLS_OF_ANY_LENGTH": 100,  # of 1024 rows at least
        }
    )


def lines(label, rows=6000):
    return [f"{i},{label}" for i in range(rows)]


FAULTS = {
    "ragged": lambda row: row + ",7",
    "not text": lambda row: row.replace(",", "\udc81,"),
    "long": lambda row: "x" * 2000 + row,
    "no number": lambda row: row.split(",")[0] + ",cheap",
    "missing": lambda row: row.split(",")[0] + ",",
    "long label": lambda row: row.split(",")[0] + "," + "0" * 5000,
    "very long label": lambda row: row.split(",")[0] + "," + "0" * 40_000,
    "very long": lambda row: "x" * 40_000 + row,
}


def complaint(name, content):
    data = "\n".join(["c,price", *content]).encode(errors="surrogateescape") + b"\n"
    with (gzip.open if name.endswith("gz") else open)(name, "wb") as file:
        file.write(data)
    error = refused(name)
    assert error.__context__ is None
    return type(error), str(error)


@pytest.mark.parametrize("second", FAULTS)
@pytest.mark.parametrize("first", FAULTS)
def test_of_two_faults_the_same_is_told_wherever_blocks_end(first, second):
    told = set()
    for label in (SHORT, LONG):
        for at in ((1500, 1502), (1023, 1025), (2000, 5000)):
            content = lines(label)
            for place, fault in zip(at, (first, second), strict=True):
                content[place] = FAULTS[fault](content[place])
            told.add((at, complaint("in.csv", content)))
    assert len(told) == 3


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["missing", "no number"])
def test_faults_of_the_file_come_before_those_of_labels(fault):
    """Rows 1,024 to 2,047 are a piece; whether the block where it ends has the other fault depends on labels."""
    told = set()
    for label in (SHORT, LONG):
        for other in range(2050, 3300, 125):
            content = lines(label)
            content[1500] = FAULTS[fault](content[1500])
            content[other] = FAULTS["ragged"](content[other])
            told.add((other, complaint("in.csv", content)))
    assert len(told) == len(range(2050, 3300, 125))
    assert all("ragged" in text for _, (_, text) in told)


@pytest.mark.parametrize("label", ["-5", "+5", "-,5", "-1 200", "1,5e3", "1,5E+3", "+,5", "1.234,5"])
def test_a_quote_that_takes_rows_in_is_refused_whatever_way_their_labels_are_written(place, label):
    rows = ["0,5;a;1", f'1,5;"b;{label}', f"2,5;c;{label}", f'3,5;d";{label}']
    (place / "in.csv").write_text("\n".join(["id;name;price", *rows]) + "\n")
    dialect = ldp.tables.Dialect(decimal=",", thousands="." if "." in label else None)
    assert "spans lines" in str(refused("in.csv", dialect=dialect))
    (place / "in.csv").write_text((place / "in.csv").read_text().replace('"', ""))
    release("in.csv", dialect=dialect)  # these are labels


def test_without_line_breaks_or_separators_in_values_quotes_may_be_anywhere(place):
    (place / "in.csv").write_text('c,price\n"a"b,2\nc"d,3\n')
    assert release("in.csv").terms.rows == 2


@pytest.mark.parametrize("quote", ['1,"abc,2', '1,abc,"2', '"1,abc,2'], ids=["public", "label", "first"])
@pytest.mark.parametrize("end", ['7,"z",1', "7,z,1"], ids=["closed", "open"])
def test_how_much_text_an_open_quote_takes_in_does_not_show(quote, end):
    complaints = set()
    for zeros in (0, 1, 20, 60):  # of a row, a label, and a block
        rows = [f"{i},x,{'0' * zeros}3.25" for i in range(400)]
        with open("in.csv", "w") as file:
            file.write("\n".join(["id,name,price", quote, *rows, end]) + "\n")
        error = refused("in.csv")
        complaints.add((type(error), str(error)))
    assert len(complaints) == 1
    assert "spans lines, or text after a closing quote, in row 1" in complaints.pop()[1]


@pytest.mark.parametrize(
    "content",
    ["1000,2.7182818,north\n1001,3.1,south\n", 'id,"income,town\n1000,2.7182818,north\n', "2.7182818,2.7182818\n"],
)
def test_a_file_without_a_header_is_not_quoted(place, content):
    (place / "in.csv").write_text(content)
    with pytest.raises(ldp.LabelDPError) as caught:
        open_table("in.csv", label="income")
    assert "2.718" not in str(caught.value)
    (place / "in.csv").write_text('id,"' + "1,2.5\n" * 50_000)
    with pytest.raises(ldp.LabelDPError, match="header"):
        open_table("in.csv", label="income")


@pytest.mark.parametrize("name", ["x2", "x25"])
def test_a_number_in_the_first_line_is_not_suggested_as_a_column(place, name):
    (place / "in.csv").write_text("a,25,1.34,b\nb,3,2.5,c\n")
    for look in (
        lambda: open_table("in.csv", label=name),
        lambda: open_table("in.csv").field(name),
    ):
        with pytest.raises(ldp.LabelDPError, match="no column") as caught:
            look()
        assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(("label", "size"), [(SHORT, 70), (LONG, 1000), ("x", 6000)])
def test_pieces_have_as_many_rows_however_long_labels_are_or_where_row_groups_end(place, label, size):
    (place / "in.csv").write_text("\n".join(["c,price", *lines(label)]) + "\n")
    table = pa.table({"c": [f"{i}" for i in range(6000)], "price": np.arange(6000.0)})
    pq.write_table(table, "in.parquet", row_group_size=size)
    for path in ("in.csv", "in.parquet"):
        assert [batch.num_rows for batch in open_table(path).batches()] == [1024] * 5 + [880]


# ---- memory under nulls ------------------------------------------------------------------------------------

SECRET = 31415.92653


def residues():
    gaps = pa.py_buffer(np.packbits([True, False] * 2, bitorder="little"))
    floats = pa.Array.from_buffers(pa.float64(), 4, [gaps, pa.py_buffer(np.array([1.0, SECRET, 2.0, SECRET]))])
    data = b"a%rb%r" % (SECRET, SECRET)
    ends = np.cumsum([0, 1, len(repr(SECRET)), 1, len(repr(SECRET))]).astype(np.int32)
    text = pa.Array.from_buffers(pa.string(), 4, [gaps, pa.py_buffer(ends), pa.py_buffer(data)])
    return {"floats": floats, "text": text}


@pytest.mark.parametrize("kind", residues())
@pytest.mark.parametrize("out", ["out.parquet", "out.csv"])
def test_what_lies_under_a_null_is_not_written(place, kind, out):
    array = residues()[kind]
    marks = (np.float64(SECRET).tobytes(), repr(SECRET).encode())
    assert any(mark in bytes(buffer) for mark in marks for buffer in array.buffers()), "there is something to lose"
    with ldp.tables.TableWriter(out, pa.schema({"c": array.type})) as writer:
        writer.write(pa.record_batch([array], names=["c"]))
    assert not any(mark in (place / out).read_bytes() for mark in marks)


@pytest.mark.parametrize("index", [pa.int8(), pa.int16()])
def test_the_type_of_a_label_says_nothing_of_how_many_categories_it_has(place, index):
    """As pandas writes them, the type of the codes follows from the number of different labels."""
    kind = pa.dictionary(index, pa.string())
    pq.write_table(pa.table({"price": pa.array(["a"], kind)}), "in.parquet")
    assert "is of type string:" in str(refused("in.parquet", error=ldp.errors.LabelError))
