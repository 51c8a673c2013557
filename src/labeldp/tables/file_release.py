"""`privatize_file`: a table with a private label column in, the same table with private labels out.

Order: refuse what cannot be done, count labels, charge, release. Rows are read as two things, their public part
and their labels, and written as one. Labels meet nothing here but a channel, or the counts of a curator. What is
written follows from the public part and from what the channel released, in pieces that follow from the public part
alone.
The card appears before the table: a card without its table is harmless, and a table without its card is not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labeldp._atomic import StrPath
from labeldp._values import parse_choice
from labeldp.accounts.accuracy import round_to, rounding_step
from labeldp.accounts.budget import declared
from labeldp.accounts.ledger import Ledger, as_ledger
from labeldp.accounts.terms import Terms
from labeldp.errors import DataError, Message
from labeldp.exact.word_sources import WordSource, resolve_source
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.plan import Request
from labeldp.release.stream import LabelStream
from labeldp.tables.batches import MOST_SHUFFLED, read_ahead, shuffle_rows, size_of
from labeldp.tables.dialect import Dialect
from labeldp.tables.hints import Identifiers
from labeldp.tables.opening import Progress, TableInput, open_table
from labeldp.tables.paths import DELIMITERS, as_format, format_in, output_format, refuse_same
from labeldp.tables.placement import OutputsAndCard
from labeldp.tables.writer import TableWriter

NOT_COPIED = "metadata of the files and columns, row groups, batches, file names, sort orders"


@dataclass(frozen=True, slots=True)
class FileRelease:
    r"""What was written, and on which terms.

    Attributes
    ----------
    path : str
        The table.
    terms : Terms
        Mechanism, prior, charges and bounds.
    card : str
        The card's text; public.
    card_path : Path
    notes : tuple of str
        What was detected about the source, such as its separator, and which public columns single out rows.

    Examples
    --------
    >>> import tempfile
    >>> from labeldp.tables import privatize_file
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "flats.csv").write_text("area;price\n" + "60,5;3,5\n81,0;4,25\n" * 200)
    >>> done = privatize_file(folder / "flats.csv", folder / "out.csv", label="price", bounds=(0, 5), epsilon=1)
    >>> done.card_path.name, done.terms.rows
    ('out.csv.card.json', 400)
    >>> done.notes
    ("The table was read as CSV with separator ';', decimal mark ','.",)
    """

    path: str
    terms: Terms
    card: str = field(repr=False)
    card_path: Path
    notes: tuple[str, ...]


def privatize_file(
    source: StrPath,
    out: StrPath,
    *,
    label: str,
    bounds: tuple[float, float],
    epsilon: float,
    mechanism: str | Mechanism = "auto",
    prior: Histogram | None = None,
    zeta: float | None = None,
    epsilon_prior: float | None = None,
    trust: str = "curator",
    debiased: Literal["replace", "no"] = "replace",
    missing: Literal["error", "drop"] = "error",
    shuffle: bool = False,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    purpose: str | None = None,
    recipient: str | None = None,
    bounds_reason: str | None = None,
    format: str | None = None,
    dialect: Dialect | None = None,
    drop: Collection[str] = (),
    force: bool = False,
    progress: Progress | None = None,
    hints: Callable[[list[Message]], None] | None = None,
    random_state: int | WordSource | None = None,
) -> FileRelease:
    r"""Write a table again with private labels, in constant memory; all other columns stay as they are.

    Parameters
    ----------
    source, out : path-like
        CSV, TSV or Parquet: a file; ``source`` may also be Excel, or a folder of Parquet files.
    label : str
        The private column. In ``out`` it is a column of float64 in the same place, rounded to a power of ten
        that is at most a hundredth of the noise.
    bounds, epsilon, mechanism, prior, zeta, epsilon_prior, trust, ledger, rows_per_person, random_state
        As in `labeldp.privatize`.
    purpose, recipient, bounds_reason : str, optional
        As in `labeldp.privatize`.
    debiased : {"replace", "no"}
        Whether the label column holds unbiased labels, what a learner needs, or the values as released.
    missing : {"error", "drop"}
        What to do with rows without a label. Which rows are left out is public.
    shuffle : bool
        Write the rows in a random order; the table must fit into memory, with 1 GiB of values at most.
    format : str, optional
        Of ``source``, and of ``out``, where a name implies none.
    dialect : Dialect, optional
        How text files are written; what it does not say is detected from the header and the public columns, never
        from labels. Text is written as it was read.
    drop : collection of str
        Columns to leave out; they are read for a total in the last row only.
    force : bool
        Replace what is there.
    progress : callable, optional
        Called with what is being done, how many rows are done, and how many there are, or None.
    hints : callable, optional
        Called before the charge with what gives labels away in spite of the noise, columns or the order of rows,
        if anything does; what it raises stops the release, and nothing is spent. **For the owner's eyes only**:
        hints follow from true labels. Without it none are computed.

    Returns
    -------
    FileRelease

    Examples
    --------
    >>> import tempfile
    >>> from labeldp.tables import privatize_file
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "flats.csv").write_text("id,price\n" + "".join(f"{i:03},{i % 5}.5\n" for i in range(1000)))
    >>> done = privatize_file(folder / "flats.csv", folder / "out.csv", label="price", bounds=(0, 5), epsilon=1)
    >>> done.terms.cost, (folder / "out.csv").read_text()[:13]
    (Budget(epsilon=1.0), 'id,price\n000,')
    """
    request = Request(
        epsilon=epsilon,
        bounds=bounds,
        mechanism=mechanism,
        prior=prior,
        trust=trust,
        epsilon_prior=epsilon_prior,
        zeta=zeta,
        rows_per_person=rows_per_person,
    )
    parse_choice(debiased, "debiased", ("replace", "no"))
    parse_choice(missing, "missing", ("error", "drop"))
    to = os.fspath(out)
    named = None if format is None else as_format(format)
    out_format = output_format(to, named)
    card_path = Path(f"{Path(to)}.card.json")
    ledger = as_ledger(ledger)
    ledger_path = None if ledger is None else ledger.path
    outputs = {"the output": Path(to), "the card": card_path}
    refuse_same({**outputs, "the ledger": ledger_path}, {"the source": os.fspath(source)})
    progress = progress or (lambda *_: None)
    with OutputsAndCard(to, force=force) as places:
        progress("Opening", 0, None)
        table = open_table(
            source,
            named if format_in(os.fspath(source)) is None else None,
            label=label,
            as_written=out_format in DELIMITERS,
            drop=drop,
            dialect=dialect,
            exact=True,
        )
        for name in drop:
            table.refuse_unknown(name, "drop")
        rows_in = TableInput(table, drop=missing == "drop", progress=progress)
        source_of_words = resolve_source(random_state)
        rights, style = table.rights, table.dialect_for(out_format)
        writer = TableWriter(to, table.schema, out_format, force, most=rights, dialect=style, reserved=True)
        if debiased != "no":
            request.refuse_biased()
        identifiers = Identifiers()
        readings = chain(
            [_labels_and_hints(rows_in, writer.rehearse, identifiers, hints, source_of_words, shuffle)],
            iter(rows_in.labels, None),
        )
        with declared(purpose=purpose, recipient=recipient, bounds_reason=bounds_reason):
            stream = LabelStream(lambda: next(readings), request, ledger=ledger, random_state=source_of_words)
        is_unbiased, step = debiased == "replace", rounding_step(stream.mechanism)
        batches = _release_rows(rows_in, stream, step, is_unbiased)
        if shuffle:
            batches = shuffle_rows(batches, source_of_words)
        with writer:
            for batch in read_ahead(batches):  # the next rows get their noise while these are encoded
                writer.write(batch)
            terms = stream.finish()
            facts: dict[str, Any] = {
                "name": Path(to).name,
                "format": out_format,
                **writer.text_facts(),
                "rows": terms.rows,
                "rows_left_out": rows_in.left_out,
                "column": label,
                "column_holds": "unbiased private labels" if is_unbiased else "private labels as released, biased",
                "unbiased_column": label if is_unbiased else None,
                "columns": list(table.schema.names),
                "types_changed": {},
                "sha256": writer.finish(),
                "row_order": "shuffled" if shuffle else "public, and kept",
                "not_copied": NOT_COPIED,
            }
            text = terms.to_card(file=facts, rounding=[step])
            places.put_card(text + "\n", rights)
    notes = (*table.notes, *identifiers.hints())
    return FileRelease(to, terms, text, card_path, notes)


def _labels_and_hints(
    rows_in: TableInput,
    rehearse: Callable[[Any], None],
    identifiers: Identifiers,
    hints: Callable[[list[Message]], None] | None,
    source: WordSource,
    shuffle: bool,
) -> Iterator[NDArray[np.float64]]:
    """Yield the labels from the start, try to write the public part, and say at the end what gives labels away."""
    sampler = None if hints is None else rows_in.hint_sampler(source)
    size = 0

    def check(public: Any) -> None:
        nonlocal size
        rehearse(public)
        identifiers.update(public)
        size += size_of(public)
        if shuffle and size > MOST_SHUFFLED:
            raise DataError("the table is too large to be shuffled: 1 GiB of values at most; shuffle it before")

    yield from rows_in.labels(check, sampler)
    identifiers.hints()  # before the charge, as all that can fail
    found = [] if sampler is None else sampler.hints(ordered=not shuffle)
    if hints is not None and found:
        hints(found)


def _release_rows(
    rows_in: TableInput, stream: LabelStream, step: float | None, is_unbiased: bool
) -> Iterator[Any]:
    """Yield the rows with what the channel released in the label's place."""
    schema = rows_in.table.schema
    place = schema.get_field_index(rows_in.table.label)
    for public, labels in rows_in.rows(stream.terms.rows):
        private = stream.release(labels)
        if private.size and is_unbiased:
            private = stream.mechanism.channel.debias(private)
        columns = [*public[:place], pa.array(round_to(private, step)), *public[place:]]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
