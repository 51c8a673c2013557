"""Pictures of releases for the page, from files that can be shared alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from labeldp._values import Array
from labeldp.accounts.accuracy import Accuracy
from labeldp.accounts.card import Card
from labeldp.accounts.numbers import number
from labeldp.accounts.scores import describe_coefficients
from labeldp.app.model_predictions import open_features
from labeldp.app.released_table import open_release
from labeldp.app.report.drawing import draw
from labeldp.inference.regression_table import RegressionTable
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
        The first says what the image shows.
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


@dataclass(frozen=True)
class _Column:
    """The released values of a table, with the errors of their means unless a model gave them."""

    label: str
    values: Array
    bounds: tuple[float, float]
    accuracy: Accuracy | None
    prior: Histogram | None

    @classmethod
    def of(cls, label: str, values: Array, card: Card) -> _Column:
        """Return the column of a card; values from a model are not for means."""
        terms, accuracy, prior = card.terms, None, None
        if "features" not in card.content:
            prior = terms.priors[0]
            accuracy = Accuracy.under(terms.mechanisms[0], prior, terms.bounds[0])
        return cls(label, values, terms.bounds[0], accuracy, prior)

    def error(self, rows: int) -> float:
        """Return the typical error of a mean."""
        return float(self.accuracy.error_of_mean(rows)) if self.accuracy else math.nan

    @property
    def mean(self) -> str:
        """The mean with its error."""
        return f"their mean, {number(float(self.values.mean()))} ± {number(self.error(self.values.size), 3)}"

    @property
    def sentences(self) -> list[str]:
        """The values in words."""
        text = f"{self.values.size:,} released values of {self.label}"
        if self.accuracy is None:
            return [f"{text}. {_MODEL_NOTE}"]
        note = self.accuracy.describe_mean(self.values.size)
        return [f"{text}, and {self.mean}. {note} {_NOISE_NOTE}", *([_PRIOR_NOTE] if self.prior else [])]

    def plot(self, axes: Any) -> None:
        """Draw the distribution of the values, and of the prior."""
        axes.axvspan(*self.bounds, color="#1b7a43", alpha=0.13, label="the bounds")
        rows, edges, _ = axes.hist(self.values, bins=50, color="#0057a3", alpha=0.6, label="released values")
        if self.prior is not None:
            counts = self.prior.density * (self.values.size * (edges[1] - edges[0]))
            axes.stairs(counts, self.prior.nodes, color="#7b3f98", label="likely distribution")
            axes.set_ylim(0, 1.1 * rows.max())
        if self.accuracy is not None:
            axes.axvline(self.values.mean(), color="#b04a00", lw=2, label=self.mean)
        axes.set(xlabel=self.label, ylabel="rows")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, fontsize=9)

    def means(self, categories: Any) -> Iterator[list[str]]:
        """Yield the mean of each category, with its error."""
        codes = categories.to_numpy()
        for category in sorted(pc.unique(categories).to_pylist()):
            group = self.values[codes == category]
            error = number(self.error(group.size), 2)
            yield [category or "missing", f"{group.size:,}", number(float(group.mean())), error]


def draw_table(path: Path, card: Card) -> list[Picture]:
    """Return the released values of a table and its first rows, and means by a public column."""
    label = str(card.content["file"]["column"])
    names = [label] if card.terms.rows > MOST_ROWS else None  # a large table need not fit into memory
    table = pa.Table.from_batches(list(open_release(path, card, label=label).batches(names)))
    values = label_values(table.column(label).combine_chunks(), allow_missing=True)[0]
    column = _Column.of(label, values, card)
    rows = first_rows(open_release(path, card, as_written=True))
    pictures = [Picture("The private column now", column.sentences, draw(column.plot, 3.4), rows)]
    name = _grouping(table, label)
    if column.accuracy and name is not None:
        header = [name, "rows", f"mean {label}", "± (typical error)"]
        means = column.means(_texts(table, name))
        pictures.append(Picture(f"Means by {name}", [_GROUPS_NOTE], rows=[header, *means]))
    return pictures


def _grouping(table: Any, label: str) -> str | None:
    """Return the first public column that has few categories, and not one alone."""
    for name in table.schema.names:
        if name != label and 2 <= len(pc.unique(_texts(table, name))) <= MOST_GROUPS:
            return str(name)
    return None


def _texts(table: Any, name: str) -> Any:
    """Return a column as text."""
    return pc.fill_null(table.column(name).cast(pa.string()), "")


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
    return Picture("Importance of columns", [text], draw(plot, 1.2 + 0.35 * len(names)), lines)


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
    return Picture("The table", [text, *sentences], draw(plot, 1.6 + 0.4 * len(table.names)), table.cells())
