"""A model read from its folder: whatever does not fit together is refused."""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp import card_format
from labeldp.cards.reading import ReadCard, read_any_card
from labeldp.errors import CardError, DataError, DataNotFoundError, LabelDPError
from labeldp.estimators.feature_table import PIECE, FeatureTable
from labeldp.estimators.features import PublicFeatures
from labeldp.estimators.learner import Blend
from labeldp.files.card_check import MODEL_FILES
from labeldp.files.models.model_arrays import from_arrays
from labeldp.files.models.save import CARD, COLUMNS, FORMAT, MODEL, sha256
from labeldp.tabular import Tally
from labeldp.tabular.encoder import TableEncoder

__all__ = ["SavedModel", "load_model"]

Array = NDArray[np.float64]

MOST = 1 << 31
"""Larger files are refused unread; a model of 300 columns takes 10 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class SavedModel:
    """A model that was read, and may predict.

    Attributes
    ----------
    card : ReadCard
        What it cost and promises.
    label : str
        The column it predicts.
    encoder : TableEncoder
    """

    card: ReadCard
    label: str
    encoder: TableEncoder
    _public: PublicFeatures
    _blend: Blend

    def predict(self, table: Any, tally: Tally | None = None) -> Array:
        """Return predictions inside the bounds for the rows of an Arrow table or batch."""
        return self.predict_numbers(self.encoder.transform(table, tally))

    def predict_numbers(self, X: Array) -> Array:
        """Return predictions for rows that are numbers already."""
        result = np.full(len(X), np.nan)
        with np.errstate(all="ignore"):  # numbers from other hands may overflow; loading checked what comes out
            for start in range(0, len(X), PIECE):  # a row becomes hundreds of features: not all rows at once
                piece = X[start : start + PIECE]
                result[start : start + PIECE] = self._blend.predict(
                    FeatureTable(self._public, piece), np.arange(len(piece))
                )
        return result


def load_model(folder: str | os.PathLike[str]) -> SavedModel:
    """Read a model that `save_model` wrote.

    Raises
    ------
    DataNotFoundError
        If there is no model.
    CardError
        If a file was changed, or does not hold a model.
    """
    folder = Path(folder)
    card = read_any_card(_text(folder / CARD, card_format.MAX_TEXT))
    if card.kind != "model" or "files" not in card.content:
        raise CardError(f"{folder / CARD} is not the card of a saved model")
    if card.content.get("format") != FORMAT:
        raise CardError(f"the model was saved in another format than {FORMAT}, by another version of labeldp")
    hashes = card.content["files"]
    if not isinstance(hashes, dict) or not {COLUMNS, MODEL} <= set(hashes) <= MODEL_FILES:
        raise CardError(f"{folder / CARD} names other files than a model has")
    for name, expected in hashes.items():
        if sha256(folder / name) != expected:
            raise CardError(f"{folder / name} is not what the card says: it was changed or mixed up")
    try:
        encoder = TableEncoder.from_data(json.loads(_text(folder / COLUMNS, MOST)))
        public, blend = from_arrays(_read_arrays(folder / MODEL))
        saved = SavedModel(card, str(card.content["label"]), encoder, public, blend)
        _try(saved)
    except LabelDPError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError, zipfile.BadZipFile):
        raise CardError(
            f"{folder} does not hold a whole model: it is damaged, or was made by other hands"
        ) from None
    return saved


def _text(path: Path, most: int) -> str:
    try:
        if path.stat().st_size > most:
            raise DataError(f"{path} is far too large for what it should be")
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise DataNotFoundError(f"there is no model here: {path} is missing") from None
    except UnicodeDecodeError:
        raise CardError(f"{path} is not text") from None


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return arrays of finite numbers; they take no more memory than the file has bytes."""
    if path.stat().st_size > MOST:
        raise DataError(f"{path} is far too large for a model")
    with zipfile.ZipFile(path) as packed:
        for member in packed.infolist():
            if member.compress_type != zipfile.ZIP_STORED or member.file_size > member.compress_size:
                raise CardError(f"{path} is packed otherwise than a model is")
            with packed.open(member) as stream:
                _refuse_false_size(stream, member.file_size)
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: np.asarray(stored[name]) for name in stored.files}
    for name, array in arrays.items():
        loose = name == "trees_threshold"  # a split off missing values has an infinite one
        if array.dtype.kind not in "fiub" or not (loose or np.isfinite(array).all()):
            raise CardError(f"{path} holds something else than finite numbers")
    return arrays


def _refuse_false_size(stream: Any, size: int) -> None:
    """Refuse an array whose header asks for more memory than the file has bytes."""
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, _, dtype = read[np.lib.format.read_magic(stream)](stream)
    count = 1
    for each in shape:
        count *= each
    if dtype.hasobject or any(each < 0 for each in shape) or count * dtype.itemsize > size:
        raise CardError("an array in the model is not what its header says")


def _try(saved: SavedModel) -> None:
    """Refuse numbers that do not go together, by predicting two rows of zeros."""
    (low, high), known = saved.card.terms.bounds[0], saved._blend.knowledge
    predicted = saved.predict_numbers(np.zeros((2, saved.encoder.width)))
    if (known.low, known.high) != (low, high) or not np.isfinite(predicted).all():
        raise CardError("the model's numbers do not fit its card")
