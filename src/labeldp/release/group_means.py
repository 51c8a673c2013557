"""Means of groups of unbiased private labels, with standard errors by noise."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from labeldp._values import Array, Index
from labeldp.accounts.scores import Figure
from labeldp.errors import ParameterError
from labeldp.exact.table import TableChannel
from labeldp.mechanisms.base import Mechanism

_MAX_CURVATURE = -0.5
"""Noise whose variance falls faster with the square of a label is not estimated from single labels."""

_MAX_MISFIT = 0.02
"""The largest bias of an estimated square, in squared widths of the domain."""

_TINY = 1e-30
"""Added to the scale of outputs, which may have probability 0."""


def variance_polynomial(mechanism: Mechanism) -> tuple[float, float, float]:
    """Return a, b, c of the noise variance a + b·y + c·y² of an unbiased label y, by least squares on a grid."""
    low, high = mechanism.domain
    labels = np.linspace(low, high, 257)
    variance = mechanism.channel.variance(labels) / mechanism.channel.slope() ** 2
    centre, width = (low + high) / 2, high - low
    c, b, a = np.polyfit((labels - centre) / width, variance, 2)
    return (
        float(a - b * centre / width + c * (centre / width) ** 2),
        float(b / width - 2 * c * centre / width**2),
        float(c / width**2),
    )


def mean_noise_variance(mechanism: Mechanism, private: Array) -> float:
    """Return the mean noise variance of unbiased private labels, estimated from themselves.

    With the variance v(y) = a + b·y + c·y², a private label z has E[z] = y and E[z²] = y² + v(y), so the mean of
    v(z) / (1 + c) is that of v(y). Near c = −1, where the square of z says nothing, the square of the mean is
    taken for the mean of the squares: the variance is then too large by −c times the variance of the true labels.
    """
    a, b, c = variance_polynomial(mechanism)
    mean = float(private.mean())
    if c > _MAX_CURVATURE:
        estimate = (a + b * mean + c * float(np.mean(private**2))) / (1 + c)
    else:
        within = np.clip(mean, *mechanism.domain)
        estimate = a + b * within + c * within**2
    low, high = np.array(mechanism.domain)
    grid = np.linspace(low, high, 257)
    values = a + b * grid + c * grid**2
    return float(np.clip(estimate, values.min(), values.max()))


def noise_variances(mechanism: Mechanism, private: Array) -> Array:
    """Return an estimate of the noise variance of each unbiased private label; its mean over rows is theirs."""
    a, b, c = variance_polynomial(mechanism)
    if c > _MAX_CURVATURE:
        return (a + b * private + c * private**2) / (1 + c)
    return np.full(private.shape, mean_noise_variance(mechanism, private))


def squared_labels(mechanism: Mechanism, values: Array) -> Array:
    """Return an estimate of the square of each label's position from 0 to 1 in the domain, from released values.

    An output z of a table gets h(z) with E[h(z)|y] = y², by least squares over labels y; else z² minus its noise.

    Raises
    ------
    ParameterError
        If no function of the outputs estimates the square, as of two outputs, or for some priors.
    """
    low, high = mechanism.domain
    channel = mechanism.channel
    if not isinstance(channel, TableChannel):
        labels = mechanism.debias(values)
        squares = labels**2 - noise_variances(mechanism, labels)
        return np.asarray((squares - 2 * low * labels + low**2) / (high - low) ** 2)
    positions = np.linspace(0, 1, 257)
    outputs = np.unique(channel.values)
    below = [channel.cumulative(low + (high - low) * position, outputs) for position in positions.tolist()]
    probabilities = np.diff(np.array(below), axis=1, prepend=0.0)
    scales = np.sqrt(probabilities.mean(axis=0)) + _TINY
    estimates = np.linalg.lstsq(probabilities / scales, positions**2, rcond=None)[0] / scales
    if np.abs(probabilities @ estimates - positions**2).max() > _MAX_MISFIT:
        raise ParameterError(
            f"the {outputs.size} different values of these reports do not show squares of answers: for errors of "
            "predictions, design the card with another mechanism, such as rp"
        )
    return np.asarray(estimates[np.searchsorted(outputs, channel.nearest_output(values))])


def parse_groups(by: ArrayLike | None, rows: int) -> tuple[list[Any], Index]:
    """Return the names of groups, and the number of each row's group; all rows are in the group None without them.

    Examples
    --------
    >>> parse_groups(["north", "south", "north"], 3)
    (['north', 'south'], array([0, 1, 0]))
    """
    if by is None:
        return [None], np.zeros(rows, dtype=np.int64)
    groups = np.asarray(by).reshape(-1)
    if groups.size != rows:
        raise ParameterError(f"by must name a group for each of the {rows:,} rows, got {groups.size:,}")
    with suppress(TypeError):  # of names that cannot be sorted
        names, numbers = np.unique(groups, return_inverse=True)
        if (names == names).all():  # noqa: PLR0124 (neither NaN nor NaT equals itself)
            return names.tolist(), numbers
    raise ParameterError("by must have names of one type, without missing ones: text, or numbers")


def group_figures(
    mechanisms: Sequence[tuple[Index, Mechanism]], private: Array, names: Sequence[Any], numbers: Index
) -> dict[Any, Figure]:
    """Return the mean of each group of unbiased private labels of several mechanisms, each with its rows.

    ``numbers`` has the position of each row's group in ``names``; a group without rows has no mean.
    """
    figures: dict[Any, Figure] = {}
    for group in np.unique(numbers).tolist():
        values = private[numbers == group]
        samples = [(mechanism, private[rows[numbers[rows] == group]]) for rows, mechanism in mechanisms]
        variance = sum(
            mean_noise_variance(mechanism, sample) * sample.size for mechanism, sample in samples if sample.size
        )
        figures[names[group]] = Figure(float(values.mean()), float(np.sqrt(variance)) / values.size)
    return figures
