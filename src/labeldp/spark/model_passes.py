"""What runs on the executors when a model is fitted: sums over labels, and rounds of private labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labeldp._values import Array, Words
from labeldp.exact.row_ids import Ids, public_places
from labeldp.exact.row_words import RowWords
from labeldp.exact.sampling import pieces
from labeldp.learning.features import FeatureTable, PublicFeatures
from labeldp.learning.fit_plan import Pair, unit_labels
from labeldp.learning.label_queries import Query
from labeldp.learning.label_rounds import Round, draw_part
from labeldp.learning.ols_sums import Count, add_up_array
from labeldp.spark.executor import SAMPLE, Batches, Counter, Work, array_ids, floats, vector_batch
from labeldp.spark.session import SealedSecret


def row_sampler(below: float) -> Work:
    """Return a function that picks a public sample by id, with each row's place; columns: id, features."""

    def sample(batches: Batches) -> Batches:
        for batch in batches:
            places = public_places(array_ids(batch.column(0)))
            sampled = _in_sample(places, below)
            data = _bits(places[sampled, 0], _table(batch, 1)[sampled])
            if len(data):
                yield vector_batch({SAMPLE: data})

    return sample


def label_summer(sums: Count, places: Words, bounds: Pair) -> Counter:
    """Return a function that adds up labels, as integers; columns: label, id.

    ``places`` are those of the table's rows, sorted. ``sums`` gets labels in units of the bounds, and positions of
    their rows in that order.
    """

    def sum_batch(batch: pa.RecordBatch) -> NDArray[np.int64]:
        rows = np.searchsorted(places, public_places(array_ids(batch.column(1)))[:, 0])
        add_up = add_up_array(unit_labels(floats(batch.column(0)), bounds))  # in blocks: Spark's may be too large
        return add_up(lambda labels, block: sums(labels, rows[block]))

    return sum_batch


def query_answerer(query: Query, bounds: Pair) -> Counter:
    """Return a function that answers a query, as integers; columns: label, features."""

    def answer_batch(batch: pa.RecordBatch) -> NDArray[np.int64]:
        here = replace(query, rows=query.rows.on(_table(batch, 1)))
        return here.answer(unit_labels(floats(batch.column(0)), bounds)).ravel()

    return answer_batch


def row_masker(share: tuple[float, float], sealed: SealedSecret) -> Work:
    """Return a function that picks a round's rows by id, and masks their labels; columns: label, id, features."""

    def mask(batches: Batches) -> Batches:
        secret = sealed.open()
        for batch in batches:
            places = _unit(public_places(array_ids(batch.column(1)))[:, 0])
            rows = batch.filter(pa.array((places >= share[0]) & (places < share[1])))
            if rows.num_rows:
                bits = floats(rows.column(0)).view(np.uint64) ^ _pad(secret, array_ids(rows.column(1)))
                columns = [pa.array(bits.view(np.int64)), *rows.columns[1:]]
                yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    return mask


def _pad(secret: bytes, ids: Ids) -> Words:
    """Return a word for each row, which masks its label where that lies on disks: a one-time pad."""
    words = np.zeros(len(ids), dtype=np.uint64)
    source = RowWords(secret, ids)
    for piece in pieces(len(ids)):
        source.fill(words[piece])
    return words


def round_drawer(
    now: Round, public: PublicFeatures, mask: SealedSecret, sealed: SealedSecret, sample: float, bounds: Pair
) -> Work:
    """Return a function that randomises a round's labels and sums what a linear model needs; columns as masked.

    The sums are the features' second moments, their moments with labels, and (squares, rows, noise). They are sums
    of floats, and predictions too follow in their last bits from how rows are batched: rows must lie where their
    ids put them. Private labels of the sample are sent along.
    """
    size = public.block.size + 1

    def draw(batches: Batches) -> Batches:
        pad, secret = mask.open(), sealed.open()
        sums, part = np.zeros((size + 2, size)), None
        for batch in batches:
            ids = array_ids(batch.column(1))
            places = public_places(ids)
            part = int(places[0, 0].view(np.int64)) if part is None else part
            bits = batch.column(0).to_numpy().view(np.uint64) ^ _pad(pad, ids)
            labels = unit_labels(bits.view(np.float64), bounds)
            table, rows = FeatureTable(public, _table(batch, 2)), np.arange(batch.num_rows)
            words = RowWords(secret, ids)
            draws = draw_part(rows, labels, now.ensemble.predict(table, rows), now, words)
            private = draws.private.labels
            moments = table.observations(rows, private - now.label_summary.middle, 0.0)
            sums[:size] += moments.gram
            sums[size] += moments.moment
            sums[size + 1, :3] += (moments.square, moments.count, draws.noise.sum())
            sampled = _in_sample(places, sample)
            data = _bits(places[sampled, 0], private[sampled])
            if len(data):
                yield vector_batch({SAMPLE: data})
        if part is not None:
            yield vector_batch(dict(enumerate(sums)), part)

    return draw


def _in_sample(places: Words, below: float) -> NDArray[np.bool_]:
    """Return which rows are in the sample: by the second word, so that it is spread evenly over rounds."""
    return _unit(places[:, 1]) < below


def _unit(words: Words) -> Array:
    """Return words as numbers from 0 to just below 1."""
    return np.asarray((words >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def _bits(places: Words, values: Array) -> NDArray[np.int64]:
    """Return places and floats side by side, as bits."""
    return np.column_stack([places.view(np.int64), np.ascontiguousarray(values).view(np.int64)])


def _table(batch: pa.RecordBatch, start: int) -> Array:
    """Return the columns from ``start`` on as numbers."""
    columns: list[Array] = [floats(batch.column(k)) for k in range(start, batch.num_columns)]
    return np.column_stack(columns)
