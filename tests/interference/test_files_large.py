"""Tables of more than one block: where a block ends follows from the bytes of labels, and must not show.

Every line of the text has 1024 bytes with the short labels, its header too, so that blocks of any power of two end
at the end of a line; one longer label, and they end elsewhere. Public columns change in kind just there: a column
is empty up to that line and holds dates from it on, another needs quotes in it for the first time.
"""

import dataclasses
import functools

import numpy as np
import pytest

from fuzzing import LONG
from interference import changes, tables
from interference.harness import Way, assert_nothing_leaks, assert_same
from interference.tables import LABEL, Input
from interference.test_commands import WHAT, codes, typed
from interference.test_files import way

MIB = 1 << 20
LINE = 1024
BLOCKS = (MIB, 4 * MIB)
"""Sizes of blocks at whose ends public columns change in kind; 1 MiB is PyArrow's own."""

BYTES = 5 * MIB
BINARY_ROWS = 140_000
"""More than the batches of 65,536 or 131,072 rows that readers hand out."""

GROUP_BYTES = 140 * MIB
"""More than a row group holds; in the long form only."""

SHORT, LONGER = "0", "3.141592653589793"


@functools.cache
def aligned(size, line=LINE):
    """Return public columns whose lines, with labels of one character, fill ``size`` bytes, header included."""
    rows = size // line - 1
    columns = {"id": [f"{row:08d}" for row in range(rows)], "number": [str(row % 9 + 1) for row in range(rows)]}
    for block in BLOCKS:
        edge = min(block // line - 2, rows - 1)  # the last row of the first block
        columns[f"late{block // MIB}"] = [""] * edge + ["2020-02-29"] * (rows - edge)
        columns[f"note{block // MIB}"] = ["x"] * edge + ["x-y, z"] + ["x"] * (rows - edge - 1)
    taken = np.zeros(rows, dtype=int)
    for cells in columns.values():
        taken += [len(tables.quoted(cell, ",")) for cell in cells]
    others = len(columns) + 2  # commas to the label and to what fills the line, and the line's end
    room = line - taken - others - len(SHORT)
    name = "p" * (line - sum(map(len, columns)) - others - len(LABEL))
    return {**columns, name: ["-" * length for length in room.tolist()]}


def pair(size=BYTES, *, rows=(0,), longer=(LONGER,), line=LINE):
    columns = aligned(size, line)
    one = [SHORT] * len(columns["id"])
    return Input(one, columns=columns), Input(changes.changed(one, rows, longer), columns=columns)


def test_lines_end_where_blocks_end():
    text = tables.as_text(pair()[0]).encode()
    assert len(text) == BYTES
    assert {text[end - 1 : end] for end in range(MIB, BYTES + 1, MIB)} == {b"\n"}


EDGE = 4 * MIB // LINE - 1
CHANGES = {
    "first row": pair(),
    "around the end of a block": pair(rows=[EDGE - 1, EDGE]),
    "all rows": pair(rows=range(BYTES // LINE - 1), longer=changes.SPELLINGS),
    "one character": pair(rows=[0], longer=["10"]),
    "one block or two": pair(4 * MIB),
}
FORMS = [("csv", "csv"), ("csv", "parquet"), ("tsv", "parquet"), ("csv.gz", "csv")]
CASES = [("first row", *form) for form in FORMS] + [(change, "csv", "parquet") for change in list(CHANGES)[1:]]


@pytest.mark.parametrize(("change", "form", "to"), CASES)
def test_labels_of_other_lengths(change, form, to, tmp_path):
    assert_nothing_leaks(way(form, f"out.{to}"), *CHANGES[change], tmp_path)


@pytest.mark.parametrize("options", [{"shuffle": True}, {"missing": "drop"}, {"purpose": "values"}], ids=str)
def test_options(options, tmp_path):
    """With rows left out at the end of a block, which are the same in both."""
    gone = {EDGE - 1, EDGE} if "missing" in options else set()
    both = [
        dataclasses.replace(given, labels=["" if row in gone else text for row, text in enumerate(given.labels)])
        for given in pair()
    ]
    assert_nothing_leaks(way("csv", "out.csv", **options), *both, tmp_path)


# ---- what goes wrong -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["x", "", "1,2"])
def test_a_bad_label_far_into_the_file(bad, tmp_path):
    """No message, and no progress before it, says in which block it is."""
    both = [dataclasses.replace(given, labels=[*given.labels[:-1], bad]) for given in pair()]
    first = assert_same(way("csv", "out.csv"), *both, tmp_path)
    assert first.error is not None


@pytest.mark.parametrize(("block", "beyond"), [(MIB, 0), (MIB, 1), (4 * MIB, 1)])
def test_a_line_as_long_as_a_block(block, beyond, tmp_path):
    """It ends with the second block if labels are short, or in the third if one of them is longer."""
    rows = block // LINE
    columns = {name: cells[:rows] for name, cells in aligned(BYTES).items()}
    columns = {name: [*cells[: rows - 2], cells[-1], *cells[:3]] for name, cells in columns.items()}
    filling = list(columns)[-1]
    columns[filling] = [*columns[filling]]
    columns[filling][rows - 2] += "-" * (block - beyond)
    one = [SHORT] * len(columns["id"])
    both = Input(one, columns=columns), Input(changes.changed(one, [0], ["10"]), columns=columns)
    assert_same(way("csv", "out.parquet"), *both, tmp_path)


# ---- binary formats --------------------------------------------------------------------------------------------


@functools.cache
def many_rows():
    """Return two tables of numbers and words that are cut elsewhere."""
    rows = BINARY_ROWS
    columns = {
        "id": [str(row) for row in range(rows)],
        "kind": ["abcd"[row % 4] for row in range(rows)],
        "note": ["x, y" if row == 66_000 else "x" for row in range(rows)],
    }
    one = [SHORT] * rows
    other = changes.changed(one, range(0, rows, 1000), changes.SPELLINGS)
    return Input(one, (60_000, 66_000), columns=columns), Input(other, (59_999, 66_001, 130_001), columns=columns)


@pytest.mark.parametrize(("form", "to"), [("parquet", "csv"), ("parquet", "parquet")])
def test_binary_formats_whose_pieces_were_cut_elsewhere(form, to, tmp_path):
    assert_nothing_leaks(way(form, f"out.{to}"), *many_rows(), tmp_path)


@pytest.mark.skipif(not LONG, reason="LABELDP_LONG is not set: writes a row group of 128 MiB")
@pytest.mark.parametrize("to", ["parquet", "csv"])
def test_row_groups_that_end_by_their_size(to, tmp_path):
    assert_nothing_leaks(way("csv", f"out.{to}"), *pair(GROUP_BYTES, line=1 << 13), tmp_path)


# ---- models ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_columns_of_a_model(tmp_path):
    """What a model takes a public column for was guessed from the first block."""
    words = ["fit", "table.csv", *WHAT, "--epsilon", "0.2", "-o", "model", "--features", "number,late1,late4"]
    out = Way(lambda _: [typed(*words)], way("csv", "").prepare)
    first = assert_same(out, *pair(), tmp_path)
    assert codes(first) == [0], first.stderr.decode()
    assert "model/columns.json" in first.files
