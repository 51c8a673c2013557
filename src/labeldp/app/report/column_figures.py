"""The figures of each label column, from the card alone, each with a sentence for those who cannot see it."""

from __future__ import annotations

import numpy as np

from labeldp._values import Array, Data
from labeldp.accounts.accuracy import Accuracy, noise_and_bias
from labeldp.accounts.numbers import number, percent, tick, times
from labeldp.accounts.reading import ReadCard
from labeldp.accounts.scores import coefficient_cells, describe_fit
from labeldp.accounts.statistic import proof_of
from labeldp.app.report.figures import COLOURS, DASHES, INK, blank, legend, stacked, visible
from labeldp.app.report.page import Section
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram

MOST = 4
"""Label columns that are drawn; the proof lists all."""

MOST_COEFFICIENTS, LARGEST_DRAWN = 40, 1e100
"""Of a regression table; what is more, or larger, is in the table alone."""

_BINS = 80
"""Bars of a figure; few enough that the grid of released values does not show."""

Bounds = tuple[float, float]


def column_sections(card: ReadCard) -> list[Section]:
    """Return the sections with figures, column by column; a model and a release in rounds have none."""
    terms, sections = card.terms, list[Section]()
    if card.kind in ("model", "row-release"):
        return []
    for k, mechanism in enumerate(terms.mechanisms[:MOST]):
        which = f", column {k}" if len(terms.mechanisms) > 1 else ""  # as charges count columns
        bounds, prior = terms.bounds[k], terms.priors[k]
        if prior is not None:
            sections.append(_prior(prior, mechanism, which))
        sections.append(_channel(mechanism, prior, which, bounds))
        if terms.rows:
            sections.append(_errors(Accuracy.under(mechanism, prior, bounds), terms.rows, which, prior))
    return sections


def coefficient_sections(content: Data) -> list[Section]:
    """Return the table of coefficients of a regression's card, and a figure of their intervals."""
    table = content.get("regression")
    if table is None or not {"pvalues", "conf_int"} <= table.keys():
        return []
    head, *rows = coefficient_cells(table)
    words = [*content.get("note", "").splitlines(), *describe_fit(content.get("fit", {}))]
    title = f"The regression table of {content.get('label', 'the label')}"
    return [Section(title, [], head, rows), Section("How to read it", words, **_intervals(table))]


def _intervals(table: Data) -> Data:
    """Draw coefficients with their intervals; the intercept, which may be far larger, only if it is alone."""
    first = int(table["names"][:1] == ["Intercept"] and len(table["names"]) > 1)
    names, values = table["names"][first:], table["params"][first:]
    ends = np.array(table["conf_int"][first:], dtype=np.float64).reshape(-1, 2)
    if not 0 < len(ends) <= MOST_COEFFICIENTS or np.abs([*ends.flat, *values]).max() >= LARGEST_DRAWN:
        return {}
    figure, axes = blank("coefficient", "", size=(4.7, 1.2 + 0.3 * len(ends)))
    places = np.arange(len(ends))
    axes.hlines(places, *ends.T, color=COLOURS[0], linewidth=2)
    axes.plot(values, places, "o", color=COLOURS[0], ms=5)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(places, [visible(name[:30]).replace("$", r"\$") for name in names])
    axes.set_ylim(len(ends) - 0.5, -0.5)
    return {"figure": figure, "alternative": "Coefficients with their 95 % intervals, as in the table."}


def _prior(prior: Histogram, mechanism: Mechanism, which: str) -> Section:
    """Draw where labels lie, and the interval in which they are distinguished."""
    low, high = mechanism.domain
    left, right = _quantiles(prior, [0.001, 0.999])
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
    if prior.origin is None:
        source = "What was publicly known about the labels; it cost nothing."
    outside = "Labels outside the interval count as its nearer end: less range needs less noise."
    if getattr(mechanism, "outside", None) == "uniform":
        outside = "Labels outside the interval are answered uniformly at random."
    return Section(
        f"Where labels lie: the prior{which}",
        [source, alternative, outside],
        figure=figure,
        alternative=alternative,
    )


def _quantiles(prior: Histogram, shares: list[float]) -> Array:
    total = np.concatenate([[0.0], np.cumsum(prior.masses)])
    return np.interp(shares, total / total[-1], prior.nodes)


def _with_margin(left: float, right: float) -> Bounds:
    margin = 0.04 * (right - left)
    return left - margin, right + margin


def _channel(mechanism: Mechanism, prior: Histogram | None, which: str, bounds: Bounds) -> Section:
    """Draw what is released for three labels, one below the other."""
    channel, labels = mechanism.channel, _example_labels(prior, mechanism.domain)
    reach = 4 * np.sqrt(channel.variance(labels))
    ends = [*mechanism.domain, *(channel.mean(labels) - reach), *(channel.mean(labels) + reach)]
    edges = np.linspace(*_with_margin(min(ends), max(ends)), _BINS + 1)
    shares = [100 * np.diff(channel.cumulative(float(label), edges)) for label in labels]
    figure, rows = stacked(len(labels), "released value")
    for axes, label, share, colour in zip(rows, labels, shares, COLOURS, strict=False):
        axes.axvspan(*bounds, color=COLOURS[2], alpha=0.1, lw=0)
        axes.stairs(share, edges, fill=True, color=colour)
        axes.plot([label], [0], marker="^", color=colour, clip_on=False, ms=8, ls="none", zorder=5)
        axes.set(xlim=(edges[0], edges[-1]), ylim=(0, 1.15 * float(np.max(shares))))
        axes.set_title(f"label {number(float(label))}", loc="left", fontsize=9.5, pad=2)
    rows[len(rows) // 2].set_ylabel("how often, %")
    proof = proof_of(mechanism)
    bound = f"At no value is one of them more than {times(proof.epsilon)} as likely as another."
    if proof.delta:
        bound = (
            f"No set of values is more than {times(proof.epsilon)} as likely under one label as under another, "
            "up to δ."
        )
    words = [
        f"The mechanism is {type(mechanism).__name__}. The figure shows what three true labels, the triangles, "
        "lead to, and how often. Whatever is released, each of them could have led to it.",
        bound,
    ]
    if noise_and_bias(mechanism, np.asarray(bounds))[2]:
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


def _errors(accuracy: Accuracy, rows: int, which: str, prior: Histogram | None) -> Section:
    """Draw how the error of a mean falls as more private labels are averaged, beside chance alone."""
    figure, axes = blank("labels in the mean", "typical error of the mean")
    counts = np.unique(np.geomspace(1, max(rows, 10), 60))
    private, chance = accuracy.error_of_mean(counts), accuracy.sampling_error(counts)
    axes.plot(counts, private, color=COLOURS[0], lw=2, label="added by privacy")
    axes.plot(counts, chance, color=COLOURS[1], lw=2, ls=DASHES[1], label="chance alone")
    axes.plot([rows], accuracy.error_of_mean(rows), "o", color=INK, ms=5)
    axes.set(xscale="log", yscale="log", ylim=(min(*private, *chance) / 1.6, max(*private, *chance) * 1.6))
    axes.minorticks_off()
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(numticks=7)
        axis.set_major_formatter(lambda value, _: tick(value))
    legend(axes, columns=2)
    steps = np.array([*(count for count in (1, 100, 10_000, 1_000_000) if count < rows), rows], dtype=np.float64)
    table = [
        [f"{int(many):,}", f"±{number(float(one))}", f"±{number(float(other))}"]
        for many, one, other in zip(
            steps, accuracy.error_of_mean(steps), accuracy.sampling_error(steps), strict=True
        )
    ]
    stays = _what_stays(accuracy)
    kind = "released values, which are biased by design"
    if accuracy.unbiased:
        kind = "unbiased private labels" if stays == "." else "private labels, unbiased but for clipping"
    assumption = "if labels lie anywhere in the bounds" if prior is None else "by the prior"
    drawn = "" if accuracy.unbiased else " Labels are drawn together, and so is a model trained on them."
    return Section(
        f"What to expect: predicted error{which}",
        [
            f"Of {kind}, {assumption}. One of them says little about its true label. Noise averages out over many"
            f"{stays}{drawn}",
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
