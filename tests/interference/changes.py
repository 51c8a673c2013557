"""Labels that differ: in length of text, magnitude, sign, spelling, and in which rows."""

import numpy as np
from hypothesis import strategies as st

BOUNDS = (-3.0, 7.0)
"""Of all labels here; zero is inside, and many of `SPELLINGS` are outside."""

PLAIN = "2.5"
SPELLINGS = (
    *("0", "-0.0", "7", "-2.5", "3.141592653589793", "-2.7182818284590452353602874713526624977572", "1e3", "1E+3"),
    *("25e-1", "00002.5000", "123456789012", "1e300", "-1.7976931348623157e308", "5e-324", "0.1"),
)
"""One label as text, each different from ``PLAIN`` in another way."""


def plain(rows):
    """Return labels as text, inside the bounds, most of them of the same length."""
    return [f"{value:.3f}" for value in np.random.default_rng(rows).uniform(-2.9, 6.9, rows)]


def changed(labels, rows, spellings):
    """Return labels with other text in some rows, from spellings that are used in turn."""
    result = list(labels)
    for number, row in enumerate(rows):
        result[row] = spellings[number % len(spellings)]
    return result


def changes(rows, every=None):
    """Return, by the name of a change, two lists of labels as text that differ by it."""
    base = plain(rows)
    others = {f"first row {spelling}": changed(base, [0], [spelling]) for spelling in SPELLINGS}
    others["last"] = changed(base, [rows - 1], SPELLINGS)
    if every is not None:
        around = [row for edge in range(every, rows, every) for row in (edge - 1, edge)]
        others["boundaries"] = changed(base, around, SPELLINGS)
    others["all rows"] = changed(base, range(rows), SPELLINGS)
    others |= {"constant": [PLAIN] * rows, "sorted": sorted(base, key=float)}
    ends = {"all rows, both at the ends": (["-3"] * rows, ["7.000000000000"] * rows)}
    return {name: (base, other) for name, other in others.items()} | ends


def numbers(labels, kind=np.float64):
    """Return labels as an array of numbers; for integers and float32 as near as they get."""
    floats = np.array(labels, dtype=np.float64)
    if np.dtype(kind).kind in "iu":
        info = np.iinfo(kind)
        return np.array([int(min(max(value, info.min), info.max)) for value in floats.tolist()], dtype=kind)
    most = float(np.finfo(kind).max)
    return np.clip(floats, -most, most).astype(kind)


spellings = st.one_of(
    st.sampled_from(SPELLINGS),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**18), 10**18).map(str),
    st.decimals(-100, 100, places=30).map(lambda value: f"{value:f}"),
)


@st.composite
def pairs(draw, most=60):
    """Draw two lists of labels as text that differ in some rows."""
    rows = draw(st.integers(1, most))
    base = draw(st.lists(spellings, min_size=rows, max_size=rows))
    where = draw(st.sets(st.integers(0, rows - 1), min_size=1))
    other = draw(st.lists(spellings, min_size=len(where), max_size=len(where)))
    return base, changed(base, sorted(where), other)
