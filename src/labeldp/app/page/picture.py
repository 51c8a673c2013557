"""Pictures of releases for the page, from files that can be shared alone."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labeldp._values import Array
from labeldp.accounts.accuracy import Accuracy
from labeldp.accounts.card import Card
from labeldp.accounts.numbers import number
from labeldp.inference.regression_table import RegressionTable
from labeldp.tables.batches import label_values
from labeldp.tables.dialect import Dialect
from labeldp.tables.opening import open_table

FIRST_ROWS = 8

Picture = dict[str, Any]
"""An image of a release, its text alternative, and rows of a table below the names of columns."""


_DRAWN = (
    "One value says little: most of it is noise. Clumps are those of the noise, and not where true values are."
)
_MODELLED = (
    "They are means under a private model of the other columns, and vary less than true values do. Train models "
    "on them; the certificate says how wrong the model is."
)


class _Mean(NamedTuple):
    """The mean of released values, as text with its error, and a note on that."""

    value: float
    text: str
    note: str

    @classmethod
    def of(cls, card: Card, values: Array) -> _Mean | None:
        """Return the mean; None of values from a model, which are not for means."""
        if "features" in card.content:
            return None
        terms, mean = card.terms, float(values.mean())
        accuracy = Accuracy.under(terms.mechanisms[0], terms.priors[0], terms.bounds[0])
        error = float(accuracy.error_of_mean(values.size))
        text = f"their mean, {number(mean)} ± {number(error, 3)}"
        return cls(mean, text, accuracy.describe_mean(values.size))


def draw_table(path: Path, card_text: str) -> Picture:
    """Return the released values of a table, their mean with its error, and the first rows."""
    card = Card.parse(card_text)
    facts = card.content["file"]
    label = str(facts["column"])
    dialect = Dialect(**{name: facts[name] for name in ("separator", "decimal", "encoding") if name in facts})
    batches = open_table(path, label=label, dialect=dialect).batches([label])
    values = np.concatenate([label_values(batch.column(label), allow_missing=True)[0] for batch in batches])
    table = open_table(path, as_written=True, dialect=dialect)
    first = next(iter(table.batches())).slice(0, FIRST_ROWS).to_pylist()
    bounds, mean = card.terms.bounds[0], _Mean.of(card, values)

    def plot(axes: Any) -> None:
        axes.axvspan(*bounds, color="#1b7a43", alpha=0.13, label="the bounds")
        axes.hist(values, bins=50, color="#0057a3", alpha=0.6, label="released values")
        if mean is not None:
            axes.axvline(mean.value, color="#b04a00", lw=2, label=mean.text)
        axes.set(xlabel=label, ylabel="rows")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, fontsize=9)

    text = f"{values.size:,} released values of {label}. {_MODELLED}"
    if mean is not None:
        text = f"{values.size:,} released values of {label}, and {mean.text}. {mean.note} {_DRAWN}"
    rows = [["" if value is None else str(value) for value in row.values()] for row in first]
    return {"image": _draw(plot, 3.4), "text": text, "rows": [table.schema.names, *rows]}


def draw_regression(table: RegressionTable) -> Picture:
    """Return the coefficients of a regression table with their intervals, and the table."""
    text = f"What explains {table.label}: coefficients with their 95 % intervals."
    return {"image": _draw(table.plot, 1.4 + 0.4 * len(table.names)), "text": text, "rows": table.cells()}


def _draw(plot: Callable[[Any], object], height: float) -> str:
    """Return a drawing as an address that holds it."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    figure, file = Figure(figsize=(5.2, height), layout="constrained"), io.BytesIO()
    axes = figure.subplots()
    plot(axes)
    figure.savefig(file, format="png", dpi=140, transparent=True)
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"
