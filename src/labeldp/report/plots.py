"""The report's figures, each from the card alone, each with a sentence for those who cannot see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp.histogram import Histogram
from labeldp.mechanisms.base import Mechanism
from labeldp.release.accuracy import Accuracy, domain_of, noise_and_bias
from labeldp.release.numbers import at_most, number, percent, tick
from labeldp.report.figures import COLOURS, INK, SOFT, blank, legend

__all__ = ["belief", "channel", "error_of_means", "few_labels", "noise", "prior_and_interval"]

Array = NDArray[np.float64]
Plot = tuple[Any, str]
"""A figure, and a sentence that says what it shows."""
_STYLES = ("-", (0, (4, 1.5)), (0, (1, 1)))
"""Lines differ by their dashes too: not everyone tells colours apart, and not every printer has them."""

_BINS = 420


def belief(epsilon: float) -> Plot:
    """Draw how certain one can be afterwards against how certain one was before."""
    figure, axes = blank("certain before, %", "certain after, %")
    before = np.linspace(0, 1, 201)
    high, low = at_most(before, epsilon), at_most(before, -epsilon)
    axes.fill_between(100 * before, 100 * low, 100 * high, color=COLOURS[0], alpha=0.22, lw=0)
    axes.plot(100 * before, 100 * high, color=COLOURS[0], lw=2, label="at most")
    axes.plot(100 * before, 100 * low, color=COLOURS[0], lw=2, ls=_STYLES[1], label="at least")
    axes.plot([0, 100], [0, 100], color=SOFT, lw=1, ls=":", label="nothing learned")
    axes.set(xlim=(0, 100), ylim=(0, 100))
    legend(axes, columns=3)
    half = percent(float(at_most(0.5, epsilon)))
    return (
        figure,
        f"A band around the diagonal: who was 50 % certain before can be {half} certain afterwards at most.",
    )


def prior_and_interval(prior: Histogram, mechanism: Mechanism) -> Plot:
    """Draw where labels lie, and the interval in which they are told apart."""
    low, high = domain_of(mechanism) or prior.bounds
    left, right = _where(prior, low, high)
    unit = _nice((right - left) / 40)
    figure, axes = blank("label", f"% of labels per {number(unit)}")
    height = 100 * unit * prior.density
    axes.axvspan(low, high, color=COLOURS[2], alpha=0.13, lw=0, label="told apart here")
    for end in (low, high):
        axes.axvline(end, color=COLOURS[2], lw=1.2, ls=_STYLES[1])
    axes.stairs(height, prior.nodes, fill=True, color=COLOURS[0], alpha=0.3, lw=0)
    axes.stairs(height, prior.nodes, color=COLOURS[0], lw=1.4, label="prior")
    shown = (prior.nodes[1:] > left) & (prior.nodes[:-1] < right)
    axes.set(xlim=(left, right), ylim=(0, 1.06 * float(height[shown].max())))
    legend(axes, columns=2)
    below, above = prior.cumulative([low, high])
    outside = percent(float(max(0.0, below + 1 - above)))
    return figure, (
        f"The prior's histogram, mean {number(prior.mean)}, with the interval {number(low)} to {number(high)} in "
        f"which labels are told apart; about {outside} of labels lie outside it."
    )


def _nice(width: float) -> float:
    """Return the next of 1, 2, 5, 10 … at or above a width."""
    power = 10.0 ** np.floor(np.log10(width))
    return float(power * next(step for step in (1, 2, 5, 10) if step * power >= width * (1 - 1e-9)))


def _where(prior: Histogram, low: float, high: float) -> tuple[float, float]:
    """Return the part of the axis that matters: nearly all of the prior, and the interval."""
    total = np.concatenate([[0.0], np.cumsum(prior.masses)])
    likely = np.interp([0.001, 0.999], total / total[-1], prior.nodes)
    left, right = min(low, float(likely[0])), max(high, float(likely[1]))
    room = 0.04 * (right - left)
    return left - room, right + room


def few_labels(mechanism: Mechanism, prior: Histogram | None, bounds: tuple[float, float]) -> Array:
    """Return three labels that show the channel: where the prior has 10, 50 and 90 %, or evenly placed."""
    low, high = domain_of(mechanism) or bounds
    even = low + (high - low) * np.array([0.1, 0.5, 0.9])
    if prior is None:
        return even
    total = np.concatenate([[0.0], np.cumsum(prior.masses)])
    places = np.clip(np.interp([0.1, 0.5, 0.9], total / total[-1], prior.nodes), low, high)
    return places if np.diff(places).min() > 0.08 * (high - low) else even


def channel(mechanism: Mechanism, labels: Array, unit: str = "released value") -> Plot:
    """Draw what is released for a few labels: a density, or stems where outputs are few."""
    values = getattr(mechanism.channel, "values", None)
    draw = _stems if values is not None else _densities
    words = ", ".join(number(label) for label in labels)
    return draw(mechanism, labels, unit), (
        f"How likely each released value is for the labels {words}: whatever is released for one of them could "
        "have been released for the others."
    )


def _densities(mechanism: Mechanism, labels: Array, unit: str) -> Any:
    figure, axes = blank(unit, "density")
    edges = _edges(mechanism, labels)
    for label, colour, style in zip(labels, COLOURS, _STYLES, strict=False):
        height = mechanism.density(float(label), edges)
        axes.stairs(height, edges, color=colour, lw=1.8, ls=style, label=f"label {number(label)}")
        axes.plot([label], [0], marker="^", color=colour, clip_on=False, ms=7, ls="none", zorder=5)
    axes.set(ylim=(0, axes.get_ylim()[1]), xlim=(edges[0], edges[-1]), yticks=[])
    legend(axes, columns=3)
    return figure


def _edges(mechanism: Mechanism, labels: Array) -> Array:
    """Return bins over nearly all that is released, in step with the grid where there is a coarse one."""
    low, high = domain_of(mechanism) or (float(labels[0]), float(labels[-1]))
    left, right, width = low, high, high - low
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


def _stems(mechanism: Mechanism, labels: Array, unit: str) -> Any:
    figure, axes = blank(unit, "probability")
    values = np.unique(np.asarray(mechanism.channel.values))  # type: ignore[attr-defined]
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


def noise(mechanism: Mechanism, bounds: tuple[float, float]) -> Plot:
    """Draw noise, and what clipping hides, against the label."""
    figure, axes = blank("true label", "typical error, ±")
    labels = np.linspace(*bounds, 401)
    deviation, bias, unbiased = noise_and_bias(mechanism, labels)
    both, most = np.hypot(deviation, bias), float(np.abs(bias).max())
    axes.fill_between(labels, 0, deviation, color=COLOURS[0], alpha=0.18, lw=0)
    axes.plot(labels, deviation, color=COLOURS[0], lw=2, label="noise")
    if most:
        axes.plot(labels, np.abs(bias), color=COLOURS[1], lw=1.6, ls=_STYLES[2], label="bias")
        axes.plot(labels, both, color=INK, lw=1.2, ls=_STYLES[1], label="both")
    axes.set(xlim=bounds, ylim=(0, 1.08 * float(both.max()) or 1.0))
    legend(axes, columns=3)
    kind = "unbiased private label" if unbiased else "released value"
    least, middle, largest = (number(float(np.quantile(deviation, q))) for q in (0, 0.5, 1))
    between = "for every label" if least == largest else f"between {least} and {largest}"
    return figure, (
        f"Noise of the {kind} against the true label: ±{middle}, {between}; "
        + (f"bias of {number(most)} at most." if most else "no bias to speak of.")
    )


def error_of_means(accuracy: Accuracy, rows: int) -> Plot:
    """Draw how the error of a mean falls as more private labels are averaged, beside chance alone."""
    figure, axes = blank("labels in the mean", "typical error of the mean")
    counts = np.unique(np.geomspace(1, max(rows, 10), 60))
    private, chance = accuracy.error_of_mean(counts), accuracy.sampling_error(counts)
    axes.plot(counts, private, color=COLOURS[0], lw=2, label="added by privacy")
    axes.plot(counts, chance, color=COLOURS[1], lw=2, ls=_STYLES[1], label="chance alone")
    axes.plot([rows], accuracy.error_of_mean(rows), "o", color=INK, ms=5)
    axes.set(xscale="log", yscale="log")
    _plain_ticks(axes, [*private, *chance])
    legend(axes, columns=2)
    return figure, (
        f"The error that privacy adds to a mean falls from {number(float(private[0]))} for one label to "
        f"{number(float(accuracy.error_of_mean(rows)))} for all {rows:,}; chance alone gives "
        f"{number(float(chance[0]))} and {number(float(accuracy.sampling_error(rows)))}."
    )


def _plain_ticks(axes: Any, values: Sequence[float]) -> None:
    """Write numbers on logarithmic axes as people do, and few of them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator  # noqa: PLC0415 (an extra)

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(numticks=7))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    low, high = min(values), max(values)
    axes.set_ylim(low / 1.6, high * 1.6)
