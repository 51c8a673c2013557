"""What runs on the executors when a model is fitted: sums over labels, and rounds of private labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeldp.channels.domain import pieces
from labeldp.estimators.feature_table import FeatureTable
from labeldp.estimators.features import PublicFeatures
from labeldp.estimators.label_rounds import Round, draw_part
from labeldp.estimators.label_statistics import LabelSums
from labeldp.estimators.sums import Stage
from labeldp.randomness.row_ids import IntegerIds, TextIds, public_places
from labeldp.randomness.row_words import RowWords
from labeldp.spark.executor import floats, ids_of
from labeldp.spark.vectors import SAMPLE, Batches, Work, cut, vector_batch

if TYPE_CHECKING:
    import pyarrow as pa

    from labeldp.spark.secret import Sealed

__all__ = ["drawer", "masker", "sampler", "stage_adder", "surveyor"]

Array = NDArray[np.float64]
Words = NDArray[np.uint64]


def surveyor(bounds: tuple[float, float]) -> Work:
    """Return what sums labels, the only column: their total, then their counts."""

    def survey(batches: Batches) -> Batches:
        total = LabelSums.of(np.zeros(0), bounds)
        for batch in batches:
            total += LabelSums.of(floats(batch.column(0)), bounds)
        if total.rows:
            yield vector_batch({0: np.concatenate([total.total, total.counts])})

    return survey


def sampler(below: float) -> Work:
    """Return what picks a public sample by id; columns: id, features. Each row's place comes with it."""

    def sample(batches: Batches) -> Batches:
        for batch in batches:
            places = public_places(ids_of(batch.column(0)))
            chosen = _in_sample(places, below)
            data = _bits(places[chosen, 0], _table(batch, 1)[chosen])
            if len(data):
                yield vector_batch({SAMPLE: data})

    return sample


def stage_adder(stage: Stage, places: Words) -> Work:
    """Return what adds up a stage's labels, as integers; columns: label, id.

    ``places`` are those of the design's rows, sorted.
    """
    lean = replace(stage, design=replace(stage.design, features=stage.design.features[:, :0]))

    def add_up(batches: Batches) -> Batches:
        total: Any = 0
        for batch in batches:
            rows = np.searchsorted(places, public_places(ids_of(batch.column(1)))[:, 0])
            total = total + lean.sums(floats(batch.column(0)), rows)
        if not isinstance(total, int):
            yield vector_batch(cut(total))

    return add_up


def masker(share: tuple[float, float], sealed: Sealed) -> Work:
    """Return what picks a round's rows by id, and masks their labels; columns: label, id, features."""

    def mask(batches: Batches) -> Batches:
        import pyarrow as pa  # noqa: PLC0415

        secret = sealed.open()
        for batch in batches:
            places = _unit(public_places(ids_of(batch.column(1)))[:, 0])
            chosen = batch.filter(pa.array((places >= share[0]) & (places < share[1])))
            if chosen.num_rows:
                bits = floats(chosen.column(0)).view(np.uint64) ^ _pad(secret, ids_of(chosen.column(1)))
                columns = [pa.array(bits.view(np.int64)), *chosen.columns[1:]]
                yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    return mask


def _pad(secret: bytes, ids: IntegerIds | TextIds) -> Words:
    """Return a word for each row, which masks its label where that lies on disks: a one-time pad."""
    words = np.zeros(len(ids), dtype=np.uint64)
    source = RowWords(secret, ids).for_labels(len(ids))
    for piece in pieces(len(ids)):
        source.fill(words[piece])
    return words


def drawer(now: Round, public: PublicFeatures, mask: Sealed, sealed: Sealed, sample: float) -> Work:
    """Return what randomises a round's labels and sums what a linear model needs; columns as `masker` gives them.

    The sums are the features' second moments, their moments with labels, and (squares, rows, noise). They are sums
    of floats, and predictions too follow in their last bits from how rows are batched: rows must lie where their
    ids put them. Private labels of the sample are sent along.
    """
    size = public.block.size + 1

    def draw(batches: Batches) -> Batches:
        pad, secret = mask.open(), sealed.open()
        sums, part = np.zeros((size + 2, size)), None
        for batch in batches:
            ids = ids_of(batch.column(1))
            places = public_places(ids)
            part = int(places[0, 0].view(np.int64)) if part is None else part
            labels = (batch.column(0).to_numpy().view(np.uint64) ^ _pad(pad, ids)).view(np.float64)
            table, rows = FeatureTable(public, _table(batch, 2)), np.arange(batch.num_rows)
            drawn = draw_part(rows, labels, now.centre(table, rows), now, RowWords(secret, ids))
            private = drawn.private.labels
            seen = table.observations(rows, private - now.knowledge.mean, 0.0)
            sums[:size] += seen.gram
            sums[size] += seen.moment
            sums[size + 1, :3] += (seen.square, seen.count, drawn.noise.sum())
            chosen = _in_sample(places, sample)
            data = _bits(places[chosen, 0], private[chosen])
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
