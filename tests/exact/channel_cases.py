"""Small channels by hand: their labels, outputs and counts are written down here a second time."""

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np

import labeldp as ldp
from helpers import WORDS


def tight(ratio):
    """Promise ln(ratio), rounded up in the 45th digit: one word more in 2^64 breaks it."""
    digits = Context(prec=80)
    logarithm = digits.ln(digits.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    return ldp.exact.Promise(Fraction(logarithm.quantize(Decimal("1e-45"), ROUND_CEILING, digits)))


def worst(rows):
    """Return the largest ratio of two rows' counts at one output."""
    return max(Fraction(a, b) for column in zip(*rows, strict=True) for a in column for b in column)


def spread(words, cells, cap):
    """Return how ``words`` fill cells one after the other, ``cap`` each."""
    return [min(cap, max(0, words - i * cap)) for i in range(cells)]


def window_rows(cells, background, extra, starts):
    """Return each row's counts: background everywhere, the other words from its start on."""
    spare = WORDS - cells * background
    return [[background + n for n in [0] * s + spread(spare, cells - s, extra)] for s in starts]


def shift_rows(noise, steps, margin):
    """Return each row's counts: the noise, shifted and clamped to −margin … steps + margin."""
    reach = len(noise) // 2
    rows = [[0] * (steps + 2 * margin + 1) for _ in range(steps + 1)]
    for k, row in enumerate(rows):
        for x, n in enumerate(noise, start=-reach):
            row[min(max(k + x, -margin), steps + margin) + margin] += n
    return rows


NOISE = [3 << 56, 5 << 57, (1 << 60) + 1, 7 << 58, 0, 9 << 57, 11 << 58, (1 << 59) - 1, 1 << 57]
NOISE[4] = WORDS - sum(NOISE)  # neither symmetric nor log-concave

BELL = [1 << 58, 1 << 59, 1 << 60, 1 << 61, 0, 1 << 61, 1 << 60, 1 << 59, 1 << 58]
BELL[4] = WORDS - sum(BELL)

TABLE = [
    [1 << 62, 1 << 63, 1 << 62],
    [(1 << 62) + 9, (1 << 62) - 9, 1 << 63],
    [WORDS - (1 << 62) - (1 << 61) - 3, 1 << 62, (1 << 61) + 3],
]
WIDE = [[WORDS // 5 + 1] + [WORDS // 5] * 4, [1 << 59] * 4 + [WORDS - (1 << 61)]]

LISTED = {"cuts": np.array([np.inf, 1.0, 2.5, np.inf]), "values": np.array([0.25, 1.5, 7.0])}
"""Bins from 0 up to the label 1, up to 2.5, and up to 4."""

CASES = {}
"""Name: (channel, label of each row, value of each output, counts of each row)."""


def _add(name, make, labels, values, rows):
    CASES[name] = (make(tight(worst(rows))), labels, values, rows)


def _add_window(name, ends, numbers, labels, outputs, **options):
    """Numbers are cells, window, background and extra."""
    cells, _, background, extra = numbers
    rows = window_rows(cells, background, extra, range(len(labels)))
    make = lambda p: ldp.exact.WindowChannel(*ends, *numbers, p, **options)  # noqa: E731
    if options.get("spread_outside"):
        spare = WORDS - cells * background
        outside = [background + n for n in spread(spare, cells, -(-spare // cells))]
        labels, rows = [*labels, ends[0] - 0.1, ends[1] + 0.1], [*rows, outside, outside]
    _add(name, make, labels, outputs, rows)


EVEN, FIVE = (5, 2, 1 << 61, 3 << 60), [-0.5, 0.5, 1.5, 2.5, 3.5]
LOPSIDED = (4, 2, 1 << 61, 3 << 61)
_add_window("window", (0.0, 3.0), EVEN, [0, 1, 2, 3], FIVE)
_add_window("window, spread outside", (0.0, 3.0), EVEN, [0, 1, 2, 3], FIVE, spread_outside=True)
UNEVEN = (4, 2, (1 << 61) - 12345, (1 << 62) + 30000)
_add_window("window, uneven", (-2.0, 2.0), UNEVEN, [-2, 0, 2], [-3, -1, 1, 3])
_add_window("window, wide", (0.0, 1.0), (4, 3, 1 << 60, 1 << 62), [0, 1], [-1, 0, 1, 2])
_add_window("window, lopsided, spread outside", (1.0, 5.0), LOPSIDED, [1, 3, 5], [0, 2, 4, 6], spread_outside=True)
_add_window("window, listed", (0.0, 4.0), (3, 1, 1 << 62, 1 << 62), [0.5, 1.7, 3], [0.25, 1.5, 7], **LISTED)
BELOW = {**LISTED, "cuts": LISTED["cuts"] - 2.0}
UNEQUAL = (3, 1, (1 << 62) - 1, (1 << 62) + 3)
_add_window("window, listed, below zero", (-2.0, 2.0), UNEQUAL, [-1.5, -0.3, 1], [0.25, 1.5, 7], **BELOW)


def _add_table(name, rows, labels, values):
    make = lambda p: ldp.exact.TableChannel.from_counts(float(labels[0]), float(labels[-1]), values, rows, p)  # noqa: E731
    _add(name, make, labels, values, rows)


def _add_shift(name, noise, steps, margin):
    make = lambda p: ldp.exact.ShiftChannel.from_counts(0.0, float(steps), steps, margin, noise, p)  # noqa: E731
    values = list(range(-margin, steps + margin + 1))
    name = f"shift, {name}, {steps} steps, margin {margin}"
    _add(name, make, list(range(steps + 1)), values, shift_rows(noise, steps, margin))


_add_table("table", TABLE, [0, 2, 4], [-1.5, 1, 8])
_add_table("table, wide", WIDE, [-1, 1], [-4, -2, 0, 2, 4])
_add_shift("uneven", NOISE, 2, 2)
_add_shift("uneven", NOISE, 4, 0)
_add_shift("uneven", NOISE, 1, 3)
_add_shift("bell", BELL, 2, 2)

MIXED = [name for name in CASES if name.startswith(("table", "shift"))]
"""Channels that round a label between two rows to one of them."""
