"""What a channel makes of a few labels, drawn: a density, or stems where outputs are few."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp.histogram import Histogram
from labeldp.mechanisms.base import Mechanism
from labeldp.release.numbers import number
from labeldp.report.figures import COLOURS, DASHES, blank, legend

__all__ = ["draw_channel", "example_labels"]

Array = NDArray[np.float64]
Bounds = tuple[float, float]

_BINS = 420


def example_labels(prior: Histogram | None, domain: Bounds) -> Array:
    """Return three labels that show the channel: where the prior has 10, 50 and 90 %, or evenly placed."""
    low, high = domain
    even = low + (high - low) * np.array([0.1, 0.5, 0.9])
    if prior is None:
        return even
    total = np.concatenate([[0.0], np.cumsum(prior.masses)])
    places = np.clip(np.interp([0.1, 0.5, 0.9], total / total[-1], prior.nodes), low, high)
    return places if np.diff(places).min() > 0.08 * (high - low) else even


def draw_channel(mechanism: Mechanism, labels: Array, unit: str) -> Any:
    """Return a figure of how likely each output is, for a few labels."""
    values = getattr(mechanism.channel, "values", None)
    if values is None:
        return _densities(mechanism, labels, unit)
    return _stems(mechanism, labels, np.unique(np.asarray(values)), unit)


def _densities(mechanism: Mechanism, labels: Array, unit: str) -> Any:
    figure, axes = blank(unit, "density")
    edges = _edges(mechanism, labels)
    for label, colour, style in zip(labels, COLOURS, DASHES, strict=False):
        height = mechanism.density(float(label), edges)
        axes.stairs(height, edges, color=colour, lw=1.8, ls=style, label=f"label {number(label)}")
        axes.plot([label], [0], marker="^", color=colour, clip_on=False, ms=7, ls="none", zorder=5)
    axes.set(ylim=(0, axes.get_ylim()[1]), xlim=(edges[0], edges[-1]), yticks=[])
    legend(axes, columns=3)
    return figure


def _edges(mechanism: Mechanism, labels: Array) -> Array:
    """Return bins over nearly all that is released, in step with the grid where there is a coarse one."""
    low, high = left, right = mechanism.domain
    width = high - low
    for _ in range(40):
        inside = [np.diff(mechanism.channel.cumulative(float(y), np.array([left, right])))[0] for y in labels]
        if min(inside) > 0.995:
            break
        left, right, width = left - width, right + width, 2 * width
    points = np.linspace(left, right, 4001)
    total = np.array([mechanism.channel.cumulative(float(y), points) for y in labels])
    used = points[(total.max(axis=0) > 0.004) & (total.min(axis=0) < 0.996)]
    room = 0.04 * (used[-1] - used[0])
    first, last = used[0] - room, used[-1] + room
    steps = getattr(mechanism.channel, "steps", None)
    if steps is None:
        return np.linspace(first, last, _BINS + 1)
    step = (high - low) / steps
    each = max(1, round((last - first) / _BINS / step))
    count = int((last - first) / (each * step)) + 1
    start = low + (np.floor((first - low) / step) + 0.5) * step
    return np.asarray(start + each * step * np.arange(count + 1))


def _stems(mechanism: Mechanism, labels: Array, values: Array, unit: str) -> Any:
    figure, axes = blank(unit, "probability")
    width = float(values[-1] - values[0]) or 1.0
    many = values.size > 12
    highest = 0.0
    for k, (label, colour) in enumerate(zip(labels, COLOURS, strict=False)):
        share = np.diff(mechanism.channel.cumulative(float(label), values), prepend=0.0)
        place = values if many else values + (k - 1) * 0.018 * width
        axes.vlines(place, 0, share, color=colour, lw=0.8 if many else 2, alpha=0.5 if many else 1)
        size = 3 if many else 6
        axes.plot(place, share, marker="os^"[k], ms=size, color=colour, ls="none", label=f"label {number(label)}")
        highest = max(highest, float(share.max()))
    axes.set_ylim(0, 1.08 * highest)
    legend(axes, columns=3)
    return figure
