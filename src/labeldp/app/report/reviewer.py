"""For the reviewer: what was proven, of which counts, and how to prove it again."""

from __future__ import annotations

import json
import platform
import sys
from collections import defaultdict
from contextlib import suppress
from fractions import Fraction
from importlib import metadata
from typing import Any

from labeldp import __version__
from labeldp.accounts.reading import ReadCard
from labeldp.accounts.scores import describe_quality
from labeldp.accounts.statistic import proof_of
from labeldp.accounts.verification import noise_checks
from labeldp.app.report.page import Section
from labeldp.exact.proof import fingerprint
from labeldp.mechanisms.base import Mechanism


def proof_sections(card: ReadCard, checksum: str) -> list[Section]:
    """Return the proofs, run again just now, and what they were run with."""
    proofs = [_proofs(card.terms.mechanisms)] if card.terms.mechanisms else []
    return [*proofs, *_noise(card), _statements(card), _how_to_check(card, checksum)]


def _noise(card: ReadCard) -> list[Section]:
    """Return the noise of priors, sums and a score, computed again just now; what cannot be is said."""
    checks = list(noise_checks(card))
    words = [
        "Counts and sums of labels were released with integer noise. When this page was written, each scale was "
        "computed again as sensitivity over ε, in fractions, and the parts added up to what was charged."
    ] * any(check.holds for check in checks)
    if any(check.holds is None and check.needed for check in checks):
        words.append("Not all of it can be checked: the card does not say enough, as cards of older versions.")
    rows = [[check.name, check.detail] for check in checks]
    return [Section("The noise", words, rows=rows)] if rows else []


def _proofs(mechanisms: tuple[Mechanism, ...]) -> Section:
    rows, places = [], defaultdict(list)
    for place, mechanism in enumerate(mechanisms, 1):
        places[mechanism].append(str(place))
    for mechanism, columns in places.items():
        where = f", used for {', '.join(columns)} of {len(mechanisms)}" if len(mechanisms) > 1 else ""
        proof = proof_of(mechanism)
        rows += [
            ["mechanism", type(mechanism).__name__ + where],
            ["parameters", _settings(mechanism)],
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


def _settings(mechanism: Mechanism) -> str:
    settings = {name: value for name, value in mechanism.parameters().items() if value is not None}
    return ", ".join(f"{name} = {_brief(value)}" for name, value in settings.items())


def _brief(value: object) -> str:
    """Return a setting; of long lists only how long they are, as the fingerprint holds them to the bit."""
    if isinstance(value, list) and len(value) > 8:
        inner = f" × {len(value[0])}" if isinstance(value[0], list) else ""
        return f"[{len(value)}{inner} numbers]"
    return json.dumps(value, default=str)


def _delta(delta: float) -> str:
    return f", δ ≤ {delta!r}" if delta else ""


def _ratio(ratio: Fraction | None) -> str:
    if ratio is None:
        return "none: an event may pass e^ε, by δ in all"
    return f"{ratio.numerator} / {ratio.denominator} ≈ {float(ratio):.12g}"


def _statements(card: ReadCard) -> Section:
    source = "secure: AES-256 in counter mode, keyed by the operating system"
    rows = [["random words", source if card.terms.secure else "seeded, NOT PRIVATE"]]
    if "guarantee" in card.content:
        rows.append(["guarantee, as the card states it", card.content["guarantee"]])
    if "note" in card.content:
        rows.append(["note", card.content["note"]])
    if (quality := describe_quality(card.content.get("quality"), card.terms.charges)) is not None:
        rows.append(["how good the model is", quality])
    rows += [["bounds (public)", f"{low:.9g} to {high:.9g}"] for low, high in card.terms.bounds]
    rows += [[f"paid for: {charge.what}", charge.mechanism] for charge in card.terms.charges if charge.mechanism]
    if card.kind == "row-release":
        knowledge = card.content["knowledge"].items()
        rows += [[f"privately known: {name.replace('_', ' ')}", _short(value)] for name, value in knowledge]
    return Section("What the card says", rows=rows)


def _how_to_check(card: ReadCard, checksum: str) -> Section:
    versions = {"labeldp": __version__, f"Python ({sys.platform})": platform.python_version()}
    for name in ("numpy", "scipy", "cryptography", "matplotlib"):
        with suppress(metadata.PackageNotFoundError):  # a card without figures needs no Matplotlib
            versions[name] = metadata.version(name)
    rows = [
        ["card", f"{card.content['schema']}, version {card.content['version']}"],
        ["checksum of the card", checksum],
        ["page written with", ", ".join(f"{name} {version}" for name, version in versions.items())],
    ]
    does = (
        "it builds the mechanisms from the card, proves them again and compares fingerprints"
        if card.terms.mechanisms
        else "it computes the noise of each sum again, and adds it up to what was charged"
    )
    return Section(
        "Check it yourself",
        [
            f"Run  labeldp verify CARD  with the card's file: {does}. Anyone can; it needs no label.",
            "A checksum finds damage and is no signature; if there is one, CARD.sig, add  --trust KEY.pub  with "
            "the key of whoever you expect. The proof shows what a mechanism protects; that it was "
            "used, once, on these labels, is the word of whoever gives you the card.",
        ],
        rows=rows,
    )


ENTRIES = {
    "name": "name",
    "column": "private column",
    "column_holds": "it holds",
    "unbiased_column": "column to train on",
    "rows": "rows",
    "rows_left_out": "left out, without a label",
    "row_order": "order of rows",
    "columns": "all columns",
    "types_changed": "columns of another type",
    "format": "format",
    "separator": "between values",
    "decimal": "decimal mark",
    "encoding": "encoding",
    "not_copied": "not copied",
    "sha256": "SHA-256",
}
"""What a card says of a file, in the order in which people ask for it; other entries come after."""


def file_section(file: dict[str, Any]) -> Section | None:
    """Return what a card says about the file that the labels are in; any entries it has, but empty ones."""
    known = {name: file[name] for name in ENTRIES if name in file}
    entries = {name: value for name, value in {**known, **file}.items() if value not in ({}, [], None, "")}
    rows = [
        [
            ENTRIES.get(name, name.replace("_", " ")),
            _changes(value) if name == "types_changed" else _short(value),
        ]
        for name, value in entries.items()
    ]
    return Section("The file", rows=rows) if rows else None


def _short(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return _MARKS.get(value, value) if isinstance(value, str) else json.dumps(value)


_MARKS = {"\t": "tab", ",": "comma", ";": "semicolon", ".": "point", "|": "vertical bar"}


def _changes(value: dict[str, tuple[str, str]]) -> str:
    """Return the columns whose type changed, in words."""
    return "; ".join(f"{name}: {was} → {now}" for name, (was, now) in value.items())
