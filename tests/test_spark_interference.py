"""Nothing leaves Spark but the noise: tables that differ in labels only give the same bytes, cells replayed."""

from __future__ import annotations

import pytest

import spark_interference as ways
from labeldp.spark import output, privatize
from spark_interference import LABELS, WAYS, differences, read_table, replayed, write_table

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture
def small_splits(spark, monkeypatch):
    monkeypatch.setattr(output, "PART_ROWS", 300)
    monkeypatch.setattr("labeldp.estimators.learner._WORTH", 1e9)  # trees take long, and see private labels only
    for name, value in ways.SMALL_SPLITS.items():
        spark.conf.set(name, value)
    yield spark
    for name in ways.SMALL_SPLITS:
        spark.conf.unset(name)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Folders of tables, written once."""
    folder = tmp_path_factory.mktemp("tables")

    def table(kind, labels):
        path = folder / f"{kind} {labels}"
        if not path.exists():
            write_table(path, kind, LABELS[labels])
        return path

    return table


def left(spark, tables, tmp_path, way, kind, names):
    """Return what leaves for each of some tables, cells replayed."""
    found = []
    with replayed() as noise:
        for name in names:
            noise.start()
            (tmp_path / name).mkdir()
            found.append(WAYS[way](read_table(spark, tables(kind, name), kind), tmp_path / name))
    return found


def splits(spark, tables, kind, name):
    return [len(part) for part in read_table(spark, tables(kind, name), kind).rdd.glom().collect()]


def test_the_splits_of_the_input_do_move(small_splits, tables):
    base = splits(small_splits, tables, "csv", "base")
    assert len(base) > 12
    for name in ("all rows", "some rows", "magnitude"):
        assert splits(small_splits, tables, "csv", name) != base


@pytest.mark.parametrize(
    ("kind", "names"),
    [("csv", list(LABELS)), ("tsv", ["base", "some rows"]), ("json", ["base", "all rows", "some rows"])],
)
def test_a_release_lets_out_the_same_bytes(small_splits, tables, tmp_path, kind, names):
    first, *others = left(small_splits, tables, tmp_path, "release", kind, names)
    for name, other in zip(names[1:], others, strict=True):
        assert differences(first, other) == [], name


@pytest.mark.parametrize("way", ["prior", "model from sums", "model from labels"])
def test_priors_and_models_let_out_the_same_bytes(small_splits, tables, tmp_path, way):
    names = ["base", "some rows", "magnitude"]
    first, *others = left(small_splits, tables, tmp_path, way, "csv", names)
    for name, other in zip(names[1:], others, strict=True):
        assert differences(first, other) == [], name


def test_without_replay_public_columns_order_and_parts_are_the_same(small_splits, tables):
    ask = {"label": "y", "id": "id", "epsilon": 1.0, "bounds": ways.BOUNDS}
    found = [
        ways.parts_of(privatize(read_table(small_splits, tables("csv", name), "csv"), **ask).frame)
        for name in ("base", "some rows")
    ]
    assert found[0] == found[1]
    assert len(found[0]) == ways.ROWS
