"""Models and regression tables on Spark: those of one machine to the bit, from sums over any number of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

import labeldp as ldp
from labeldp.exact.row_ids import Ids, public_places
from labeldp.release.queries import Cells
from labeldp.spark.cluster_access import ClusterAccess

fit_model, private_ols = ldp.spark.fit_model, ldp.spark.private_ols
pytestmark = pytest.mark.filterwarnings("ignore::labeldp.InsecureRandomnessWarning")

BOUNDS = (0.0, 5.0)
ASK = {"features": ["a", "b"], "label": "y", "id": "id", "bounds": BOUNDS, "random_state": 3}


def table(rows):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(rows, 2))
    return X, np.clip(2.5 + X[:, 0] + 0.3 * rng.normal(size=rows), *BOUNDS), np.arange(rows) * 3 - 100


def frame(spark, X, y, ids, partitions=3):
    columns = {"a": X[:, 0], "y": y, "id": ids, "b": X[:, 1], "unused": ["text"] * len(y)}
    return spark.createDataFrame(pa.table(columns)).repartition(partitions, "id")


def by_hash(X, y, ids):
    """Return rows in the order in which they come to the driver, which is public."""
    order = np.argsort(public_places(Ids("integer", ids))[:, 0])
    return X[order], y[order]


@pytest.mark.parametrize(("rows", "epsilon", "paid"), [(400, 0.5, ["sums"]), (4200, 1.0, ["sums and labels"])])
def test_a_model_is_that_of_one_machine_to_the_bit(spark, set_constants, rows, epsilon, paid):
    set_constants({"learning.learner._WORTH": 1e9})  # trees take long, and are the same code everywhere
    X, y, ids = table(rows)
    ledger = ldp.Ledger()
    model = fit_model(frame(spark, X, y, ids), epsilon=epsilon, ledger=ledger, **ASK)
    alone = ldp.ModelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS, random_state=3).fit(*by_hash(X, y, ids))
    assert isinstance(model, ldp.ModelReleaseRegressor)
    names = pytest.importorskip("pandas").DataFrame(X, columns=ASK["features"])
    np.testing.assert_array_equal(model.predict(names), alone.predict(X))
    assert [charge.description for charge in model.charges_] == paid
    assert [c.mechanism for c in model.charges_] == [c.mechanism for c in alone.charges_]
    assert ledger.total.epsilon == epsilon
    assert model.terms_.rows == rows


def test_sums_over_more_rows_than_the_driver_takes_are_those_of_one_machine(spark, set_constants, monkeypatch):
    """In any partitions rows get the same groups and predictions, and models are the same to the bit."""
    set_constants({"spark.dataframe_model.MAX_ROWS_FINAL_TREES": 300})
    add_up, runs = ClusterAccess._add_up, []

    def spy(access, query):
        assert 230 < access._labels.size < 370  # by a hash, for these ids once: else a probability below 1e-4
        answer = add_up(access, query)
        if not isinstance(query, Cells):
            runs[-1].append((query, answer))
        return answer

    monkeypatch.setattr(ClusterAccess, "_add_up", spy)
    X, y, ids = table(1500)
    names, predicted = pytest.importorskip("pandas").DataFrame(X, columns=ASK["features"]), []
    for partitions in (1, 4):
        runs.append([])
        model = fit_model(frame(spark, X, y, ids, partitions), epsilon=0.8, **ASK)
        assert [charge.description for charge in model.charges_] == ["sums"]
        predicted.append(model.predict(names).tolist())
    assert predicted[0] == predicted[1]
    assert float(np.mean((np.array(predicted[0]) - y) ** 2)) < 0.3 * y.var()
    assert len(runs[0]) == 5, "sums, distances, sums, distances, sums"
    for same in zip(*runs, strict=True):
        query, answers = same[0][0], [found.tolist() for _, found in same]
        here = replace(query, row_rules=query.row_rules.on(X)).answer(y / BOUNDS[1])
        assert answers[0] == answers[1] == here.tolist()
        assert query.shape[0] == 1 or (query.groups > 1 and sum(answers[0][1]) == 1500)


def test_labels_of_a_sample_are_released_once_each_and_the_model_learns_from_all_sums(spark, set_constants):
    set_constants({"spark.dataframe_model.MAX_ROWS_FINAL_TREES": 1500, "learning.learner._WORTH": 1e9})
    X, y, ids = table(4200)
    model = fit_model(frame(spark, X, y, ids), epsilon=1.0, **ASK)
    assert [charge.description for charge in model.charges_] == ["sums and labels"]
    assert model.ledger_.total == ldp.Budget(1.0)
    assert (len(model.mechanism_), model.terms_.rows) == (3, 4200)
    names = pytest.importorskip("pandas").DataFrame(X, columns=ASK["features"])
    assert float(np.mean((model.predict(names) - y) ** 2)) < 0.2 * y.var()


@pytest.mark.parametrize(("epsilon", "partitions"), [(20.0, 5), (0.2, 3)])
def test_a_regression_table_is_that_of_one_machine_to_the_bit(spark, epsilon, partitions):
    X, y, ids = table(2500)
    ledger = ldp.Ledger()
    found = private_ols(frame(spark, X, y, ids, partitions), epsilon=epsilon, ledger=ledger, **ASK)
    alone = ldp.private_ols(*by_hash(X, y, ids), epsilon=epsilon, bounds=BOUNDS, random_state=3)
    np.testing.assert_array_equal(found.params, alone.params)
    np.testing.assert_array_equal(found.conf_int(), alone.conf_int())
    assert found.terms.statistics == alone.terms.statistics
    assert (found.names, found.label) == (["Intercept", "a", "b"], "y")
    assert ledger.total == found.cost == ldp.Budget(epsilon)


@pytest.mark.parametrize("call", [fit_model, private_ols])
def test_what_cannot_be_fitted_costs_nothing(spark, call, set_constants):
    ledger = ldp.Ledger(limit=ldp.Budget(epsilon=0.1))
    df = frame(spark, *table(300))

    def refuse(error, option=None, df=df, **change):
        with pytest.raises(error) as refused:
            call(df, **{**ASK, "epsilon": 1.0, "ledger": ledger, **change})
        assert option is None or refused.value.option == option
        assert ledger.total == ldp.Budget(epsilon=0.0)

    for features in ("a", [], ["a", "unused"], ["a", "y"], ["a", "a"], ["aa"]):
        refuse(ldp.errors.ParameterError, "features", features=features)
    refuse(ldp.errors.ParameterError, epsilon=-1.0)
    refuse(ldp.errors.DataError, df=df.withColumn("b", F.when(df.id >= -70, df.b)))
    refuse(ldp.errors.DataError, df=df.withColumn("id", F.lit(1)))
    refuse(ldp.BudgetError)
    if call is private_ols:
        refuse(ldp.errors.DataError, df=df.withColumn("b", 2 * df.a))
        set_constants({"spark.dataframe_ols.MAX_NUMBERS": 500})
        refuse(ldp.errors.DataError)
