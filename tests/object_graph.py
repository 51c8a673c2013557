"""Walking everything that an object holds, to look for what it must not hold."""

import array
import gc
import re
import types
from dataclasses import dataclass, field

import numpy as np

OUTSIDE = (type, types.ModuleType, types.FrameType, types.BuiltinFunctionType)
WRITTEN = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def numbers_in(root):  # noqa: PLR0912
    """Yield arrays of all the numbers that can be reached from an object, whatever holds them."""
    seen, waiting = {}, [root]
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, OUTSIDE):
            continue
        seen[id(item)] = item  # kept, so that no id is used twice
        if isinstance(item, np.ndarray):
            if item.dtype.kind in "fiu":
                yield item.astype(np.float64).reshape(-1)
                if item.ndim > 1:  # columns too are rows of numbers
                    yield item.T.astype(np.float64).reshape(-1)
            elif item.dtype.fields:
                waiting += [item[name] for name in item.dtype.fields]
            elif item.dtype.kind in "OUS":
                waiting += item.reshape(-1).tolist()
            waiting.append(item.base)
        elif isinstance(item, bool | None):
            continue
        elif isinstance(item, str):
            yield _written(item)
        elif isinstance(item, bytes | bytearray | memoryview | array.array):
            yield from _in_bytes(bytes(item))
        elif isinstance(item, int | float | np.number):
            yield _as_floats([item])
        elif isinstance(item, types.FunctionType):
            waiting += [item.__defaults__, item.__kwdefaults__, item.__closure__]
        else:
            if isinstance(item, list | tuple) and all(isinstance(each, int | float | np.number) for each in item):
                yield _as_floats(item)
            waiting += gc.get_referents(item)
            if not gc.is_tracked(item) or type(item).__module__.startswith("sklearn.tree"):
                waiting += _state(item)


def _as_floats(items):
    """Return numbers as floats; what is too large for one is infinite."""
    try:
        return np.array([float(item) for item in items])
    except OverflowError:
        return np.array([float(item) if abs(item) < 1e300 else np.inf for item in items])


def _written(text):
    """Return the numbers that are written in a text."""
    return np.array([float(found) for found in WRITTEN.findall(text)])


def _in_bytes(blob):
    """Yield what bytes would be as numbers of each common kind, wherever these may begin."""
    for kind in ("<f8", "<f4", "<i8", "<i4"):
        size = np.dtype(kind).itemsize
        for start in range(min(size, len(blob))):
            whole = (len(blob) - start) // size * size
            with np.errstate(all="ignore"):
                yield np.frombuffer(blob[start : start + whole], kind).astype(np.float64)
    yield _written(blob.decode("latin-1"))


def _state(item):
    """Return what an object of a compiled type would be pickled as."""
    try:
        return [item.__reduce_ex__(4)[1:]]
    except (TypeError, AttributeError, RecursionError):
        return []


# ---- what must not be there ---------------------------------------------------------------------------------


@dataclass
class Secrets:
    """Numbers that nothing public may hold.

    ``values`` have so many digits that one alone is found. Rows hold numbers that chance would find one by one,
    small integers or float32: of them 4, 8 or 16 must follow each other.
    """

    values: dict = field(default_factory=dict)
    rows: dict = field(default_factory=lambda: {4: {}, 8: {}, 16: {}})

    def add_row(self, name, numbers, length=4):
        """Keep all pieces of this length, but for those of a few values, which trees hold by chance."""
        numbers = _rounded(np.asarray(numbers, dtype=np.float64).reshape(-1))
        pieces = _windows(numbers, length) if len(numbers) >= length else []
        self.rows[length] |= {
            tuple(piece): name for piece in np.asarray(pieces).tolist() if len(set(piece)) > length // 2
        }

    def rows_in(self, numbers):
        """Return the names of rows of which a piece is among the numbers."""
        found, numbers = set(), _rounded(numbers[np.isfinite(numbers)])
        for length, pieces in self.rows.items():
            if numbers.size >= length and pieces:
                known = np.isin(numbers, np.array(list(pieces)))
                starts = np.flatnonzero(np.convolve(known, np.ones(length, dtype=int), "valid") == length)
                if starts.size:
                    near = _windows(numbers[np.unique(starts[:, None] + np.arange(length))], length)
                    found |= {pieces[piece] for piece in map(tuple, near.tolist()) if piece in pieces}
        return found


STATISTICS = {
    "mean": np.mean,
    "sum": np.sum,
    "median": np.median,
    "lower quartile": lambda y: np.quantile(y, 0.25),
    "upper quartile": lambda y: np.quantile(y, 0.75),
    "variance": np.var,
    "sample variance": lambda y: np.var(y, ddof=1),
    "deviation": np.std,
    "squares": lambda y: float(y @ y),
}


def secrets_of(y, bounds, X):
    """Return labels, and statistics of them."""
    low, high = bounds
    share, centred = (y - low) / (high - low), y - y.mean()
    named = {name: function(y) for name, function in STATISTICS.items()}
    named |= {f"{name} of shares": function(share) for name, function in STATISTICS.items()}
    several = {
        "label": y,
        "share of label": share,
        "centred label": centred,
        "logarithm of label": np.log(y),
        "moment": X.T @ y,
        "average moment": X.T @ y / len(y),
        "covariance": (X - X.mean(axis=0)).T @ centred / len(y),
        "weight": np.linalg.lstsq(np.column_stack([np.ones(len(X)), X]), y, rcond=None)[0],
    }
    named |= {f"{name} {k}": value for name, values in several.items() for k, value in enumerate(values)}
    secrets = Secrets(named)
    for k, kind in enumerate((y, share, np.sort(y), centred)):
        secrets.add_row(f"float32 row {k}", kind.astype(np.float32))
    steps = np.rint(share * (1 << 16))
    secrets.add_row("grid", steps)
    secrets.add_row("sums on the grid", np.cumsum(steps))
    for bins in (10, 20, 40, 80, 160, 256):
        counts = np.histogram(share, bins=bins, range=(0, 1))[0]
        length = 8 if bins <= 40 else 16  # narrow bins hold few labels
        secrets.add_row(f"histogram of {bins}", counts, length)
        secrets.add_row(f"masses of {bins}", counts / counts.sum(), length)
    return secrets


def secrets_inside(root, secrets):
    """Return the names of secrets that an object holds; single values up to a relative difference of 1e-11."""
    names, values = list(secrets.values), np.array(list(secrets.values.values()))
    order = np.argsort(values)
    ranked = values[order]
    found = set()
    for part in numbers_in(root):
        numbers = part[np.isfinite(part)]
        for side in (0, -1) if ranked.size else ():
            place = np.clip(np.searchsorted(ranked, numbers) + side, 0, ranked.size - 1)
            hit = np.abs(ranked[place] - numbers) <= 1e-11 * np.abs(ranked[place])
            found |= {names[order[k]] for k in place[hit]}
        found |= secrets.rows_in(part)
    return found


def _rounded(numbers):
    """Return numbers to 36 bits, so that another order of additions makes no difference."""
    mantissa, exponent = np.frexp(numbers)
    return np.ldexp(np.rint(np.ldexp(mantissa, 36)), exponent - 36)


def _windows(numbers, length):
    """Return all pieces of this length that are not mostly the same number."""
    pieces = np.lib.stride_tricks.sliding_window_view(numbers, length)
    return pieces[(np.diff(np.sort(pieces, axis=1), axis=1) != 0).sum(axis=1) >= 3]
