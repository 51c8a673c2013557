"""The figures of each label column, from the card alone, each with a sentence for those who cannot see it."""

from __future__ import annotations

from typing import Any

import numpy as np

from labeldp._arrays import Array
from labeldp._values import rounded_up
from labeldp.cards.reading import ReadCard
from labeldp.histogram import Histogram
from labeldp.ledger import total_of
from labeldp.mechanisms.base import Mechanism
from labeldp.release.accuracy import Accuracy, noise_and_bias
from labeldp.release.explanation import proof_of
from labeldp.release.numbers import number, percent, tick, times
from labeldp.release.terms import Terms
from labeldp.report.figures import COLOURS, DASHES, INK, blank, legend, stacked
from labeldp.report.page import Section

MOST = 4
"""Label columns, or parts of a release in rounds, that are drawn; the proof lists all."""

MOST_ROWS = 20
"""Label columns that are listed."""

Bounds = tuple[float, float]


def column_sections(card: ReadCard) -> list[Section]:
    """Return the sections with figures, column by column, or part by part for a release in rounds."""
    terms, in_rounds = card.terms, card.kind == "row-release"
    if card.kind == "model":  # what its labels became says little of its predictions
        return []
    mechanisms = tuple(dict.fromkeys(terms.mechanisms)) if in_rounds else terms.mechanisms
    sections = [_overview(terms)] if len(mechanisms) > 1 and not in_rounds else []
    for k, mechanism in enumerate(mechanisms[:MOST]):
        if not mechanism.private:
            continue
        name = f"mechanism {k + 1}" if in_rounds else f"column {k}"  # as charges count columns
        which = f", {name}" if len(mechanisms) > 1 else ""
        bounds, prior = (mechanism.domain, None) if in_rounds else (terms.bounds[k], terms.priors[k])
        if prior is not None:
            sections.append(_prior(prior, mechanism, which, paid=prior.origin is not None))
        sections.append(_channel(mechanism, prior, which, in_rounds, bounds))
        sections.append(_noise(mechanism, bounds, which, in_rounds))
        if terms.rows and not in_rounds:
            sections.append(_errors(Accuracy.under(mechanism, prior, bounds), terms.rows, which, prior))
    return sections


def _overview(terms: Terms) -> Section:
    """Say what several label columns have to do with each other, and what each is."""
    columns = list(zip(terms.mechanisms, terms.bounds, strict=True))
    rows = [
        [str(k), f"{number(low)} to {number(high)}", type(mechanism).__name__, rounded_up(cost.epsilon, 4)]
        for k, (mechanism, (low, high)) in enumerate(columns[:MOST_ROWS])
        for cost in (total_of(charge for charge in terms.charges if charge.column == k),)
    ]
    words = [
        f"Each row has {len(columns)} private labels, in columns that are counted from 0. Each was randomised on "
        "its own, and the costs add up: the ε of this release is for all labels of a row together."
    ]
    if len(columns) > MOST_ROWS:
        words.append(f"The first {MOST_ROWS} are listed.")
    if len(columns) > MOST:
        words.append(f"The figures below show the first {MOST}.")
    return Section("The private columns", words, header=["column", "bounds", "mechanism", "ε for it"], rows=rows)


def _prior(prior: Histogram, mechanism: Mechanism, which: str, *, paid: bool) -> Section:
    """Draw where labels lie, and the interval in which they are told apart."""
    low, high = mechanism.domain
    left, right = _shown_part(prior, low, high)
    unit = _round_up((right - left) / 40)
    figure, axes = blank("label", f"% of labels per {number(unit)}")
    height = 100 * unit * prior.density
    axes.axvspan(low, high, color=COLOURS[2], alpha=0.13, lw=0, label="told apart here")
    for end in (low, high):
        axes.axvline(end, color=COLOURS[2], lw=1.2, ls=DASHES[1])
    axes.stairs(height, prior.nodes, fill=True, color=COLOURS[0], alpha=0.3, lw=0)
    axes.stairs(height, prior.nodes, color=COLOURS[0], lw=1.4, label="prior")
    inside = (prior.nodes[1:] > left) & (prior.nodes[:-1] < right)
    axes.set(xlim=(left, right), ylim=(0, 1.06 * float(height[inside].max())))
    legend(axes, columns=2)
    below, above = prior.cumulative([low, high])
    alternative = (
        f"The prior's histogram, mean {number(prior.mean)}, with the interval {number(low)} to {number(high)} in "
        f"which labels are told apart; about {percent(max(0.0, float(below + 1 - above)))} of them lie outside it."
    )
    source = "A histogram of the labels, with noise, paid for out of the budget."
    outside = "Labels outside the interval count as its nearer end: less range needs less noise."
    if not paid:
        source = "What was publicly known about the labels; it cost nothing."
    if getattr(mechanism, "outside", None) == "uniform":
        outside = "Labels outside the interval are answered uniformly at random."
    words = [source, alternative, outside]
    return Section(f"Where labels lie: the prior{which}", words, figure=figure, alternative=alternative)


def _round_up(width: float) -> float:
    """Return the next of 1, 2, 5, 10 … at or above a width."""
    power = 10.0 ** np.floor(np.log10(width))
    return float(power * next(step for step in (1, 2, 5, 10) if step * power >= width * (1 - 1e-9)))


def _shown_part(prior: Histogram, low: float, high: float) -> Bounds:
    """Return the part of the axis that matters: nearly all of the prior, and the interval."""
    total = np.concatenate([[0.0], np.cumsum(prior.masses)])
    likely = np.interp([0.001, 0.999], total / total[-1], prior.nodes)
    left, right = min(low, float(likely[0])), max(high, float(likely[1]))
    room = 0.04 * (right - left)
    return left - room, right + room


def _channel(
    mechanism: Mechanism, prior: Histogram | None, which: str, in_rounds: bool, bounds: Bounds
) -> Section:
    """Draw what is released for three labels."""
    labels = example_labels(prior, mechanism.domain)
    unit = "released place" if in_rounds else "released value"
    values = getattr(mechanism.channel, "values", None)
    if values is None:
        figure = _densities(mechanism, labels, unit, bounds)
    else:
        figure = _bars(mechanism, labels, np.unique(np.asarray(values)), unit, bounds)
    proof = proof_of(mechanism)
    ratio = times(proof.epsilon)
    bound = f"At no value is one of them more than {ratio} as likely as another."
    if proof.delta:
        bound = f"No set of values is more than {ratio} as likely under one label as under another, up to δ."
    place = " It is given a label's place in the row's own interval, from 0 to 1." if in_rounds else ""
    words = [
        f"The mechanism is {type(mechanism).__name__}.{place} The figure shows what three true labels, the "
        "triangles, lead to, and how often. Whatever is released, each of them could have led to it.",
        bound,
    ]
    if not in_rounds and noise_and_bias(mechanism, np.asarray(bounds))[2]:
        words.append(
            "Released labels may lie outside the bounds (shaded), even below 0, where no true label can be. That "
            "is right: noise that ended there would push labels near the bounds inwards, and means with them. "
            "Do not cut them off: averages and models need them as they are."
        )
    return Section(
        f"What a label becomes{which}",
        words,
        figure=figure,
        alternative=f"How likely each released value is for the labels {', '.join(map(number, labels))}: whatever "
        "is released for one of them could have been released for the others.",
    )


def _noise(mechanism: Mechanism, bounds: Bounds, which: str, in_rounds: bool) -> Section:
    """Draw noise, and what clipping hides, against the label."""
    figure, axes = blank("true label", "typical error, ±")
    labels = np.linspace(*bounds, 401)
    deviation, bias, unbiased = noise_and_bias(mechanism, labels)
    both, most = np.hypot(deviation, bias), float(np.abs(bias).max())
    axes.fill_between(labels, 0, deviation, color=COLOURS[0], alpha=0.18, lw=0)
    axes.plot(labels, deviation, color=COLOURS[0], lw=2, label="noise")
    if most:
        axes.plot(labels, np.abs(bias), color=COLOURS[1], lw=1.6, ls=DASHES[2], label="bias")
        axes.plot(labels, both, color=INK, lw=1.2, ls=DASHES[1], label="both")
    axes.set(xlim=bounds, ylim=(0, 1.08 * float(both.max()) or 1.0))
    legend(axes, columns=3)
    least, middle, largest = (number(float(np.quantile(deviation, q))) for q in (0, 0.5, 1))
    alternative = (
        f"Noise of the {'unbiased private label' if unbiased else 'released value'} against the true label: "
        f"±{middle}, {'for every label' if least == largest else f'between {least} and {largest}'}; "
        + (f"bias of {number(most)} at most." if most else "no bias to speak of.")
    )
    words = [
        alternative,
        "Bias is what clipping, or the mechanism, moves a label by on average; no averaging removes it.",
        *(["In units of the row's own interval."] if in_rounds else []),
    ]
    return Section(f"The noise a label carries{which}", words, figure=figure, alternative=alternative)


def _errors(accuracy: Accuracy, rows: int, which: str, prior: Histogram | None) -> Section:
    """Draw how the error of a mean falls as more private labels are averaged, beside chance alone."""
    figure, axes = blank("labels in the mean", "typical error of the mean")
    counts = np.unique(np.geomspace(1, max(rows, 10), 60))
    private, chance = accuracy.error_of_mean(counts), accuracy.sampling_error(counts)
    axes.plot(counts, private, color=COLOURS[0], lw=2, label="added by privacy")
    axes.plot(counts, chance, color=COLOURS[1], lw=2, ls=DASHES[1], label="chance alone")
    axes.plot([rows], accuracy.error_of_mean(rows), "o", color=INK, ms=5)
    axes.set(xscale="log", yscale="log")
    _use_plain_ticks(axes)
    axes.set_ylim(min(*private, *chance) / 1.6, max(*private, *chance) * 1.6)
    legend(axes, columns=2)
    steps = [count for count in (1, 100, 10_000, 1_000_000) if count < rows] + [rows]
    table = [
        [
            f"{many:,}",
            *(f"±{number(float(e))}" for e in (accuracy.error_of_mean(many), accuracy.sampling_error(many))),
        ]
        for many in steps
    ]
    assumption = "if labels lie anywhere in the bounds" if prior is None else "by the prior"
    kind = "unbiased private labels" if accuracy.unbiased else "released values, which are biased by design"
    if accuracy.unbiased and _what_stays(accuracy) != ".":
        kind = "private labels, unbiased but for clipping"
    return Section(
        f"What to expect: predicted error{which}",
        [
            f"Of {kind}, {assumption}. One of them says little about its true label. Noise averages out over many"
            + _what_stays(accuracy)
            + ("" if accuracy.unbiased else " Labels are drawn together, and so is a model trained on them."),
            "Chance alone is the error of a mean of as many true labels drawn at random: what nobody can avoid.",
        ],
        header=["labels in the mean", "added by privacy", "chance alone"],
        rows=table,
        figure=figure,
        alternative=f"The error that privacy adds to a mean falls from {table[0][1]} for one label to "
        f"{table[-1][1]} for all {rows:,}; chance alone gives {table[0][2]} and {table[-1][2]}.",
    )


def _what_stays(accuracy: Accuracy) -> str:
    """Return how a sentence on averaging ends: with the part of each ± that no averaging removes."""
    if accuracy.floor <= 1e-6 * accuracy.label_spread:
        return "."
    if not accuracy.doubt:
        return f"; a bias of {number(accuracy.bias, 3)} stays."
    what = "what clipping does to the mean" if accuracy.unbiased else "their bias"
    return (
        f"; ±{number(accuracy.floor)} stays however many there are: {what}. That is an estimate from the private "
        "prior, which knows rare labels only roughly, so the true bias may be larger."
    )


def _use_plain_ticks(axes: Any) -> None:
    """Write numbers on logarithmic axes as people do, and few of them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator  # noqa: PLC0415 (an extra)

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(numticks=7))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))


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


def _densities(mechanism: Mechanism, labels: Array, unit: str, bounds: Bounds) -> Any:
    figure, axes = blank(unit, "how likely")
    edges = _edges(mechanism, labels)
    axes.axvspan(*bounds, color=COLOURS[2], alpha=0.1, lw=0)
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
    inner = points[(total.max(axis=0) > 0.004) & (total.min(axis=0) < 0.996)]
    room = 0.04 * (inner[-1] - inner[0])
    first, last = inner[0] - room, inner[-1] + room
    steps = getattr(mechanism.channel, "steps", None)
    if steps is None:
        return np.linspace(first, last, _BINS + 1)
    step = (high - low) / steps
    each = max(1, round((last - first) / _BINS / step))
    count = int((last - first) / (each * step)) + 1
    start = low + (np.floor((first - low) / step) + 0.5) * step
    return np.asarray(start + each * step * np.arange(count + 1))


def _bars(mechanism: Mechanism, labels: Array, values: Array, unit: str, bounds: Bounds) -> Any:
    """Draw listed outputs, one row for each label: beside each other they would hide each other."""
    figure, rows = stacked(len(labels), unit)
    shares = [100 * np.diff(mechanism.channel.cumulative(float(y), values), prepend=0.0) for y in labels]
    highest = max(float(share.max()) for share in shares)
    ends = min(values[0], bounds[0]), max(values[-1], bounds[1])
    room = 0.04 * (ends[1] - ends[0])
    for axes, label, share, colour in zip(rows, labels, shares, COLOURS, strict=False):
        axes.axvspan(*bounds, color=COLOURS[2], alpha=0.1, lw=0)
        axes.vlines(values, 0, share, color=colour, lw=2.6 if values.size <= 40 else 0.8)
        axes.plot([label], [0], marker="^", color=colour, clip_on=False, ms=8, ls="none", zorder=5)
        axes.set(ylim=(0, 1.15 * highest), xlim=(ends[0] - room, ends[1] + room))
        axes.set_title(f"label {number(float(label))}", loc="left", fontsize=9.5, pad=2)
    rows[len(rows) // 2].set_ylabel("how often, %")
    return figure
