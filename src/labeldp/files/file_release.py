"""`privatize_file`: a table with a private label column in, the same table with private labels out.

Order: refuse what cannot be done, count labels, charge, release. The card appears before the table: a card without
its table is harmless, and a table without its card is not.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from labeldp.errors import DataError, ParameterError
from labeldp.files.base_table import Table
from labeldp.files.door import Door, Output, Progress
from labeldp.files.drafts import TableAndCard
from labeldp.files.formats import DELIMITERS, as_format, format_of
from labeldp.files.hints import Watch
from labeldp.files.places import PIPE, is_folder, refuse_same
from labeldp.files.shuffle import shuffle_rows
from labeldp.files.sources import find_parts
from labeldp.files.tables import TextTable, TypedTable
from labeldp.files.writer import TableWriter
from labeldp.histogram import Histogram
from labeldp.ledger import Ledger
from labeldp.mechanisms.base import Mechanism
from labeldp.randomness import WordSource, resolve_source
from labeldp.release.plan import Request
from labeldp.release.stream import LabelStream
from labeldp.release.terms import Terms

__all__ = ["FileRelease", "privatize_file"]


@dataclass(frozen=True, slots=True)
class FileRelease:
    """What was written, and on which terms.

    Attributes
    ----------
    path : str
    terms : Terms
    card : str
        The card's text; public.
    card_path : Path or None
        None if the table went through a pipe, and no place was named for the card.
    types_changed : dict
        The types, in words, of columns that could not keep theirs: what they were, and what they are.
    """

    path: str
    terms: Terms
    card: str = field(repr=False)
    card_path: Path | None
    types_changed: dict[str, tuple[str, str]]


def privatize_file(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    label: str,
    bounds: tuple[float, float],
    epsilon: float,
    mechanism: str | Mechanism = "auto",
    prior: Histogram | None = None,
    delta: float = 0.0,
    zeta: float | None = None,
    epsilon_prior: float | None = None,
    trust: str = "curator",
    debiased: Literal["replace", "add", "no"] = "replace",
    missing: Literal["error", "drop"] = "error",
    shuffle: bool = False,
    ledger: Ledger | Callable[[], Ledger] | None = None,
    rows_per_person: int = 1,
    format: str | None = None,
    force: bool = False,
    card: str | os.PathLike[str] | None = None,
    others: Mapping[str, str | os.PathLike[str] | None] | None = None,
    progress: Progress | None = None,
    hints: Callable[[str], None] | None = None,
    random_state: int | WordSource | None = None,
) -> FileRelease:
    r"""Write a table again with private labels, in constant memory; all other columns stay as they are.

    Parameters
    ----------
    source, out : path
        CSV, TSV, Parquet, Arrow or Feather: a file, a folder, a glob (``source`` only), or ``-`` for a pipe.
    label : str
        The private column. In ``out`` it is a column of float64 in the same place.
    bounds, epsilon, mechanism, prior, delta, zeta, epsilon_prior, trust, ledger, rows_per_person, random_state
        As in `privatize`; ``ledger`` may also be a callable that opens one when all labels are counted.
    debiased : {"replace", "add", "no"}
        Whether the label column holds unbiased labels, what a learner needs; or the released values, with unbiased
        labels in a column beside it; or only the released values.
    missing : {"error", "drop"}
        What to do with rows without a label. Which rows are left out is public.
    shuffle : bool
        Write the rows in a random order.
    format : str, optional
        Of ``source``, and of ``out``, where a name does not tell.
    force : bool
        Replace what is there.
    card : path, optional
        Where the card goes; by default ``out`` with ``.card.json`` after it.
    others : mapping, optional
        What the caller writes besides, by what to call it, such as a ledger that is opened later: refused if it is
        the output, the card or the source as well, or lies in a folder that is replaced.
    progress : callable, optional
        Is told what is being done, how many rows are done, and how many there are, or None.
    hints : callable, optional
        Is told, at the end, what gives labels away in spite of the noise: columns, or the order of rows. **For the
        owner's eyes only**: hints follow from true labels. Without it none are computed.

    Returns
    -------
    FileRelease

    Examples
    --------
    >>> import tempfile
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
        delta=delta,
        rows_per_person=rows_per_person,
    )
    if debiased not in {"replace", "add", "no"} or missing not in {"error", "drop"}:
        raise ParameterError("debiased must be 'replace', 'add' or 'no', and missing 'error' or 'drop'")
    to = os.fspath(out)
    card_path = Path(card) if card is not None else None if to == PIPE else Path(f"{Path(to)}.card.json")
    places = TableAndCard(to, card_path, force=force)
    places.refuse_targets()
    kept = {"the ledger": ledger.path} if isinstance(ledger, Ledger) and ledger.path else {}
    outputs = {"the output": to, "the card": card_path, **kept, **(others or {})}
    refuse_same(outputs, {"the source": os.fspath(source)})
    table, out_format = _open(os.fspath(source), to, format, label)
    door = Door(table, drop=missing == "drop", progress=progress or (lambda *_: None))
    output = Output(table, debiased)
    source_of_words = resolve_source(random_state)
    writer = TableWriter(
        to,
        output.schema,
        out_format,
        force,
        compression=table.compression,
        plain=[label, output.second or label],
        most=table.rights,
    )
    if debiased != "no":
        _refuse_biased(request)
    if "scipy.optimize" not in sys.modules:  # a design needs it: imported while labels are counted
        threading.Thread(target=import_module, args=("scipy.optimize",)).start()
    stream = LabelStream(door.labels, request, ledger=ledger, random_state=source_of_words)
    watch = None if hints is None else Watch(stream.terms.rows, table.schema, label, source_of_words)
    batches = _release_rows(door, stream, output, watch)
    if shuffle:
        folder = None if to == PIPE else Path(to).resolve().parent
        batches = shuffle_rows(
            batches, output.schema, rows=stream.terms.rows, folder=folder, source=source_of_words
        )
    with places, writer:
        for batch in batches:
            writer.write(batch)
        terms = stream.finish()
        digests = writer.finish()
        facts = output.facts(to, writer, digests, left_out=door.left_out, shuffle=shuffle)
        text = terms.to_card(file=facts)
        places.put_card(text + "\n", table.rights)
    if hints is not None and watch is not None:
        for hint in watch.hints(ordered=not shuffle):
            hints(hint)
    return FileRelease(to, terms, text, card_path, output.types_changed(writer))


def _refuse_biased(request: Request) -> None:
    try:
        request.refuse_biased()
    except ParameterError as error:
        raise ParameterError(f'{error}, with debiased="no"') from None


def _release_rows(door: Door, stream: LabelStream, output: Output, watch: Watch | None) -> Iterator[Any]:
    """Yield the rows with private labels."""
    for rows in door.rows(stream.terms.rows):
        private = stream.release(rows.labels)
        if watch is not None:
            watch.see(rows.public, rows.labels)
        yield output.batch(rows.public, private, stream.mechanism)


def _open(source: str, to: str, format: str | None, label: str) -> tuple[Table, str]:
    """Return the table, and the format to write it in, if its label can be released."""
    named = None if format is None else as_format(format)
    parts, kind = find_parts(source, None if source != PIPE and _tells(source) else named)
    out_format = named or kind
    if to != PIPE and not is_folder(to) and (_tells(to) or named is None):
        out_format = format_of(to)
    if kind not in DELIMITERS:
        return TypedTable(parts, kind, label=label, exact=True), out_format
    return TextTable(parts, kind, label=label, as_written=out_format in DELIMITERS, exact=True), out_format


def _tells(name: str) -> bool:
    """Whether a file's name tells its format."""
    with suppress(DataError):
        return bool(format_of(name))
    return False
