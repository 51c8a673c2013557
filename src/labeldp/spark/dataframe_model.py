"""`fit_model` on a DataFrame: a pass over the rows for each stage of a model, and noise on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812

from labeldp._values import Array, Sums, Words
from labeldp.accounts.ledger import Ledger, as_ledger, warn_if_seen
from labeldp.errors import DataError
from labeldp.exact.row_words import ReleaseKey, card_checksum
from labeldp.exact.word_sources import resolve_source
from labeldp.learning.bayes import Observations
from labeldp.learning.features import FeatureTable
from labeldp.learning.label_queries import CELLS, Query
from labeldp.learning.label_rounds import Part, Round
from labeldp.learning.learner import GROWN, PrivateRows
from labeldp.learning.model_regressor import ModelReleaseRegressor
from labeldp.spark.executor import count_labels, spread_by_id, sum_integers, sum_vectors
from labeldp.spark.frame_checks import checked_inputs
from labeldp.spark.model_passes import query_answerer, round_drawer, row_masker, row_sampler
from labeldp.spark.session import SealedSecret, as_seed, seal


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
    check_ids: bool = True,
    random_state: int | None = None,
) -> ModelReleaseRegressor:
    """Return a fitted `ModelReleaseRegressor`, learnt where the rows are.

    The driver gets the features of at most 400,000 rows, which are public; of labels it gets sums, to which it
    adds the noise, and private labels. Rows are put into groups where they are, by their features. They are read
    once to be checked, once to be counted for a range, once for the sample, and once for each stage of sums or
    counts, of which there are up to five. Where labels are released one by one, rows are read once more for each
    of three rounds, which also shuffles the round's rows by id.

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
    check_ids, random_state
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
    seed, ledger = as_seed(random_state), as_ledger(ledger)
    model = ModelReleaseRegressor(
        epsilon=epsilon,
        bounds=bounds,
        ledger=ledger,
        rows_per_person=rows_per_person,
        random_state=random_state,
    )
    request = model.request()
    inputs = checked_inputs(df, label, id, features, check_ids=check_ids)
    with inputs as (rows, count), ReleaseKey(seed) as key:
        if ledger is None:
            warn_if_seen(df)
        cluster = ClusterRows.of(rows, request.bounds, count, key, label)
        model.fit_rows(request, cluster, resolve_source(seed))
    model.n_features_in_ = len(features)
    model.feature_names_in_ = np.array(features, dtype=object)
    return model


def public_sample(frame: DataFrame, share: float, count: int) -> tuple[Words, Array]:
    """Return the places of about a share of the rows, sorted, and their features: id and features of each.

    With all rows, ids that two rows share are found and refused.
    """
    data = sum_vectors(frame.select(*frame.columns[1:]), row_sampler(share))[1]
    places, values = sort_sample(data, len(frame.columns) - 1)
    if (places[1:] == places[:-1]).any() or (share == 1.0 and len(values) != count):
        raise DataError("rows share an id, or the table changed while it was read")
    return places, values.view(np.float64)


@dataclass(frozen=True, slots=True)
class ClusterRows:
    """Rows on a cluster (label, id, features), and the sample of their features that is here.

    ``table`` is the sample, sorted by ``places``; ``share`` is about the part of all rows that it has.
    """

    frame: DataFrame
    bounds: tuple[float, float]
    count: int
    key: ReleaseKey
    label: str
    table: FeatureTable
    places: Words
    share: float

    @classmethod
    def of(
        cls, frame: DataFrame, bounds: tuple[float, float], count: int, key: ReleaseKey, label: str
    ) -> ClusterRows:
        """Return the rows, with a public sample of their features."""
        share = 1.0 if count <= GROWN else GROWN / count
        places, X = public_sample(frame, share, count)
        return cls(frame, bounds, count, key, label, FeatureTable.fit(X), places, share)

    def announce(self, step: str) -> None:
        """Show nothing: Spark has pages of its own."""

    def counts(self) -> Sums:
        """Return how many labels lie in each cell of the bounds, exactly, in one pass."""
        return count_labels(self.frame.select("c0"), self.bounds, CELLS, self.count)

    def add_up(self, query: Query) -> Sums:
        """Return the exact answer of a query over all rows, in one pass: groups and predictions are made there."""
        elsewhere = replace(query, rows=query.rows.alone())
        answer = sum_integers(self.frame.drop("c1"), query_answerer(elsewhere, self.bounds), self.count)
        return answer.reshape(query.shape)

    def draw(self, plan: Round, table: FeatureTable) -> Part | None:
        """Randomise a round's labels, in one pass.

        Its rows go where their ids put them, so that no float follows from where they lay; labels go there masked.
        """
        mask = seal(self.frame, self.key.secret(card="mask", column=self.label, round=-1 - plan.number))
        secret = self.key.secret(card=card_checksum(plan.mechanism), column=self.label, round=plan.number)
        sealed = seal(self.frame, secret)
        try:
            work = round_drawer(plan, table.public, mask, sealed, self.share, self.bounds)
            vectors, sample = sum_vectors(self._round_rows(plan, mask), work, "float64")
        finally:
            mask.destroy()
            sealed.destroy()
        if not vectors:
            return None
        *gram, moment, last = (vectors[key] for key in sorted(vectors))
        square, count, noise = last[:3].tolist()
        places, values = sort_sample(sample, 2)
        labels = values[:, 0].view(np.float64)
        private = PrivateRows(np.searchsorted(self.places, places), labels, noise / count, plan.number)
        observed = Observations(np.array(gram, np.float32), moment, square, int(count), 1.0, noise / count)
        return Part(private=private, mechanism=plan.mechanism, observed=observed)

    def _round_rows(self, now: Round, mask: SealedSecret) -> DataFrame:
        """Return a round's rows with masked labels, where their ids put them."""
        schema = T.StructType([T.StructField("c0", T.LongType()), *self.frame.schema.fields[1:]])
        rows = self.frame.mapInArrow(row_masker(now.share, mask), schema)
        return spread_by_id(rows, "c1", round(self.count * (now.share[1] - now.share[0])))


def sort_sample(data: bytes, width: int) -> tuple[Words, Sums]:
    """Return the places of a sample's rows, sorted, and the bits of the floats that belong to them."""
    rows = np.frombuffer(data, dtype=np.int64).reshape(-1, width)
    places = rows[:, 0].astype(np.uint64)
    order = np.argsort(places)
    return places[order], rows[order, 1:].copy()
