"""CSV and TSV: types that hold for the whole file, and complaints that quote nothing from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from labeldp._arrow import arrow
from labeldp.errors import DataError
from labeldp.files.sources import Part
from labeldp.files.spellings import Spelling, are_numbers, spellings_of

__all__ = ["DELIMITERS", "column_names", "settled_types", "text_batches"]

DELIMITERS = {"csv": ",", "tsv": "\t"}
BLOCK = 1 << 22
"""Bytes read at a time. Types are guessed from the first block, and widened where a later one disagrees."""


def text_batches(
    part: Part,
    delimiter: str,
    *,
    types: Mapping[str, Any],
    columns: Sequence[str] | None = None,
    default: Any = None,
) -> Iterator[Any]:
    """Yield a text file's rows as record batches.

    Parameters
    ----------
    part : Part
    delimiter : str
    types : mapping
        Of column names to Arrow types.
    columns : sequence of str, optional
        Which to read; by default all.
    default : Arrow type, optional
        Of columns that ``types`` does not name; by default it is guessed.
    """
    csv = arrow().csv
    convert = csv.ConvertOptions(
        column_types=dict(types), include_columns=None if columns is None else list(columns)
    )
    if default is not None:
        convert.default_column_type = default
    blank = len(column_names(part, delimiter)) == 1  # in a single column, a blank line is a missing value
    with part.open_text() as stream:
        reader = _explained(part, delimiter, lambda: _opened(stream, delimiter, convert, blank=blank))
        while (batch := _explained(part, delimiter, lambda: next(reader, None))) is not None:
            if batch.num_rows:
                yield batch


def _opened(stream: Any, delimiter: str, convert: Any, *, blank: bool = False) -> Any:
    csv = arrow().csv
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=not blank)
    read = csv.ReadOptions(block_size=BLOCK)
    return csv.open_csv(stream, read_options=read, parse_options=parse, convert_options=convert)


def column_names(part: Part, delimiter: str) -> list[str]:
    """Return the names in a text file's header."""
    schema = _first_schema(part, delimiter)
    return list(_explained(part, delimiter, lambda: schema.names))


def _first_schema(part: Part, delimiter: str) -> Any:
    csv = arrow().csv
    with part.open_text() as stream:
        return _explained(part, delimiter, lambda: _opened(stream, delimiter, csv.ConvertOptions())).schema


def settled_types(
    parts: Sequence[Part], delimiter: str, known: Mapping[str, Any], *, exact: bool = False
) -> dict[str, Any]:
    """Return a type for each column that every row of every file can be read as.

    Parameters
    ----------
    parts : sequence of Part
    delimiter : str
    known : mapping
        Types that are settled already.
    exact : bool
        Whether all text must come back the same from its type, but for what stands for a missing value: ``01000``
        is no number then, nor is ``1.10``.
    """
    pa = arrow().core
    types: dict[str, Any] = {}
    for part in parts:
        for column in _first_schema(part, delimiter):
            known_type = known.get(column.name)
            guess = pa.string() if column.type == pa.binary() else column.type  # no UTF-8, and will be refused
            types[column.name] = known_type or _wider(types.get(column.name), guess)
    while (misfit := _misfit(parts, delimiter, types)) is not None:
        if misfit in known:
            raise DataError(f"the column {misfit!r} holds something that is no {known[misfit]}")
        types[misfit] = _next(types[misfit])
    if exact:
        types.update(dict.fromkeys(_changed(parts, delimiter, types, known), pa.string()))
    return {name: _text() if _is_null(kind) else kind for name, kind in types.items()}


def _misfit(parts: Sequence[Part], delimiter: str, types: Mapping[str, Any]) -> str | None:
    """Return a column that cannot be read as its type, or None: the files are read once for this."""
    for part in parts:
        try:
            for _ in text_batches(part, delimiter, types=types):
                pass
        except _MisfitError as problem:
            return problem.column
    return None


def _changed(
    parts: Sequence[Part], delimiter: str, types: Mapping[str, Any], known: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the columns whose text does not come back from their types."""
    spellings = {
        name: {spelling.__name__: spelling for spelling in spellings_of(kind)}
        for name, kind in types.items()
        if name not in known
    }
    for part in parts:
        typed = text_batches(part, delimiter, types=types)
        plain = text_batches(part, delimiter, types={}, default=_text())
        for values, text in zip(typed, plain, strict=True):  # blocks are of the same bytes
            for name, kept in spellings.items():
                column, written = values.column(name), text.column(name)
                if arrow().core.types.is_floating(column.type) and not are_numbers(written):
                    kept.clear()
                for how in [how for how, spelt in kept.items() if not _kept(spelt, column, written)]:
                    del kept[how]
    yield from (name for name, kept in spellings.items() if not kept)


def _kept(spelt: Spelling, column: Any, written: Any) -> bool:
    """Whether text is as it was, wherever there is a value; of floats only the value counts."""
    pc = arrow().compute
    floating = arrow().core.types.is_floating(column.type)
    return floating or bool(pc.all(pc.equal(spelt(column), written), min_count=0).as_py())


def _text() -> Any:
    return arrow().core.string()


def _is_null(kind: Any) -> bool:
    return bool(arrow().core.types.is_null(kind))


def _wider(old: Any, new: Any) -> Any:
    """Return a type that holds what either holds."""
    pa = arrow().core
    if old is None or old == new or pa.types.is_null(old):
        return new
    if pa.types.is_null(new):
        return old
    return pa.float64() if {old, new} == {pa.int64(), pa.float64()} else pa.string()


def _next(kind: Any) -> Any:
    """Return what to try after a type that did not fit."""
    pa = arrow().core
    if pa.types.is_null(kind):
        return pa.int64()
    return pa.float64() if pa.types.is_integer(kind) else pa.string()


class _MisfitError(DataError):
    """A column holds something that its type cannot."""

    def __init__(self, column: str, kind: str) -> None:
        self.column = column
        super().__init__(
            f"the column {column!r} holds something that is no {kind}: convert it first. Numbers have a decimal "
            "point, not a comma"
        )


def _explained(part: Part, delimiter: str, call: Callable[[], Any]) -> Any:
    """Return what ``call`` returns; what it complains about is said without quoting the file.

    The complaint is raised outside of the handler, so that the original, which may quote a label, is not attached.
    """
    pa = arrow().core
    try:
        return call()
    except (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        problem = _complaint(part, delimiter, str(error))
    except UnicodeDecodeError:
        problem = DataError(f"{part.name} is not UTF-8 text")
    except OSError as error:
        if error.errno is not None:
            raise
        problem = DataError(f"{part.name} is damaged: it cannot be unpacked")
    raise problem


def _complaint(part: Part, delimiter: str, text: str) -> DataError:
    ragged = re.search(r"Expected (\d+) columns, got (\d+)", text)
    misfit = re.search(r"In CSV column #(\d+):.*?CSV conversion error to (\w+)", text)
    if "Empty CSV file" in text:
        return DataError(f"{part.name} is empty")
    if ragged:
        return DataError(
            f"{part.name} is ragged: its header has {ragged[1]} columns, and some row has {ragged[2]} values. "
            "Values must be separated by commas (.csv) or tabs (.tsv), not by semicolons"
        )
    if "UTF8" in text:
        return DataError(f"{part.name} is not UTF-8 text")
    if misfit:
        name = column_names(part, delimiter)[int(misfit[1])]
        return _MisfitError(name, {"double": "number"}.get(misfit[2], misfit[2]))
    if "straddling" in text:
        return DataError(f"{part.name} has a row of more than {BLOCK >> 20} MB, or a quote that never ends")
    return DataError(f"{part.name} cannot be read as text with columns")
