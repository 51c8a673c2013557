"""`fit_model` on a DataFrame: sums over all labels, and labels of a sample one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from labeldp.accounts.ledger import Ledger, as_ledger, warn_if_seen
from labeldp.exact.word_sources import resolve_source
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import unit_labels
from labeldp.learning.learner import MAX_ROWS_FINAL_TREES
from labeldp.learning.model_regressor import ModelReleaseRegressor
from labeldp.spark.cluster_access import ClusterAccess
from labeldp.spark.executor import collect_rows
from labeldp.spark.frame_checks import checked_inputs
from labeldp.spark.session import as_seed


def fit_model(
    df: DataFrame,
    *,
    features: Sequence[str],
    label: str,
    id: str,
    epsilon: float,
    bounds: Any = None,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    random_state: int | None = None,
) -> ModelReleaseRegressor:
    """Return a fitted `ModelReleaseRegressor`, learnt from sums over any number of rows.

    The driver gets at most about 400,000 rows, a random sample by their ids: it learns from their features which
    groups to sum over, and releases their labels one by one where ε suffices. Sums are over all rows, each put
    into its group where it is. Rows are read once to be checked, once for the sample, once to be counted for a
    range, and once for each stage of sums or counts, of which there are up to five.

    Parameters
    ----------
    df : DataFrame
        Classic or Spark Connect.
    features : list of str
        Public columns of numbers; encode others first.
    label, id : str
        As for `privatize`.
    epsilon, bounds, ledger, rows_per_person
        As for `labeldp.ModelReleaseRegressor`.
    random_state
        As for `privatize`.

    Raises
    ------
    ParameterError, LabelError, DataError
        Before anything is charged.
    BudgetError
        If the ledger refuses; then nothing was released.

    Examples
    --------
    ``spark`` is a session of Spark 4, classic or Connect.

    >>> import pandas as pd
    >>> from labeldp import spark as private
    >>> rows = [(k, float(k % 7), 10.0 + k % 7) for k in range(300)]
    >>> df = spark.createDataFrame(rows, ["order", "items", "amount"])
    >>> model = private.fit_model(
    ...     df, features=["items"], label="amount", id="order", epsilon=1.0, bounds=(0, 50))
    >>> model.predict(pd.DataFrame({"items": [1.0, 5.0]})).shape
    (2,)
    """
    source, ledger = resolve_source(as_seed(random_state)), as_ledger(ledger)
    model = ModelReleaseRegressor(
        epsilon=epsilon,
        bounds=bounds,
        ledger=ledger,
        rows_per_person=rows_per_person,
        random_state=random_state,
    )
    request = model.request()
    with checked_inputs(df, label, id, features) as (frame, count):
        if ledger is None:
            warn_if_seen(df)
        X, y = collect_rows(frame, count, MAX_ROWS_FINAL_TREES)
        sample = unit_labels(y, request.bounds)
        access = ClusterAccess(frame, count, source, "sums", bounds=request.bounds, sample=sample)
        model.fit_table(request, FeatureTable.fit(X), access)
    model.n_features_in_ = len(features)
    model.feature_names_in_ = np.array(features, dtype=object)
    return model
