"""`Reports`: values that respondents randomised themselves, each by a mechanism's card, and nobody else read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from labeldp._values import Array, Counts, Index, Interval, parse_integer
from labeldp.accounts.accuracy import is_possible
from labeldp.accounts.budget import Budget, Charge, new_charge
from labeldp.accounts.numbers import number
from labeldp.accounts.schema import MAX_MECHANISMS
from labeldp.accounts.scope import Scope
from labeldp.accounts.scores import Figure
from labeldp.accounts.statistic import origins_of
from labeldp.accounts.terms import REPORTS, Terms
from labeldp.errors import LabelError, NotUnbiasedError, ParameterError, describe, list_first
from labeldp.mechanisms.base import Mechanism, fingerprint, join_fingerprints, require_pure
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.deconvolution import deconvolve, label_likelihood
from labeldp.release.group_means import group_figures, mean_noise_variance, parse_groups, squared_labels

_FEWEST_BINS = 8
"""The least number of bins of a histogram by default."""

_FINE_BINS = 32
"""The least number of bins of the finer histogram that is smoothed, and the most by default."""

_MAX_BINS = 64
"""The largest number of bins of a histogram."""

MAX_CUTS = 128
"""Cuts between ranges of values that a histogram counts."""

_SHOWN_ROWS = 5
"""Row numbers in an error."""

_DIGITS = 10
"""Values whose digits all end here, after the first of the largest, were rounded: a float64 has 16."""

_TINY = 1e-290
"""Values that are smaller count as this where digits are counted."""


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """A public interval for each respondent, whose answer's position in it is randomised.

    Attributes
    ----------
    low, high : arrays
        The ends of each interval.
    offset, scale : arrays
        The label is estimated by offset + scale · unbiased position.
    noise, hidden : arrays
        The variance of the noise in each label, and the variance that clipping to the interval hides: as expected
        when the interval was planned.
    bounds : (lo, hi)
        The bounds of the label; all intervals lie inside.

    Examples
    --------
    >>> import numpy as np
    >>> from labeldp.learning.survey_rounds import plan_round
    >>> intervals = plan_round(np.ones((500, 1)), bounds=(0, 100), epsilon=2.0, rows=500).intervals
    >>> intervals.bounds, bool((intervals.low >= 0).all()), bool((intervals.widths > 0).all())
    ((0.0, 100.0), True, True)
    """

    low: Array
    high: Array
    offset: Array
    scale: Array
    noise: Array
    hidden: Array
    bounds: Interval

    @property
    def widths(self) -> Array:
        """The width of each interval."""
        return self.high - self.low

    def arrays(self) -> dict[str, Array]:
        """Return all arrays by name."""
        return {name: getattr(self, name) for name in ("low", "high", "offset", "scale", "noise", "hidden")}

    def joined(self, later: Intervals) -> Intervals:
        """Return the intervals of both."""
        if self.bounds != later.bounds:
            raise ParameterError(f"reports with the bounds {self.bounds} and {later.bounds} cannot be joined")
        later_arrays = later.arrays()
        arrays = {name: np.append(array, later_arrays[name]) for name, array in self.arrays().items()}
        return Intervals(**arrays, bounds=self.bounds)


@dataclass(frozen=True, eq=False, repr=False)
class Reports:
    """Values that were randomised where they were given, with the card of a mechanism: nobody saw the labels.

    They are measurements like any others. The respondents spent the ε, and nothing here is charged: whatever
    follows from reports costs nothing more.

    Parameters
    ----------
    values : array-like
        The released values, as a client sent them.
    mechanism : Mechanism or sequence of Mechanism
        The mechanism of the card, from `load_mechanism`; or the one of each value. `+` joins the reports of
        several cards.
    rows_per_person : int
        The most reports of one person, whose cost adds up.
    intervals : Intervals, optional
        Of respondents who randomised the position of their answer in an interval of their own, by a mechanism on
        [0, 1]: `plan_round` plans them. Such reports are for models.

    Attributes
    ----------
    values : array
    mechanisms : tuple of Mechanism
        Each once.
    part : array of int
        The position of each value's mechanism in ``mechanisms``.
    charge : Charge
        The cost as a card states it: the respondents'. It is in no ledger.

    Raises
    ------
    LabelError
        If a value cannot be drawn with its card; the message has the number of its row, from 1.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> card = ldp.Unbiased.for_bounds((0, 100), 2.0).to_json()             # in the form of a survey
    >>> answers = np.random.default_rng(0).normal(40, 10, 5000)             # seen by nobody
    >>> mechanism = ldp.load_mechanism(card)
    >>> reports = ldp.Reports(mechanism.randomize(answers), mechanism)      # what arrives
    >>> reports
    <5,000 reports from 0 to 100, ε = 2>
    >>> bool(abs(reports.mean().value - 40) < 5), bool(abs(reports.histogram().mean - 40) < 5)
    (True, True)
    """

    values: Array
    mechanisms: tuple[Mechanism, ...] = field(init=False)
    part: Index = field(init=False)
    charge: Charge = field(init=False)
    rows_per_person: int = 1
    intervals: Intervals | None = None

    def __init__(
        self,
        values: ArrayLike,
        mechanism: Mechanism | Sequence[Mechanism],
        *,
        rows_per_person: int = 1,
        intervals: Intervals | None = None,
    ) -> None:
        array = _parse_values(values)
        mechanisms, numbers = _parse_mechanisms(mechanism, array.size)
        people = parse_integer(rows_per_person, "rows_per_person")
        array.flags.writeable = numbers.flags.writeable = False
        prints = join_fingerprints([fingerprint(mechanism.channel) for mechanism in mechanisms])
        parsed = {
            "values": array,
            "mechanisms": mechanisms,
            "part": numbers,
            "rows_per_person": people,
            "intervals": intervals,
        }
        for name, value in parsed.items():
            object.__setattr__(self, name, value)  # the instance is frozen
        self._refuse_impossible()
        if intervals is not None:
            _refuse_other_intervals(intervals, array.size, mechanisms)
        cost = Budget(self.epsilon)
        charge = new_charge(REPORTS, cost, purpose="labels", mechanism=prints, scope=Scope(people))
        object.__setattr__(self, "charge", charge)

    def __len__(self) -> int:
        return int(self.values.size)

    def __repr__(self) -> str:
        low, high = map(number, self.bounds)
        return f"<{len(self):,} reports from {low} to {high}, {self.charge.budget}>"

    def __add__(self, later: Reports) -> Reports:
        if not isinstance(later, Reports):
            return NotImplemented
        if self.rows_per_person != later.rows_per_person:
            raise ParameterError("reports with another rows_per_person cannot be joined: give both the same")
        if (self.intervals is None) != (later.intervals is None):
            raise ParameterError("reports with intervals and without cannot be joined")
        intervals = None
        if self.intervals is not None and later.intervals is not None:
            intervals = self.intervals.joined(later.intervals)
        values = np.concatenate([self.values, later.values])
        mechanisms = [*self._mechanism_of_rows(), *later._mechanism_of_rows()]
        return Reports(values, mechanisms, rows_per_person=self.rows_per_person, intervals=intervals)

    def _mechanism_of_rows(self) -> list[Mechanism]:
        """Return the mechanism of each value."""
        return [self.mechanisms[position] for position in self.part.tolist()]

    @property
    def epsilon(self) -> float:
        """The ε of a report; of several mechanisms, the largest."""
        return max(mechanism.epsilon for mechanism in self.mechanisms)

    @property
    def bounds(self) -> Interval:
        """The bounds of the cards: labels outside were clipped on the device."""
        if self.intervals is not None:
            return self.intervals.bounds
        ends = [mechanism.domain for mechanism in self.mechanisms]
        return min(low for low, _ in ends), max(high for _, high in ends)

    @cached_property
    def labels(self) -> Array:
        """Unbiased labels: each has the mean of the label, clipped to the bounds of its card."""
        labels = np.empty(len(self))
        for rows, mechanism in self.by_mechanism():
            labels[rows] = mechanism.debias(self.values[rows])
        if self.intervals is not None:
            labels = self.intervals.offset + self.intervals.scale * labels
        labels.flags.writeable = False
        return labels

    @cached_property
    def noise_variances(self) -> tuple[float, ...]:
        """The mean variance of the noise in the labels of each mechanism, as planned or estimated from reports."""
        if self.intervals is not None:
            noise = self.intervals.noise
            return tuple(float(noise[rows].mean()) for rows, _ in self.by_mechanism())
        return tuple(mean_noise_variance(mechanism, self.labels[rows]) for rows, mechanism in self.by_mechanism())

    def by_mechanism(self) -> Iterator[tuple[Index, Mechanism]]:
        """Yield the rows of each mechanism, and the mechanism."""
        for position, mechanism in enumerate(self.mechanisms):
            yield np.flatnonzero(self.part == position), mechanism

    @property
    def terms(self) -> Terms:
        """The terms of whatever follows from the reports."""
        return Terms(
            rows=len(self),
            mechanisms=self.mechanisms,
            priors=(),
            charges=(self.charge,),
            bounds=(self.bounds,),
            trust="local",
            secure=all(origin.secure for origin in origins_of(self.mechanisms)),
        )

    def _refuse_impossible(self) -> None:
        """Refuse values that their mechanism cannot draw; what stands in their rows may be true answers."""
        is_wrong = ~np.isfinite(self.values)
        for rows, mechanism in self.by_mechanism():
            is_wrong[rows] |= ~is_possible(self.values[rows], mechanism, debiased=False)
        wrong = (np.flatnonzero(is_wrong) + 1).tolist()
        if wrong:
            remedy = "leave such rows out"
            if _lack_digits(self.values):
                remedy = (
                    "the values were rounded or stored as float32, it seems. Take them as the form sent them, as "
                    "float64 with all digits"
                )
            raise LabelError(
                f"no answer gives the value in row {list_first(wrong, _SHOWN_ROWS)} with its "
                f"card: {remedy}, and check that no form sends true answers"
            )

    def _refuse_intervals(self) -> None:
        """Refuse figures of answers that were clipped to intervals around predictions."""
        if self.intervals is not None:
            raise ParameterError(
                "these answers were clipped to an interval for each respondent: take figures from predictions of "
                "a model, which fit_reports learns"
            )

    def _refuse_clipped(self) -> None:
        """Refuse figures of answers of which some were clipped to narrower bounds than others."""
        self._refuse_intervals()
        if any(mechanism.domain != self.bounds for mechanism in self.mechanisms):
            raise ParameterError(
                "these cards clip answers to different bounds: take figures of the reports with the widest, by "
                "widest()"
            )

    def widest(self) -> Reports:
        """Return the reports by cards that clip answers to the bounds of all, and to no narrower ones.

        Raises
        ------
        ParameterError
            If no card has the bounds of all.
        """
        is_widest = np.array([mechanism.domain == self.bounds for mechanism in self.mechanisms])[self.part]
        if not is_widest.any():
            raise ParameterError("no card has the widest bounds: take figures of the reports of each card")
        mechanisms = list(compress(self._mechanism_of_rows(), is_widest))
        return Reports(self.values[is_widest], mechanisms, rows_per_person=self.rows_per_person)

    def mean(self) -> Figure:
        """Return the mean of the answers, clipped to the bounds, with its standard error.

        Returns
        -------
        Figure
            ``interval`` covers, in 95 % of surveys, the mean of the people from whom respondents were drawn at
            random; that of the respondents alone is nearer.

        Examples
        --------
        >>> import numpy as np, labeldp as ldp
        >>> mechanism = ldp.TwoPoint(bounds=(0, 10), epsilon=1.0)
        >>> reports = ldp.Reports(mechanism.randomize(np.full(10_000, 4.0)), mechanism)
        >>> mean = reports.mean()
        >>> bool(abs(mean.value - 4) < 5 * mean.standard_error), mean.standard_error < 0.15
        (True, True)
        """
        self._refuse_clipped()
        spreads = [float(self.labels[rows].var()) for rows, _ in self.by_mechanism()]
        variances = np.maximum(spreads, self.noise_variances)  # else a few equal reports look certain
        variance = float(np.bincount(self.part) @ variances) / len(self) ** 2
        return Figure(float(self.labels.mean()), math.sqrt(variance))

    def means(self, by: ArrayLike) -> dict[Any, Figure]:
        """Return the mean of the answers in each public group, with its standard error by noise alone.

        Parameters
        ----------
        by : array-like
            The group of each report, in their order: an index of pandas is not compared.

        Returns
        -------
        dict of Figure
            By group.
        """
        self._refuse_clipped()
        return group_figures(list(self.by_mechanism()), self.labels, *parse_groups(by, len(self)))

    def histogram(self, bins: int | None = None) -> Histogram:
        """Return the histogram of the answers under which such reports are likely.

        By expectation maximisation over all cards, as smooth as the reports ask for. It is public, as reports are:
        a card may be designed with it for people who have not answered yet.

        Its shares have no standard errors: smoothing removes narrow peaks, and no simulation from a smooth
        histogram shows that error. ``labeldp design --prior`` forecasts the errors for a distribution that is
        known or assumed.

        Parameters
        ----------
        bins : int, optional
            From 2 to 64; by default √n, from 8 to 32.

        Raises
        ------
        ParameterError
            If the values do not show squares of answers: those of two-point, or of some cards for a prior.

        Examples
        --------
        >>> import numpy as np, labeldp as ldp
        >>> mechanism = ldp.RPWithPrior(interval=(0, 100), zeta=15, epsilon=4.0)
        >>> reports = ldp.Reports(mechanism.randomize(np.linspace(20, 40, 20_000)), mechanism)
        >>> histogram = reports.histogram(bins=10)
        >>> bool(histogram.masses[2:4].sum() > 0.8)
        True
        """
        if bins is None:
            bins = int(np.clip(round(math.sqrt(len(self))), _FEWEST_BINS, _FINE_BINS))
        size = parse_integer(bins, "bins", 2, _MAX_BINS)
        nodes, likelihood, counts = self.count_ranges(size)
        masses = deconvolve(likelihood, counts).reshape(size, -1)
        return Histogram(nodes[:: masses.shape[1]], masses.sum(axis=1))

    def count_ranges(self, bins: int) -> tuple[Array, Array, Counts]:
        """Return edges of subdivided bins, the likelihood of ranges of values given these, and counts of values.

        Parameters
        ----------
        bins : int
        """
        self._refuse_intervals()
        distinct = max(np.unique(self.values[rows]).size for rows, _ in self.by_mechanism())
        if distinct < 3:
            raise ParameterError(
                f"these reports have {distinct} different values, which show the mean alone: for a histogram, "
                "design the card with another mechanism, such as rp"
            )
        subdivisions = -(-_FINE_BINS // bins)  # smoothing is over these
        nodes = np.linspace(*self.bounds, bins * subdivisions + 1)
        pieces, counts = [], []
        for rows, mechanism in self.by_mechanism():
            cuts = _cuts(self.values[rows], mechanism.domain)
            pieces.append(label_likelihood(mechanism.channel, nodes, cuts) * (rows.size / len(self)))
            counts.append(np.bincount(np.searchsorted(cuts, self.values[rows]), minlength=cuts.size + 1))
        return nodes, np.concatenate(pieces), np.concatenate(counts)

    def mean_squared_error(self, predictions: ArrayLike) -> Figure:
        """Return the mean squared error of predictions of the answers, with its standard error.

        It is unbiased, but for cards of the mechanism ``unbiased``: there the bias is at most a fiftieth of the
        squared width of the bounds, and mostly far less.

        Parameters
        ----------
        predictions : array-like
            Of a model that was fitted to other reports.

        Raises
        ------
        ParameterError
            If the values do not show squares of answers: those of two-point, or of some cards for a prior.
        """
        self._refuse_clipped()
        predicted = np.asarray(predictions, dtype=np.float64).reshape(-1)
        if predicted.size != len(self):
            raise ParameterError(f"there are {len(self):,} reports, and {predicted.size:,} predictions")
        low, high = self.bounds
        labels, predicted = (self.labels - low) / (high - low), (predicted - low) / (high - low)
        squares = predicted**2 - 2 * predicted * labels
        for rows, mechanism in self.by_mechanism():
            squares[rows] += squared_labels(mechanism, self.values[rows])
        squares *= (high - low) ** 2
        return Figure(float(squares.mean()), float(squares.std() / math.sqrt(len(self))))


def _parse_values(values: ArrayLike) -> Array:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise LabelError("reports must be numbers: read the column as one of numbers") from None
    if array.ndim != 1 or not array.size:
        raise LabelError(f"reports must be one column with at least one row, got the shape {array.shape}")
    return array


def _lack_digits(values: Array) -> bool:
    """Return whether all values seem to be rounded, or to come from float32."""
    if not np.isfinite(values).all():
        return False
    largest = max(float(np.abs(values).max()), _TINY)
    rounded = np.round(values, _DIGITS - math.floor(math.log10(largest)))
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return bool((np.abs(values - rounded) <= 1e-15 * largest).all() or (values == single).all())


def _parse_mechanisms(mechanism: Any, size: int) -> tuple[tuple[Mechanism, ...], Index]:
    """Return each mechanism once, and the number of each value's."""
    is_list = isinstance(mechanism, Sequence) and not isinstance(mechanism, str)
    entries = list(mechanism) if is_list else [mechanism]
    by_identity = {id(entry): entry for entry in entries}
    for entry in by_identity.values():
        if not isinstance(entry, Mechanism):
            raise ParameterError(f"mechanism must be one that load_mechanism returned, got {describe(entry)}")
        require_pure(entry)
    if not is_list:
        return (mechanism,), np.zeros(size, dtype=np.int64)
    if len(entries) != size:
        raise ParameterError(
            f"there are {size:,} values, and {len(entries):,} mechanisms: give one for each value"
        )
    positions = {entry: position for position, entry in enumerate(dict.fromkeys(by_identity.values()))}
    if len(positions) > MAX_MECHANISMS:
        raise ParameterError(
            f"reports may have {MAX_MECHANISMS} different mechanisms, got {len(positions)}: take those of fewer "
            "cards"
        )
    position_of = {key: positions[entry] for key, entry in by_identity.items()}
    return tuple(positions), np.array([position_of[id(entry)] for entry in entries], dtype=np.int64)


def _refuse_other_intervals(intervals: Intervals, size: int, mechanisms: Sequence[Mechanism]) -> None:
    """Refuse intervals of other respondents, outside the bounds, or for other mechanisms."""
    low, high = intervals.bounds
    arrays = intervals.arrays().values()
    if any(mechanism.domain != (0.0, 1.0) for mechanism in mechanisms):
        raise ParameterError("with intervals the mechanism is for positions from 0 to 1")
    if any(array.shape != (size,) for array in arrays):
        raise ParameterError(f"there are {size:,} values, and not as many intervals: give one for each value")
    if not np.isfinite([*arrays]).all():
        raise ParameterError("intervals must be finite numbers")
    is_inside = (low <= intervals.low) & (intervals.low < intervals.high) & (intervals.high <= high)
    if not is_inside.all():
        raise ParameterError("an interval is empty, or not within the bounds")


def _cuts(values: Array, domain: Interval) -> Array:
    """Return the cuts between ranges of values that are counted: each value by itself if there are few."""
    distinct = np.unique(values)
    if distinct.size <= MAX_CUTS:
        return (distinct[1:] + distinct[:-1]) / 2
    low, high = domain
    margin = (high - low) / 2
    first, last = max(distinct[0], low - margin), min(distinct[-1], high + margin)
    return np.linspace(first, last, MAX_CUTS)


def unbiased_labels(reports: Reports) -> Array:
    """Return unbiased labels, or refuse reports that have none: no model can learn a mean from them."""
    try:
        return reports.labels
    except NotUnbiasedError as error:
        raise ParameterError(f"no model can learn from these reports: {error}") from None
