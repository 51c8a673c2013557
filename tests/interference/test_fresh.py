"""Without replay: all but labels is equal when it is read back, and labels have the distribution that was proven.

So what the other tests replay is all that labels touch. Both runs use the same words; a shuffle is the same one.
"""

import functools
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import labeldp as ldp
from helpers import FALSE_ALARM
from interference import changes
from interference.harness import run
from interference.tables import LABEL, Input
from interference.test_files import CUTS, way

ROWS = 20_000
LEVELS = ("-3", "2.5", "1e300")
"""Labels whose distributions are compared with what is proven; the last is clipped."""

MECHANISMS = {
    "rp": ldp.RPWithPrior(interval=(-2.0, 6.0), zeta=1.5, epsilon=1.0),
    "two-point": ldp.TwoPoint(bounds=changes.BOUNDS, epsilon=1.0),
}


@functools.cache
def pair():
    """Return a table of labels of three values, and one with other text in a third of its rows."""
    columns = {
        "id": [str(row) for row in range(ROWS)],
        "word": ["a, b" if row == 70 else "a" for row in range(ROWS)],
        "kind": ["abcd"[row % 4] for row in range(ROWS)],
    }
    one = [LEVELS[row % 3] for row in range(ROWS)]
    other = ["3.141592653589793" if row % 3 == 1 else text for row, text in enumerate(one)]
    return [Input(labels, cuts, columns=columns) for labels, cuts in zip((one, other), CUTS, strict=True)]


def read_back(path, to):
    """Return a file's public columns, its labels, and its layout."""
    if to in ("csv", "tsv"):
        parse = pa.csv.ParseOptions(delimiter="\t" if to == "tsv" else ",")
        table, layout = pa.csv.read_csv(path, parse_options=parse), None
    else:
        file = pq.ParquetFile(path)
        table = file.read()
        layout = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    return table.drop_columns([LABEL]), table.column(LABEL).to_numpy(), (str(table.schema), layout)


def assert_distribution(mechanism, label, private):
    """False alarm 1e-6 (Dvoretzky, Kiefer, Wolfowitz, Massart); finds a difference of 0.07 in any probability."""
    points = np.unique(private)
    between = np.append((points[1:] + points[:-1]) / 2, points[-1] + 1)  # values in files are rounded
    proven = mechanism.channel.cumulative(float(label), between)
    seen = np.searchsorted(np.sort(private), points, side="right") / private.size
    assert np.abs(seen - proven).max() <= np.sqrt(np.log(2 / FALSE_ALARM) / (2 * private.size))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "to", "shuffle"),
    [("csv", "csv", True), ("csv", "parquet", False), ("tsv", "parquet", True), ("parquet", "csv", False)],
)
def test_all_but_the_labels_is_equal_and_labels_are_as_proven(form, to, shuffle, tmp_path):
    mechanism = MECHANISMS["two-point" if shuffle else "rp"]
    out = way(form, f"out.{to}", mechanism=mechanism, purpose="values", shuffle=shuffle)
    seen: dict = {}
    for given in pair():
        left, tape = run(out, given, tmp_path)
        public, private, layout = read_back(tmp_path / "now" / f"out.{to}", to)
        card = json.loads(left.files[f"out.{to}.card.json"][1])
        card["file"].pop("sha256")
        card.pop("checksum")
        same = {"layout": layout, "card": card, "stdout": left.stdout, "stderr": left.stderr}
        same |= {"public": public, "steps": tape.inside, "words": left.words}
        true = np.array(given.labels)[public.column("id").to_numpy()]
        for label in set(given.labels):
            assert_distribution(mechanism, label, private[true == label])
        assert [name for name in seen if seen[name] != same[name]] == []
        seen = same


def test_another_distribution_is_found():
    """The twin: one label too many released as it is in each ten."""
    mechanism = MECHANISMS["rp"]
    private = mechanism.randomize(np.full(ROWS // 3, 2.5))
    private[::10] = 2.5
    with pytest.raises(AssertionError):
        assert_distribution(mechanism, "2.5", private)
