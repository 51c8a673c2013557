"""`private_ols` on a DataFrame, whose rows are brought to the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from labeldp.accounts.ledger import Ledger, as_ledger, ledger_to_charge
from labeldp.errors import DataError
from labeldp.inference import regressions
from labeldp.inference.regression_table import RegressionTable
from labeldp.spark.executor import collect_rows
from labeldp.spark.frame_checks import checked_inputs
from labeldp.spark.session import as_seed

MAX_NUMBERS = 1 << 25
"""The number of features times rows that the driver takes."""


def private_ols(
    df: DataFrame,
    *,
    features: Sequence[str],
    label: str,
    id: str,
    epsilon: float,
    bounds: Any,
    ledger: Ledger | None = None,
    random_state: int | None = None,
    **options: Any,
) -> RegressionTable:
    """Return a regression table: `labeldp.private_ols` of rows in the order of their ids' hashes.

    Parameters
    ----------
    df : DataFrame
        Classic or Spark Connect. Its features must fit on the driver.
    features : list of str
        Public columns of numbers; encode others first.
    label, id : str
        As for `privatize`.
    epsilon, bounds, ledger
        As for `labeldp.private_ols`.
    random_state
        As for `privatize`.
    **options
        Further ones of `labeldp.private_ols`, such as ``rows_per_person``.

    Raises
    ------
    ParameterError, LabelError, DataError
        Before anything is charged.
    BudgetError
        If the ledger refuses; then nothing was released.

    Examples
    --------
    ``spark`` is a session of Spark 4, classic or Connect.

    >>> from labeldp import spark as private
    >>> rows = [(k, float(k % 7), 10.0 + k % 7) for k in range(300)]
    >>> df = spark.createDataFrame(rows, ["order", "items", "amount"])
    >>> table = private.private_ols(
    ...     df, features=["items"], label="amount", id="order", epsilon=2.0, bounds=(0, 50))
    >>> table.names
    ['Intercept', 'items']
    """
    seed, ledger = as_seed(random_state), as_ledger(ledger)
    with checked_inputs(df, label, id, features) as (frame, rows):
        row_limit = MAX_NUMBERS // len(features)
        if rows > row_limit:
            raise DataError(f"{rows:,} rows are more than the driver takes: give a sample of up to {row_limit:,}")
        X, y = collect_rows(frame, rows, row_limit)
    return regressions.private_ols(
        pa.table(list(X.T), names=list(features)),
        y,
        epsilon=epsilon,
        bounds=bounds,
        ledger=ledger_to_charge(ledger, df),
        label=label,
        random_state=seed,
        **options,
    )
