"""Checking a card again, step by step: what holds, what does not, and what no check can show."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labeldp import cards
from labeldp.any_card import ReadCard, read_any_card, schema_of
from labeldp.errors import LabelDPError, MissingExtraError
from labeldp.words.numbers import times

__all__ = ["BEYOND", "Check", "Verification", "verify_card"]

BEYOND = (
    "that the noise came from the secure source: the card says so, and only whoever ran it knows",
    "that nobody kept the true labels, or released them elsewhere too",
    "that the bounds were chosen without looking at the labels",
    "who wrote the card: its checksum finds damage, but it is no signature",
)
"""What verifying a card cannot show."""


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
    cards.parse(text, schema_of(text))
    checks.append(Check("checksum", True, "the card is as it was written"))
    card = read_any_card(text, allow_no_privacy=True)
    agree = {
        "mechanism": "its counts follow from its parameters, and its proof from its counts",
        "model": "its charges give the guarantee it states",
    }
    usual = "its charges pay for its mechanisms, and give the cost and guarantee it states"
    checks.append(Check("agreement", True, agree.get(card.kind, usual)))
    return card


def _proofs(card: ReadCard) -> Iterator[Check]:
    if not card.mechanisms:
        yield Check("proof", None, "a model's card carries no counts: its noise was proven when it was fitted")
    for k, mechanism in enumerate(card.mechanisms):
        name = "proof" if len(card.mechanisms) == 1 else f"proof {k + 1}"
        proof = mechanism.verify()
        if math.isinf(proof.epsilon):
            yield Check(name, None, "there is nothing to prove")
            continue
        kind = type(mechanism).__name__
        detail = f"{kind}: epsilon = {proof.epsilon:.9g}" + (f", delta = {proof.delta:.3g}" if proof.delta else "")
        if proof.worst_ratio is not None:
            ratio = proof.worst_ratio
            detail += f"; worst ratio of counts {ratio.numerator}/{ratio.denominator} ≈ {float(ratio):.9g}"
            detail += f", at most e^{float(mechanism.epsilon):.6g}"
        yield Check(name, True, f"{detail}; {proof.checked}")


def _privacy(card: ReadCard) -> Check:
    if not card.secure:
        return Check("privacy", False, "NOT PRIVATE: the card itself says that the noise came from a seed")
    if any(math.isinf(mechanism.verify().epsilon) for mechanism in card.mechanisms):
        return Check("privacy", False, "NOT PRIVATE: labels are released as they are")
    if card.kind == "mechanism":
        return Check("privacy", True, "nothing is released yet")
    factor = times(card.cost.epsilon)
    return Check("privacy", True, f"epsilon = {card.cost.epsilon:.6g} in all: odds rise by {factor} at most")


# ---- the file that a card speaks of ---------------------------------------------------------------


def _files(
    card: ReadCard, file: str | os.PathLike[str] | None, folder: str | os.PathLike[str] | None
) -> Iterator[Check]:
    entry = card.content.get("file")
    path = None if file is None else Path(file)
    if card.kind == "row-release" and path is not None:
        yield _arrays(card, path)
        return
    if not isinstance(entry, dict) or not isinstance(entry.get("sha256"), str):
        if path is not None:
            yield Check("file", False, "the card speaks of no file, so nothing ties this one to it")
        return
    if path is None:
        path = _beside(entry.get("name"), folder)
        if path is None:
            name = entry.get("name", "the file")
            yield Check("file", None, f"{name} does not lie beside the card: give its path to check it too")
            return
    if not path.is_file():
        yield Check("file", False, f"{path} is not a file")
        return
    yield from _hash_and_rows(card, entry, path)


def _beside(name: object, folder: str | os.PathLike[str] | None) -> Path | None:
    """Return the file of this name in ``folder``; a card cannot point anywhere else."""
    if folder is None or not isinstance(name, str) or not name or Path(name).name != name:
        return None
    path = Path(folder, name)
    return path if path.is_file() else None


def _hash_and_rows(card: ReadCard, entry: dict[str, Any], path: Path) -> Iterator[Check]:
    with open(path, "rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    same = entry["sha256"].removeprefix("sha256:") == found
    detail = "is, to the byte, the file of this card" if same else "is another file, or was changed"
    yield Check("file", same, f"{path.name} {detail}")
    if not same:
        return
    rows = int(card.content["rows"])
    if entry.get("rows", rows) != rows:
        yield Check(
            "rows", False, "the card contradicts itself: its file has another number of rows than its labels"
        )
        return
    try:
        there = _count_rows(path, str(entry.get("format", path.suffix.lstrip("."))))
    except (MissingExtraError, ModuleNotFoundError):
        yield Check("rows", None, "not counted: pip install 'labeldp[files]'")
        return
    except (OSError, ValueError):
        yield Check("rows", False, f"{path.name} cannot be read as a table")
        return
    yield Check("rows", there == rows, f"{there:,} rows in the file, {rows:,} on the card")


def _count_rows(path: Path, kind: str) -> int:
    """Return how many rows a table has, in constant memory."""
    from pyarrow import csv, dataset  # noqa: PLC0415 (an extra)

    tab = kind == "tsv" or path.suffix == ".tsv"
    parse = csv.ParseOptions(delimiter="\t" if tab else ",", newlines_in_values=True)
    kinds: dict[str, Callable[[], Any]] = {
        "csv": lambda: dataset.CsvFileFormat(parse_options=parse),
        "tsv": lambda: dataset.CsvFileFormat(parse_options=parse),
        "parquet": lambda: "parquet",
        "arrow": lambda: "ipc",
        "feather": lambda: "feather",
        "ipc": lambda: "ipc",
    }
    if kind not in kinds:
        raise ValueError("an unknown format")
    return int(dataset.dataset(path, format=kinds[kind]()).count_rows())


def _arrays(card: ReadCard, path: Path) -> Check:
    """Compare a saved release of rows with its card."""
    from labeldp.estimators.row_release import RowRelease  # noqa: PLC0415 (estimators are slow to import)

    try:
        saved = cards.parse(RowRelease.load(path).to_card(), "labeldp.row-release")
    except LabelDPError as error:
        return Check("file", False, str(error))
    same = saved["arrays"] == card.content.get("arrays")
    detail = "holds the labels of this card" if same else "is the release of another card"
    return Check("file", same, f"{path.name} {detail}")
