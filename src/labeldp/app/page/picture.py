"""What a release looks like: a picture for the page and a table, from what can be shared alone."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from labeldp.accounts.accuracy import Accuracy
from labeldp.accounts.numbers import number
from labeldp.accounts.reading import ReadCard
from labeldp.app.report.figures import COLOURS, blank, legend, svg
from labeldp.app.sentences import counted
from labeldp.learning.regression_table import RegressionTable
from labeldp.tables.batches import label_values
from labeldp.tables.dialect import Dialect
from labeldp.tables.opening import open_table

FIRST_ROWS = 8
_BINS = 50

Look = dict[str, Any]
"""What the page shows of a release: an image, its text alternative, and a table with its caption."""


def look_at_table(path: Path, card: ReadCard) -> Look:
    """Return the released values of a table, the bounds, their mean with its error, and the first rows."""
    facts = card.content["file"]
    label, dialect = str(facts["column"]), Dialect(**{name: facts[name] for name in _WRITTEN if name in facts})
    batches = open_table(path, label=label, dialect=dialect).batches([label])
    values = np.concatenate([label_values(batch.column(label), allow_missing=True)[0] for batch in batches])
    table = open_table(path, as_written=True, dialect=dialect)
    first = next(iter(table.batches())).slice(0, FIRST_ROWS).to_pylist()
    rows = [["" if value is None else str(value) for value in row.values()] for row in first]
    (low, high), mean = card.terms.bounds[0], float(values.mean())
    accuracy = Accuracy.under(card.terms.mechanisms[0], card.terms.priors[0], (low, high))
    error = float(accuracy.error_of_mean(values.size))
    figure, axes = blank(label, "rows")
    axes.axvspan(low, high, color=COLOURS[2], alpha=0.13, lw=0, label="the bounds")
    axes.hist(values, bins=_BINS, color=COLOURS[0], alpha=0.6, label="released values")
    axes.axvspan(mean - error, mean + error, color=COLOURS[1], alpha=0.4, lw=0)
    axes.axvline(mean, color=COLOURS[1], lw=2, label=f"their mean, {number(mean)} ± {number(error, 3)}")
    legend(axes, columns=2)
    clumps, different = "", np.unique(values).size
    if different <= _BINS:
        clumps = (
            f" Each is one of {different} values, drawn at random, high ones more often for a high true value: "
            "the clumps are those of the noise, and not where true values are."
        )
    text = (
        f"{counted(values.size, 'released value')} of {label}, from {number(float(values.min()))} to "
        f"{number(float(values.max()))}.{clumps} One of them says little: most of it is noise, and it may be "
        f"outside the bounds. Their mean is {number(mean)}. {accuracy.describe_mean(values.size)}"
    )
    caption = "The first rows of the private table"
    return _look(figure, f"Released values of {label}", text, caption, table.schema.names, rows)


_WRITTEN = ("separator", "decimal", "encoding")


def look_at_regression(table: RegressionTable) -> Look:
    """Return the coefficients of a regression table with their intervals, and the table."""
    figure, axes = blank("coefficient", "", size=(4.7, 1.4 + 0.4 * len(table.names)))
    table.plot(axes)
    axes.locator_params(axis="x", nbins=4)
    legend(axes, columns=1)  # which hides no interval
    header, *rows = table.cells()
    beside = ", beside how wide intervals would be without privacy" if any(row[-1] for row in rows) else ""
    text = f"Coefficients with their 95 % intervals{beside}, all divided by standard errors."
    title = f"What explains {table.label}"
    return _look(figure, title, text, title, header, rows)


def _look(figure: Any, title: str, text: str, caption: str, header: Sequence[str], rows: Any) -> Look:
    """Return what a template shows: a figure that follows the browser's light or dark colours, and a table."""
    style = resources.files("labeldp.app.report").joinpath("style.css").read_text(encoding="utf-8")
    colours = style.partition("* {")[0]  # the variables, for light and dark
    rules = f"<style>{colours} text {{ fill: var(--ink); font-family: sans-serif; }}</style>"
    drawing = svg(figure, title, text, "picture").replace("</title>", f"</title>{rules}", 1)
    image = f"data:image/svg+xml;base64,{b64encode(drawing.encode()).decode()}"
    return {"image": image, "text": text, "caption": caption, "header": header, "rows": rows}
