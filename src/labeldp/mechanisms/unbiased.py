"""Unbiased tables: two outputs in closed form, and the optimal table by a linear programme, exact in integers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from labeldp._values import Array, Data, Interval, Numbers, parse_integer
from labeldp.errors import ParameterError, Setting
from labeldp.exact.proof import WORDS, Promise, exp_lower
from labeldp.exact.table import TableChannel
from labeldp.mechanisms.base import Mechanism, channel_field
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.interval import ClippingRisks, UnitNoise
from labeldp.mechanisms.registry import register
from labeldp.mechanisms.rp_with_prior import RPWithPrior

Rows = tuple[tuple[int, ...], ...]
"""The counts of each row."""

MOST_ENTRIES = 1 << 17
"""Entries of a table, which is proven in a moment."""

TABLE = 40
"""Rows of the table where it is one choice of several: a tenth of a second, and 0.3 % of the variance."""

UNIT = 1 << 60
"""Positions are integers with this many steps to a label range."""

TOLERANCE = 1e-12
"""Rows average to their labels this closely, in label ranges."""

SLACKS = (1e-6, 1e-5, 1e-4)
"""The programme is solved for a slightly smaller ε, so that its solution can be made exact."""

MIN_PROBABILITY = 2.0**-30
"""Outputs less likely than this, relative to the likeliest, are left out."""

MIN_SPENT = 0.999
"""A table with a smaller share of ε is refused: so few outputs may not use all of it."""


@register("two-point")
@dataclass(frozen=True, slots=True, kw_only=True)
class TwoPoint(Mechanism):
    """Release one of two values, one beyond each bound.

    The label is rounded at random to one of the bounds, which is then answered truly with odds e^ε. The values are
    (e^ε + 1)/(e^ε − 1) half-ranges from the middle, which makes the label unbiased. Often the best mechanism below
    ε ≈ 0.9.

    Parameters
    ----------
    bounds : (lo, hi)
        Public bounds; labels outside are clipped. Never read them off the data.
    epsilon : float
        Privacy budget, 0.001 to 20.

    Examples
    --------
    >>> import labeldp as ldp
    >>> mech = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)
    >>> mech.mean([1.0]).round(6).tolist()
    [1.0]

    References
    ----------
    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation".
    """

    in_auto: ClassVar[bool] = True
    bounds: tuple[float, float]
    epsilon: float
    channel: TableChannel = channel_field()

    @classmethod
    def unit_noise(cls, epsilon: float, **_: object) -> UnitNoise:
        """Return ((e^ε + 1)/(e^ε − 1))²/4 − q."""
        return lambda q: 1 / math.tanh(epsilon / 2) ** 2 / 4 - q

    def _build(self) -> TableChannel:
        low, high = self.bounds
        promise = Promise.of(self.epsilon)
        values, counts = _two_outputs(2, low, high, promise.epsilon)
        return TableChannel.from_counts(low, high, np.array(values), counts, promise)


@register("unbiased")
@dataclass(frozen=True, slots=True, kw_only=True)
class Unbiased(Mechanism):
    """Release one of a list of outputs, with odds that make every label unbiased.

    Usually made by `Unbiased.design`, which finds the odds of least variance under a prior. Without ``rows`` it
    clips nothing, and the table is unbiased on the prior's whole range.

    Parameters
    ----------
    bounds : (lo, hi)
        Labels of the first and the last row; labels outside are clipped.
    outputs : floats
        The values that are released.
    counts : list of lists of int
        For each of equally spaced labels, the number of the 2^64 words of each output.
    epsilon : float
        Privacy budget, 0.001 to 20.

    Examples
    --------
    >>> import labeldp as ldp
    >>> mech = ldp.Unbiased.design(ldp.Histogram([0, 5], [1]), epsilon=1.0, size=8)
    >>> mech.mean([1.0, 1.3, 5.0]).round(6).tolist()
    [1.0, 1.3, 5.0]

    References
    ----------
    Badanidiyuru, Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan and Zhang, "Optimal unbiased
    randomizers for regression with label differential privacy".
    """

    needs_prior: ClassVar[bool] = True
    in_auto: ClassVar[bool] = True
    in_channel: ClassVar[Mapping[str, str]] = {"outputs": "values", "counts": "counts"}
    bounds: tuple[float, float]
    outputs: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]
    epsilon: float
    channel: TableChannel = channel_field()

    @classmethod
    def for_bounds(
        cls,
        bounds: Interval,
        epsilon: float,
        *,
        prior: Histogram | None = None,
        size: int | None = None,
        **_: Any,
    ) -> Self:
        """Return the unbiased table of least expected variance under a prior, or for labels anywhere in bounds.

        Parameters
        ----------
        bounds : (lo, hi)
        epsilon : float
        prior : Histogram, optional
        size : int, optional
            Number of label rows and of outputs, 40 by default; the programme takes about a second for 100.
        """
        size = TABLE if size is None else parse_integer(size, "size", 2, 256)
        low, high = bounds
        masses = _row_masses(Histogram(bounds, [1.0]) if prior is None else prior, low, high, size)
        exact = Promise.of(epsilon).epsilon
        for slack in SLACKS:
            outputs = _output_grid(epsilon * (1 - slack), size)
            table = _optimal_table(masses, outputs, epsilon * (1 - slack), exact)
            if table is not None and _spends(table.counts, epsilon):
                values = (low + table.outputs * (high - low)).tolist()
                return cls(bounds=bounds, outputs=tuple(values), counts=table.counts, epsilon=epsilon)
        ends, counts = _two_outputs(size, low, high, exact)
        return cls(bounds=bounds, outputs=ends, counts=counts, epsilon=epsilon)

    @classmethod
    def unit_noise(cls, epsilon: float, **_: object) -> UnitNoise:
        """Return the noise of the better of `RPWithPrior` and `TwoPoint`: this one has no more."""
        window, two_points = RPWithPrior.unit_noise(epsilon), TwoPoint.unit_noise(epsilon)
        return lambda q: np.minimum(window(q), two_points(q))

    @classmethod
    def _interval(cls, risks: ClippingRisks, epsilon: float, rows: int | None, **options: Any) -> Interval:
        """Return the best interval for a learner; for a single label, the prior's whole range."""
        return risks.prior.bounds if rows is None else risks.best_interval(cls.unit_noise(epsilon), rows)

    def _build(self) -> TableChannel:
        columns = len(self.outputs)
        if columns < 2 or not _is_table(self.counts, columns):
            raise ParameterError(
                Setting("counts"), " must be two or more rows with a count for each of two or more outputs"
            )
        if len(self.counts) * columns > MOST_ENTRIES:
            raise ParameterError(Setting("counts"), f" has more than {MOST_ENTRIES} entries")
        promise = Promise.of(self.epsilon)
        return TableChannel.from_counts(*self.bounds, np.array(self.outputs), self.counts, promise)


def _is_table(counts: Any, columns: int) -> bool:
    if not isinstance(counts, tuple) or len(counts) < 2:
        return False
    return all(isinstance(row, tuple) and len(row) == columns for row in counts)


def _spends(counts: Rows, epsilon: float) -> bool:
    """Return whether some output uses nearly all of ε."""
    worst = float(max(max(column) / min(column) for column in zip(*counts, strict=True)))
    return worst > math.exp(MIN_SPENT * epsilon)


def _output_grid(epsilon: float, size: int) -> Array:
    """Return outputs for labels in [0, 1]: equally spaced, far enough out.

    For small ε TwoPoint's two are among them, so that the optimum is no worse.
    """
    reach = 1 / math.expm1(epsilon / 2)
    if epsilon > 5:
        return np.linspace(-reach, 1 + reach, size)
    two_point = 1 / math.expm1(epsilon)
    spaced = np.linspace(-reach, 1 + reach, max(2, size - 2))
    return np.unique(np.concatenate([spaced, [-two_point, 1 + two_point]]))


def _row_masses(prior: Histogram, low: float, high: float, size: int) -> Array:
    """Return the prior's mass at equally spaced labels, after rounding labels to a neighbour at random.

    A bin's labels are stood for by points close enough that none of the rows between is missed.
    """
    fine = np.linspace(low, high, 16 * (size - 1) + 1)
    total = prior.cumulative(fine)
    mass = np.diff(total)
    middle = fine[:-1] + np.diff(fine) / 2
    position = (middle - low) / (high - low) * (size - 1)
    row = np.minimum(position.astype(np.int64), size - 2)
    up = position - row
    masses = np.zeros(size)
    np.add.at(masses, row, mass * (1 - up))
    np.add.at(masses, row + 1, mass * up)
    masses[0] += total[0]  # labels outside are clipped
    masses[-1] += 1 - total[-1]
    return masses


def _solve(labels: Array, masses: Array, outputs: Array, epsilon: float) -> tuple[Array, Array]:
    """Return the least probability of each output over all rows, and the probability that each row adds.

    Written as M = t + s with 0 ≤ s ≤ (e^ε − 1) t, the programme has half the rows of the usual one; the
    variables are τ = (e^ε − 1) t and s, which are of one size at every ε.
    """
    from scipy.optimize import linprog  # noqa: PLC0415 (slow to import)

    rows, columns = labels.size, outputs.size
    gain = math.expm1(epsilon)
    square = (outputs[None, :] - labels[:, None]) ** 2
    cost = np.concatenate([masses @ square / gain, (masses[:, None] * square).ravel()])
    result = linprog(
        cost / cost.max(),
        **_constraints(labels, outputs, gain),
        bounds=(0, None),
        method="highs",
    )
    if result.status != 0:
        raise ParameterError(
            "no unbiased table was found for ", Setting("epsilon", epsilon), f": {result.message}"
        )
    base, added = result.x[:columns], result.x[columns:]
    return base / gain, added.reshape(rows, columns)


def _constraints(labels: Array, outputs: Array, gain: float) -> Data:
    """Return the constraints on τ and s: rows sum to 1 and average to their labels, and s is at most τ."""
    from scipy import sparse  # noqa: PLC0415 (slow to import)

    rows, columns = labels.size, outputs.size
    ones, identity = np.ones((rows, 1)), sparse.eye(rows)
    scale = max(1.0, float(np.abs(outputs).max()))
    equalities = []
    for weights in (np.ones((1, columns)), outputs[None, :] / scale):  # of sums, and of means
        shared = sparse.csr_array(ones @ (weights / gain))
        equalities.append(sparse.hstack([shared, sparse.kron(identity, weights)]))
    return {
        "A_ub": sparse.hstack([sparse.kron(-ones, sparse.eye(columns)), sparse.eye(rows * columns)]).tocsr(),
        "b_ub": np.zeros(rows * columns),
        "A_eq": sparse.vstack(equalities).tocsr(),
        "b_eq": np.concatenate([np.ones(rows), labels / scale]),
    }


class Table(NamedTuple):
    """Outputs for labels in [0, 1], and the counts of each row."""

    outputs: Array
    counts: Rows


def _optimal_table(masses: Array, outputs: Array, epsilon: float, exact: Fraction) -> Table | None:
    """Return the table of least variance for a slightly smaller ε, made exact, or None if that fails."""
    labels = np.linspace(0.0, 1.0, masses.size)
    base, added = _solve(labels, masses, outputs, epsilon)
    is_likely = base > MIN_PROBABILITY * base.max()
    outputs, base, added = outputs[is_likely], base[is_likely], added[:, is_likely]
    floor = _integers(base * float(WORDS))
    room = floor * (exp_lower(exact) - 1) // 1
    positions = np.array([round(Fraction(output) * UNIT) for output in outputs.tolist()], dtype=object)
    spare = WORDS - sum(floor)
    rows = []
    for label, row in zip(labels.tolist(), added, strict=True):
        words = np.clip(_integers(row * float(WORDS)), 0, room)
        moment = round(Fraction(label) * UNIT) * WORDS - int(positions @ floor)
        balanced = _balance(words, room, positions, spare, moment)
        if balanced is None:
            return None
        rows.append(tuple((floor + balanced).tolist()))
    return Table(outputs, tuple(rows))


def _integers(numbers: Array) -> Numbers:
    """Return numbers rounded towards 0, as Python's integers."""
    return np.array([int(number) for number in numbers.tolist()], dtype=object)


def _two_outputs(size: int, low: float, high: float, epsilon: Fraction) -> tuple[Interval, Rows]:
    """Return the outputs and counts of `TwoPoint`, with rows between the bounds: always exact."""
    lie = -(-WORDS // (1 + exp_lower(epsilon)))  # rounded up: towards privacy
    truth = WORDS - lie
    reach = float(Fraction(lie, truth - lie)) * (high - low)
    outputs = low - reach, high + reach
    ups = [lie + round(Fraction((truth - lie) * row, size - 1)) for row in range(size)]
    rows = tuple((WORDS - up, up) for up in ups)
    return outputs, rows


def _balance(words: Numbers, room: Numbers, positions: Numbers, spare: int, moment: int) -> Numbers | None:
    """Return ``words``, changed a little so that they sum to ``spare`` and Σ position · word is near ``moment``.

    First cells that are neither empty nor full take or give the difference of the sums; then words move from one
    cell to another until the mean is right.
    """
    missing = spare - words.sum()
    for o in np.argsort(-np.minimum(words, room - words), kind="stable"):
        change = max(-words[o], min(room[o] - words[o], missing))
        words[o] += change
        missing -= change
    error = moment - positions @ words
    givers = np.argsort(-words, kind="stable").tolist()
    takers = np.argsort(words - room, kind="stable").tolist()
    result, limits, positions = words.tolist(), room.tolist(), positions.tolist()
    for giver, taker in product(givers, takers):
        step = positions[taker] - positions[giver]
        if error * step > 0:
            move = min(abs(error) // abs(step), result[giver], limits[taker] - result[taker])
            result[giver] -= move
            result[taker] += move
            error -= move * step
    close = not missing and abs(error) <= TOLERANCE * UNIT * WORDS
    return np.array(result, dtype=object) if close else None
