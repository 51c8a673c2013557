"""The window channel: a uniform background, and a window of likelier cells around the label.

Each of ``cells`` output cells gets ``background`` of the 2^64 words, whatever the label; the words
left over go to the ``window`` cells that start at the label's place, at most ``extra`` each. So
every output has between ``background`` and ``background + extra`` words under every label, and the
privacy loss is exactly ln((background + extra) / background). One word, no rejection, no branch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from labeldp._values import Array, Data, Index, Mask, Numbers
from labeldp.errors import NotUnbiasedError, ParameterError, PrivacyProofError, Setting
from labeldp.exact.proof import WORDS, Channel, Promise, Proof, exp_lower, portable, prove_pure
from labeldp.exact.sampling import MAX_STEPS, Domain, Grid, frozen_copy, nearest_of, pieces, select
from labeldp.exact.word_sources import CHUNK, WordSource

MIN_CELLS = 1 << 12
"""A window, and its way across the range, have at least this many cells, so that ζ and ε are met."""


@dataclass(frozen=True, slots=True)
class WindowChannel(Channel):
    """Background plus a contiguous window, sampled with one word a label.

    Parameters
    ----------
    low, high : float
        Labels are clipped to this interval; its ends are the first and the last window.
    cells, window : int
        The number of all output cells, and of those of a window.
    background, extra : int
        Words that every cell has, and words at most that a window cell has on top.
    promise : Promise
        The ε that `verify` compares the counts with.
    cuts, values : arrays of float, optional
        For bins, with windows of one cell: for each of equally wide pieces of [low, high] the label from which on
        the window is one cell further (infinite if there is none in the piece), and the released value of each
        cell. By default the window's start grows linearly with the label, and cells are equally spaced so that a
        window is centred on its label.
    spread_outside : bool
        Give labels outside [low, high] the whole range as their window, instead of clipping them.

    Examples
    --------
    `WindowChannel.for_zeta` finds the integers.

    >>> import numpy as np
    >>> from labeldp.mechanisms import Promise, WindowChannel
    >>> channel = WindowChannel.for_zeta(0.0, 4.0, 1.0, Promise.of(2.0))
    >>> channel.verify().epsilon <= 2.0
    True
    >>> points = np.array([1.0, 3.0])
    >>> np.diff(channel.cumulative(2.0, points)).round(3).tolist()          # within ζ of the label 2
    [0.787]
    """

    low: float
    high: float
    cells: int
    window: int
    background: int
    extra: int
    promise: Promise
    cuts: Array | None = None
    values: Array | None = None
    spread_outside: bool = False
    bins: Index | None = field(init=False, repr=False, compare=False)

    @classmethod
    def for_zeta(
        cls, low: float, high: float, zeta: float, promise: Promise, *, spread_outside: bool = False
    ) -> WindowChannel:
        """Return the channel with a window of ``zeta`` on either side of the label, and a ratio just below e^ε.

        Parameters
        ----------
        low, high : float
            Labels are clipped to this interval; outputs reach ``zeta`` beyond it.
        zeta : float
            Half the width of the likelier window.
        promise : Promise
            The ε to satisfy.
        spread_outside : bool
            Whether labels outside are answered from the whole range instead of clipped.
        """
        counts = _counts(high - low, zeta, promise)
        return cls(low, high, *counts, promise, spread_outside=spread_outside)

    def __post_init__(self) -> None:
        for name in ("cuts", "values"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen_copy(getattr(self, name)))
        object.__setattr__(self, "bins", None if self.cuts is None else _starts_of(self.cuts))
        object.__setattr__(self, "_proof", self.verify())

    def as_data(self) -> Data:
        """Return the integers as pure data, for a card."""
        names = ("low", "high", "cells", "window", "background", "extra", "spread_outside")
        return {
            "kind": "window",
            **{name: portable(getattr(self, name)) for name in names},
            "promise": self.promise.as_data(),
            "bins": None,  # cards of other versions may state them
            "cuts": None if self.cuts is None else self.cuts[self.cuts < np.inf].tolist(),
            "values": None if self.values is None else self.values.tolist(),
        }

    # ---- the counts -------------------------------------------------------------------------

    @property
    def _threshold(self) -> int:
        """Words below are background."""
        return self.cells * self.background

    @property
    def _spare(self) -> int:
        """Words for the window."""
        return WORDS - self._threshold

    @property
    def _starts(self) -> int:
        """The last start of a window; the first is 0."""
        return self.cells - self.window

    @property
    def _domain(self) -> Domain:
        return Domain(self.low, self.high, self._starts if self.cuts is None else self.cuts.size)

    def _spread(self) -> int:
        """Words at most that a cell gets when the window is the whole range."""
        return -(-self._spare // self.cells)

    def verify(self) -> Proof:
        """Prove ε from the integers that `sample` uses.

        Returns
        -------
        Proof
            Valid for every pair of labels and every output.

        Raises
        ------
        PrivacyProofError
            If these counts are not a valid channel, or break the promise.
        """
        integers = (self.cells, self.window, self.background, self.extra)
        if not all(type(n) is int and n > 0 for n in integers):
            raise PrivacyProofError("cells, window, background and extra must be positive integers")
        starts, spare, extra = self._starts, self._spare, self.extra
        if extra >= WORDS or self.cells >= 1 << 63 or starts >= MAX_STEPS:
            raise PrivacyProofError("extra, cells or the number of starts are too large for 64-bit words")
        if starts < 0 or (self.cuts is None and starts == 0):
            raise PrivacyProofError("the window leaves no room to move in the range of outputs")
        if not 0 < spare <= extra * self.window:
            raise PrivacyProofError("the words that the background leaves are none, or do not fit into the window")
        if self.cuts is not None or self.values is not None:
            self._verify_bins()
        self._domain.verify()
        added = min(extra, spare) if starts or self.spread_outside else 0  # spread over all cells, each gets less
        return prove_pure([(self.background + added, self.background)], self.promise)

    def _verify_bins(self) -> None:
        """Refuse cuts and values that do not lead every label to one of the cells."""
        cuts, values = self.cuts, self.values
        if cuts is None or values is None or self.spread_outside or (self.window, self.cells) != (1, values.size):
            raise PrivacyProofError("bins need cuts, one value a cell, windows of one cell, and clipped labels")
        if cuts.dtype != np.float64 or cuts.ndim != 1 or not cuts.size:
            raise PrivacyProofError("cuts must be a list of 64-bit floats")
        if np.count_nonzero(cuts < np.inf) > self._starts:
            raise PrivacyProofError("a window starts outside the range of outputs")

    # ---- sampling ---------------------------------------------------------------------------

    def sample(self, labels: Numbers, source: WordSource, out: Array) -> None:
        """Randomise ``labels`` (1-D, finite) into ``out``."""
        words = np.empty(min(CHUNK, labels.size), dtype=np.uint64)
        buffer = np.empty_like(words)
        scratch = np.empty(words.size)
        threshold, grid, values = np.uint64(self._threshold), self._outputs, self.values
        for piece in pieces(labels.size):
            chunk = labels[piece]
            word, in_window = words[: chunk.size], buffer[: chunk.size]
            source.fill(word)
            np.subtract(word, threshold, out=in_window)
            start = self._start(chunk, scratch[: chunk.size]).view(np.uint64)
            offset = np.floor_divide(in_window, np.uint64(self.extra))
            offset += start
            if self.spread_outside:
                in_window //= np.uint64(self._spread())
                offset = select(self._outside(chunk), in_window, offset)
            is_background = word < threshold
            word //= np.uint64(self.background)
            cell = select(is_background, word, offset).view(np.int64)
            if values is None:
                grid.release(cell, out[piece])
            else:
                values.take(cell, out=out[piece], mode="clip")

    def _start(self, labels: Numbers, scratch: Array) -> Index:
        if self.cuts is None or self.bins is None:
            return self._domain.nearest(labels, scratch)
        piece = self._domain.piece(labels, scratch)
        return self.bins.take(piece, mode="clip") + (labels >= self.cuts.take(piece, mode="clip"))

    def _outside(self, labels: Numbers) -> Mask:
        return (labels < np.float64(self.low)) | (labels > np.float64(self.high))

    @property
    def _outputs(self) -> Grid:
        step = self._domain.step
        return Grid(self.low + (0.5 - self.window / 2) * step, step, 0, self.cells - 1)

    def nearest_output(self, values: Array) -> Array:
        """Return the output nearest to each value."""
        return self._outputs.nearest(values) if self.values is None else nearest_of(self.values, values)

    # ---- moments, exact -----------------------------------------------------------------------

    @property
    def _share(self) -> float:
        """The probability of the window."""
        return float(Fraction(self._spare, WORDS))

    def _window_moments(self, words: int) -> tuple[float, float]:
        """Return mean and variance of a window's output in steps; a cell gets ``words`` at most."""
        full, remainder = divmod(self._spare, words)
        sum_of_cells = full * (full - 1) // 2
        sum_of_squares = full * (full - 1) * (2 * full - 1) // 6
        first = words * sum_of_cells + remainder * full
        second = words * sum_of_squares + remainder * full**2
        mean = Fraction(first, self._spare)
        variance = Fraction(second, self._spare) - mean**2
        centred = mean + Fraction(1 - self.window, 2)
        return float(centred), float(variance)

    def moments(self, labels: Numbers) -> tuple[Array, Array]:
        """Return mean and variance of the released value for each label: a mixture of window and background."""
        labels = np.asarray(labels)
        start = self._start(labels, np.empty(labels.shape))
        if self.values is None:
            step = self._domain.step
            inner_mean, inner_variance = self._moments_in_window(labels, start)
            outer_mean = self._starts / 2 * step
            outer_variance = (self.cells**2 - 1) / 12 * step**2
        else:
            values = self.values - self.low
            inner_mean, inner_variance = values[start], np.zeros(1)
            outer_mean = float(values.mean())
            outer_variance = float(values.var())
        share = self._share
        mean = self.low + share * inner_mean + (1 - share) * outer_mean
        variance = share * inner_variance + (1 - share) * outer_variance
        variance = variance + share * (1 - share) * (inner_mean - outer_mean) ** 2
        return np.asarray(mean), np.asarray(variance)

    def _moments_in_window(self, labels: Numbers, start: Index) -> tuple[Array, Array]:
        """Return the mean of each label's window, minus `low`, and its variance."""
        step = self._domain.step
        center, variance = self._window_moments(self.extra)
        means = start.astype(np.float64) + center
        variances = np.full(labels.shape, variance)
        if self.spread_outside:
            center, variance = self._window_moments(self._spread())
            outside = self._outside(labels)
            means[outside], variances[outside] = center, variance
        return means * step, variances * step**2

    def slope(self) -> float:
        """Return dE[z|y]/dy inside the interval, or raise if the mean is not linear in the label."""
        if self.values is not None or self.spread_outside:
            raise NotUnbiasedError(
                "many labels share one output here, so no function of the output is an unbiased label; "
                'use mean() and bias(), or a mechanism such as RPWithPrior(outside="project")'
            )
        return self._share

    # ---- probabilities --------------------------------------------------------------------------

    def cumulative(self, label: float, points: Array) -> Array:
        """Return P(z ≤ point | label)."""
        array = np.array([label])
        start = int(self._start(array, np.empty(1))[0])
        if self.values is not None:
            weight = np.full(self.cells, float(self.background))
            weight[start] += self._spare
            return np.asarray([weight[self.values <= point].sum() / WORDS for point in points], dtype=np.float64)
        position = (points - self.low) / self._domain.step + (self.window - 1) / 2
        index = np.clip(np.floor(position) + 1, 0, self.cells)
        words = self.extra
        if self.spread_outside and bool(self._outside(array)[0]):
            start, words = 0, self._spread()
        inside = np.minimum(np.maximum(index - start, 0) * words, self._spare)
        result: Array = (index * float(self.background) + inside) / WORDS
        return result


def _starts_of(cuts: Array) -> Index:
    """Return the start of the window at the left end of each piece: the number of cuts before."""
    return frozen_copy(np.cumsum(np.append(False, cuts < np.inf)[:-1], dtype=np.int64))


def _counts(width: float, zeta: float, promise: Promise) -> tuple[int, int, int, int]:
    """Return cells, window, background and extra whose ratio is just below e^ε.

    With a background of g words and c = ⌊(e^ε − 1)g⌋, a window of m cells that moves by m/(2ζ/width) cells uses up
    all words if m(c + g(1 + width/2ζ)) = 2^64. The number of cells follows; the other words are shared as extra.
    """
    gain = exp_lower(promise.epsilon) - 1
    half_width = zeta / width
    if not 2.0**-60 < half_width < 2.0**60:
        raise _no_window(width, zeta, promise)
    ratio = Fraction(2 * half_width)
    share = ratio / (1 + ratio)
    bits = _background_bits(gain, share)
    background = 1 << bits
    most_extra = math.floor(gain * background)
    ideal = WORDS / (most_extra + background * (1 + 1 / ratio))
    if share * gain < 1:  # round the window; a cell more or less matters little to ε
        window = round(ideal)
        cells = -((window * most_extra - WORDS) >> bits)
    else:  # a window cell outweighs all background: round the cells
        window = math.ceil(ideal)
        cells = window + round(window / ratio)
        cells += max(0, -((window * most_extra + cells * background - WORDS) >> bits))
    if min(gain, Fraction(1)) * window < MIN_CELLS or cells - window < MIN_CELLS:
        raise _no_window(width, zeta, promise)
    return cells, window, background, -(-(WORDS - cells * background) // window)


def _background_bits(gain: Fraction, share: Fraction) -> int:
    """Return k for a background of 2^k words a cell.

    There are 2^32 cells, or more where the window or its way across the range would be only a few cells.
    """
    smallest = min(share * min(gain, Fraction(1)), 1 - share)
    cell_bits = min(50, max(32, math.ceil(20 - math.log2(smallest))))
    min_bits = max(1, math.ceil(14 - math.log2(gain)))
    return max(min_bits, math.floor(64 - cell_bits - math.log2(1 + share * gain)))


def _no_window(width: float, zeta: float, promise: Promise) -> ParameterError:
    return ParameterError(
        Setting("zeta", zeta),
        f" is too {'small' if zeta < width else 'large'} for an interval {width} wide at ",
        Setting("epsilon", float(promise.epsilon)),
        ": give one closer to the width of the interval",
    )
