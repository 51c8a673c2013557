"""Comparison of labels in a table with those that a saved model and its private labels give."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labeldp._values import Array
from labeldp.accounts.accuracy import round_to
from labeldp.accounts.card import Card
from labeldp.accounts.terms import Terms, fit_times
from labeldp.accounts.verification import Check
from labeldp.app.released_table import open_release
from labeldp.errors import CardError, DataError, LabelDPError

if TYPE_CHECKING:
    from labeldp.tables.feature_encoder import TableEncoder

NAME = "labels"
TOLERANCE = 1e-9
"""Of the bounds' width: predictions of another machine may differ in their last bits."""


def describe_features(card: Card) -> Check:
    """Say which columns labels know: those are public columns of the file, as the card agrees with itself."""
    features = ", ".join(card.content["features"]) or "no column"
    if "label" in card.content:  # one of several, whose models are not saved
        return Check(NAME, None, f"by the card, {card.content['label']!r} has means under a model of {features}")
    detail = f"by the card, they are means under a model of {features}"
    return Check(NAME, None, f"{detail}; give the folder of the model to compute them again")


def recompute_labels(card: Card, path: Path, folder: Path) -> Check:
    """Compute the labels of a table again, from a saved model and the private labels beside it.

    The model, the split of the rows and the rounding are those of the card; nothing is drawn.
    """
    if obstacle := _obstacle(card):
        return Check(NAME, None, obstacle)
    try:
        labels, expected, step = _labels(card, path, folder)
    except ImportError:
        return Check(NAME, None, 'not compared: pip install "labeldp[files]"')
    except DataError as error:
        return Check(NAME, None, f"not compared: {error}")
    except LabelDPError as error:
        return Check(NAME, False, f"they cannot be computed again: {error}")
    tolerance = (step or 0.0) + TOLERANCE * (card.terms.bounds[0][1] - card.terms.bounds[0][0])
    count = int(np.sum(~(np.abs(labels - expected) <= tolerance)))
    if count:
        return Check(NAME, False, f"{count:,} of {labels.size:,} are not those that the model and its labels give")
    return Check(
        NAME, True, f"all {labels.size:,} are, as rounded, those that the model and its private labels give"
    )


def _obstacle(card: Card) -> str:
    """Return the reason why nobody can compute the labels of a card again; empty if there is none."""
    if card.content["file"]["row_order"] == "shuffled":
        return "the rows are in random order, and those of the model are not in the same"
    if card.terms.split is not None and card.terms.split.method == "people":
        return "rows were split by people, whose ids the card does not have"
    return ""


def _labels(card: Card, path: Path, folder: Path) -> tuple[Array, Array, float | None]:
    """Return the labels of a table, those that the model gives, and the rounding of both."""
    from labeldp.learning.label_release import means_given_labels  # noqa: PLC0415 (scikit-learn is slow to import)
    from labeldp.learning.models import RELEASE, load_model  # noqa: PLC0415
    from labeldp.learning.row_release import RowRelease  # noqa: PLC0415

    model, terms = load_model(folder), card.terms
    _refuse_other(model.card.terms, terms)
    release = RowRelease.load(folder / RELEASE)
    _refuse_other(release.terms, terms)
    table, labels = _read(card, path, model.encoder)
    if labels.size != terms.rows:
        raise CardError("the table has another number of rows than the card")
    rows = np.arange(terms.rows) if terms.split is None else terms.split.indices()[0]
    if rows.size != release.labels.size:
        raise CardError("the model learnt from another number of rows than the card says")
    predicted = model.predict_numbers(model.encoder.transform(table))
    residual = card.content["residual_variance"]
    with np.errstate(all="ignore"):  # numbers of a hostile model may be anything
        expected = means_given_labels(predicted, release, rows, residual, terms.bounds[0])
    (step,) = card.content["rounding"]
    return labels, round_to(expected, step), step


def _refuse_other(terms: Terms, of_card: Terms) -> None:
    """Refuse a model, or its private labels, whose fit was charged for another release."""
    if fit_times(terms.charges) != fit_times(of_card.charges):
        raise CardError("the model is of another release")


def _read(card: Card, path: Path, encoder: TableEncoder) -> tuple[Any, Array]:
    """Return the public columns of a table that its card describes, and its labels.

    Codes that are written as text may have been numbers to the model.
    """
    from labeldp.tables.arrow import arrow  # noqa: PLC0415 (an extra)
    from labeldp.tables.batches import guard_arrow, label_values  # noqa: PLC0415
    from labeldp.tables.text_types import parse_text  # noqa: PLC0415

    pa, label, names = arrow(), str(card.content["file"]["column"]), encoder.names
    table = open_release(path, card, label=label, text=encoder.texts, only=[label, *names])
    read = pa.Table.from_batches(list(table.batches([label, *names])))
    for position, column in enumerate(encoder.columns, 1):
        text = read.column(position)
        if column.kind == "number" and text.type == pa.string():
            parse = partial(parse_text, text, pa.float64(), table.dialect)
            read = read.set_column(position, column.name, guard_arrow(parse, "codes in it are no numbers"))
    return read.select(names), label_values(read.column(label))[0]
