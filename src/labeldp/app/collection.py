"""`collect_file`: answers that people randomised themselves in; a model, or a table of unbiased labels, out."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from labeldp._atomic import StrPath
from labeldp.accounts.card import load_mechanism
from labeldp.accounts.numbers import number
from labeldp.app.card_files import read_card_file, report_path
from labeldp.app.file_job import FileJob, FileOptions
from labeldp.app.histogram_files import write_histogram
from labeldp.app.inputs import Columns, Rows, encode_rows, read_rows, weakness_notes
from labeldp.app.released_table import describe_file
from labeldp.app.report import render_report, write_page
from labeldp.errors import CardError, DataError, ParameterError, Setting, WeakModelWarning, list_first
from labeldp.learning.label_regressor import LabelReleaseRegressor
from labeldp.learning.models import columns_text, model_folder, write_model
from labeldp.mechanisms.base import Mechanism
from labeldp.release.reports import Reports
from labeldp.tables.arrow import arrow
from labeldp.tables.feature_encoder import TableEncoder
from labeldp.tables.opening import table_header
from labeldp.tables.paths import format_in, refuse_same
from labeldp.tables.placement import OutputAndCard
from labeldp.tables.writer import TableWriter


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
    **options: Unpack[FileOptions],
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
    features, drop, categories : sequences of str
        As in `labeldp.fit_file`.
    **options
        As in `labeldp.fit_file`; ``rows_per_person`` are the most reports of one person.
    """
    if not card:
        raise ParameterError(Setting("card"), " is needed: the card of the mechanism that the form had")
    cards = dict(map(_read_card, card))
    job = FileJob(source=source, labels=(label,), **options)
    outputs = {"the output": out, "the histogram": histogram}
    refuse_same(outputs, {"the table": source, **{f"the card {path}": path for path in card}})
    columns = Columns(features, drop, categories)
    rows, reports = _read_reports(job, columns, cards, card_column)
    bins = None if histogram is None else reports.histogram()
    mean = describe_mean(reports)
    job.report("Fitting")
    if format_in(os.fspath(out)) is None:
        path, notes = _write_model(Path(out), job, rows, reports, columns, mean)
    else:
        path, notes = _write_table(Path(out), job, rows, reports)
    if histogram is not None and bins is not None:
        write_histogram(bins, histogram, force=job.force)
    return Collection(reports, path, report_path(path), [mean, *notes])


def describe_mean(reports: Reports) -> str:
    """Return the mean of the answers with its interval, in a sentence; by the cards with the widest bounds."""
    widest = reports.widest()
    mean = widest.mean()
    low, high = (number(end, 4) for end in mean.interval)
    ends = " to ".join(number(end) for end in widest.bounds)
    counted = "" if len(widest) == len(reports) else f" of the {len(widest):,} respondents whose card clips least"
    return (
        f"The mean answer{counted} is {mean} (standard error), with the 95 % interval {low} to {high}, for the "
        f"people from whom respondents were drawn at random. Answers beyond {ends} count as these."
    )


def _read_card(path: StrPath) -> tuple[str, Mechanism]:
    """Return the checksum of a card, and its mechanism."""
    text = read_card_file(Path(path))[1]
    mechanism = load_mechanism(text)
    if not isinstance(mechanism, Mechanism):
        raise CardError("this is not the card of a mechanism")
    return json.loads(text)["checksum"], mechanism


def _read_reports(
    job: FileJob, columns: Columns, cards: dict[str, Mechanism], card_column: str
) -> tuple[Rows, Reports]:
    """Return the rows of a table with their public columns, and the reports in them."""
    rows = read_rows(job, _with_checksums(job, columns, card_column, len(cards)))
    rows, mechanism = _split_cards(rows, cards, card_column)
    return rows, Reports(rows.labels, mechanism, rows_per_person=job.rows_per_person)


def _with_checksums(job: FileJob, columns: Columns, card_column: str, cards: int) -> Columns:
    """Return the columns to read, with that of the checksums if the table has it."""
    has_checksums = card_column in table_header(job.source, job.format, dialect=job.dialect).names
    if cards > 1 and not has_checksums:
        raise ParameterError(
            f"there are {cards} cards, and no column {card_column!r} with the checksum of each value's card: name "
            "it with ",
            Setting("card_column"),
        )
    features = [*columns.features, card_column] if columns.features and has_checksums else columns.features
    return replace(columns, features=features, drop=[name for name in columns.drop if name != card_column])


def _split_cards(rows: Rows, cards: dict[str, Mechanism], column: str) -> tuple[Rows, Any]:
    """Return the rows without the column of checksums, and the mechanism of each value."""
    if column not in rows.public.column_names:
        return rows, next(iter(cards.values()))
    checksums = [f"sha256:{str(text).removeprefix('sha256:')}" for text in rows.public.column(column).to_pylist()]
    unknown = [row for row, checksum in enumerate(checksums, 1) if checksum not in cards]
    if unknown:
        raise DataError(
            f"row {list_first(unknown, 5)}: the column {column!r} names none of the cards; "
            "leave such rows out, name their cards too, or name another column with ",
            Setting("card_column"),
        )
    return replace(rows, public=rows.public.drop_columns([column])), [cards[checksum] for checksum in checksums]


# ---- outputs ----------------------------------------------------------------------------------------------------


def _write_model(
    out: Path, job: FileJob, rows: Rows, reports: Reports, columns: Columns, mean: str
) -> tuple[Path, list[str]]:
    """Fit a model to reports, and write its folder with a report page; return its card, and notes."""
    (label,), names = job.labels, rows.public.column_names
    if not names:
        raise ParameterError(
            "the table has no public column to learn from: write a table instead, with ", Setting("out", "OUT.csv")
        )
    encoder = TableEncoder.fit(rows.public, names, categories=columns.categories)
    X, notes = encode_rows(encoder, rows, label)
    columns_text(encoder, label)
    model = LabelReleaseRegressor(
        epsilon=reports.epsilon, bounds=reports.bounds, rows_per_person=reports.rows_per_person
    )
    with model_folder(out, force=job.force) as draft, warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakModelWarning)  # it is among the notes
        model.fit_reports(X, reports)
        card = write_model(model, encoder, draft, label=label, note=mean)
        write_page(report_path(draft / "card.json"), render_report(card))
    return out / "card.json", notes + weakness_notes(model)


def _write_table(out: Path, job: FileJob, rows: Rows, reports: Reports) -> tuple[Path, list[str]]:
    """Write the table with unbiased labels, its card and its report page; return the card, and notes."""
    if len(reports.mechanisms) > 1:
        raise ParameterError(
            "a table has labels of one card: collect the reports of each by themselves, or write a model, with ",
            Setting("out", "FOLDER"),
        )
    table = rows.public.append_column(job.labels[0], arrow().array(reports.labels))
    with (
        OutputAndCard(out, force=job.force) as placement,
        TableWriter(out, table.schema, None, job.force, max_rights=rows.rights, reserved=True) as writer,
    ):
        for batch in table.to_batches():
            writer.write(batch)
        file = describe_file(writer, out, rows=len(reports), left_out=0, labels=job.labels)
        terms = replace(reports.terms, priors=(None,))
        card = terms.to_card(file=file, rounding=[None], purpose="statistics")
        placement.put_card(card + "\n", rows.rights)
    write_page(report_path(placement.card), render_report(card), force=job.force)
    return placement.card, list(rows.notes)
