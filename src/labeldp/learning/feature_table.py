"""Public features of the rows of a table, made piece by piece whenever they are needed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from labeldp._values import Array, Index, Small
from labeldp.learning.bayes import MEAN_VARIANCE, Posterior, fit_linear
from labeldp.learning.bayes_solvers import Choices, Observations
from labeldp.learning.feature_maps import Codes
from labeldp.learning.features import PIECE, PublicFeatures, even_rows
from labeldp.learning.label_units import Limits

_SAMPLE = 10_000
"""Rows at most, evenly spread, that stand for all rows of a table."""

_LENGTH_ROWS = 2 * PIECE
"""Rows at most by which interactions are scaled."""

_GRAMS = 8
"""How many sums of products a table remembers: those of the rounds of a fit, and of a sample."""

_SPECTRUM_WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1, 0.2])
_EIGENVALUES = 400
"""The weight of each block in the spectrum, and how many eigenvalues it has at most; the others are next to 0."""


class FeatureTable:
    """Public features of public rows.

    Parameters
    ----------
    public : PublicFeatures
    X : array or sparse table, rows × columns
    exact : bool
        Whether ranks must be the same in any batch.

    Attributes
    ----------
    doubt : float
        Log odds against interactions on the lengths of the features.
    """

    def __init__(self, public: PublicFeatures, X: Any, *, exact: bool = False) -> None:
        self.public = public
        self.X = X
        self.doubt = 0.0
        self._columns, self._codes = public.locate(X, exact=exact)
        self._products: dict[bytes, tuple[Small, Array]] = {}
        self._earlier: dict[bytes, tuple[Small, Array]] = {}  # those of the same rows with other interactions

    @classmethod
    def fit(cls, X: Any) -> FeatureTable:
        """Return the features of public rows, by maps that are fitted to them."""
        return cls(PublicFeatures.fit(X), X)

    def with_lengths(self, lengths: Array, doubt: float) -> FeatureTable:
        """Return the same rows with interactions on these lengths of columns, and the log odds against them."""
        table = copy(self)
        table.__dict__.pop("moments", None)
        table.public = self.public.with_lengths(lengths, self.ranks(even_rows(self.rows, _LENGTH_ROWS)))
        table.doubt = doubt
        table._earlier = {**self._earlier, **self._products}
        table._products = {}
        return table

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    @property
    def columns(self) -> int:
        """The number of columns, or of directions if they were projected."""
        return int(self._columns.shape[1])

    def ranks(self, rows: Index) -> Small:
        """Return the ranks of the columns' values, from 0 to 1; columns × rows."""
        return self.public.ranks_of(self._columns[rows], self._codes[:, rows])[: self.columns]

    def codes(self, rows: Index) -> Codes:
        """Return the columns of some rows as trees see them: codes among quantiles, which are bins."""
        return self._codes[: self.columns].T[rows]

    def pieces(self, rows: Index, *, exact: bool = False) -> Iterator[tuple[slice, Small]]:
        """Yield the features of some rows, piece by piece, and where each piece lies among them."""
        for start in range(0, rows.size, PIECE):
            piece = slice(start, min(start + PIECE, rows.size))
            columns, codes = self._columns[rows[piece]], self._codes[:, rows[piece]]
            yield piece, self.public.transform(columns, codes, exact=exact)

    def exact_pieces(self) -> Iterator[Small]:
        """Yield the features of all rows, piece by piece, with the same bits in any batch."""
        for _, features in self.pieces(np.arange(self.rows), exact=True):
            yield features

    def predict(self, model: Posterior, rows: Index) -> Array:
        """Return the linear model's predictions for some rows."""
        result = np.full(rows.size, np.nan)
        for piece, features in self.pieces(rows):
            result[piece] = model.predict(features)
        return result

    def fit_linear(self, observations: list[Observations], limits: Limits, choices: Choices) -> Posterior:
        """Return the linear model for observations of labels inside these limits, averaged over choices."""
        return fit_linear(
            observations,
            self.public.block,
            mean=limits.middle,
            mean_variance=MEAN_VARIANCE * limits.width**2,
            choices=choices,
            doubt=self.doubt,
        )

    def observations(self, rows: Index, centred: Array, noise: float) -> Observations:
        """Return the statistics of single rows with private labels, less the middle of their range."""
        if 3 * rows.size <= self.public.size:
            (_, features), *_ = self.pieces(rows)
            return Observations.of_few(features, centred, 1.0, noise)
        gram, moment = self._products_with(rows, centred)
        return Observations(gram, moment, float(centred @ centred), rows.size, 1.0, noise)

    def _products_with(self, rows: Index, labels: Array) -> tuple[Small, Array]:
        """Return the sums of products of features with each other and with labels; the last few are remembered."""
        key = hashlib.blake2b(rows.tobytes() + labels.tobytes()).digest()
        if key not in self._products:
            earlier = self._earlier.get(key)
            products = self._add_products(rows, labels, None if earlier is None else earlier[0])
            self._products[key] = products
            if len(self._products) > _GRAMS:
                del self._products[next(iter(self._products))]
        return self._products[key]

    def _add_products(self, rows: Index, labels: Array, earlier: Small | None) -> tuple[Small, Array]:
        """Return the sums of products; those of ``earlier`` that do not depend on lengths are taken from there."""
        size = self.public.size
        first = 0 if earlier is None else self.public.fixed
        gram = np.zeros((size, size), dtype=np.float32)
        moment = np.zeros(size)
        for piece, features in self.pieces(rows):
            moment += features.T @ labels[piece].astype(np.float32)
            gram[first:] += features[:, first:].T @ features
        if earlier is not None:
            gram[:first, :first] = earlier[:first, :first]
            gram[:first, first:] = gram[first:, :first].T
        return gram, moment

    def sample_rows(self) -> Index:
        """Return all rows, or 10,000, evenly spread, that stand for all."""
        return even_rows(self.rows, _SAMPLE)

    @cached_property
    def moments(self) -> Array:
        """Mean products of features with each other, over the sample; the last ones are their means."""
        rows = self.sample_rows()
        gram, _ = self._products_with(rows, np.zeros(rows.size))
        return gram.astype(np.float64) / rows.size

    @cached_property
    def spectrum(self) -> Array:
        """The leading eigenvalues of the mean products, by which the risk of a learner is estimated."""
        weight = np.sqrt(_SPECTRUM_WEIGHTS[self.public.block])
        values = np.linalg.eigvalsh(self.moments[:-1, :-1] * weight * weight[:, None])
        return np.asarray(np.maximum(values[::-1][:_EIGENVALUES], 0.0))
