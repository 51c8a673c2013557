"""Public features: functions of X alone, which cost no ε because no label is used.

There are five blocks. Each is scaled so that the variances of its features add up to 1:

==================  =====================================================================================
linear              the quantities, standardised, and the levels of categories
additive            cosines of each quantity's rank: any function of one quantity
pairs               products of such cosines, for pairs of quantities or of principal components
Fourier             random Fourier features: smooth functions of all quantities
interactions        Fourier features of all ranks, with a learnt length scale for each source column
==================  =====================================================================================

Quantities and categories are the two kinds of source columns (`sources`). In the linear block, all levels of a
category together have the variance of one quantity.

With a prior variance for each block, a linear model on them can be a constant, ridge or kernel ridge regression.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import issparse

from labeldp._values import Array, Index, Small
from labeldp.learning.feature_maps import (
    BLOCKS,
    INTERACTIONS,
    Codes,
    Projection,
    RankMap,
    fill_pairs,
    fill_product,
    fill_waves,
    frequencies,
    interaction_waves,
    matern_frequencies,
    ordered_product,
    quantiles,
    varies,
)
from labeldp.learning.fit_plan import Limits
from labeldp.learning.linear_gaussian import Observation
from labeldp.learning.model_average import Posterior, Priors, average_priors
from labeldp.learning.sources import SourceColumns
from labeldp.learning.threads import in_parallel, limit_libraries

T = TypeVar("T")

PIECE = 1 << 12
"""The number of rows whose features are computed at once."""

_MAX_KEPT = 1 << 25
"""Tables of up to so many rows times features keep their features in memory. Those of larger tables are computed
again whenever they are needed: this takes less time than their products."""

WIDE = 300
"""Tables with more columns are projected first: the work grows with the cube of the columns."""

ALL_PAIRS = 12
"""The largest number of columns that are paired themselves; else leading directions are."""

PAIRED = 8
"""The number of leading directions that are paired: 28 pairs."""

_PAIR_WAVES = 4
"""Waves of each column of a pair: 16 products."""

_PAIR_WAVES_OF_MANY = 2
"""Waves of each column of a pair if many columns are paired: 4 products."""

_MANY_PAIRED = 8
"""With more columns than this, many columns are paired."""

FOURIER = 300
"""Features of the Fourier block."""

WAVES = 14
"""Waves of each column: shapes down to a 14th of the rows."""

FEW_WAVES = 3
"""Waves of each column of a table with many columns."""

FEW_COLUMNS = 20
"""The largest number of columns with all waves."""

TREE_LEVELS = 20
"""The largest number of columns of categories that trees see."""

_OUTLIER = 5.0
"""Standard deviations to which columns are clipped for the linear block."""

_FOURIER_OUTLIER = 3
"""Standard deviations to which columns are clipped for the Fourier block."""

_MAP_ROWS = 100_000
"""The largest number of rows by which maps are fitted."""

_DIRECTION_ROWS = 10_000
"""The largest number of rows by which directions are found."""

_SCALE_ROWS = 2 * PIECE
"""The largest number of rows by which features are scaled."""

_TIED = 1e-9
"""Values of a direction, which are sums of about 1, are equal if they differ by no more."""


@dataclass(frozen=True)
class PublicFeatures:
    """Feature maps fitted on public rows.

    Attributes
    ----------
    sources : SourceColumns
        The order of columns: quantities, then levels of categories.
    center, scale : arrays
        Means of the columns, and what divides them: the standard deviation of a quantity.
    ranks : array, grid × columns
        Quantiles of each column, for its rank.
    directions : array, quantities × directions
        Leading directions, whose ranks are paired if there are many quantities.
    direction_ranks : array
        Their quantiles.
    weights, phases : arrays
        Of the Fourier features.
    waves : int
        The number of waves of a quantity.
    means, norms : arrays
        Means of the features, and factors that scale blocks.
    block : array of int
        The block of each feature: 0 linear, 1 additive, 2 pairs, 3 Fourier, 4 interactions.
    turns : array, columns × frequencies, or None
        Frequencies of the interactions' waves over ranks, over the length of each column; None before lengths are
        learnt.
    narrowing : Projection or None
        The projection of the quantities if there are very many, or if they are sparse.
    exact : bool
        Whether the bits of a row must be the same in any batch, as in a fit.
    """

    sources: SourceColumns
    center: Array
    scale: Array
    ranks: Array
    directions: Array | None
    direction_ranks: Array | None
    weights: Array
    phases: Array
    waves: int
    means: Array
    norms: Array
    block: Index
    turns: Array | None = None
    narrowing: Projection | None = None
    exact: bool = False

    @classmethod
    def fit(cls, X: Any, categories: Sequence[slice] = ()) -> PublicFeatures:
        """Return the maps for public rows ``X``; the seed is public too.

        ``categories`` are columns of X that belong to one category each, besides those that are found.
        """
        X = X[even_rows(X.shape[0], _MAP_ROWS)]
        sources = SourceColumns.find(X, categories)
        quantities, narrowing = _narrow(sources.select_quantities(X))
        columns = _join_columns(quantities, X, sources)
        count = quantities.shape[1]
        center = columns.mean(axis=0)
        scale = columns.std(axis=0)
        scale = np.where(varies(scale, center), scale, 1.0)
        scale[count:] = sources.level_scales(columns[:, count:])
        standard = _standardise(quantities, center[:count], scale[:count])
        rng = np.random.default_rng(0)
        directions = _paired_directions(standard, rng)
        unscaled = cls(
            sources=sources,
            center=center,
            scale=scale,
            ranks=quantiles(columns),
            directions=directions,
            direction_ranks=None if directions is None else quantiles(standard @ directions),
            weights=matern_frequencies(
                rng, (count, FOURIER), smoothness=1.5, length_scale=math.sqrt(max(1, count))
            ),
            phases=rng.uniform(0, 2 * np.pi, FOURIER),
            waves=wave_count(count),
            means=np.zeros(1),
            norms=np.ones(1),
            block=np.zeros(0, dtype=np.int64),
            narrowing=narrowing,
        )
        return unscaled._scaled(X[even_rows(X.shape[0], _SCALE_ROWS)])

    def _scaled(self, X: Any) -> PublicFeatures:
        """Return the maps with features centred, and blocks scaled, by some rows."""
        block = np.repeat(np.arange(BLOCKS), self.block_sizes())
        unscaled = replace(self, means=np.zeros(block.size), norms=np.ones(block.size), block=block)
        means, variances = unscaled._moments(X)
        deviation = np.sqrt(np.bincount(block, variances, BLOCKS))
        norms = np.where(deviation > 1e-6, deviation, 1.0)
        return replace(unscaled, means=means, norms=norms[block])

    def _moments(self, X: Any) -> tuple[Array, Array]:
        """Return the mean and the variance of each feature over some rows."""
        means, squares = np.zeros(self.block.size), np.zeros(self.block.size)
        for piece in slices(X.shape[0]):
            columns, _, ranks = self.locate(X[piece])
            features = self.transform(columns, ranks)[:, :-1].T.astype(np.float64)
            means += features.sum(axis=1) / X.shape[0]
            squares += np.einsum("ij,ij->i", features, features) / X.shape[0]
        return means, np.maximum(squares - means**2, 0.0)

    def with_length_scales(self, length_scales: Array, ranks: Small) -> PublicFeatures:
        """Return the maps with interactions on length scales of sources, scaled by the ranks of some rows."""
        turns = frequencies(self.columns) / length_scales[self.source][:, None]
        waves = interaction_waves(turns, ranks, exact=False)
        means = waves.mean(axis=1, dtype=np.float64)
        norm = math.sqrt(max(float(waves.var(axis=1).sum()), 1e-12))
        fixed = self.block < INTERACTIONS
        return replace(
            self,
            means=np.append(self.means[fixed], means),
            norms=np.append(self.norms[fixed], np.full(means.size, norm)),
            block=np.append(self.block[fixed], np.full(means.size, INTERACTIONS)),
            turns=turns,
        )

    @property
    def size(self) -> int:
        """The number of features, with the last one that is 1."""
        return self.block.size + 1

    @property
    def fixed(self) -> int:
        """The number of features that do not depend on lengths; interactions follow."""
        return sum(self.block_sizes()[:-1])

    @property
    def columns(self) -> int:
        """The number of columns of features: quantities, which may be projected, and levels."""
        return self.center.size

    @property
    def quantities(self) -> int:
        """The number of quantities, which come first among the columns."""
        return self.center.size - self.sources.levels.size

    def fills(self, count: int) -> Array:
        """Return what stands for missing values of a table's columns: means, or 0 for projected columns."""
        fills = np.zeros(count)
        fills[self.sources.levels] = self.center[self.quantities :]
        if self.narrowing is None:
            fills[self.sources.quantities] = self.center[: self.quantities]
        return fills

    @property
    def tree_columns(self) -> int:
        """The number of columns that trees see: quantities, and the most common levels."""
        return min(self.columns, self.quantities + TREE_LEVELS)

    @cached_property
    def source(self) -> Index:
        """The source of each column: quantities, then categories."""
        return np.append(np.arange(self.quantities), self.quantities + self.sources.category)

    @property
    def feature_source(self) -> Index:
        """The source of each linear and additive feature."""
        return np.append(self.source, np.tile(np.arange(self.quantities), self.waves))

    def block_sizes(self) -> list[int]:
        """Return the number of features in each block; a single quantity has no pairs, but a zero."""
        pairs = self._paired * (self._paired - 1) // 2
        products = max(1, pairs * self._waves_of_pairs**2)
        interactions = 0 if self.turns is None else 2 * self.turns.shape[1]
        return [self.columns, self.quantities * self.waves, products, len(self.phases), interactions]

    @property
    def _paired(self) -> int:
        """The number of quantities or directions that are paired."""
        return self.quantities if self.directions is None else self.directions.shape[1]

    @property
    def _waves_of_pairs(self) -> int:
        """The number of waves of each column of a pair that are multiplied."""
        return _PAIR_WAVES if self._paired <= _MANY_PAIRED else _PAIR_WAVES_OF_MANY

    @cached_property
    def _rank_map(self) -> RankMap:
        """Ranks of columns, and of directions if those are paired."""
        columns = self.ranks.shape[1]
        if self.directions is None or self.direction_ranks is None:
            return RankMap.of(self.ranks, np.zeros(columns))
        tolerance = np.repeat([0.0, _TIED], [columns, self._paired])
        return RankMap.of(np.concatenate([self.ranks, self.direction_ranks], axis=1), tolerance)

    def locate(self, X: Any) -> tuple[Array, Codes, Small]:
        """Return the columns of rows, and the codes and ranks of columns and paired directions; × rows."""
        quantities = self.sources.select_quantities(X)
        if self.narrowing is not None:
            quantities = self.narrowing.apply(quantities, exact=self.exact)
        columns = _join_columns(np.asarray(quantities), X, self.sources)
        codes = np.empty((len(self._rank_map.quantiles), len(columns)), dtype=np.uint8)
        ranks = np.empty(codes.shape, dtype=np.float32)

        def rank_piece(piece: slice) -> None:
            values = self._ranked_values(columns[piece])
            codes[:, piece] = self._rank_map.codes(values)
            ranks[:, piece] = self._rank_map.ranks(values, codes[:, piece])

        for _ in in_parallel(rank_piece, slices(len(columns))):
            pass
        return columns, codes, ranks

    def _ranked_values(self, columns: Array) -> Array:
        """Return the values that have ranks: of columns, and of directions that are paired; × rows."""
        if self.directions is None:
            return columns.T
        count = self.quantities
        standard = _standardise(columns[:, :count], self.center[:count], self.scale[:count]).T
        directions = ordered_product(self.directions, standard) if self.exact else self.directions.T @ standard
        return np.concatenate([columns.T, directions])

    def transform(self, columns: Array, ranks: Small) -> Small:
        """Return all features of some rows, and a last one that is 1, from what `locate` returned for them."""
        result = np.empty((self.size, len(columns)), dtype=np.float32)
        edges = np.cumsum([0, *self.block_sizes()])
        linear, additive, pairs, fourier, interactions = (result[a:b] for a, b in pairwise(edges))
        linear[:] = _standardise(columns, self.center, self.scale).T
        self._fill_shapes(ranks, additive, pairs)
        clipped = np.clip(linear[: self.quantities], -_FOURIER_OUTLIER, _FOURIER_OUTLIER)
        fill_product(self.weights, clipped, fourier, exact=self.exact)
        fourier += self.phases.astype(np.float32)[:, None]
        np.cos(fourier, out=fourier)
        self._centre(result[: self.fixed], 0)
        interactions[:] = self.interactions(ranks).T
        result[-1] = 1
        return result.T

    def _fill_shapes(self, ranks: Small, additive: Small, pairs: Small) -> None:
        """Write the waves of columns, and the products of pairs."""
        count, rows = self.quantities, ranks.shape[1]
        waves = additive.reshape(self.waves, count, rows)
        fill_waves(ranks[:count], waves)
        paired = waves[: self._waves_of_pairs]
        if self.directions is not None:
            paired = np.empty((self._waves_of_pairs, self._paired, rows), dtype=np.float32)
            fill_waves(ranks[self.columns :], paired)
        fill_pairs(paired, pairs)

    def interactions(self, ranks: Small) -> Small:
        """Return the interactions alone of some rows, by their ranks; there may be none."""
        turns = np.zeros((self.columns, 0)) if self.turns is None else self.turns
        result = interaction_waves(turns, ranks[: self.columns], exact=self.exact)
        self._centre(result, self.fixed)
        return result.T

    def _centre(self, features: Small, first: int) -> None:
        """Centre and scale features from the first one on, in place; features × rows."""
        features -= self.means[first : first + len(features), None].astype(np.float32)
        features /= self.norms[first : first + len(features), None].astype(np.float32)


def _narrow(quantities: Any) -> tuple[Array, Projection | None]:
    """Return quantities, projected if there are very many or if they are sparse, and their projection."""
    if not issparse(quantities) and quantities.shape[1] <= WIDE:
        return quantities, None
    narrowing = Projection.fit(quantities, np.random.default_rng(0))
    return narrowing.apply(quantities, exact=False), narrowing


def _join_columns(quantities: Array, X: Any, sources: SourceColumns) -> Array:
    """Return columns: quantities, and the levels of rows X beside them."""
    return np.concatenate([quantities, X[:, sources.levels]], axis=1) if sources.levels.size else quantities


def _standardise(columns: Array, center: Array, scale: Array) -> Array:
    """Return columns of mean 0 and variance 1, without outliers."""
    return np.clip((columns - center) / scale, -_OUTLIER, _OUTLIER)


def _paired_directions(standard: Array, rng: np.random.Generator) -> Array | None:
    """Return the leading directions of quantities that are paired; None if there are few quantities."""
    if standard.shape[1] <= ALL_PAIRS:
        return None
    sample = standard[rng.permutation(len(standard))[:_DIRECTION_ROWS]]
    return np.linalg.svd(sample, full_matrices=False)[2][:PAIRED].T


def wave_count(columns: int) -> int:
    """Return the number of waves of a column: fewer if there are many columns."""
    return WAVES if columns <= FEW_COLUMNS else FEW_WAVES


def slices(rows: int) -> list[slice]:
    """Return the pieces of so many rows."""
    return [slice(start, min(start + PIECE, rows)) for start in range(0, rows, PIECE)]


def even_rows(rows: int, max_rows: int) -> Index:
    """Return all rows, or so many of them, evenly spread."""
    count = min(rows, max_rows)
    return np.arange(count) * rows // max(1, count)


_SAMPLE = 10_000
"""Rows at most, evenly spread, that stand for all rows of a table."""

_SPECTRUM_WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1, 0.2])
"""The weight of each block in the spectrum."""

_EIGENVALUES = 400
"""The largest number of eigenvalues of the spectrum; others are next to 0."""


class FeatureTable:
    """Public features of public rows.

    Parameters
    ----------
    public : PublicFeatures
    X : array or sparse table, rows × columns

    Attributes
    ----------
    log_prior_odds : float
        Log odds of interactions on the length scales of the features.
    strengths : array
        The prior variance of a weight of each feature but the constant, over that of its block. It is 1, but for
        levels of categories whose strengths were learnt.
    """

    @limit_libraries()
    def __init__(self, public: PublicFeatures, X: Any) -> None:
        self.public = public
        self.X = X
        self.log_prior_odds = 0.0
        self.strengths = np.ones(public.block.size)
        self._columns, self._codes, self._ranks = public.locate(X)
        self._fixed: Small | None = None
        self._interactions: Small | None = None
        self._fixed_gram: Small | None = None

    @classmethod
    @limit_libraries()
    def fit(cls, X: Any, categories: Sequence[slice] = ()) -> FeatureTable:
        """Return the features of public rows, by maps that are fitted to them; as in `PublicFeatures.fit`."""
        table = cls(replace(PublicFeatures.fit(X, categories), exact=True), X)
        if table.rows * table.public.size <= _MAX_KEPT:
            table._keep_features()
        return table

    def _keep_features(self) -> None:
        """Keep the features of all rows in memory: those of the fixed blocks, and interactions."""
        fixed = self.public.fixed
        self._fixed = np.empty((self.rows, fixed), dtype=np.float32)
        for piece in slices(self.rows):
            self._fixed[piece] = self.public.transform(self._columns[piece], self._ranks[:, piece])[:, :fixed]
        self._keep_interactions()

    def _keep_interactions(self) -> None:
        """Keep the interactions of all rows in memory, and the constant."""
        self._interactions = np.ones((self.rows, self.public.size - self.public.fixed), dtype=np.float32)
        for piece in slices(self.rows):
            self._interactions[piece, :-1] = self.public.interactions(self._ranks[:, piece])

    def with_length_scales(self, length_scales: Array, strengths: Array, log_prior_odds: float) -> FeatureTable:
        """Return the same rows with interactions on these length scales of sources, and their log odds.

        ``strengths`` are the prior variances of sources' weights in the linear block, over that of the block.
        """
        table = copy(self)
        table.__dict__.pop("moments", None)
        ranks = self.ranks(even_rows(self.rows, _SCALE_ROWS))
        table.public = self.public.with_length_scales(length_scales, ranks)
        table.log_prior_odds = log_prior_odds
        table.strengths = np.ones(table.public.block.size)
        table.strengths[: self.columns] = strengths[self.public.source]
        if self._fixed is not None:
            table._keep_interactions()
        return table

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    @property
    def columns(self) -> int:
        """The number of columns: quantities, or directions if they were projected, and levels."""
        return self.public.columns

    @property
    def sources(self) -> int:
        """The number of source columns: quantities, and categories."""
        return int(self.public.source.max(initial=-1)) + 1

    def level_shares(self) -> Array:
        """Return the share of each level in the variance of its category."""
        count = self.public.quantities
        levels = self._columns[self.sample_rows(), count:] / self.public.scale[count:]
        return np.asarray(levels.var(axis=0))

    def ranks(self, rows: Index) -> Small:
        """Return the ranks of the columns' values, from 0 to 1; columns × rows."""
        return self._ranks[: self.columns, rows]

    def codes(self, rows: Index) -> Codes:
        """Return columns of some rows as trees see them: codes among quantiles, which are bins."""
        return self._codes[: self.public.tree_columns].T[rows]

    def interactions(self, rows: slice) -> Small:
        """Return the interactions of some rows; there may be none."""
        if self._interactions is not None:
            return self._interactions[rows, :-1]
        return self.public.interactions(self._ranks[:, rows])

    def features(self, rows: Index | slice) -> Small:
        """Return all features of some rows."""
        if self._fixed is None or self._interactions is None:
            return self.public.transform(self._columns[rows], self._ranks[:, rows])
        return np.concatenate([self._fixed[rows], self._interactions[rows]], axis=1)

    def map(self, compute: Callable[[Small, slice], T], rows: Index | None = None) -> Iterator[T]:
        """Yield the results of a function of the features of each piece of rows, or of all, and its position."""

        def work(piece: slice) -> T:
            return compute(self.features(piece if rows is None else rows[piece]), piece)

        return in_parallel(work, slices(self.rows if rows is None else rows.size))

    def predict(self, model: Posterior, rows: Index) -> Array:
        """Return the linear model's predictions for some rows."""
        return np.concatenate([np.zeros(0), *self.map(lambda features, _: model.predict(features), rows)])

    def fit_linear(self, observations: list[Observation], limits: Limits, priors: Priors) -> Posterior:
        """Return the linear model for observations of labels inside these limits, averaged over priors."""
        return average_priors(
            observations,
            self.public.block,
            priors,
            limits=limits,
            log_prior_odds=self.log_prior_odds,
            strengths=self.strengths,
        )

    def observation(
        self, rows: Index, centred: Array, noise_variance: float, earlier: Observation | None = None
    ) -> Observation:
        """Return private labels of rows, less the middle of their range, as a linear model takes them.

        ``earlier`` is the observation of the same labels by features with other interactions.
        """
        if 3 * rows.size <= self.public.size:
            return Observation.of_few(self.features(rows), centred, 1.0, noise_variance)
        gram, moment = self._add_products(rows, centred, None if earlier is None else earlier.gram)
        return Observation(gram, moment, float(centred @ centred), rows.size, 1.0, noise_variance)

    def _add_products(self, rows: Index, labels: Array, earlier_gram: Small | None) -> tuple[Small, Array]:
        """Return sums of products of features with each other and with labels.

        The products of fixed features are taken from an earlier sum over the same rows.
        """
        size = self.public.size
        first = 0 if earlier_gram is None else self.public.fixed
        gram = np.zeros((size, size), dtype=np.float32)
        moment = np.zeros(size)

        def multiply(features: Small, piece: slice) -> tuple[Small, Small]:
            return features[:, first:].T @ features, features.T @ labels[piece].astype(np.float32)

        for piece_gram, piece_moment in self.map(multiply, rows):
            gram[first:] += piece_gram
            moment += piece_moment
        if earlier_gram is not None:
            gram[:first, :first] = earlier_gram[:first, :first]
            gram[:first, first:] = gram[first:, :first].T
        return gram, moment

    def sample_rows(self) -> Index:
        """Return all rows, or 10,000, evenly spread, that stand for all."""
        return even_rows(self.rows, _SAMPLE)

    @cached_property
    def moments(self) -> Array:
        """Mean products of features with each other, over the sample; the last ones are their means."""
        rows = self.sample_rows()
        gram, _ = self._add_products(rows, np.zeros(rows.size), self._fixed_gram)
        self._fixed_gram = gram[: self.public.fixed, : self.public.fixed]
        return gram.astype(np.float64) / rows.size

    @cached_property
    @limit_libraries()
    def spectrum(self) -> Array:
        """The leading eigenvalues of the mean products, by which the risk of a learner is estimated."""
        weight = np.sqrt(_SPECTRUM_WEIGHTS[self.public.block])
        values = np.linalg.eigvalsh(self.moments[:-1, :-1] * weight * weight[:, None])
        return np.maximum(values[::-1][:_EIGENVALUES], 0.0)
