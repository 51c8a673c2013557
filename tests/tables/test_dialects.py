"""Text files as people have them: what the header and public columns show is found out, the rest is asked for."""

import numpy as np
import pyarrow as pa
import pytest

import labeldp as ldp
from labeldp.errors import LabelError
from labeldp.tables import Dialect, open_table
from tables.file_cases import refused, release

ROWS = 60
RATIOS = [f"{row / 8:.3f}" for row in range(ROWS)]
LABELS = [f"{1 + row % 4}.5" for row in range(ROWS)]


def put(place, name="in.csv", *, separator=",", decimal=".", encoding="utf-8", labels=LABELS, ratios=RATIOS):
    """Write a table of three columns, the second of which shows the decimal mark."""
    cells = [(f"Straße {row}", ratios[row], labels[row]) for row in range(ROWS)]
    lines = [
        ("name", "ratio", "price"),
        *((a, b.replace(".", decimal), c.replace(".", decimal)) for a, b, c in cells),
    ]
    quoted = [[f'"{cell}"' if separator in cell else cell for cell in line] for line in lines]
    (place / name).write_bytes("".join(separator.join(line) + "\n" for line in quoted).encode(encoding))


WRITTEN = {
    "as most": {},
    "semicolons and decimal commas": {"separator": ";", "decimal": ","},
    "decimal commas in quotes": {"decimal": ","},
    "vertical bars": {"separator": "|"},
    "tabs": {"separator": "\t"},
    "UTF-16": {"encoding": "utf-16", "separator": "\t", "decimal": ","},
    "a byte-order mark": {"encoding": "utf-8-sig", "separator": ";", "decimal": ","},
}


@pytest.mark.parametrize("written", WRITTEN)
def test_a_file_is_read_as_it_is_and_written_as_it_was(place, written):
    how = {"separator": ",", "decimal": ".", "encoding": "utf-8", **WRITTEN[written]}
    put(place, **how)
    release("in.csv", "out.csv", mechanism="laplace")
    before, after = (place / "in.csv").read_text(how["encoding"]), (place / "out.csv").read_text("utf-8-sig")
    assert (place / "out.csv").read_bytes().startswith(b"\xef\xbb\xbf") == (how["encoding"] != "utf-8")
    cut = how["separator"] if how["separator"] != how["decimal"] else f'{how["separator"]}"'
    assert [line.rsplit(cut, 1)[0] for line in after.splitlines()] == [
        line.rsplit(cut, 1)[0] for line in before.splitlines()
    ]
    read = pa.Table.from_batches(list(open_table("out.csv").batches()))
    assert read.schema.types == [pa.string(), pa.float64(), pa.float64()]
    assert np.ptp(read["price"]) > 1


NUMBERS = {
    "points": (["1.5", "20"], None, [1.5, 20]),
    "commas": (["1,5", "20"], ["2,25", "3"], [1.5, 20]),
    "thousands": (["1,234.5", "1,234,567", "20"], ["12,000.25", "7"], [1234.5, 1234567, 20]),
    "points for thousands": (["1.234,5", "1.234"], ["2.000,5", "1"], [1234.5, 1234]),
    "blanks for thousands": (["1 234,5", "1\u00a0234", "7"], ["2\u202f000,5", "1"], [1234.5, 1234, 7]),
    "blanks that no public column has": (["1 234,5", "1\u00a0234"], ["2,5", "1"], [1234.5, 1234]),
    "apostrophes": (["1'234.5"], ["2'000.5"], [1234.5]),
    "currencies": (["$5", "-£1.5", "7 €"], ["€ 2.25", "3"], [5, -1.5, 7]),
    "points for thousands that no public column has": (["9.774,66 €", "60.000"], ["2,5"], [9774.66, 60000]),
    "missing": (["n/a", "-", "#DIV/0!", "1.5"], None, [None, None, None, 1.5]),
}


def columns(labels, public=None):
    rows = [(public or ["1.25"])[row % len(public or [1])] for row in range(len(labels))]
    return "x;price\n" + "".join(f"{x};{label}\n" for x, label in zip(rows, labels, strict=True))


@pytest.mark.parametrize("numbers", NUMBERS)
def test_labels_have_the_marks_of_public_columns(place, numbers):
    labels, public, expected = NUMBERS[numbers]
    (place / "in.csv").write_text(columns(labels * 3, public))
    (batch,) = open_table("in.csv", label="price").batches(["price"])
    assert batch.column(0).to_pylist() == expected * 3


@pytest.mark.parametrize(
    ("labels", "public", "row"),
    [
        (["1.5", "2,5"], ["1.25"], 2),
        (["15", "1,234"], ["1.25"], 2),  # may be thousands, and no public column shows it
        (["1,5", "1.5"], ["2,25"], 2),
        (["1.234,5", "1,234.5"], ["2.000,5"], 2),
        (["1,23,4"], ["12,000.25"], 1),
        (["1 23 4"], ["1.25"], 1),
        (["5", "€ 5 kg"], ["1.25"], 2),
        (["5", "unknown"], ["1.25"], 2),
    ],
)
def test_a_label_that_does_not_fit_is_refused_by_its_row_and_not_by_its_value(place, labels, public, row):
    (place / "in.csv").write_text(columns(labels, public))
    told = str(refused("in.csv", error=LabelError))
    assert f"is not a number in row {row}." in told
    assert "decimal=" in told
    assert not any(label in told for label in labels if len(label) > 2 and label != "unknown")


@pytest.mark.parametrize("rows", [("0,7,3141\n", "0,7,7\n"), ("ann;3,25\nbob;4\n", "ann;3\nbob;4\n")])
def test_without_a_header_no_message_follows_from_the_labels_in_the_first_row(place, rows):
    told = set()
    for text in rows:
        (place / "in.csv").write_text(text)
        told.add(str(refused("in.csv")))
    assert len(told) == 1


def test_what_labels_look_like_decides_nothing(place):
    """Without public decimals a comma between labels is not taken for one; and asked for where it is likely."""
    (place / "in.csv").write_text(columns(["1,5", "2,5"], ["7"]))
    assert 'decimal=","' in str(refused("in.csv", error=ldp.errors.ParameterError))
    release("in.csv", "out.csv", dialect=Dialect(decimal=","))
    assert "," in (place / "out.csv").read_text()
    (place / "in.csv").write_text('x,price\n7,"1,5"\n8,"2,5"\n')
    assert "row 1." in str(refused("in.csv", "other.csv", error=LabelError))


def test_a_separator_is_the_one_that_names_the_label(place):
    (place / "in.csv").write_text("a;price, net\n1,5;2,5\n")
    assert open_table("in.csv", label="price, net").schema.names == ["a", "price, net"]


def test_columns_that_are_dropped_are_not_read_and_do_not_leave(place):
    (place / "in.csv").write_text("x,secret,price\n1.5,\u00e4,2\n2.5,b,3\n")
    release("in.csv", "out.csv", drop=["secret"])
    assert "secret" not in (place / "out.csv").read_text() + (place / "out.csv.card.json").read_text()
    assert "did you mean 'secret'" in str(refused("in.csv", "other.csv", drop=["secert"]))
    assert "the label" in str(refused("in.csv", "other.csv", drop=["price"]))


@pytest.mark.parametrize(("encoding", "option"), [("cp1252", "encoding"), ("utf-16-be", "encoding")])
def test_an_encoding_that_no_mark_shows_is_asked_for_and_used(place, encoding, option):
    put(place, encoding=encoding)
    assert refused("in.csv", error=ldp.errors.DataError).option == option
    release("in.csv", "out.csv", dialect=Dialect(encoding=encoding))
    assert "Straße 7," in (place / "out.csv").read_text("utf-8-sig")
