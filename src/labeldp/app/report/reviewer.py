"""For the reviewer: what was proven, of which counts, and how to prove it again."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np

from labeldp.accounts.numbers import number
from labeldp.accounts.reading import ReadCard
from labeldp.accounts.statistic import proof_of
from labeldp.accounts.verification import noise_checks
from labeldp.app.report.page import Section
from labeldp.mechanisms.base import Mechanism, fingerprint


def proof_sections(card: ReadCard) -> list[Section]:
    """Return the proofs, run again just now, what else the card says, and how to check it."""
    return [*_proof(card.terms.mechanisms), *_noise(card), _statements(card), _HOW_TO_CHECK]


def _proof(mechanisms: tuple[Mechanism, ...]) -> list[Section]:
    rows = []
    for mechanism in dict.fromkeys(mechanisms):
        proof, count = proof_of(mechanism), mechanisms.count(mechanism)
        used = f", for {count} of {len(mechanisms)} columns or rounds" if len(mechanisms) > 1 else ""
        rows += [
            ["mechanism", type(mechanism).__name__ + used],
            ["parameters", _parameters(mechanism)],
            ["promised", f"ε ≤ {mechanism.epsilon!r}" + _delta(mechanism.delta)],
            ["proven", f"ε ≤ {proof.epsilon!r}" + _delta(proof.delta)],
            ["worst ratio, exact", _ratio(proof.worst_ratio)],
            ["checked", "every output, every pair of labels"],
            ["fingerprint of the counts", fingerprint(mechanism.channel)],
        ]
    words = (
        "When this page was written, each mechanism was built again from the card, and its guarantee proven in "
        "exact integer arithmetic from the counts of 64-bit words that are sampled. No floating-point number "
        "decides. The proof takes the random words to be ideal."
    )
    return [Section("The proof", [words], rows=rows)] if rows else []


def _parameters(mechanism: Mechanism) -> str:
    """Return the parameters; of long lists only their shapes, as the fingerprint holds them to the bit."""
    shown = []
    for name, value in mechanism.parameters().items():
        is_long = isinstance(value, list) and len(value) > 8
        text = f"{' × '.join(map(str, np.shape(value)))} numbers" if is_long else json.dumps(value, default=str)
        shown += [f"{name} = {text}"] if value is not None else []
    return ", ".join(shown)


def _delta(delta: float) -> str:
    return f", δ ≤ {delta!r}" if delta else ""


def _ratio(ratio: Fraction | None) -> str:
    if ratio is None:
        return "none: an event may pass e^ε, by δ in all"
    return f"{ratio.numerator} / {ratio.denominator} ≈ {float(ratio):.12g}"


def _noise(card: ReadCard) -> list[Section]:
    """Return the noise of priors, sums and a score, computed again just now; what cannot be is said."""
    checks, words = list(noise_checks(card)), []
    if any(check.holds for check in checks):
        words.append(
            "Counts and sums of labels were released with integer noise. When this page was written, each scale "
            "was computed again as sensitivity over ε, in fractions, and the parts added up to what was charged."
        )
    if any(check.holds is None and check.needed for check in checks):
        words.append("Not all of it can be checked: the card does not say enough, as cards of older versions.")
    rows = [[check.name, check.detail] for check in checks]
    return [Section("The noise", words, rows=rows)] if rows else []


def _statements(card: ReadCard) -> Section:
    content, terms = card.content, card.terms
    rows = [
        ["card", f"{content['schema']}, version {content['version']}"],
        ["random words", "secure" if terms.secure else "seeded, NOT PRIVATE"],
    ]
    rows += [[name, content[name]] for name in ("guarantee", "note") if name in content]
    rows += [["bounds (public)", f"{number(low, 9)} to {number(high, 9)}"] for low, high in terms.bounds]
    return Section("What the card says", rows=rows)


_HOW_TO_CHECK = Section(
    "Check it yourself",
    [
        "Run  labeldp verify CARD  with the card's file: it builds the mechanisms from the card, proves them "
        "again, and computes the noise of each sum again. Anyone can; it needs no label.",
        "Run  labeldp report CARD  to write this page yourself: a report that somebody sends you is not evidence.",
        "A checksum finds damage and is no signature. The proof shows what a mechanism protects; that it was "
        "used, once, on these labels, is the word of whoever gives you the card.",
    ],
)
