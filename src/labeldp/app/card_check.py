"""Comparison of a card with its file: checksums, rows, columns, and private labels."""

from __future__ import annotations

import importlib
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from labeldp._atomic import StrPath, as_path
from labeldp._values import Array
from labeldp.accounts.accuracy import is_possible
from labeldp.accounts.budget import missing_charges
from labeldp.accounts.card import Card
from labeldp.accounts.ledger_chain import Book
from labeldp.accounts.verification import Check, Verification, verify_card
from labeldp.app.card_files import KINDS, report_path
from labeldp.app.label_check import describe_features, recompute_labels
from labeldp.app.released_table import open_release
from labeldp.app.sentences import counted
from labeldp.errors import LabelDPError, ParameterError, Setting
from labeldp.exact.table import TableChannel
from labeldp.mechanisms import card_format
from labeldp.tables.paths import MODEL_FILES, sha256


def verify_files(
    text: str,
    *,
    file: StrPath | None = None,
    folder: StrPath | None = None,
    model_folder: StrPath | None = None,
    ledger: Book | None = None,
) -> Verification:
    """Check a card as `verify_card` does, and compare it with the file or folder it names.

    Parameters
    ----------
    text : str
    file : path-like, optional
        The release of the card.
    folder : path-like, optional
        The folder of the file that the card names, if none is given.
    model_folder : path-like, optional
        The folder of the model behind the labels of a table: they are computed again.
    ledger : Book, optional
        The charges of the card must be in it.
    """
    verification = verify_card(text)
    card = verification.card
    if card is None:
        return verification
    model = None if model_folder is None else Path(model_folder)
    if model is not None and not ("file" in card.content and "features" in card.content):
        raise ParameterError(Setting("model_folder"), " is for a table whose labels come from a model")
    path = None if file is None else Path(file)
    checks = [*verification.checks, *_file_checks(card, path, folder, model)]
    if ledger is not None:
        checks.append(_check_ledger(card, ledger))
    return Verification(tuple(checks), card)


def _file_checks(card: Card, path: Path | None, folder: StrPath | None, model: Path | None) -> Iterator[Check]:
    """Compare a file, or the folder of a model, with the checksums on its card, and a table with its facts."""
    if card.kind == "row-release" and path is not None:
        yield _check_arrays(card, path)
        return
    name, hashes = _checksums(card)
    if not hashes:
        yield from _checks_without_checksum(card, path, folder)
        return
    path = path or _find_beside(name, folder)
    if path is None:
        yield Check("file", None, f"{name} is not beside the card: give its path to check it too")
        return
    file = as_path(path, follow=True).name
    problem = _find_problem(path, file, hashes, is_model=card.kind == "model")
    yield Check("file", not problem, problem or f"{file} is, to the byte, the file of the card")
    if card.kind == "model" and path.is_dir():
        yield from _other_files(path, hashes)
    if not problem and card.kind in ("release", "releases"):
        yield from _check_table(card, path)
        for release in card.releases.values():
            if "features" in release.content:
                yield describe_features(release) if model is None else recompute_labels(release, path, model)


def _other_files(folder: Path, hashes: Mapping[str, str]) -> Iterator[Check]:
    """Yield a check for files in a model's folder that its card does not name: they may hold true labels."""
    card = folder / "card.json"
    skipped = [folder / f"{card.name}.sig", *(report_path(card, kind) for kind in KINDS)]
    known = {*hashes, card.name, *(path.name for path in skipped if path.is_file())}
    names = sorted({*os.listdir(folder)} - known)
    if names:
        listed = ", ".join(map(repr, names[:8]))
        yield Check(
            "other files", None, f"{counted(len(names), 'file')} beside those of the card, not compared: {listed}"
        )


def find_release(card: Card, folder: Path) -> tuple[Path, list[str]]:
    """Return the file of a card, or its folder, and the names of files in it; a single file has no name."""
    name, hashes = _checksums(card)
    path = _find_beside(name, folder)
    if path is None or not hashes:
        raise ParameterError("the card names no file, or none beside it")
    return path, sorted(set(hashes) - {"card.json"})


def _checks_without_checksum(card: Card, path: Path | None, folder: StrPath | None) -> Iterator[Check]:
    """Compare a table of a cluster with its card, and refuse a file that no card names."""
    if card.kind == "release" and "release" in card.content:
        yield Check("file", None, "the card was written before the table, by a cluster, and has no checksum of it")
        if path is not None:
            yield from _check_table(card, path)
        return
    has_model = card.kind == "model" and folder is not None and Path(folder, "model.npz").exists()
    if path is not None or has_model:
        yield Check("file", False, "the card names no file, so nothing links this one to it")


def _check_ledger(card: Card, ledger: Book) -> Check:
    """Look for the charges of a card in a ledger."""
    if not card.terms.charges:
        return Check("ledger", None, "the card has no charges to look for", needed=False)
    if missing_charges(card.terms.charges, ledger.charges):
        detail = (
            "the charges of this release are not all in it: it is another ledger, was cut, or the release had none"
        )
        return Check("ledger", False, f"{ledger.path}: {detail}")
    return Check("ledger", True, "the charges of this release are in it")


def _checksums(card: Card) -> tuple[object, dict[str, str]]:
    """Return the name of a card's file, and checksums by the names of files in it; a single file has no name."""
    if card.kind != "model":
        entry = card.content.get("file", {})
        name, hashes = entry.get("name"), entry.get("sha256", {})
        return name, {"": hashes} if isinstance(hashes, str) else hashes
    hashes = card.content.get("files", {})
    if "regression" in card.content and len(hashes) == 1:
        ((name, checksum),) = hashes.items()
        return name, {"": checksum}  # a table, which may have been renamed since
    return ".", hashes


def _find_beside(name: object, folder: StrPath | None) -> Path | None:
    """Return the file of this name in ``folder``; a card cannot point anywhere else."""
    if folder is None or not isinstance(name, str) or name in ("", "..") or name not in (".", Path(name).name):
        return None
    path = Path(folder, name)
    return path if os.path.lexists(path) else None


def _find_problem(path: Path, name: str, hashes: Mapping[str, str], *, is_model: bool) -> str:
    """Return the difference of a file or a folder from checksums; a model's folder may hold a report too."""
    is_file = set(hashes) == {""}
    if any(Path(file).name != file for file in hashes):
        return "the card names files outside its folder"
    if path.is_dir() == is_file or not path.exists():
        return f"{name} is not a {'file' if is_file else 'folder'}"
    present = {""} if is_file else set(os.listdir(path))
    if is_model:
        present = present & MODEL_FILES | set(hashes)
    for file in sorted(present | set(hashes)):
        if file not in hashes or not (path / file).is_file() or sha256(path / file) != hashes[file]:
            return f"{file or name} was changed or added, is missing, or belongs to another card"
    return ""


@dataclass(slots=True)
class _TableCounts:
    """Counts of a table: all rows, rows with each private label, and labels that no mechanism can have given."""

    columns: list[str]
    rows: int = 0
    labelled: Counter[str] = field(default_factory=Counter)
    impossible: Counter[str] = field(default_factory=Counter)


def _check_table(card: Card, path: Path) -> Iterator[Check]:
    """Compare the rows, columns and private labels of a table with its card, of one label or of several."""
    releases = {name: release for name, release in card.releases.items() if name is not None}
    has_facts = "file" in card.content
    discrete_labels = [name for name, release in releases.items() if has_facts and _has_few_outputs(release)]
    try:
        counts = _count_rows(card, path, releases, discrete_labels)
    except ImportError:
        yield Check("rows", None, 'not counted: pip install "labeldp[files]"')
        return
    except (LabelDPError, OSError, TypeError, ValueError) as error:
        yield Check("rows", False, f"the file cannot be read as a table: {error}")
        return
    yield _check_rows(card, counts)
    yield _check_columns(
        counts.columns, list(releases), card.content.get("file", {}).get("columns", counts.columns)
    )
    for name in discrete_labels:
        count = counts.impossible[name]
        result = f"{count:,} of {counts.rows:,} in {name!r} cannot be" if count else f"each in {name!r} can be"
        yield Check("noisy labels", not count, f"{result} an output of the mechanism")


def _count_rows(
    card: Card, path: Path, releases: Mapping[str, Card], discrete_labels: Collection[str]
) -> _TableCounts:
    """Count the rows of a table; ``discrete_labels`` can have some values only."""
    columns, batches = _open_table(card, path, list(releases))
    counts = _TableCounts(columns)
    for batch in batches:
        counts.rows += batch.num_rows
        for name in releases.keys() & {*batch.schema.names}:
            counts.labelled[name] += batch.num_rows - batch.column(name).null_count
        for name in discrete_labels:
            counts.impossible[name] += _count_impossible(batch.column(name), releases[name])
    return counts


def _check_rows(card: Card, counts: _TableCounts) -> Check:
    """Compare the number of rows, and of rows with a label, with those on the card."""
    people, expected, rows = card.terms.people, card.terms.rows, counts.rows
    empty = 0 if people is None else people.rows_left_out
    labelled = counts.labelled.values() or [rows]
    fewest = min(labelled)
    note = f", {fewest:,} with a label" if fewest < rows else ""
    is_complete = {*labelled} == {expected} and rows == expected + empty
    return Check("rows", is_complete, f"{counted(rows, 'row')} of the file{note}, {expected:,} on the card")


def _has_few_outputs(card: Card) -> bool:
    """Return whether labels are outputs of one mechanism that gives out some numbers and no others."""
    return "features" not in card.content and isinstance(card.terms.mechanisms[0].channel, TableChannel)


def _open_table(card: Card, path: Path, labels: list[str]) -> tuple[list[str], Iterator[Any]]:
    """Return the names of a table's columns, and batches of the private ones; a folder has files of a cluster."""
    if path.is_dir():
        table = importlib.import_module("pyarrow.dataset").dataset(path, format="parquet")
        names = list(table.schema.names)
        return names, table.to_batches(columns=[name for name in labels if name in names] or names[:1])
    if "file" in card.content:
        table = open_release(path, card, label=labels, as_written=True)
    else:
        table = importlib.import_module("labeldp.tables").open_table(path, label=labels, as_written=True)
    return table.schema.names, table.batches(labels or table.schema.names[:1])


def _count_impossible(column: Any, card: Card) -> int:
    """Return the number of values that are no output of the mechanism of a card."""
    numbers: Array = column.drop_null().to_numpy(zero_copy_only=False)
    is_debiased, (step,) = card.content["purpose"] != "values", card.content.get("rounding", [None])
    possible = is_possible(numbers, card.terms.mechanisms[0], debiased=is_debiased, step=step)
    return int(np.sum(~possible))


def _check_columns(columns: list[str], labels: list[str], expected: object) -> Check:
    """Compare the columns of a table with those that the card names as private, and with all that it lists."""
    if expected != columns or not {*labels} <= {*columns}:
        return Check("columns", False, "the file has other columns than the card says")
    if not labels:
        return Check("columns", None, "the card does not say which column holds the private labels")
    public = ", ".join(name for name in columns if name not in labels)
    copied = f"; public, and as they are: {public}" if public else ""
    return Check(
        "columns", True, f"by the card, the private labels are in {' and '.join(map(repr, labels))}{copied}"
    )


def _check_arrays(card: Card, path: Path) -> Check:
    """Compare a saved release of rows with its card."""
    from labeldp.learning.row_release import RowRelease  # noqa: PLC0415 (estimators are slow to import)

    try:
        saved = card_format.parse(RowRelease.load(path).to_card(), "labeldp.row-release")
    except LabelDPError as error:
        return Check("file", False, str(error))
    is_equal = saved["arrays"] == card.content.get("arrays")
    detail = "holds the labels of this card" if is_equal else "is the release of another card"
    return Check("file", is_equal, f"{path.name} {detail}")
