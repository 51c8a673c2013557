"""Text files: a column gets another type only if its text comes back, and no line is lost."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeldp as ldp
from labeldp.errors import LabelError
from tables.file_cases import refused, release

LABELS = np.random.default_rng(0).uniform(0, 5, 200)


@pytest.fixture(autouse=True)
def small_blocks(set_constants):
    set_constants({"tables.text_tables.BLOCK": 2048})


def written(place, values):
    lines = [f"{values[i % len(values)]},{y:.3f}" for i, y in enumerate(LABELS)]
    (place / "in.csv").write_text("\n".join(["c,price", *lines]) + "\n")


KEPT = {
    "zeros in front": ["01000", "02000"],
    "more digits than int64 has": ["12345678901234567890", "1"],
    "digits that floats do not have": ["0.12345678901234567890", "1"],
    "a plus in front": ["+4917012345", "+4917054321"],
    "a zone": ["2024-01-01T10:00:00+02:00"],
    "numbers in another base": ["0x10", "17"],
    "one number of many digits among floats": ["1.5", "12345678901234567"],
    "one odd value far down": ["1"] * 199 + ["007"],
}


@pytest.mark.parametrize("case", KEPT)
def test_text_that_would_change_stays_text(place, case):
    written(place, KEPT[case])
    release("in.csv", "out.parquet")
    got = pq.read_table("out.parquet")["c"]
    assert got.type == pa.string()
    assert got.to_pylist() == [KEPT[case][i % len(KEPT[case])] for i in range(200)]


def test_learners_still_get_numbers(place):
    written(place, KEPT["zeros in front"])
    assert ldp.tables.open_table("in.csv").schema.field("c").type == pa.int64()


@pytest.mark.parametrize("at", ["start", "middle", "end"])
def test_blank_lines_of_a_single_column_are_missing_labels(place, at):
    lines = [f"{y:.2f}" for y in LABELS]
    lines[{"start": 0, "middle": 100, "end": 199}[at]] = ""
    (place / "in.csv").write_text("\n".join(["price", *lines]) + "\n")
    assert "missing" in str(refused("in.csv", error=LabelError))
    release("in.csv", "out.csv", missing="drop")
    assert len((place / "out.csv").read_text().splitlines()) == 200


def test_blank_lines_between_several_columns_are_no_rows(place):
    (place / "in.csv").write_text("c,price\n1,2\n\n3,4\n\n")
    assert release("in.csv", "out.csv").terms.rows == 2


@pytest.mark.parametrize(
    ("content", "rows"),
    [("\n\nprice\n1\n2\n", 2), ("\r\n\r\nprice\r\n1\r\n", 1), ("\n\nc,price\n1,2\n", 1), ("\ufeffprice\n1", 1)],
)
def test_blank_lines_before_the_header_are_skipped(place, content, rows):
    (place / "in.csv").write_bytes(content.encode())
    assert release("in.csv", "out.csv").terms.rows == rows


@pytest.mark.parametrize(
    ("content", "complaint"),
    [("c,price", "no rows"), ("c,price\n", "no rows"), ("price", "no rows"), ("c;price\n1;2\n", "semicolons")],
)
def test_what_is_not_a_table_with_rows_and_commas_is_said_to_be_so(place, content, complaint):
    (place / "in.csv").write_text(content)
    assert complaint in str(refused("in.csv"))


@pytest.mark.parametrize("missing", ["error", "drop"])
def test_a_label_beyond_the_range_of_floats_is_the_last_float(place, missing):
    (place / "in.csv").write_text("c,price\n1,2\n2,1e309\n3,-1e999\n")
    assert release("in.csv", "out.csv", missing=missing).terms.rows == 3
    (place / "in.csv").write_text("c,price\n1,2\n2,-Infinity\n")
    assert "not finite" in str(refused("in.csv", "other.csv", error=LabelError))
