"""``labeldp predict``: a saved model's predictions for a table, batch by batch."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from labeldp.cli import options
from labeldp.cli.shell import explained, news, progress, tell
from labeldp.errors import ParameterError
from labeldp.files.places import refuse_same
from labeldp.jobs.inputs import tally_notes
from labeldp.tabular import Tally
from labeldp.tabular.arrow import arrow


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder that labeldp fit wrote.")],
    source: options.Source,
    out: Annotated[str, typer.Option("--out", "-o", metavar="OUT", help="The table to write, or - for a pipe.")],
    column: Annotated[str, typer.Option(metavar="NAME", help="What to call the new column.")] = "prediction",
    keep_label: Annotated[
        bool, typer.Option("--keep-label", help="Copy the column of true labels too; OUT is not private then.")
    ] = False,
    drop: options.Drop = None,
    format: options.Format = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    na: options.Na = None,
    sheet: options.SheetName = None,
    formulas: options.Formulas = None,
    force: options.Force = False,
) -> None:
    """Add a private model's predictions to a table; its other columns stay as they are.

    Columns are found by name, in any order; those that the model does not know
    are only copied. Whatever is done with a private model costs no more ε.

    What leaves: OUT, with the columns of IN and the predictions. A column of
    true labels is left out unless you --keep-label: OUT would not be private.
    """
    console = news()
    with explained():
        refuse_same({"the predictions": out}, {"the table": source, "the model": model})
        from labeldp.files import TableWriter, open_table  # noqa: PLC0415 (an extra)
        from labeldp.files.models import load_model  # noqa: PLC0415

        pa = arrow()
        saved = load_model(model)
        dialect = options.as_dialect(separator, decimal, thousands, encoding, na, sheet, formulas)
        named = options.split_names(drop)
        left_out = named if keep_label else [*named, saved.label]
        with console.status("Reading"):
            table = open_table(source, format, text=saved.encoder.texts, drop=left_out, dialect=dialect)
        for name in named:
            table.refuse_unknown(name)
        saved.encoder.check(table.schema)
        if column in table.schema.names:
            raise ParameterError(f"the table has a column {column!r} already: name another with --column")
        output = table.as_text()
        schema = output.schema.append(pa.field(column, pa.float64()))
        tally: Tally = Counter()
        rows = 0
        form = format if out == "-" else None
        with progress() as update, TableWriter(out, schema, form, force, dialect=table.dialect_for) as writer:
            for batch in output.batches():
                predicted = pa.array(saved.predict(table.parse(batch, saved.encoder.names), tally))
                writer.write(pa.RecordBatch.from_arrays([*batch.columns, predicted], schema=schema))
                rows += batch.num_rows
                if update is not None:
                    update("Predicting", rows, table.rows)
        tell(console, f"{rows:,} rows, with {saved.label!r} as predicted in the column {column!r}: {out}")
        for note in [*table.notes, *tally_notes(tally)]:
            tell(console, note)
        if saved.label in table.private:
            tell(console, f"The table's own column {saved.label!r} was left out: --keep-label copies it.")
        elif saved.label in table.schema.names:
            tell(
                console,
                f"The table's own column {saved.label!r} was copied. If it holds true labels, the output is not "
                "private.",
            )
