"""The files that a card names, compared with what it says of them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from labeldp import tables as files
from labeldp._atomic import StrPath, as_path
from labeldp._values import Array, Data
from labeldp.accounts.accuracy import is_possible
from labeldp.accounts.budget import missing_charges
from labeldp.accounts.card import Card
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.verification import Check, Verification, verify_card
from labeldp.app.sentences import counted
from labeldp.errors import LabelDPError
from labeldp.exact.table import TableChannel
from labeldp.mechanisms import card_format
from labeldp.mechanisms.base import Mechanism
from labeldp.tables.paths import MODEL_FILES, sha256


def verify_files(
    text: str,
    *,
    file: StrPath | None = None,
    folder: StrPath | None = None,
    ledger: Ledger | None = None,
    verification: Verification | None = None,
) -> Verification:
    """Check a card as `verify_card` does, and compare it with the file or folder it names.

    Parameters
    ----------
    text : str
    file : path-like, optional
        What was released with the card.
    folder : path-like, optional
        Where to look for the file by the name on the card, if none is given.
    ledger : Ledger, optional
        The charges of the card must be in it.
    verification : Verification, optional
        What `verify_card` returned for this card, where that was called before.
    """
    verification = verification or verify_card(text)
    card = verification.card
    if card is None:
        return verification
    checks = [*verification.checks, *_file_checks(card, None if file is None else Path(file), folder)]
    if ledger is not None:
        checks.append(_check_ledger(card, ledger))
    return Verification(tuple(checks), card)


def _file_checks(card: Card, path: Path | None, folder: StrPath | None) -> Iterator[Check]:
    """Compare a file, or the folder of a model, with the checksums on its card, and a table with what it says."""
    if card.kind == "row-release" and path is not None:
        yield _arrays(card, path)
        return
    entry, hashes = _entry(card)
    if not hashes and card.kind == "release" and "release" in card.content:
        yield Check("file", None, "the card was written before the table, by a cluster, and has no checksum of it")
        if path is not None:
            yield from _table(card, {}, [card.content.get("label")], path)
        return
    if not hashes:
        beside = card.kind == "model" and folder is not None and Path(folder, "model.npz").exists()
        if path is not None or beside:
            yield Check("file", False, "the card names no file, so nothing links this one to it")
        return
    path = path or _beside(entry.get("name"), folder)
    if path is None:
        yield Check("file", None, f"{entry.get('name')} is not beside the card: give its path to check it too")
        return
    name = as_path(path, follow=True).name
    problem = _find_problem(path, name, hashes, is_model=card.kind == "model")
    yield Check("file", not problem, problem or f"{name} is, to the byte, what the card was written for")
    if not problem and card.kind == "release":
        yield from _table(card, entry, [entry.get("column"), entry.get("unbiased_column")], path)


def _check_ledger(card: Card, ledger: Ledger) -> Check:
    """Look for the charges of a card in a ledger."""
    if not card.terms.charges:
        return Check("ledger", None, "the card has no charges to look for", needed=False)
    if missing_charges(card.terms.charges, ledger.charges):
        detail = (
            "the charges of this release are not all in it: it is another ledger, was cut, or the release had none"
        )
        return Check("ledger", False, f"{ledger.path}: {detail}")
    return Check("ledger", True, "the charges of this release are in it")


def _entry(card: Card) -> tuple[Data, dict[str, str]]:
    """Return what a card says of its file, and the hash of each part by its name; of a single file, by no name."""
    entry = card.content.get("file", {})
    if card.kind == "model":
        entry = {"name": ".", "sha256": card.content.get("files", {})}
        if (
            "regression" in card.content and len(entry["sha256"]) == 1
        ):  # a table, which may have another name by now
            entry = dict(zip(("name", "sha256"), *entry["sha256"].items(), strict=True))
    hashes = entry.get("sha256", {})
    return entry, {"": hashes} if isinstance(hashes, str) else hashes


def _beside(name: object, folder: StrPath | None) -> Path | None:
    """Return the file of this name in ``folder``; a card cannot point anywhere else."""
    if folder is None or not isinstance(name, str) or name in ("", "..") or name not in (".", Path(name).name):
        return None
    path = Path(folder, name)
    return path if os.path.lexists(path) else None


def _find_problem(path: Path, name: str, hashes: dict[str, str], *, is_model: bool) -> str:
    """Return how a file or a folder differs from what hashes say; a model's folder may hold a report too."""
    parts = set(hashes)
    if any(Path(part).name != part for part in parts):
        return "the card names files outside its folder"
    if path.is_dir() == (parts == {""}) or not path.exists():
        return f"{name} is not a {'file' if parts == {''} else 'folder'}"
    present = {part.name for part in path.iterdir()} if path.is_dir() else {""}
    if is_model:
        present = present & MODEL_FILES | parts
    for part in sorted(parts | present):
        file = path / part
        if part not in parts or not file.is_file() or sha256(file) != hashes[part]:
            return f"{part or name} was changed or added, is missing, or belongs to another card"
    return ""


def _table(card: Card, entry: Data, named: list[Any], path: Path) -> Iterator[Check]:
    """Compare a table's rows and columns with what the card says of them, and labels with its mechanism.

    ``named`` are the column of private labels, and that of unbiased ones.
    """
    rows, mechanism = card.terms.rows, card.terms.mechanisms[0]
    step = card.content.get("rounding", [None])[0]
    try:
        columns, read = _open(path, entry)
        labels = dict[str, bool]()
        if entry and isinstance(mechanism.channel, TableChannel):  # of others any number is an output
            labels = {name: bool(k) for k, name in enumerate(named) if name in columns}
        count, impossible = 0, dict.fromkeys(labels, 0)
        for batch in read(list(labels) or columns[:1]):
            count += batch.num_rows
            for name, debiased in labels.items():
                impossible[name] += _count_impossible(batch.column(name), mechanism, step, debiased=debiased)
    except ImportError:
        yield Check("rows", None, 'not counted: pip install "labeldp[files]"')
        return
    except (LabelDPError, OSError, ValueError) as error:
        yield Check("rows", False, f"the file cannot be read as a table: {error}")
        return
    yield Check("rows", count == rows, f"{counted(count, 'row')} in the file, {rows:,} on the card")
    yield _columns(columns, named, entry.get("columns", columns))
    for name, bad in impossible.items():
        which = f"{bad:,} of {count:,} in {name!r} cannot be" if bad else f"each in {name!r} can be"
        yield Check("noisy labels", not bad, f"{which} an output of the mechanism")


def _open(path: Path, entry: Data) -> tuple[list[str], Callable[[list[str]], Iterable[Any]]]:
    """Return the columns of a table, and a function that reads some; a folder has what a cluster wrote."""
    if path.is_dir():
        dataset = importlib.import_module("pyarrow.dataset").dataset(path, format="parquet")
        return list(dataset.schema.names), lambda names: dataset.to_batches(columns=names)
    written: Data = {name: entry.get(name) for name in ("separator", "decimal", "encoding")}
    table = files.open_table(path, entry.get("format"), dialect=files.Dialect(**written, header=True))
    return list(table.schema.names), table.batches


def _count_impossible(column: Any, mechanism: Mechanism, step: float | None, *, debiased: bool) -> int:
    """Return how many values of a column the mechanism cannot have given out."""
    try:
        numbers: Array = column.cast("float64").to_numpy(zero_copy_only=False)
    except (ValueError, NotImplementedError):  # dates and lists are no numbers either
        return len(column)
    return int(np.sum(~is_possible(numbers, mechanism, debiased=debiased, step=step)))


def _columns(columns: list[str], named: list[Any], listed: object) -> Check:
    """Compare a table's columns with those that the card names, and with those that it lists."""
    if listed != columns or any(name not in columns for name in named if name is not None):
        return Check("columns", False, "the file has other columns than the card says")
    if named[0] is None:
        return Check("columns", None, "the card does not say which column holds the private labels")
    public = ", ".join(name for name in columns if name not in named)
    others = f"; public, and as they are: {public}" if public else ""
    return Check("columns", True, f"by the card, the private labels are in {named[0]!r}{others}")


def _arrays(card: Card, path: Path) -> Check:
    """Compare a saved release of rows with its card."""
    from labeldp.learning.row_release import RowRelease  # noqa: PLC0415 (estimators are slow to import)

    try:
        saved = card_format.parse(RowRelease.load(path).to_card(), "labeldp.row-release")
    except LabelDPError as error:
        return Check("file", False, str(error))
    same = saved["arrays"] == card.content.get("arrays")
    detail = "holds the labels of this card" if same else "is the release of another card"
    return Check("file", same, f"{path.name} {detail}")
