"""For the reviewer: what was proven, of which counts, and how to prove it again."""

from __future__ import annotations

import json
import platform
import sys
from collections import defaultdict
from fractions import Fraction

import numpy as np

from labeldp import __version__
from labeldp._values import Data
from labeldp.accounts.numbers import number
from labeldp.accounts.reading import ReadCard
from labeldp.accounts.scores import describe_quality
from labeldp.accounts.statistic import proof_of
from labeldp.accounts.verification import noise_checks
from labeldp.app.report.figures import require_matplotlib
from labeldp.app.report.page import Section
from labeldp.exact.proof import fingerprint
from labeldp.mechanisms.base import Mechanism


def proof_sections(card: ReadCard, checksum: str, written_with: str) -> list[Section]:
    """Return the proofs, run again just now, and what they were run with."""
    proofs = [_proofs(card.terms.mechanisms)] if card.terms.mechanisms else []
    return [*proofs, *_noise(card), _statements(card), _how_to_check(card, checksum, written_with)]


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


def _proofs(mechanisms: tuple[Mechanism, ...]) -> Section:
    rows, positions = [], defaultdict(list)
    for position, mechanism in enumerate(mechanisms, 1):
        positions[mechanism].append(str(position))
    for mechanism, columns in positions.items():
        where = f", used for {', '.join(columns)} of {len(mechanisms)}" if len(mechanisms) > 1 else ""
        proof = proof_of(mechanism)
        rows += [
            ["mechanism", type(mechanism).__name__ + where],
            ["parameters", ", ".join(f"{name} = {value}" for name, value in _settings(mechanism).items())],
            ["promised", f"ε ≤ {mechanism.epsilon!r}" + _delta(mechanism.delta)],
            ["proven", f"ε ≤ {proof.epsilon!r}" + _delta(proof.delta)],
            ["worst ratio, exact", _ratio(proof.worst_ratio)],
            ["checked", proof.checked or "every output, every pair of labels"],
            ["fingerprint of the counts", fingerprint(mechanism.channel)],
        ]
    return Section(
        "The proof",
        [
            "When this page was written, each mechanism was built again from the card, and its guarantee proven "
            "in exact integer arithmetic from the very counts of 64-bit words that are sampled. No floating-point "
            "number decides. The proof takes the random words to be ideal."
        ],
        rows=rows,
    )


def _settings(mechanism: Mechanism) -> dict[str, str]:
    """Return the parameters; of long lists only their shapes, as the fingerprint holds them to the bit."""
    given = {name: value for name, value in mechanism.parameters().items() if value is not None}
    return {
        name: f"{' × '.join(map(str, np.shape(value)))} numbers"
        if isinstance(value, list) and len(value) > 8
        else json.dumps(value, default=str)
        for name, value in given.items()
    }


def _delta(delta: float) -> str:
    return f", δ ≤ {delta!r}" if delta else ""


def _ratio(ratio: Fraction | None) -> str:
    if ratio is None:
        return "none: an event may pass e^ε, by δ in all"
    return f"{ratio.numerator} / {ratio.denominator} ≈ {float(ratio):.12g}"


def _statements(card: ReadCard) -> Section:
    content, terms = card.content, card.terms
    source = "secure: AES-256 in counter mode, keyed by the operating system"
    rows = [["random words", source if terms.secure else "seeded, NOT PRIVATE"]]
    rows += [[name, content[name]] for name in ("guarantee", "note") if name in content]
    if (quality := describe_quality(content.get("quality"), terms.charges)) is not None:
        rows.append(["how good the model is", quality])
    rows += [["bounds (public)", f"{number(low, 9)} to {number(high, 9)}"] for low, high in terms.bounds]
    rows += [[f"paid for: {charge.what}", charge.mechanism] for charge in terms.charges if charge.mechanism]
    if card.kind == "row-release":
        rows += [[f"privately known: {name}", value] for name, value in _entries(content["knowledge"])]
    return Section("What the card says", rows=rows)


def environment() -> str:
    """Return what a page is written and drawn with."""
    python = f"Python {platform.python_version()} ({sys.platform})"
    drawn = f"Matplotlib {require_matplotlib().__version__}"
    return f"labeldp {__version__}, {python}, NumPy {np.__version__}, {drawn}"


def _how_to_check(card: ReadCard, checksum: str, written_with: str) -> Section:
    rows = [
        ["card", f"{card.content['schema']}, version {card.content['version']}"],
        ["checksum of the card", checksum],
        ["page written with", written_with],
    ]
    does = "it computes the noise of each sum again, and adds it up to what was charged"
    if card.terms.mechanisms:
        does = "it builds the mechanisms from the card, proves them again and compares fingerprints"
    return Section(
        "Check it yourself",
        [
            f"Run  labeldp verify CARD  with the card's file: {does}. Anyone can; it needs no label.",
            "Run  labeldp verify PAGE CARD  to compare this page with the card, too.",
            "A checksum finds damage and is no signature; if there is one, CARD.sig, add  --trust KEY.pub  with "
            "the key of whoever you expect. The proof shows what a mechanism protects; that it was "
            "used, once, on these labels, is the word of whoever gives you the card.",
        ],
        rows=rows,
    )


def file_section(file: Data) -> Section | None:
    """Return what a card says about the file that the labels are in."""
    rows = [list(entry) for entry in _entries(file)]
    return Section("The file", rows=rows) if rows else None


def _entries(content: Data) -> list[tuple[str, str]]:
    """Return the names and values of entries of a card as text, without those that are empty."""
    shown = {name: value for name, value in content.items() if value not in ({}, [], None, "")}
    return [(name.replace("_", " "), _text(value)) for name, value in shown.items()]


def _text(value: object) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    if isinstance(value, str) and len(value) > 1:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return number(value, 9) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
