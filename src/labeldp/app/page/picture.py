"""Pictures of releases for the page, from files that can be shared alone."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from labeldp._values import Array
from labeldp.accounts.accuracy import Accuracy
from labeldp.accounts.card import Card
from labeldp.accounts.numbers import number
from labeldp.app.model_predictions import open_features
from labeldp.app.released_table import open_release
from labeldp.app.report.drawing import draw
from labeldp.inference.regression_table import RegressionTable
from labeldp.learning.models import load_model
from labeldp.tables.batches import label_values
from labeldp.tables.dialect import Dialect

LINE = 50
"""Characters of a line below a picture."""

FIRST_ROWS = 8
MOST_GROUPS = 12
"""The most categories of a column, and columns of a model, that are shown."""

MOST_ROWS = 1_000_000
"""Rows of a table whose means by a column are shown."""

MODEL_ROWS = 2000
"""Rows whose predictions show the importance of columns."""

Picture = dict[str, Any]
"""A title, an image or none, its text, and rows of a table below the names of columns, with a caption."""


_NOISE_NOTE = (
    "One value says little: most of it is noise. Clumps are those of the noise, and not where true values are."
)
_MODEL_NOTE = (
    "They are means under a private model of the other columns, and vary less than true values do. Train models "
    "on them; the certificate says how wrong the model is."
)


def _accuracy_of(card: Card) -> Accuracy | None:
    """Return the accuracy of means; None of values from a model, which are not for means."""
    terms = card.terms
    if "features" in card.content:
        return None
    return Accuracy.under(terms.mechanisms[0], terms.priors[0], terms.bounds[0])


def draw_table(path: Path, card: Card) -> list[Picture]:
    """Return the released values of a table and its first rows, and means by a public column."""
    label = str(card.content["file"]["column"])
    names = [label] if card.terms.rows > MOST_ROWS else None  # a large table need not fit into memory
    table = pa.Table.from_batches(list(open_release(path, card, label=label).batches(names)))
    values = label_values(table.column(label).combine_chunks(), allow_missing=True)[0]
    accuracy, mean, stated = _accuracy_of(card), float(values.mean()), ""
    prior = None if accuracy is None else card.terms.priors[0]
    if accuracy is not None:
        stated = f"their mean, {number(mean)} ± {number(float(accuracy.error_of_mean(values.size)), 3)}"

    def plot(axes: Any) -> None:
        axes.axvspan(*card.terms.bounds[0], color="#1b7a43", alpha=0.13, label="the bounds")
        _, edges, _ = axes.hist(values, bins=50, color="#0057a3", alpha=0.6, label="released values")
        if prior is not None:
            counts = prior.density * (values.size * (edges[1] - edges[0]))
            axes.stairs(counts, prior.nodes, color="#7b3f98", label="likely distribution")
            axes.set_ylim(0, 1.1 * max(patch.get_height() for patch in axes.patches[1:51]))
        if stated:
            axes.axvline(mean, color="#b04a00", lw=2, label=stated)
        axes.set(xlabel=label, ylabel="rows")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, fontsize=9)

    text = f"{values.size:,} released values of {label}. {_MODEL_NOTE}"
    if accuracy is not None:
        note = accuracy.describe_mean(values.size)
        text = f"{values.size:,} released values of {label}, and {stated}. {note} {_NOISE_NOTE}"
    if prior is not None:
        text += " The line is a rough picture of the true values, which is private and was paid for."
    rows = first_rows(open_release(path, card, as_written=True))
    column = {"title": "The private column now", "image": draw(plot, 3.4), "text": text, "caption": "First rows"}
    groups = [] if accuracy is None else _draw_groups(accuracy, label, table, values)
    return [{**column, "rows": rows}, *groups]


def _draw_groups(accuracy: Accuracy, label: str, table: Any, values: Array) -> list[Picture]:
    """Return the mean of each category of the first public column that has few, with its error."""
    for name in table.schema.names:
        categories = pc.fill_null(table.column(name).cast(pa.string()), "") if name != label else pa.array([""])
        names = pc.unique(categories).to_pylist()
        if not 2 <= len(names) <= MOST_GROUPS:
            continue
        rows = [[name, "rows", f"mean {label}", "± (typical error)"]]
        codes = categories.to_numpy()
        for category in sorted(names):
            group = values[codes == category]
            error = float(accuracy.error_of_mean(group.size))
            rows.append([category or "missing", f"{group.size:,}", number(float(group.mean())), number(error, 2)])
        text = "These means cost nothing more. Any other public column, or several at once, works the same way."
        return [{"title": f"Means by {name}", "image": "", "text": text, "caption": f"By {name}", "rows": rows}]
    return []


def draw_model(folder: Path, source: Path, dialect: Dialect) -> Picture:
    """Return the importances of the public columns, by the model's own predictions for some rows of the table."""
    saved = load_model(folder)
    table, rows = open_features(source, saved, (), None, dialect), list[Any]()
    for batch in table.batches():
        rows.append(table.parse(batch, saved.encoder.names))
        if sum(map(len, rows)) >= MODEL_ROWS:
            break
    importances = saved.importances(pa.Table.from_batches(rows).slice(0, MODEL_ROWS))
    names = list(importances)[:MOST_GROUPS]
    changes = [importances[name] for name in names]

    def plot(axes: Any) -> None:
        axes.barh(names[::-1], changes[::-1], color="#0057a3")
        axes.set(xlabel=f"typical change of a predicted {saved.label}")

    text = (
        f"The typical change of a prediction of {saved.label}, in its unit, if the rows of one public column are "
        "shuffled. It follows from the model alone, and costs nothing."
    )
    lines = [["column", "typical change"], *([name, number(importances[name], 3)] for name in names)]
    return {
        "title": "Importance of columns",
        "image": draw(plot, 1.2 + 0.35 * len(names)),
        "text": text,
        "caption": "Importances of columns",
        "rows": lines,
    }


def first_rows(table: Any) -> list[list[str]]:
    """Return the names of columns, and the first rows as text."""
    first = next(iter(table.batches())).slice(0, FIRST_ROWS).to_pylist()
    return [
        table.schema.names,
        *(["" if value is None else str(value) for value in row.values()] for row in first),
    ]


def draw_regression(table: RegressionTable) -> Picture:
    """Return the coefficients of a regression table with their intervals, and the table."""
    text = f"What explains {table.label}: coefficients with their 95 % intervals."

    def plot(axes: Any) -> None:
        table.plot(axes)
        axes.set_xlabel(fill(axes.get_xlabel(), LINE))

    image = draw(plot, 1.6 + 0.4 * len(table.names))
    return {"title": "The table", "image": image, "text": text, "caption": "The table", "rows": table.cells()}
