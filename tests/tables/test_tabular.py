"""A table's way to numbers: by public columns alone, the same at every prediction, and never by the label."""

import datetime as dt
import json
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import labeldp as ldp
from labeldp.errors import DataError
from labeldp.tables import TableEncoder


def synthetic_table(rows=200, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "area": pa.array(rng.normal(size=rows), mask=rng.random(rows) < 0.1),
            "rooms": pa.array(rng.integers(1, 9, rows), pa.int16()),
            "fee": pa.array([Decimal(int(k)) / 100 for k in rng.integers(0, 999, rows)]),
            "lift": pa.array(rng.random(rows) < 0.5),
            "sold": pa.array([dt.date(2020, 1, 1) + dt.timedelta(int(k)) for k in rng.integers(0, 900, rows)]),
            "town": pa.array(rng.choice(["York", "Bath", "Ely"], rows)).dictionary_encode(),
            "zip": pa.array([f"z{k}" for k in rng.integers(0, 60, rows)]),
        }
    )


def test_every_kind_of_column_becomes_the_numbers_that_are_promised():
    table = pa.table(
        {
            "n": pa.array([3, None, 5], pa.int32()),
            "d": [dt.date(1970, 1, 3), dt.date(1970, 1, 2), dt.date(1970, 1, 2)],
            "s": pa.array([dt.datetime(1970, 1, 1, 12), dt.datetime(1970, 1, 2), None], pa.timestamp("ns")),
            "t": pa.array([1500, 0, 0], pa.time32("ms")),
            "b": [True, False, None],
            "x": [Decimal("1.25"), Decimal("2.50"), Decimal("3.00")],
            "c": ["p", "q", "p"],
        }
    )
    encoder = TableEncoder.fit(table, table.column_names)
    expected = [
        [3, 0, 2, 0.5, 0, 1.5, 1, 0, 1.25, 1, 0],
        [4, 1, 1, 1, 0, 0, 0, 0, 2.5, 0, 1],
        [5, 0, 1, 0.75, 1, 0, 0.5, 1, 3, 1, 0],
    ]
    assert encoder.transform(table).tolist() == expected


def test_missing_and_new_values_are_filled_marked_and_counted():
    fitted = pa.table({"a": [1.0, None, 3.0, float("inf")], "town": ["York", "Bath", "York", "York"]})
    encoder, tally = TableEncoder.fit(fitted, ["a", "town"]), Counter()
    numbers = encoder.transform(pa.table({"a": [None, float("nan"), 7.0], "town": ["Ely", "Bath", None]}), tally)
    assert numbers.tolist() == [[2, 1, 0, 0], [2, 1, 0, 1], [7, 0, 0, 0]]
    assert tally == {("a", "missing"): 2, ("town", "new"): 1, ("town", "missing"): 1}
    assert encoder.transform(pa.table({"a": pa.nulls(1), "town": pa.nulls(1)})).tolist() == [[2, 1, 0, 0]]


def test_text_of_many_values_gets_a_column_for_each_common_one_and_tells_rare_values_from_new_ones():
    table = pa.table({"zip": [f"z{k}" for k in range(60) for _ in range(60 - k)]})
    encoder, tally = TableEncoder.fit(table, ["zip"]), Counter()
    numbers = encoder.transform(pa.table({"zip": ["z1", "z59", "never seen", None]}), tally)
    assert np.argwhere(numbers).tolist() == [[0, 1]]
    assert encoder.width == 50
    assert tally == {("zip", "new"): 1, ("zip", "missing"): 1}


def test_the_encoding_follows_from_public_columns_alone_and_a_target_encoding_would_be_caught():
    table, rng = synthetic_table(), np.random.default_rng(1)
    labels = rng.normal(size=table.num_rows)

    def ours(table, labels):
        read = table.append_column("price", pa.array(labels))
        return TableEncoder.fit(read, table.column_names).to_json()

    def by_target(table, labels):
        towns = np.array(table.column("town").to_pylist())
        return {town: float(labels[towns == town].mean()) for town in np.unique(towns)}

    def depends(encode):
        return encode(table, labels) != encode(table, labels[::-1])

    assert not depends(ours)
    assert depends(by_target)


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (["a"] * 100, "the same"),
        ([f"name {k}" for k in range(100)], "value of its own"),
        (pa.nulls(100, pa.float64()), "missing"),
        (pa.nulls(100), "missing"),
        ([[1, 2]] * 100, "list"),
        ([b"x", b"y"] * 50, "binary"),
    ],
)
def test_a_column_of_no_use_is_left_out_and_said_to_be_or_refused_if_it_was_asked_for(column, why):
    table = pa.table({"good": np.arange(100.0), "bad": column})
    encoder = TableEncoder.fit(table, ["good", "bad"])
    assert encoder.names == ["good"]
    assert why in dict(encoder.left_out)["bad"]
    with pytest.raises(ldp.errors.ParameterError, match="'bad' is of no use"):
        TableEncoder.fit(table, ["good", "bad"], strict=True)
    with pytest.raises(DataError, match="no column is left"):
        TableEncoder.fit(table, ["bad"])


def test_a_table_that_is_not_as_in_the_fit_is_refused():
    encoder = TableEncoder.fit(synthetic_table(), ["area", "town"])
    area = synthetic_table()["area"]
    for table, complaint in (
        (pa.table({"areas": [1, 2], "town": ["York", "Bath"]}), "'areas' is near"),
        (pa.table([area, area], names=["area", "area"]), "two columns are called 'area'"),
        (pa.table({"area": ["much", "little"], "town": ["York", "Bath"]}), "of the kind number"),
    ):
        with pytest.raises(DataError, match=complaint):
            encoder.transform(table)
    numbers = pa.table({"area": [1, 2], "town": [3, 4]})  # text of digits only is often read as numbers
    assert encoder.transform(numbers).shape == (2, 5)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.pop("columns"),
        lambda data: data.update(columns=[]),
        lambda data: data.update(columns=data["columns"] * 2),
        lambda data: data["columns"][0].update(fill=float("nan")),
        lambda data: data["columns"][0].update(kind="os.system"),
        lambda data: data["columns"][-1].update(rare_values={"z1": 1}),
    ],
)
def test_plain_data_that_is_no_encoder_is_refused(change):
    encoder = TableEncoder.fit(synthetic_table(), synthetic_table().column_names)
    data = json.loads(encoder.to_json())
    change(data)
    with pytest.raises(ldp.errors.CardError):
        TableEncoder.from_json(json.dumps(data))
