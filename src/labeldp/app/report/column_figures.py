"""The figures of each label column, from the card alone, each with a sentence for those who cannot see it."""

from __future__ import annotations

from typing import Any

import numpy as np

from labeldp._values import Array
from labeldp.accounts.accuracy import Accuracy, noise_and_bias
from labeldp.accounts.budget import rounded_up, total_of
from labeldp.accounts.numbers import number, percent, tick, times
from labeldp.accounts.reading import ReadCard
from labeldp.accounts.statistic import proof_of
from labeldp.accounts.terms import Terms
from labeldp.app.report.figures import COLOURS, DASHES, INK, blank, legend, stacked
from labeldp.app.report.page import Section
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram

MOST = 4
"""Label columns, or parts of a release in rounds, that are drawn; the proof lists all."""

MOST_ROWS = 20
"""Label columns that are listed."""

_BINS = 80
"""Bars of a figure; few enough that the grid of released values does not show."""

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
            sections.append(_prior(prior, mechanism, which))
        sections.append(_channel(mechanism, prior, which, in_rounds, bounds))
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


def _prior(prior: Histogram, mechanism: Mechanism, which: str) -> Section:
    """Draw where labels lie, and the interval in which they are distinguished."""
    low, high = mechanism.domain
    left, right = (float(end) for end in _quantiles(prior, [0.001, 0.999]))
    figure, axes = blank("label", "how common")
    axes.axvspan(low, high, color=COLOURS[2], alpha=0.13, lw=0, label="distinguished here")
    axes.stairs(prior.density, prior.nodes, fill=True, color=COLOURS[0], alpha=0.3, lw=0)
    axes.stairs(prior.density, prior.nodes, color=COLOURS[0], lw=1.4, label="prior")
    inside = (prior.nodes[1:] > left) & (prior.nodes[:-1] < right)
    height = float(prior.density[inside].max())
    axes.set(xlim=_with_margin(min(low, left), max(high, right)), ylim=(0, 1.06 * height), yticks=[])
    legend(axes, columns=2)
    below, above = prior.cumulative([low, high])
    alternative = (
        f"The prior's histogram, mean {number(prior.mean)}, with the interval {number(low)} to {number(high)} in "
        f"which labels are distinguished; about {percent(max(0.0, float(below + 1 - above)))} of them lie outside."
    )
    source = "A histogram of the labels, with noise, paid for out of the budget."
    outside = "Labels outside the interval count as its nearer end: less range needs less noise."
    if prior.origin is None:
        source = "What was publicly known about the labels; it cost nothing."
    if getattr(mechanism, "outside", None) == "uniform":
        outside = "Labels outside the interval are answered uniformly at random."
    words = [source, alternative, outside]
    return Section(f"Where labels lie: the prior{which}", words, figure=figure, alternative=alternative)


def _quantiles(prior: Histogram, shares: list[float]) -> Array:
    total = np.concatenate([[0.0], np.cumsum(prior.masses)])
    return np.interp(shares, total / total[-1], prior.nodes)


def _with_margin(left: float, right: float) -> Bounds:
    margin = 0.04 * (right - left)
    return left - margin, right + margin


def _channel(
    mechanism: Mechanism, prior: Histogram | None, which: str, in_rounds: bool, bounds: Bounds
) -> Section:
    """Draw what is released for three labels, one below the other."""
    labels = _example_labels(prior, mechanism.domain)
    channel, edges = mechanism.channel, np.linspace(*_released_range(mechanism, labels), _BINS + 1)
    shares = [100 * np.diff(channel.cumulative(float(label), edges)) for label in labels]
    figure, rows = stacked(len(labels), "released position" if in_rounds else "released value")
    for axes, label, share, colour in zip(rows, labels, shares, COLOURS, strict=False):
        axes.axvspan(*bounds, color=COLOURS[2], alpha=0.1, lw=0)
        axes.stairs(share, edges, fill=True, color=colour)
        axes.plot([label], [0], marker="^", color=colour, clip_on=False, ms=8, ls="none", zorder=5)
        axes.set(xlim=(edges[0], edges[-1]), ylim=(0, 1.15 * float(np.max(shares))))
        axes.set_title(f"label {number(float(label))}", loc="left", fontsize=9.5, pad=2)
    rows[len(rows) // 2].set_ylabel("how often, %")
    proof = proof_of(mechanism)
    ratio = times(proof.epsilon)
    bound = f"At no value is one of them more than {ratio} as likely as another."
    if proof.delta:
        bound = f"No set of values is more than {ratio} as likely under one label as under another, up to δ."
    place = " It is given a label's position in the row's own interval, from 0 to 1." if in_rounds else ""
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
    alternative = (
        f"How likely each released value is for the labels {', '.join(map(number, labels))}: whatever is released "
        "for one of them could have been released for the others."
    )
    return Section(f"What a label becomes{which}", words, figure=figure, alternative=alternative)


def _example_labels(prior: Histogram | None, domain: Bounds) -> Array:
    """Return three labels that show the channel: where the prior has 10, 50 and 90 %, or evenly spaced."""
    low, high = domain
    even = low + (high - low) * np.array([0.1, 0.5, 0.9])
    if prior is None:
        return even
    likely = np.clip(_quantiles(prior, [0.1, 0.5, 0.9]), low, high)
    return likely if np.diff(likely).min() > 0.08 * (high - low) else even


def _released_range(mechanism: Mechanism, labels: Array) -> Bounds:
    """Return a range with the domain, and nearly all that is released for some labels."""
    low, high = left, right = mechanism.domain
    for _ in range(40):
        inside = [np.diff(mechanism.channel.cumulative(float(y), np.array([left, right])))[0] for y in labels]
        if min(inside) > 0.995:
            break
        left, right = left - (right - left), right + (right - left)
    points = np.linspace(left, right, 4001)
    total = np.array([mechanism.channel.cumulative(float(y), points) for y in labels])
    inner = points[(total.max(axis=0) > 0.004) & (total.min(axis=0) < 0.996)]
    return _with_margin(float(min([low, *inner])), float(max([high, *inner])))


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
