"""The figures of each label column: where labels lie, what becomes of them, and what to expect of the result."""

from __future__ import annotations

from labeldp.cards.reading import ReadCard
from labeldp.histogram import Histogram
from labeldp.mechanisms.base import Mechanism
from labeldp.release.accuracy import Accuracy, domain_of
from labeldp.release.explanation import proof_of
from labeldp.release.numbers import number, times
from labeldp.report import plots
from labeldp.report.section import Section

__all__ = ["column_sections"]

MOST = 4
"""Label columns, or parts of a release in rounds, that are drawn; the proof lists all."""

Bounds = tuple[float, float]


def column_sections(card: ReadCard) -> list[Section]:
    """Return the sections with figures, column by column, or part by part for a release in rounds."""
    terms, in_rounds = card.terms, card.kind == "row-release"
    if card.kind == "model":  # its parts say little of its predictions
        return []
    mechanisms = terms.mechanisms
    if in_rounds:  # many parts share a mechanism
        mechanisms = tuple(dict.fromkeys(mechanisms))
    sections = []
    for k, mechanism in enumerate(mechanisms[:MOST]):
        domain = domain_of(mechanism)
        if domain is None:
            continue
        name = f"mechanism {k + 1}" if in_rounds else f"column {k}"  # as charges count columns
        which = f", {name}" if len(mechanisms) > 1 else ""
        bounds = domain if in_rounds else terms.bounds[k]
        prior = None if in_rounds else terms.priors[k]
        if prior is not None:
            sections.append(_prior(prior, mechanism, which, paid=terms.paid_for_prior(k)))
        sections.append(_channel(mechanism, prior, bounds, which, in_rounds))
        sections.append(_noise(mechanism, bounds, which, in_rounds))
        if terms.rows and not in_rounds:
            sections.append(_errors(Accuracy.under(mechanism, prior, bounds), terms.rows, which, prior))
    return sections


def _prior(prior: Histogram, mechanism: Mechanism, which: str, *, paid: bool) -> Section:
    figure, alternative = plots.prior_and_interval(prior, mechanism)
    source = (
        "A histogram of the labels, with noise, paid for out of the budget."
        if paid
        else "What was publicly known about the labels; it cost nothing."
    )
    spread = getattr(mechanism, "outside", None) == "uniform"
    outside = (
        "Labels outside the interval are answered uniformly at random."
        if spread
        else "Labels outside the interval count as its nearer end: less range needs less noise."
    )
    return Section(
        f"Where labels lie: the prior{which}",
        [source, alternative, outside],
        figure=figure,
        alternative=alternative,
    )


def _channel(
    mechanism: Mechanism, prior: Histogram | None, bounds: Bounds, which: str, in_rounds: bool
) -> Section:
    labels = plots.few_labels(mechanism, prior, bounds)
    figure, alternative = plots.channel(mechanism, labels, "released place" if in_rounds else "released value")
    proof = proof_of(mechanism)
    ratio = times(proof.epsilon)
    bound = (
        f"At no value is one of them more than {ratio} as likely as another."
        if not proof.delta
        else f"No set of values is more than {ratio} as likely under one label as under another, up to δ."
    )
    place = " It is given a label's place in the row's own interval, from 0 to 1." if in_rounds else ""
    return Section(
        f"What a label becomes{which}",
        [
            f"The mechanism is {type(mechanism).__name__}.{place} The figure shows what three true labels lead "
            "to. Whatever is released, each of them could have led to it.",
            bound,
        ],
        figure=figure,
        alternative=alternative,
    )


def _noise(mechanism: Mechanism, bounds: Bounds, which: str, in_rounds: bool) -> Section:
    figure, alternative = plots.noise(mechanism, bounds)
    more = ["In units of the row's own interval."] if in_rounds else []
    said = "Bias is what clipping, or the mechanism, moves a label by on average; no averaging removes it."
    return Section(
        f"The noise a label carries{which}", [alternative, said, *more], figure=figure, alternative=alternative
    )


def _errors(accuracy: Accuracy, rows: int, which: str, prior: Histogram | None) -> Section:
    figure, alternative = plots.error_of_means(accuracy, rows)
    counts = [count for count in (1, 100, 10_000, 1_000_000) if count < rows] + [rows]
    errors = [(accuracy.error_of_mean(count), accuracy.sampling_error(count)) for count in counts]
    known = "if labels lie anywhere in the bounds" if prior is None else "by the prior"
    kind = "unbiased private labels" if accuracy.unbiased else "released values, which are biased by design"
    biased = abs(accuracy.bias) > 1e-6 * accuracy.label_spread
    return Section(
        f"What to expect: predicted error{which}",
        [
            f"Of {kind}, {known}. One of them says little about its true label. Noise averages out over many"
            + (f"; a bias of {number(accuracy.bias, 3)} stays." if biased else ".")
            + ("" if accuracy.unbiased else " Labels are drawn together, and so is a model trained on them."),
            "Chance alone is the error of a mean of as many true labels drawn at random: what nobody can avoid.",
        ],
        header=["labels in the mean", "added by privacy", "chance alone"],
        rows=[
            [f"{count:,}", *(f"±{number(float(error))}" for error in pair)]
            for count, pair in zip(counts, errors, strict=True)
        ],
        figure=figure,
        alternative=alternative,
    )
