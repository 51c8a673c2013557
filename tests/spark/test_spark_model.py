"""A model fitted on Spark: from sums the same as on one machine to the bit, from labels as good."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812
from threadpoolctl import threadpool_limits

import labeldp as ldp
from labeldp.exact.row_ids import Ids, public_places
from labeldp.spark import dataframe_model, model_passes

fit_model = ldp.spark.fit_model
pytestmark = pytest.mark.filterwarnings("ignore::labeldp.InsecureRandomnessWarning")

BOUNDS = (0.0, 5.0)
FEATURES = ["a", "b"]


def table(rows):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(rows, 2))
    return X, np.clip(2.5 + X[:, 0] + 0.3 * rng.normal(size=rows), *BOUNDS), np.arange(rows) * 3 - 100


def frame(spark, X, y, ids, partitions=3):
    columns = {"a": X[:, 0], "y": y, "id": ids, "b": X[:, 1], "unused": ["text"] * len(y)}
    return spark.createDataFrame(pa.table(columns)).repartition(partitions, "id")


def test_from_sums_it_is_the_model_of_one_machine_to_the_bit(spark):
    X, y, ids = table(400)
    ask = {"epsilon": 0.5, "bounds": BOUNDS, "random_state": 3}
    ledger = ldp.Ledger()
    model = fit_model(frame(spark, X, y, ids), features=FEATURES, label="y", id="id", ledger=ledger, **ask)
    order = np.argsort(public_places(Ids("integer", ids))[:, 0])  # rows come in this order, which is public
    alone = ldp.ModelReleaseRegressor(**ask).fit(X[order], y[order])
    assert isinstance(model, ldp.ModelReleaseRegressor)
    names = pytest.importorskip("pandas").DataFrame(X, columns=FEATURES)
    np.testing.assert_array_equal(model.predict(names), alone.predict(X))
    assert [c.mechanism for c in model.charges_] == [c.mechanism for c in alone.charges_]
    assert ledger.total.epsilon == 0.5
    assert model.terms_.rows == 400


def test_sums_over_more_rows_than_the_driver_takes_are_those_of_one_machine(spark, set_constants, monkeypatch):
    """In any partitions rows get the same groups and predictions, and models are the same to the bit."""
    set_constants({"spark.dataframe_model.GROWN": 300})
    add_up, runs = dataframe_model.ClusterRows.add_up, []

    def spy(rows, query):
        runs[-1].append((query, add_up(rows, query)))
        return runs[-1][-1][1]

    monkeypatch.setattr(dataframe_model.ClusterRows, "add_up", spy)
    X, y, ids = table(1500)
    names, predicted = pytest.importorskip("pandas").DataFrame(X, columns=FEATURES), []
    for partitions in (1, 3, 5):
        runs.append([])
        ask = {"epsilon": 0.8, "bounds": BOUNDS, "random_state": 3}
        model = fit_model(frame(spark, X, y, ids, partitions), features=FEATURES, label="y", id="id", **ask)
        assert [charge.what for charge in model.charges_] == ["sums"]
        predicted.append(model.predict(names).tolist())
    assert predicted[0] == predicted[1] == predicted[2]
    assert float(np.mean((np.array(predicted[0]) - y) ** 2)) < 0.3 * y.var()
    assert len(runs[0]) == 5, "sums, distances, sums, distances, sums"
    for same in zip(*runs, strict=True):
        query, answers = same[0][0], [found.tolist() for _, found in same]
        here = replace(query, rows=query.rows.on(X)).answer(y / BOUNDS[1])
        assert answers[0] == answers[1] == answers[2] == here.tolist()
        assert query.shape[0] == 1 or (query.groups > 1 and sum(answers[0][1]) == 1500)


@pytest.fixture(autouse=True)
def one_thread():
    """The last bits of products follow from the number of threads, and that from how busy the machine is."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def quick(set_constants):
    """Trees take long, and are the same code everywhere."""
    set_constants({"learning.learner._WORTH": 1e9})


@pytest.mark.parametrize("sampled", [False, True])
def test_from_labels_it_learns_as_well_as_one_machine(spark, set_constants, quick, sampled):
    if sampled:  # as with more rows than the driver takes
        set_constants({"spark.dataframe_model.GROWN": 1500})
    X, y, ids = table(4200)
    ask = {"epsilon": 1.0, "bounds": BOUNDS, "random_state": 3}
    model = fit_model(frame(spark, X, y, ids), features=FEATURES, label="y", id="id", **ask)
    order = np.argsort(public_places(Ids("integer", ids))[:, 0])
    alone = ldp.ModelReleaseRegressor(**ask).fit(X[order], y[order])
    assert [c.what for c in model.charges_] == ["labels", "sums"]
    assert model.ledger_.total == ldp.Budget(1.0)
    if not sampled:
        assert model.charges_[1].mechanism == alone.charges_[1].mechanism
    names = pytest.importorskip("pandas").DataFrame(X, columns=FEATURES)
    errors = [float(np.mean((guess - y) ** 2)) for guess in (model.predict(names), alone.predict(X))]
    assert max(errors) < 0.2 * y.var()
    assert pickle.loads(pickle.dumps(model)).terms_.rows == 4200
    assert len(model.mechanism_) == 3


def test_statistics_do_not_depend_on_partitions_in_any_bit_and_rows_are_drawn_once(spark, monkeypatch, quick):
    draw, parts = dataframe_model.ClusterRows.draw, []

    def spy(rows, now, table):
        parts.append(draw(rows, now, table))
        return parts[-1]

    monkeypatch.setattr(dataframe_model.ClusterRows, "draw", spy)
    X, y, ids = table(4200)
    ask = {"features": FEATURES, "label": "y", "id": "id", "epsilon": 1.0, "bounds": BOUNDS, "random_state": 3}
    for partitions in (1, 5):
        fit_model(frame(spark, X, y, ids, partitions), **ask)
    one, other = parts[:3], parts[3:]
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a.private.labels, b.private.labels)
        np.testing.assert_array_equal(a.observed.gram, b.observed.gram)
        np.testing.assert_array_equal(a.observed.moment, b.observed.moment)
        assert (a.observed.square, a.observed.noise) == (b.observed.square, b.observed.noise)
    assert sum(part.observed.count for part in one) == 4200
    assert sorted(np.concatenate([part.private.rows for part in one]).tolist()) == list(range(4200))


def test_labels_travel_masked(spark, monkeypatch, quick):
    X, y, ids = table(4200)
    ask = {"features": FEATURES, "label": "y", "id": "id", "epsilon": 1.0, "bounds": BOUNDS, "random_state": 3}
    spread, shuffles = dataframe_model.spread_by_id, []

    def spy(rows, id, count):
        shuffles.append(rows.toArrow()["c0"].to_numpy())
        return spread(rows, id, count)

    monkeypatch.setattr(dataframe_model, "spread_by_id", spy)
    model = fit_model(frame(spark, X, y, ids), **ask)
    masks = np.concatenate(shuffles)
    assert masks.size == len(set(masks.tolist())) == 4200  # equal labels look different
    assert not set(masks.tolist()) & set(y.view(np.int64).tolist())
    # The twin, whose mask is nothing, is the same model, and its shuffles have raw labels.
    shuffles.clear()
    monkeypatch.setattr(model_passes, "_pad", lambda secret, ids: np.zeros(len(ids), dtype=np.uint64))
    twin = fit_model(frame(spark, X, y, ids), **ask)
    assert sorted(np.concatenate(shuffles).tolist()) == sorted(y.view(np.int64).tolist())
    names = pytest.importorskip("pandas").DataFrame(X, columns=FEATURES)
    np.testing.assert_array_equal(model.predict(names), twin.predict(names))


def test_what_cannot_be_fitted_costs_nothing(spark):
    ledger = ldp.Ledger(limit=ldp.Budget(epsilon=0.1))
    X, y, ids = table(50)
    df = frame(spark, X, y, ids)
    ask = {"features": FEATURES, "label": "y", "id": "id", "epsilon": 1.0, "bounds": BOUNDS, "ledger": ledger}

    def refuse(error, option=None, df=df, **change):
        with pytest.raises(error) as refused:
            fit_model(df, **{**ask, **change})
        assert option is None or refused.value.option == option
        assert ledger.total == ldp.Budget(epsilon=0.0)

    for features in ("a", [], ["a", "unused"], ["a", "y"], ["a", "a"], ["aa"]):
        refuse(ldp.errors.ParameterError, "features", features=features)
    refuse(ldp.errors.ParameterError, bounds=None)
    refuse(ldp.errors.ParameterError, epsilon=-1.0)
    refuse(ldp.errors.ParameterError, rows_per_person=0)
    refuse(ldp.errors.DataError, df=df.withColumn("b", F.when(df.id >= -70, df.b)))
    refuse(ldp.errors.DataError, df=df.withColumn("id", F.lit(1)))
    refuse(ldp.BudgetError)
