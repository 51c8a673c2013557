"""`collect_file`: answers that people randomised themselves in; a model, or a table of unbiased labels, out."""

from __future__ import annotations

import csv
import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labeldp._atomic import StrPath, atomic_file, read_regular
from labeldp._values import Data
from labeldp.accounts.card import load_mechanism
from labeldp.accounts.numbers import number
from labeldp.app.card_files import read_card_file, report_path
from labeldp.app.inputs import Columns, Rows, read_rows, tally_notes
from labeldp.app.report import render_report, write_page
from labeldp.errors import CardError, DataError, ParameterError, Setting, WeakModelWarning
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.reports import Reports
from labeldp.tables.paths import format_in, refuse_same
from labeldp.tables.placement import OutputsAndCard

if TYPE_CHECKING:
    from labeldp.tables.dialect import Dialect
    from labeldp.tables.opening import Progress

BIN_COLUMNS = ["low", "high", "share"]
"""The columns of a file with a histogram."""

MAX_HISTOGRAM = 1 << 20
"""Bytes of a file with a histogram."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Collection:
    """Reports that were read, and the files that were written.

    Attributes
    ----------
    reports : Reports
    card : Path
        The card of the model or of the table.
    page : Path
        Its report page.
    notes : list of str
        The mean, how the table was read, and how good a model should be.
    """

    reports: Reports
    card: Path
    page: Path
    notes: list[str]


def collect_file(
    source: StrPath,
    out: StrPath,
    *,
    card: Sequence[StrPath],
    label: str,
    card_column: str = "card",
    histogram: StrPath | None = None,
    features: Sequence[str] = (),
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    missing: str = "error",
    rows_per_person: int = 1,
    format: str | None = None,
    dialect: Dialect | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Collection:
    """Read the reports of a survey, and write a model of them, or a table with unbiased labels, and a report page.

    No true answer is read, and no ledger is charged.

    Parameters
    ----------
    source : path
        A table with a row for each respondent.
    out : path
        A folder for a model; or a .csv, .tsv or .parquet file.
    card : sequence of paths
        The cards of the mechanisms that the form had, one after another.
    label : str
        The column of released values.
    card_column : str
        The column with the checksum of each value's card, as clients send it; needed with several cards.
    histogram : path, optional
        Where to write the histogram of the answers, for the design of a next card.
    features, drop, categories, missing, format, dialect, force, progress
        As in `labeldp.fit_file`.
    rows_per_person : int
        The most reports of one person.
    """
    cards = _read_cards(card)
    outputs = {"the output": out, "the histogram": histogram}
    refuse_same(outputs, {"the table": source, **{f"the card {path}": path for path in card}})
    progress = progress or (lambda *_: None)
    columns = _columns(source, features, drop, categories, card_column, len(cards), format, dialect)
    reading: Data = {"missing": missing, "format": format, "dialect": dialect, "progress": progress}
    write = _write_model if format_in(os.fspath(out)) is None else _write_table
    rows = read_rows(source, label, columns=columns, **reading)
    public, mechanism = _split_cards(rows.public, cards, card_column)
    reports = Reports(rows.labels, mechanism, rows_per_person=rows_per_person)
    bins = None if histogram is None else reports.histogram()
    mean = describe_mean(reports)
    progress("Fitting", 0, None)
    path, notes = write(Path(out), replace(rows, public=public), reports, label, columns, mean, force)
    if histogram is not None and bins is not None:
        write_histogram(bins, histogram, force=force)
    page = report_path(path)
    return Collection(reports, path, page, [mean, *notes])


def describe_mean(reports: Reports) -> str:
    """Return the mean of the answers with its interval, in a sentence; by the cards with the widest bounds."""
    widest = reports.widest()
    mean = widest.mean()
    low, high = (number(end, 4) for end in mean.interval)
    ends = " to ".join(number(end) for end in widest.bounds)
    counted = "" if len(widest) == len(reports) else f" of the {len(widest):,} respondents whose card clips least"
    return (
        f"The mean answer{counted} is {mean}: from {low} to {high} in 95 % of surveys, for the people from whom "
        f"respondents were drawn at random. Answers beyond {ends} count as these."
    )


def _read_cards(paths: Sequence[StrPath]) -> dict[str, Mechanism]:
    """Return mechanisms by the checksums of their cards."""
    if not paths:
        raise ParameterError(Setting("card"), " is needed: the card of the mechanism that the form had")
    texts = [read_card_file(Path(path))[1] for path in paths]
    return {json.loads(text)["checksum"]: mechanism for text, mechanism in [(text, _load(text)) for text in texts]}


def _load(text: str) -> Mechanism:
    mechanism = load_mechanism(text)
    if not isinstance(mechanism, Mechanism):
        raise CardError("this is not the card of a mechanism")
    return mechanism


def _columns(
    source: StrPath,
    features: Sequence[str],
    drop: Sequence[str],
    categories: Sequence[str],
    card_column: str,
    cards: int,
    format: str | None,
    dialect: Dialect | None,
) -> Columns:
    """Return the columns to read, with that of the checksums if the table has it."""
    from labeldp.tables.opening import table_header  # noqa: PLC0415 (an extra)

    is_there = card_column in table_header(source, format, dialect=dialect).names
    if cards > 1 and not is_there:
        raise ParameterError(
            f"there are {cards} cards, and no column {card_column!r} with the checksum of each value's card: name "
            "it with ",
            Setting("card_column"),
        )
    read = [*features, card_column] if features and is_there else features
    return {"features": read, "drop": [name for name in drop if name != card_column], "categories": categories}


def _split_cards(public: Any, cards: dict[str, Mechanism], column: str) -> tuple[Any, Any]:
    """Return the other columns, and the mechanism of each value."""
    if column not in public.column_names:
        return public, next(iter(cards.values()))
    checksums = [f"sha256:{str(text).removeprefix('sha256:')}" for text in public.column(column).to_pylist()]
    unknown = [row for row, checksum in enumerate(checksums, 1) if checksum not in cards]
    if unknown:
        remaining = f" and {len(unknown) - 5:,} more" if len(unknown) > 5 else ""
        raise DataError(
            f"row {', '.join(map(str, unknown[:5]))}{remaining}: the column {column!r} names none of the cards; "
            "leave such rows out, or name their cards too"
        )
    return public.drop_columns([column]), [cards[checksum] for checksum in checksums]


# ---- outputs ----------------------------------------------------------------------------------------------------


def _write_model(
    out: Path, rows: Rows, reports: Reports, label: str, columns: Columns, mean: str, force: bool
) -> tuple[Path, list[str]]:
    """Fit a model to reports, and write its folder with a report page; return its card, and notes."""
    from collections import Counter  # noqa: PLC0415

    from labeldp.learning.label_regressor import LabelReleaseRegressor  # noqa: PLC0415 (slow to import)
    from labeldp.learning.models import columns_text, model_folder, write_model  # noqa: PLC0415
    from labeldp.tables.feature_encoder import TableEncoder  # noqa: PLC0415

    names = rows.public.column_names
    if not names:
        raise ParameterError(
            "the table has no public column to learn from: write a table instead, with ", Setting("out", "OUT.csv")
        )
    encoder = TableEncoder.fit(rows.public, names, categories=columns["categories"])
    tally: Counter[tuple[str, str]] = Counter()
    X = encoder.transform(rows.public, tally)
    columns_text(encoder, label)
    model = LabelReleaseRegressor(
        epsilon=reports.epsilon, bounds=reports.bounds, rows_per_person=reports.rows_per_person
    )
    with model_folder(out, force=force) as draft, warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakModelWarning)  # it is among the notes
        model.fit_reports(X, reports)
        card = write_model(model, encoder, draft, label=label, note=mean)
        write_page(report_path(draft / "card.json"), render_report(card))
    notes = [f"The model predicts {label} from {', '.join(encoder.names)}.", *rows.notes]
    notes += [f"{name} was left out: {reason}." for name, reason in encoder.left_out]
    notes += tally_notes(tally)
    notes += [] if model.weakness_ is None else [f"Note: {model.weakness_}."]
    return out / "card.json", notes


def _write_table(
    out: Path, rows: Rows, reports: Reports, label: str, columns: Columns, mean: str, force: bool
) -> tuple[Path, list[str]]:
    """Write the table with unbiased labels, its card and its report page; return the card, and notes."""
    import pyarrow as pa  # noqa: PLC0415 (an extra)

    from labeldp.app.file_release import NOT_COPIED  # noqa: PLC0415
    from labeldp.tables.writer import TableWriter  # noqa: PLC0415

    if len(reports.mechanisms) > 1:
        raise ParameterError(
            "a table has labels of one card: collect the reports of each by themselves, or write a model, with ",
            Setting("out", "FOLDER"),
        )
    table = rows.public.append_column(label, pa.array(reports.labels))
    with OutputsAndCard(out, force=force) as placement:
        writer = TableWriter(out, table.schema, None, force, max_rights=rows.rights, reserved=True)
        with writer:
            for batch in table.to_batches():
                writer.write(batch)
            facts: Data = {
                "name": out.name,
                "format": format_in(out.name),
                **writer.text_facts(),
                "rows": len(reports),
                "rows_left_out": 0,
                "column": label,
                "columns": list(table.schema.names),
                "types_changed": {},
                "sha256": writer.finish(),
                "row_order": "public, and kept",
                "not_copied": NOT_COPIED,
            }
            terms = replace(reports.terms, priors=(None,))
            card = terms.to_card(file=facts, rounding=[None], purpose="statistics")
            placement.put_card(card + "\n", rows.rights)
    write_page(report_path(placement.card), render_report(card), force=force)
    return placement.card, list(rows.notes)


# ---- histograms in files ----------------------------------------------------------------------------------------


def write_histogram(histogram: Histogram, path: StrPath, *, force: bool = False) -> None:
    """Write the bins of a histogram as CSV: low, high, share."""
    lines = [",".join(BIN_COLUMNS)]
    for low, high, share in zip(histogram.nodes[:-1], histogram.nodes[1:], histogram.masses, strict=True):
        lines.append(f"{float(low)!r},{float(high)!r},{float(share):.6g}")
    with atomic_file(path, public=True, replace=force) as draft:
        draft.write_text("\n".join(lines) + "\n", encoding="ascii", newline="\n")


def read_histogram(path: StrPath) -> Histogram:
    """Return the histogram in a CSV file with the columns low, high and share, or count, of bins side by side."""
    text = read_regular(path, MAX_HISTOGRAM).decode("utf-8-sig", "replace")
    header, *records = [record for record in csv.reader(text.splitlines()) if record] or [[]]
    names = [name.strip().lower() for name in header]
    if names not in (BIN_COLUMNS, [*BIN_COLUMNS[:2], "count"]) or not records:
        raise _no_histogram(path, "must have the columns low, high and share, and a line for each bin")
    try:
        low, high, share = np.array(records, dtype=np.float64).T
    except ValueError:
        raise _no_histogram(path, "must have three numbers in each line") from None
    if (low[1:] != high[:-1]).any():
        raise _no_histogram(path, "has gaps: each bin begins where the one before it ends")
    return Histogram([low[0], *high], share)


def _no_histogram(path: StrPath, why: str) -> ParameterError:
    return ParameterError(f"{Path(path).name} {why}", option="prior")
