"""`collect_rows`: rows of a DataFrame for the regressors, which learn on one machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from labeldp._values import parse_integer
from labeldp.errors import DataError, ParameterError, Setting
from labeldp.exact.row_ids import public_places
from labeldp.spark.executor import array_ids
from labeldp.spark.frame_checks import check_features, check_id, check_label
from labeldp.spark.session import column, without_labels


def collect_rows(
    df: DataFrame, *, features: Sequence[str], label: str, id: str, rows: int = 1_000_000
) -> tuple[Any, Any]:
    """Return features and labels of a DataFrame's rows on the driver, to learn from as on any machine.

    Which rows are taken, and in which order, follows from hashes of their ids, and so not from labels. Labels are
    raw: nothing is charged before they go into a regressor, `labeldp.private_ols` or `labeldp.estimate_prior`.

    Parameters
    ----------
    df : DataFrame
        Classic or Spark Connect.
    features : list of str
        Public columns that hold one value a row.
    label, id : str
        As for `privatize`.
    rows : int
        About so many are taken from a frame that has more: a random sample. They must fit into the driver's memory
        and below ``spark.driver.maxResultSize``.

    Returns
    -------
    X : pyarrow.Table
        The features.
    y : pyarrow.ChunkedArray
        The labels, as doubles.

    Raises
    ------
    ParameterError, LabelError, DataError
        If a column is not there or has another type, or rows share an id: their order would not be public.

    Examples
    --------
    ``spark`` is a session of Spark 4, classic or Connect.

    >>> import labeldp as ldp
    >>> from labeldp import spark as private
    >>> orders = [(k, float(k % 7), 10.0 + k % 7) for k in range(300)]
    >>> df = spark.createDataFrame(orders, ["order", "items", "amount"])
    >>> X, y = private.collect_rows(df, features=["items"], label="amount", id="order")
    >>> model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(0, 50)).fit(X, y)
    >>> model.predict(X).shape
    (300,)
    """
    most = parse_integer(rows, "rows")
    check_label(df, label)
    check_id(df, id, label)
    check_features(df, features)
    if label in features or id in features or len(set(features)) < len(features):
        raise ParameterError(Setting("features"), " must be different columns, and neither the label nor the id")
    count = without_labels(df.count)
    wanted = df.select(column(label).cast("double"), column(id), *map(column, features))
    if count > most:
        limit = (most << 64) // count - (1 << 63)
        wanted = wanted.where(F.xxhash64(column(id)) < F.lit(limit))
    table = without_labels(wanted.toArrow).combine_chunks()
    places = public_places(array_ids(table.column(1).combine_chunks()))[:, 0]
    if np.unique(places).size < places.size:
        raise DataError("some rows share an id, so that their order is not public: give each row an id of its own")
    table = table.take(np.argsort(places))
    return table.select(list(features)), table.column(0)
