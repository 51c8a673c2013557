"""`design_card`: the mechanism for a survey, without data, and the errors of its reports."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from labeldp._values import Epsilon, Interval, LabelBounds, parse_choice, parse_integer
from labeldp.accounts.accuracy import Accuracy
from labeldp.accounts.numbers import number, percent
from labeldp.errors import ParameterError
from labeldp.exact.word_sources import simulation_words
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.interval import choose_mechanism
from labeldp.mechanisms.registry import mechanism_class
from labeldp.release.deconvolution import simulated_errors
from labeldp.release.plan import mechanism_choices
from labeldp.release.reports import Reports

SIZES = (1_000, 10_000, 100_000)
"""Numbers of reports that are previewed."""

COLUMNS = 10
"""Public columns of the model that is previewed."""

BINS = 10
"""Bins of the histogram that is previewed."""

_BELL = 64
"""Bins of the assumed distribution of answers."""


def design_card(
    *,
    bounds: Interval,
    epsilon: float,
    prior: Histogram | None = None,
    mechanism: str = "auto",
    rows: int | None = None,
) -> Mechanism:
    """Return the mechanism for a survey, made without labels; without ``rows`` unbiased anywhere in the bounds.

    Parameters
    ----------
    bounds : (lo, hi)
        Answers outside are clipped on the device.
    epsilon : float
        The cost of an answer to the respondent.
    prior : Histogram, optional
        A public distribution of the answers, for which noise is smallest; of it, the part outside the bounds
        counts as answers at the bounds.
    mechanism : str
        "auto" takes the least noise on average over the prior, or evenly over the bounds.
    rows : int, optional
        For a model of so many reports: the card clips answers that are rare in the prior, for less noise in all
        others. Means and histograms need other reports.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.evidence.designs import design_card
    >>> design_card(bounds=(0, 200_000), epsilon=1.0).name
    'unbiased'
    >>> prior = ldp.Histogram([0, 30_000, 60_000, 200_000], [6, 3, 1])
    >>> design_card(bounds=(0, 200_000), epsilon=1.0, prior=prior, rows=20_000).domain[1] < 150_000
    True
    """
    interval, budget = LabelBounds(bounds), Epsilon(epsilon)
    if rows is not None and prior is None:
        raise ParameterError(
            "a card for a model needs a prior: a public one, or the histogram of the first reports", option="prior"
        )
    unbiased = [name for name in mechanism_choices() if name == "auto" or mechanism_class(name).unbiased]
    name = parse_choice(mechanism, "mechanism", unbiased)
    restricted = None if prior is None else Histogram.parse(prior).restricted(*interval)
    reports = None if rows is None else parse_integer(rows, "rows")
    designed = choose_mechanism(
        name, restricted, bounds=interval, epsilon=budget, rows=reports, clips=rows is not None
    )
    return designed.with_origin(None)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Typical errors of estimates from a number of reports, in the label's unit.

    Attributes
    ----------
    reports : int
    mean : float or None
        Half the width of the 95 % interval of the mean; None where the card clips answers that the prior has.
    model : float
        The error that noise adds to a linear model of ten columns; at most the labels' standard deviation.
    histogram : float or None
        Typical error of the share of one of ten bins, the root of the mean square over bins and surveys; None
        where values show the mean alone.

    Examples
    --------
    >>> from labeldp.evidence.designs import design_card, forecast
    >>> one, = forecast(design_card(bounds=(0, 100), epsilon=1.0, mechanism="two-point"), sizes=[5000])
    >>> one.reports, round(one.mean, 1), one.histogram
    (5000, 2.9, None)
    """

    reports: int
    mean: float | None
    model: float
    histogram: float | None


def forecast(mechanism: Mechanism, prior: Histogram | None = None, sizes: Sequence[int] = SIZES) -> list[Forecast]:
    """Return the typical errors of estimates from reports, for answers that are distributed as the prior.

    Without a prior they lie as most answers do in bounds that nobody passes: as a bell whose peak is at a fifth of
    the bounds, with a long right tail (a beta distribution, 2 and 5).

    Parameters
    ----------
    mechanism : Mechanism
    prior : Histogram, optional
    sizes : sequence of int
        Numbers of reports.

    Examples
    --------
    >>> from labeldp.evidence.designs import design_card, forecast
    >>> few, _, many = forecast(design_card(bounds=(0, 100), epsilon=1.0))
    >>> 5 < few.mean < 7, 0.5 < many.mean < 0.7
    (True, True)
    """
    assumed = _bell(mechanism.domain) if prior is None else prior
    clipped = assumed.restricted(*mechanism.domain)
    accuracy = Accuracy.under(mechanism, assumed, assumed.bounds)
    variance = accuracy.noise**2 + clipped.variance
    bias = accuracy.bias**2 + accuracy.bias_spread**2
    return [
        Forecast(
            reports=size,
            mean=1.96 * math.sqrt(variance / size) if clipped is assumed else None,
            model=min(accuracy.label_spread, math.sqrt(COLUMNS * variance / size + bias)),
            histogram=_histogram_error(mechanism, clipped, size),
        )
        for size in sizes
    ]


def _bell(bounds: Interval) -> Histogram:
    ends = np.linspace(0.0, 1.0, _BELL + 1)
    below = 1 - (1 - ends) ** 5 * (1 + 5 * ends)
    return Histogram(np.linspace(*bounds, _BELL + 1), np.diff(below))


def forecast_table(forecasts: Sequence[Forecast]) -> tuple[list[str], list[list[str]]]:
    """Return a header, and a line for each thing that reports show."""
    header = ["", *(f"{forecast.reports:,} reports" for forecast in forecasts)]
    lines = [
        ["mean, 95 %", *(_error(forecast.mean) for forecast in forecasts)],
        [f"model of {COLUMNS} columns", *(_error(forecast.model) for forecast in forecasts)],
        [f"share of one of {BINS} bins", *(_error(forecast.histogram, percent) for forecast in forecasts)],
    ]
    return header, lines


def certainty(epsilon: float) -> float:
    """Return how sure anyone can be of one of two answers that were equally likely before: e^ε / (1 + e^ε).

    Examples
    --------
    >>> round(certainty(1.0), 4)
    0.7311
    """
    return 1 / (1 + math.exp(-epsilon))


_three_digits = partial(number, digits=3)


def _error(error: float | None, text: Callable[[float], str] = _three_digits) -> str:
    return "not possible" if error is None else f"±{text(error)}"


def _histogram_error(mechanism: Mechanism, prior: Histogram, size: int) -> float | None:
    """Return the typical error of a bin's share over simulated surveys; None if values show the mean alone.

    The seed is fixed, and no label is in it.
    """
    answers = np.interp(np.random.default_rng(0).random(size), prior.cumulative(prior.nodes), prior.nodes)
    values = mechanism.randomize_checked(answers, simulation_words(0))
    if np.unique(values).size < 3:
        return None
    nodes, likelihood, _ = Reports(values, mechanism).count_ranges(BINS)
    errors = simulated_errors(likelihood, np.diff(prior.cumulative(nodes)), size, BINS)
    return math.sqrt(float(np.mean(errors**2)))
