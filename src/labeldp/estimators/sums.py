"""What a curator releases before any label: where labels lie, and noisy sums over groups of rows.

First a range: public bounds may be far too wide, and noise grows with them. Then sums over groups of similar rows;
then, with enough rows, sums of what is left after a first model, clipped. Every statistic is an exact integer that
one label moves by no more than its noise is calibrated to (docs/proofs/regressors.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from labeldp.estimators.bayes import EXPLAINED, Choices, Observations, Posterior, fit_linear, unknown_variance
from labeldp.estimators.features import FeatureTable
from labeldp.estimators.fit_budget import STEPS, FitBudget, sum_noise
from labeldp.estimators.groups import Geometry, Groups
from labeldp.estimators.progress import Step, quiet
from labeldp.noise import DiscreteLaplace
from labeldp.priors.curator import count_noise
from labeldp.randomness import WordSource

__all__ = ["CELLS", "Stage", "SumModel", "Sums", "find_range", "first_prior", "fit_sums"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Sums = NDArray[np.int64]
Range = tuple[float, float]

_LEVELS = 12
CELLS = 2 << _LEVELS
"""Labels are counted in so many cells of the bounds, of which no count leaves, to find their range."""

_COVER, _MARGIN = 0.8, 2.0
"""A range is as wide as a window that holds this part of the labels, and twice as much on either side."""

_SIGNAL = 0.0133
_BLOCKS = np.array([0.35, 0.3, 0.2, 0.15])
_REST = 0.02
"""Guesses before any release, in squared ranges: what blocks of features explain, and what they do not."""


def first_prior(table: FeatureTable, width: float) -> Array:
    """Return the prior variance of each weight before any release."""
    return np.append(_SIGNAL * _BLOCKS[table.public.block] * width**2, width**2 / 12)


def find_range(counts: Sums, bounds: Range, epsilon: Fraction, source: WordSource) -> tuple[Range, str]:
    """Return where labels lie, inside the bounds, and the noise in words.

    The narrowest window, among widths halved again and again, that holds most labels: a search by halves for its
    width, each step with noise on the largest count of any window of that width, which one label moves by one at
    most; then noisy counts that place it. Wide margins keep the tails.

    Parameters
    ----------
    counts : array of `CELLS` integers
        How many labels lie in each cell of the bounds.
    bounds : (lo, hi)
    epsilon : Fraction
    source : source of words
    """
    low, high = bounds
    steps = math.ceil(math.log2(_LEVELS + 1))
    search = DiscreteLaplace.calibrated(sensitivity=1, epsilon=epsilon / 2 / steps)
    place = count_noise(epsilon / 2)
    rows = int(counts.sum())  # public
    narrowest, widest = _LEVELS, 0  # as halvings of the bounds
    while widest < narrowest:
        middle = (widest + narrowest + 1) // 2
        halves = _halves(counts, middle)
        largest = np.max(halves[1:] + halves[:-1], keepdims=True)
        if search.release(largest, source)[0] >= _COVER * rows:
            widest = middle
        else:
            narrowest = middle - 1
    noisy = place.release(_halves(counts, widest), source)
    width = (high - low) / 2**widest
    start = low + width / 2 * int(np.argmax(noisy[1:] + noisy[:-1]))
    return (max(low, start - _MARGIN * width), min(high, start + (1 + _MARGIN) * width)), f"{search}, {place}"


def _halves(counts: Sums, level: int) -> Sums:
    """Return the counts in cells half as wide as a window."""
    return np.asarray(counts.reshape(2 << level, -1).sum(axis=1))


@dataclass(frozen=True, slots=True)
class Stage:
    """What is summed of each label: its place in a range, its clipped distance from a guess, or the square of it.

    Attributes
    ----------
    range : (lo, hi)
        To which labels are clipped.
    group : array of int or None
        The sum to which each row belongs; None if all belong to one.
    count : int
        The number of sums.
    guess : array or None
        Of every row.
    reach : float
        How far from its guess a label counts.
    squared : bool
        Whether squares of distances are summed, in units of the squared reach.
    """

    range: Range
    group: Index | None = field(default=None, repr=False)
    count: int = 1
    guess: Array | None = field(default=None, repr=False)
    reach: float = 0.0
    squared: bool = False

    @property
    def width(self) -> float:
        """The range of what is summed."""
        if self.squared:
            return self.reach**2
        return self.range[1] - self.range[0] if self.guess is None else 2 * self.reach

    @np.errstate(all="ignore")  # a warning that depends on labels would leak them
    def sums(self, labels: Array, rows: Index | None = None) -> Sums:
        """Return exact sums, of some rows or of all; sums of parts add up."""
        values = np.clip(labels, *self.range)
        if self.guess is None:
            values = values - self.range[0]
        else:
            guess = self.guess if rows is None else self.guess[rows]
            gaps = np.clip(values - guess, -self.reach, self.reach)
            values = gaps**2 if self.squared else gaps + self.reach
        steps = np.clip(np.rint(values / self.width * STEPS), 0, STEPS).astype(np.int64)
        if self.group is None:
            return np.asarray(steps.sum(keepdims=True))
        sums = np.zeros(self.count, dtype=np.int64)
        np.add.at(sums, self.group if rows is None else self.group[rows], steps)
        return sums

    def variance(self, epsilon: Fraction) -> float:
        """Return the variance of a noisy sum, in squared units of labels."""
        return sum_noise(epsilon).variance() * (self.width / STEPS) ** 2

    def noisy(self, sums: Sums, epsilon: Fraction, source: WordSource) -> Array:
        """Return sums with noise, as numbers."""
        return np.asarray(sum_noise(epsilon).release(sums, source) * (self.width / STEPS))


AddUp = Callable[[Stage], Sums]
"""Returns a stage's exact sums over all rows, wherever their labels are."""


@dataclass(frozen=True, slots=True)
class SumModel:
    """What noisy sums tell.

    Attributes
    ----------
    range : (lo, hi)
    linear : Posterior
    observations : list
        For models that learn from labels, too.
    start : array
        What the first model predicts for each row.
    residual : float
        Measured mean square of labels around ``start``; 0 if it was not measured.
    spread : float
        Variance of labels around the model, measured or guessed.
    """

    range: Range
    linear: Posterior
    observations: list[Observations]
    start: Array
    residual: float
    spread: float

    @property
    def sums(self) -> int:
        """How many sums there are in all."""
        return sum(part.count for part in self.observations)


def fit_sums(
    table: FeatureTable,
    range: Range,
    budget: FitBudget,
    add_up: AddUp,
    source: WordSource,
    *,
    grouped: bool = True,
    step: Step = quiet,
) -> SumModel:
    """Return the linear model learnt from noisy sums.

    Labels are summed once a stage, by ``add_up``; noise is added here, and what follows sees nothing else. Unless
    ``grouped``, the mean of all labels is the only sum: where the table is a sample of the rows.
    """
    low, high = range
    width, middle = high - low, (low + high) / 2
    rows, choices = np.arange(table.rows), unknown_variance(width)

    def learn(observations: list[Observations]) -> tuple[Posterior, Array]:
        linear = fit_linear(
            observations, table.public.block, mean=middle, mean_variance=width**2 / 12, choices=choices
        )
        return linear, np.clip(table.predict(linear, rows), low, high)

    step("rough sums" if budget.fine else "sums")
    prior, rest = first_prior(table, width), _REST * width**2
    noise = Stage(range).variance(budget.rough)
    if grouped:
        groups = Geometry.of(table, prior).groups(table, noise=noise, rest=rest)
    else:
        groups = Groups(
            np.zeros(table.rows, np.int64), np.array([float(budget.rows)]), _mean_row(table, budget.rows)
        )
    stage = Stage(range, groups.group if grouped else None, groups.sizes.size)
    sums = stage.noisy(add_up(stage), budget.rough, source) - groups.sizes * (middle - low)
    observed = [groups.observations(sums, rest, noise)]
    linear, start = learn(observed)
    guess = linear.rest + linear.explained / 2
    residual = 0.0
    if budget.spread:
        reach = min(width / 2, 4 * math.sqrt(linear.rest + linear.explained))
        stage = Stage(range, guess=start, reach=reach, squared=True)
        total = float(stage.noisy(add_up(stage), budget.spread, source)[0])
        residual = float(np.clip(total / budget.rows, 1e-6 * width**2, reach**2))
    spread = residual or guess
    if budget.fine:
        step("sums of residuals")
        reach = min(width, 2 * math.sqrt(residual)) if residual else _reach(float(budget.fine)) * width
        stage = Stage(range, guess=start, reach=reach)
        noise, rest = stage.variance(budget.fine), min(linear.rest, spread)
        geometry = Geometry.of(table, _updated_prior(linear.likely, choices, table.public.block, width))
        groups = geometry.groups(table, noise=noise, rest=rest, known=observed[0].gram)
        stage = Stage(range, groups.group, groups.sizes.size, start, reach)
        sums = stage.noisy(add_up(stage), budget.fine, source) - groups.sizes * reach
        sums += np.bincount(groups.group, start - middle, groups.sizes.size)
        observed.append(groups.observations(sums, rest, noise))
        linear, _ = learn(observed)
        spread = 0.95 * residual if residual else float(np.clip(linear.rest, spread / 2, spread))
    return SumModel(range, linear, observed, start, residual, spread)


def _mean_row(table: FeatureTable, rows: int) -> NDArray[np.float32]:
    sample = table.even_rows(20_000)
    return np.asarray(sample.mean(axis=0, keepdims=True) * np.float32(rows), dtype=np.float32)


def _updated_prior(likely: Choices, choices: Choices, block: Index, width: float) -> Array:
    """Return the prior variance of each weight, by what the rough model found likely."""
    options = likely or choices[:5]
    each = [np.asarray(mix) * max(explained, EXPLAINED[0] * width**2) for mix, explained, _ in options]
    strength = np.maximum(np.mean(each, axis=0), EXPLAINED[0] / 10 * width**2)
    return np.append(strength[block], width**2 / 12)


def _reach(epsilon: float) -> float:
    """Return how far residuals count where their spread is not known, in ranges."""
    return 0.2 if epsilon < 1 else 0.25 if epsilon < 3 else 0.3
