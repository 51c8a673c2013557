"""Small channels by hand: their labels, outputs and counts are written down here a second time."""

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np

from helpers import WORDS
from labeldp.channels import Promise, ShiftChannel, TableChannel, WindowChannel


def tight(ratio):
    """Promise ln(ratio), rounded up in the 45th digit: one word more in 2^64 breaks it."""
    digits = Context(prec=80)
    logarithm = digits.ln(digits.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    return Promise(Fraction(logarithm.quantize(Decimal("1e-45"), ROUND_CEILING, digits)))


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

SMALL = (1 << 61) - 12345
BINS = np.array([0, 0, 1, 2]), np.array([np.inf, 1.0, 2.5, np.inf])


def _cases():
    a, b = (5, 1 << 61, 3 << 60), (4, SMALL, (1 << 62) + 30000)
    c, e = (3, 1 << 62, 1 << 62), (4, 1 << 60, 1 << 62)
    spare = WORDS - a[0] * a[1]
    outside = [a[1] + n for n in spread(spare, 5, -(-spare // 5))]
    five = [-0.5, 0.5, 1.5, 2.5, 3.5]
    yield (
        "window",
        [0, 1, 2, 3],
        five,
        window_rows(*a, range(4)),
        lambda p: WindowChannel(0.0, 3.0, 5, 2, *a[1:], p),
    )
    yield (
        "window, uneven",
        [-2, 0, 2],
        [-3, -1, 1, 3],
        window_rows(*b, range(3)),
        lambda p: WindowChannel(-2.0, 2.0, 4, 2, *b[1:], p),
    )
    yield (
        "window, wide",
        [0, 1],
        [-1, 0, 1, 2],
        window_rows(*e, range(2)),
        lambda p: WindowChannel(0.0, 1.0, 4, 3, *e[1:], p),
    )
    yield (
        "window, listed",
        [0.5, 1.7, 3],
        [0.25, 1.5, 7],
        window_rows(*c, range(3)),
        lambda p: WindowChannel(
            0.0, 4.0, 3, 1, *c[1:], p, BINS[0].copy(), BINS[1].copy(), np.array([0.25, 1.5, 7.0])
        ),
    )
    d = (4, 1 << 61, 1 << 62)
    four = [-0.5, 0.5, 1.5, 2.5]
    yield (
        "window, cut",
        [0.5, 1.7, 3],
        four,
        window_rows(*d, range(3)),
        lambda p: WindowChannel(0.0, 4.0, 4, 2, *d[1:], p, BINS[0].copy(), BINS[1].copy()),
    )
    f = (4, 1 << 61, 3 << 61)
    yield (
        "window, lopsided",
        [1, 3, 5],
        [0, 2, 4, 6],
        window_rows(*f, range(3)),
        lambda p: WindowChannel(1.0, 5.0, 4, 2, *f[1:], p),
    )
    g = (3, (1 << 62) - 1, (1 << 62) + 3)
    yield (
        "window, listed, below zero",
        [-1.5, -0.3, 1],
        [0.25, 1.5, 7],
        window_rows(*g, range(3)),
        lambda p: WindowChannel(
            -2.0, 2.0, 3, 1, *g[1:], p, BINS[0].copy(), BINS[1] - 2.0, np.array([0.25, 1.5, 7.0])
        ),
    )
    far = [f[1] + n for n in spread(WORDS // 2, 4, 1 << 61)]
    yield (
        "window, lopsided, spread outside",
        [1, 3, 5, 0, 6],
        [0, 2, 4, 6],
        [*window_rows(*f, range(3)), far, far],
        lambda p: WindowChannel(1.0, 5.0, 4, 2, *f[1:], p, spread_outside=True),
    )
    rows = [*window_rows(*a, range(4)), outside, outside]
    yield (
        "window, spread outside",
        [0, 1, 2, 3, -0.1, 3.1],
        five,
        rows,
        lambda p: WindowChannel(0.0, 3.0, 5, 2, *a[1:], p, spread_outside=True),
    )
    yield (
        "table",
        [0, 2, 4],
        [-1.5, 1, 8],
        TABLE,
        lambda p: TableChannel.from_counts(0.0, 4.0, np.array([-1.5, 1, 8]), TABLE, p),
    )
    yield (
        "table, wide",
        [-1, 1],
        [-4, -2, 0, 2, 4],
        WIDE,
        lambda p: TableChannel.from_counts(-1.0, 1.0, np.array([-4.0, -2, 0, 2, 4]), WIDE, p),
    )
    for noise, steps, margin in ((NOISE, 2, 2), (NOISE, 4, 0), (NOISE, 1, 3), (NOISE, 2, 0), (BELL, 2, 2)):
        name = f"shift, {'bell' if noise is BELL else 'uneven'}, {steps} steps, margin {margin}"
        values = list(range(-margin, steps + margin + 1))
        made = lambda p, n=noise, s=steps, m=margin: ShiftChannel.from_counts(0.0, float(s), s, m, n, p)  # noqa: E731
        yield name, list(range(steps + 1)), values, shift_rows(noise, steps, margin), made


CASES = {name: (make(tight(worst(rows))), *rest, rows) for name, *rest, rows, make in _cases()}
"""Name: (channel, label of each row, value of each output, counts of each row)."""

MIXED = [name for name in CASES if name.startswith(("table", "shift"))]
"""Channels that round a label between two rows to one of them."""
