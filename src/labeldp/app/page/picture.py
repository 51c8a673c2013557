"""What a release looks like: a picture for the page, and the first rows of a private table."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from labeldp._values import Array
from labeldp.accounts.accuracy import Accuracy
from labeldp.accounts.numbers import number
from labeldp.accounts.reading import ReadCard
from labeldp.app.report.figures import COLOURS, blank, legend, svg
from labeldp.learning.regression_table import RegressionTable
from labeldp.tables.columns import label_values
from labeldp.tables.dialect import Dialect
from labeldp.tables.opening import open_table

FIRST_ROWS = 8
_BINS = 50


@dataclass(frozen=True)
class Picture:
    """A figure as an image that follows the browser's light or dark colours.

    Attributes
    ----------
    source : str
        The image itself, as an address that loads nothing.
    text : str
        What it shows, for those who cannot see it.
    """

    source: str
    text: str

    @classmethod
    def of(cls, figure: Any, title: str, text: str) -> Picture:
        """Return a figure of Matplotlib as an image."""
        style = resources.files("labeldp.app.report").joinpath("style.css").read_text(encoding="utf-8")
        colours = style.partition("* {")[0]  # the variables, for light and dark
        rules = f"<style>{colours} text {{ fill: var(--ink); font-family: sans-serif; }}</style>"
        drawing = svg(figure, title, text, "picture").replace("</title>", f"</title>{rules}", 1)
        return cls(f"data:image/svg+xml;base64,{b64encode(drawing.encode()).decode()}", text)


@dataclass(frozen=True)
class Look:
    """What the page shows of a release: a picture, and a table with its caption; nothing where there is none."""

    picture: Picture | None = None
    caption: str = ""
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def look_at(path: Path, card: ReadCard, regression: RegressionTable | None) -> Look:
    """Return what to show of a release that was written, all of it from what can be shared."""
    if regression is not None:
        header, *rows = regression.cells()
        return Look(_coefficients(regression), f"What explains {regression.label}", header, rows)
    if card.kind == "model":
        return Look()
    facts = card.content["file"]
    written = {name: facts[name] for name in ("separator", "decimal", "encoding") if name in facts}
    label, dialect = str(facts["column"]), Dialect(**written)
    batches = open_table(path, label=label, dialect=dialect).batches([label])
    values = np.concatenate([label_values(batch.column(label), allow_missing=True)[0] for batch in batches])
    table = open_table(path, as_written=True, dialect=dialect)
    first = next(iter(table.batches())).slice(0, FIRST_ROWS).to_pylist()
    rows = [["" if value is None else str(value) for value in row.values()] for row in first]
    return Look(_values(values, card, label), "The first rows of the private table", table.schema.names, rows)


def _values(values: Array, card: ReadCard, label: str) -> Picture:
    """Draw the released values of a table, the bounds, and their mean with the error that privacy adds."""
    (low, high), mean = card.terms.bounds[0], float(values.mean())
    accuracy = Accuracy.under(card.terms.mechanisms[0], card.terms.priors[0], (low, high))
    error = float(accuracy.error_of_mean(np.array([float(values.size)]))[0])
    figure, axes = blank(label, "rows")
    axes.axvspan(low, high, color=COLOURS[2], alpha=0.13, lw=0, label="the bounds")
    axes.hist(values, bins=_BINS, color=COLOURS[0], alpha=0.6, label="released values")
    axes.axvspan(mean - error, mean + error, color=COLOURS[1], alpha=0.4, lw=0)
    axes.axvline(mean, color=COLOURS[1], lw=2, label=f"their mean, {number(mean)} ± {number(error, 3)}")
    legend(axes, columns=2)
    text = (
        f"{values.size:,} released values of {label}, from {number(float(values.min()))} to "
        f"{number(float(values.max()))}. One of them says little: most of it is noise, and it may be outside the "
        f"bounds. Noise averages out: their mean is {number(mean)}, and privacy typically moves it by "
        f"{number(error, 3)} from the true mean."
    )
    return Picture.of(figure, f"Released values of {label}", text)


def _coefficients(table: RegressionTable) -> Picture:
    """Draw the coefficients of a regression table with their intervals."""
    figure, axes = blank("coefficient", "", size=(4.7, 1.4 + 0.4 * len(table.names)))
    table.plot(axes)
    text = "Coefficients with their 95 % intervals, beside how wide intervals would be without privacy."
    return Picture.of(figure, f"What explains {table.label}", text)
