"""Pictures of releases for the page, from files that can be shared alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from labeldp._values import Array, Interval
from labeldp.accounts.accuracy import Accuracy
from labeldp.accounts.card import Card
from labeldp.accounts.numbers import number
from labeldp.accounts.scores import describe_coefficients
from labeldp.app.model_predictions import open_features
from labeldp.app.released_table import open_release
from labeldp.app.report.drawing import draw
from labeldp.inference.regression_table import RegressionTable
from labeldp.inference.remarks import REFERENCES
from labeldp.learning.models import load_model
from labeldp.mechanisms.histogram import Histogram
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


@dataclass(frozen=True)
class Picture:
    """A part of the result of a release.

    Attributes
    ----------
    title : str
    sentences : list of str
        The first describes the image.
    image : str
        Its address; empty without an image.
    rows : list of lists of str
        Rows of a table below the names of columns; without rows there is no table.
    """

    title: str
    sentences: list[str]
    image: str = ""
    rows: list[list[str]] = field(default_factory=list)


_NOISE_NOTE = (
    "One value says little: most of it is noise. Clumps are those of the noise, and not where true values are."
)
_MODEL_NOTE = (
    "They are means under a private model of the other columns, and vary less than true values do. Train models "
    "on them; the certificate says how wrong the model is."
)
_PRIOR_NOTE = "The line is a rough picture of the true values, which is private and was paid for."
MEAN_NOTE = (
    "The interval has the noise and chance in it: in 95 % of releases it covers the mean of the whole population."
)
_GROUPS_NOTE = "These means cost nothing more. Any other public column, or several at once, works the same way."


def draw_table(path: Path, card: Card) -> list[Picture]:
    """Return the released values of a table and its first rows, and means by a public column."""
    label, terms = str(card.content["file"]["column"]), card.terms
    names = [label] if terms.rows > MOST_ROWS else None  # a large table need not fit into memory
    table = pa.Table.from_batches(list(open_release(path, card, label=label).batches(names)))
    values = label_values(table.column(label).combine_chunks(), allow_missing=True)[0]
    rows = first_rows(open_release(path, card, as_written=True))
    text, mean, groups = f"{values.size:,} released values of {label}", "", list[Picture]()
    notes = [f"{text}. {_MODEL_NOTE}"]
    prior = None if "features" in card.content else terms.priors[0]
    if "features" not in card.content:  # values from a model are not for means
        accuracy = Accuracy.under(terms.mechanisms[0], prior, terms.bounds[0])
        mean = "their mean, {} ± {}".format(*_state_mean(values, accuracy, 3))
        notes = [f"{text}, and {mean}. {accuracy.describe_mean(values.size)} {_NOISE_NOTE}"]
        groups = _draw_groups(accuracy, label, table, values)
    if prior is not None:
        notes.append(_PRIOR_NOTE)
    plot = partial(_plot_values, values, label, terms.bounds[0], prior, mean)
    return [Picture("The private column now", notes, draw(plot, 3.4), rows), *groups]


def _state_mean(values: Array, accuracy: Accuracy, digits: int) -> tuple[str, str]:
    """Return the mean of values and its typical error, as text."""
    return number(float(values.mean())), number(float(accuracy.error_of_mean(values.size)), digits)


def _plot_values(
    values: Array, label: str, bounds: Interval, prior: Histogram | None, mean: str, axes: Any
) -> None:
    """Draw the distribution of released values, of their prior, and their mean if it is stated."""
    axes.axvspan(*bounds, color="#1b7a43", alpha=0.13, label="the bounds")
    rows, edges, _ = axes.hist(values, bins=50, color="#0057a3", alpha=0.6, label="released values")
    if prior is not None:
        counts = prior.density * (values.size * (edges[1] - edges[0]))
        axes.stairs(counts, prior.nodes, color="#7b3f98", label="likely distribution")
        axes.set_ylim(0, 1.1 * rows.max())
    if mean:
        axes.axvline(values.mean(), color="#b04a00", lw=2, label=mean)
    axes.set(xlabel=label, ylabel="rows")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, fontsize=9)


def _draw_groups(accuracy: Accuracy, label: str, table: Any, values: Array) -> list[Picture]:
    """Return the mean of each category of the first public column that has few, with its error."""
    for name in table.schema.names:
        categories = pc.fill_null(table.column(name).cast(pa.string()), "")
        names = sorted(pc.unique(categories).to_pylist())
        if name == label or not 2 <= len(names) <= MOST_GROUPS:
            continue
        rows, codes = [[name, "rows", f"mean {label}", "± (typical error)"]], categories.to_numpy()
        for category in names:
            group = values[codes == category]
            rows.append([category or "missing", f"{group.size:,}", *_state_mean(group, accuracy, 2)])
        return [Picture(f"Means by {name}", [_GROUPS_NOTE], rows=rows)]
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
    columns = list(importances.items())[:MOST_GROUPS]

    def plot(axes: Any) -> None:
        axes.barh(*zip(*columns[::-1], strict=True), color="#0057a3")
        axes.set(xlabel=f"typical change of a predicted {saved.label}")

    text = (
        f"The typical change of a prediction of {saved.label}, in its unit, if the rows of one public column are "
        "shuffled. It follows from the model alone, and costs nothing."
    )
    lines = [["column", "typical change"], *([name, number(change, 3)] for name, change in columns)]
    return Picture("Importance of columns", [text], draw(plot, 1.2 + 0.35 * len(columns)), lines)


def first_rows(table: Any) -> list[list[str]]:
    """Return the names of columns, and the first rows as text."""
    first = next(iter(table.batches())).slice(0, FIRST_ROWS).to_pylist()
    return [
        table.schema.names,
        *(["" if value is None else str(value) for value in row.values()] for row in first),
    ]


def draw_regression(table: RegressionTable, card: Card) -> Picture:
    """Return the coefficients of a regression table in words and with their intervals; a mean alone in words."""
    sentences = describe_coefficients(card.content["regression"])
    if table.names == table.names[:1]:
        return Picture(f"The mean of {table.label}", [*sentences, MEAN_NOTE])

    def plot(axes: Any) -> None:
        table.plot(axes)
        axes.set_xlabel(fill(axes.get_xlabel(), LINE))

    text = f"What explains {table.label}: coefficients with their 95 % intervals."
    sentences += [remark for remark in table.remarks if remark.startswith(REFERENCES)]
    return Picture("The table", [text, *sentences], draw(plot, 1.6 + 0.4 * len(table.names)), table.cells())
