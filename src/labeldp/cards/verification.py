"""Checking a card again, step by step: what holds, what does not, and what no check can show."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labeldp import card_format
from labeldp._validation import rounded_up
from labeldp.cards.reading import ReadCard, read_any_card, schema_of
from labeldp.cards.statements import proof_of
from labeldp.errors import LabelDPError, MissingExtraError
from labeldp.release.numbers import times

__all__ = ["BEYOND", "Check", "Verification", "verify_card"]

BEYOND = (
    "that the noise came from the secure source: the card says so, and only whoever ran it knows",
    "that nobody kept the true labels, or released them elsewhere too",
    "that the bounds were chosen without looking at the labels, and so was a prior that it calls public",
    "that a prior cost no more than the epsilon charged for it: its noise is not on the card",
    "that the file holds private labels and not the true ones: its checksum only ties the card to its bytes",
    "who wrote the card: its checksum finds damage, but it is no signature",
)
"""What verifying a card cannot show."""

MODEL_FILES = {"columns.json", "model.npz", "release.npz"}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes
    ----------
    name : str
    holds : bool or None
        None if it could not be looked at, and then `detail` says why.
    detail : str
    """

    name: str
    holds: bool | None
    detail: str


@dataclass(frozen=True, slots=True)
class Verification:
    """All checks of a card; `holds` if none failed."""

    checks: tuple[Check, ...]
    card: ReadCard | None

    @property
    def holds(self) -> bool:
        """Whether no check failed."""
        return self.card is not None and all(check.holds is not False for check in self.checks)


def verify_card(
    text: str, *, file: str | os.PathLike[str] | None = None, folder: str | os.PathLike[str] | None = None
) -> Verification:
    """Check a card, prove its mechanisms again, and compare it with the file it speaks of.

    Parameters
    ----------
    text : str
    file : path, optional
        What was released with the card.
    folder : path, optional
        Where to look for the file by the name on the card, if none is given.

    Examples
    --------
    >>> import labeldp as ldp
    >>> done = verify_card(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json())
    >>> [check.name for check in done.checks], done.holds
    (['checksum', 'agreement', 'proof', 'privacy'], True)
    """
    checks: list[Check] = []
    try:
        card = _read(text, checks)
    except LabelDPError as error:
        checks.append(Check("checksum" if not checks else "agreement", False, str(error)))
        return Verification(tuple(checks), None)
    checks += _proofs(card)
    checks.append(_privacy(card))
    checks += _files(card, file, folder)
    return Verification(tuple(checks), card)


def _read(text: str, checks: list[Check]) -> ReadCard:
    card_format.parse(text, schema_of(text))
    checks.append(Check("checksum", True, "the card is as it was written"))
    card = read_any_card(text, allow_no_privacy=True)
    agree = {
        "mechanism": "its counts follow from its parameters, and its proof from its counts",
        "model": "its charges give the guarantee it states",
    }
    usual = "its charges pay for its mechanisms and priors, and give the cost and guarantee it states"
    checks.append(Check("agreement", True, agree.get(card.kind, usual)))
    return card


def _proofs(card: ReadCard) -> Iterator[Check]:
    if not card.mechanisms:
        yield Check("proof", None, "a model's card carries no counts: its noise was proven when it was fitted")
    for k, mechanism in enumerate(card.mechanisms):
        name = "proof" if len(card.mechanisms) == 1 else f"proof {k + 1}"
        proof = proof_of(mechanism)
        if math.isinf(proof.epsilon):
            yield Check(name, None, "there is nothing to prove")
            continue
        kind = type(mechanism).__name__
        detail = f"{kind}: epsilon = {rounded_up(proof.epsilon, 9)}"
        detail += f", delta = {rounded_up(proof.delta, 3)}" if proof.delta else ""
        if proof.worst_ratio is not None:
            ratio = proof.worst_ratio
            detail += f"; worst ratio of counts {ratio.numerator}/{ratio.denominator} ≈ {float(ratio):.9g}"
            detail += f", at most e^{rounded_up(float(mechanism.epsilon))}"
        yield Check(name, True, f"{detail}; {proof.checked}")


def _privacy(card: ReadCard) -> Check:
    if not card.secure:
        return Check("privacy", False, "NOT PRIVATE: the card itself says that the noise came from a seed")
    if any(math.isinf(proof_of(mechanism).epsilon) for mechanism in card.mechanisms):
        return Check("privacy", False, "NOT PRIVATE: labels are released as they are")
    if card.kind == "mechanism":
        return Check("privacy", True, "nothing is released yet")
    factor = times(card.cost.epsilon)
    return Check(
        "privacy", True, f"epsilon = {rounded_up(card.cost.epsilon)} in all: odds rise by {factor} at most"
    )


# ---- the files that a card speaks of --------------------------------------------------------------


def _files(
    card: ReadCard, file: str | os.PathLike[str] | None, folder: str | os.PathLike[str] | None
) -> Iterator[Check]:
    path = None if file is None else Path(file)
    if card.kind == "row-release" and path is not None:
        yield _arrays(card, path)
        return
    entry, hashes = _named(card)
    if not hashes and card.kind == "release" and "release" in card.content:
        yield from _cluster_files(card, path)
        return
    if not hashes:
        if path is not None or (
            card.kind == "model" and folder is not None and Path(folder, "model.npz").exists()
        ):
            yield Check("file", False, "the card speaks of no file, so nothing ties this one to it")
        return
    path = path or _beside(entry.get("name"), folder)
    if path is None:
        name = entry.get("name", "the file")
        yield Check("file", None, f"{name} does not lie beside the card: give its path to check it too")
        return
    check = _same_bytes(path, hashes, whole=card.kind != "model")
    yield check
    if check.holds and card.kind == "release":
        named = {"column": entry.get("column"), "unbiased_column": entry.get("unbiased_column")}
        yield from _table(card, entry, named, path)


def _named(card: ReadCard) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what a card says of its file, and the hash of each part by its name; of a single file, by no name."""
    own = {"name": ".", "sha256": card.content.get("files")}
    entry: Any = own if card.kind == "model" else card.content.get("file")
    hashes = entry.get("sha256") if isinstance(entry, dict) else None
    if isinstance(hashes, str):
        hashes = {"": hashes}
    if not isinstance(hashes, dict) or not all(isinstance(value, str) for value in hashes.values()):
        return {}, {}
    return entry, hashes


def _beside(name: object, folder: str | os.PathLike[str] | None) -> Path | None:
    """Return the file of this name in ``folder``; a card cannot point anywhere else."""
    if folder is None or not isinstance(name, str) or name in ("", "..") or name not in (".", Path(name).name):
        return None
    path = Path(folder, name)
    return path if path.exists() else None


def _same_bytes(path: Path, hashes: dict[str, str], *, whole: bool) -> Check:
    """Compare a file, or all files of a folder, with their hashes."""
    name = path.resolve().name
    single = set(hashes) == {""}
    if path.is_dir() == single or not (path.is_dir() or path.is_file()):
        return Check("file", False, f"{name} is not a {'file' if single else 'folder'}")
    if not single and any(Path(part).name != part for part in hashes):
        return Check("file", False, "the card names files outside its folder")
    if not single and whole and {part.name for part in path.iterdir()} != set(hashes):
        return Check("file", False, f"{name} holds other files than the card says")
    if not whole and any((path / part).exists() for part in MODEL_FILES - set(hashes)):
        return Check("file", False, f"{name} holds files of a model of which the card has no checksum")
    for part, expected in hashes.items():
        if _sha256(path / part) != expected.removeprefix("sha256:"):
            return Check("file", False, f"{part or name} is another file, was changed, or is not there")
    words = "the file" if single else f"the {len(hashes)} files"
    return Check("file", True, f"{name} is, to the byte, {words} of this card")


def _sha256(path: Path) -> str | None:
    if not path.is_file():
        return None
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _cluster_files(card: ReadCard, path: Path | None) -> Iterator[Check]:
    """Say what can be said of files that a cluster wrote after the card: they are of as many rows, or not."""
    if path is None:
        yield Check("file", None, "made before a cluster wrote the table: give its path to count its rows")
        return
    yield Check("file", None, "the card was made before a cluster wrote the table, without a checksum")
    yield from _table(card, {}, {"label": card.content.get("label")}, path)


def _table(card: ReadCard, entry: dict[str, Any], named: dict[str, Any], path: Path) -> Iterator[Check]:
    """Compare a table's rows and columns with what the card says of them."""
    from labeldp.files import open_table  # noqa: PLC0415 (an extra)

    rows = int(card.content["rows"])
    if entry.get("rows", rows) != rows:
        yield Check("rows", False, "the card contradicts itself: its file has other rows than its labels")
        return
    try:
        table = open_table(path, entry.get("format"))
        columns = list(table.schema.names)
        there = sum(batch.num_rows for batch in table.batches(columns[:1]))
    except MissingExtraError:
        yield Check("rows", None, "not counted: pip install 'labeldp[files]'")
        return
    except LabelDPError as error:
        yield Check("rows", False, f"the file cannot be read as a table: {error}")
        return
    yield Check("rows", there == rows, f"{there:,} rows in the file, {rows:,} on the card")
    yield _columns(columns, named, entry.get("columns", columns))


def _columns(columns: list[str], named: dict[str, Any], listed: object) -> Check:
    """Compare a table's columns with those that the card names, and with those that it lists."""
    names = [name for name in named.values() if name is not None]
    for name in names:
        if name not in columns:
            return Check("columns", False, f"the file has no column {name!r}, which the card names")
    if listed != columns:
        return Check("columns", False, "the file has other columns than the card lists")
    if next(iter(named.values())) is None:
        return Check("columns", None, "the card does not say which column holds the private labels")
    return Check("columns", True, f"the private labels are in the column {names[0]!r}")


def _arrays(card: ReadCard, path: Path) -> Check:
    """Compare a saved release of rows with its card."""
    from labeldp.estimators.row_release import RowRelease  # noqa: PLC0415 (estimators are slow to import)

    try:
        saved = card_format.parse(RowRelease.load(path).to_card(), "labeldp.row-release")
    except LabelDPError as error:
        return Check("file", False, str(error))
    same = saved["arrays"] == card.content.get("arrays")
    detail = "holds the labels of this card" if same else "is the release of another card"
    return Check("file", same, f"{path.name} {detail}")
