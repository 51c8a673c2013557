"""What the labels of each column become, from the card alone."""

from __future__ import annotations

import numpy as np

from labeldp.accounts.accuracy import noise_and_bias
from labeldp.accounts.numbers import number, times
from labeldp.accounts.reading import ReadCard
from labeldp.accounts.statistic import proof_of
from labeldp.app.report.figures import COLOURS, stacked
from labeldp.app.report.page import Section
from labeldp.mechanisms.base import Mechanism

MOST = 4
"""Label columns that are shown; the proof lists all."""

_BINS = 80
"""Bars of a figure; few enough that the grid of released values does not show."""


def column_sections(card: ReadCard) -> list[Section]:
    """Return a section for each column; a model and a release in rounds have none."""
    terms = card.terms
    if card.kind in ("model", "row-release"):
        return []
    names = [f", column {k}" for k in range(MOST)] if len(terms.mechanisms) > 1 else [""]  # as charges count them
    return [_channel(*column) for column in zip(terms.mechanisms, names, terms.bounds, strict=False)]


def _channel(mechanism: Mechanism, which: str, bounds: tuple[float, float]) -> Section:
    """Draw what is released for three labels, one below the other."""
    channel, (low, high) = mechanism.channel, mechanism.domain
    labels = low + (high - low) * np.array([0.1, 0.5, 0.9])
    mean, reach = channel.mean(labels), 4 * np.sqrt(channel.variance(labels))
    left, right = min(low, *(mean - reach)), max(high, *(mean + reach))
    edges = np.linspace(left, right, _BINS + 1)
    shares = [100 * np.diff(channel.cumulative(float(label), edges)) for label in labels]
    figure, rows = stacked(len(labels), "released value")
    for axes, label, share, colour in zip(rows, labels, shares, COLOURS, strict=False):
        axes.axvspan(*bounds, color=COLOURS[2], alpha=0.1, lw=0)
        axes.stairs(share, edges, fill=True, color=colour)
        axes.plot([label], [0], marker="^", color=colour, clip_on=False, ms=8, ls="none", zorder=5)
        axes.set(xlim=(left, right), ylim=(0, 1.15 * float(np.max(shares))))
        axes.set_title(f"label {number(float(label))}", loc="left", fontsize=9.5, pad=2)
    rows[1].set_ylabel("how often, %")
    proof = proof_of(mechanism)
    factor = f"more than {times(proof.epsilon)} as likely"
    bound = f"At no value is one of them {factor} as another."
    if proof.delta:
        bound = f"No set of values is {factor} under one label as under another, up to δ."
    words = [
        f"The mechanism is {type(mechanism).__name__}. The figure shows what three true labels, the triangles, "
        "lead to, and how often. Whatever is released, each of them could have led to it.",
        bound,
    ]
    if noise_and_bias(mechanism, np.asarray(bounds))[2]:
        words.append(
            "Released labels may lie outside the bounds (shaded), even below 0, where no true label can be. Do "
            "not cut them off: averages and models need them as they are."
        )
    alternative = f"How likely each released value is for the labels {', '.join(map(number, labels))}."
    return Section(f"What a label becomes{which}", words, figure=figure, alternative=alternative)
