"""A fitted model in a folder: plain numbers and JSON, safe to open whoever sent it.

==================  =====================================================================================
``card.json``       the card: what the model cost and promises, and the hashes of the other files
``columns.json``    how a table's public columns become numbers
``model.npz``       the model's numbers, arrays without any Python object in them
``release.npz``     the private labels, if they were released too; `RowRelease.load` reads it
==================  =====================================================================================

Nothing is unpickled and nothing imported by name. A card that was changed, or files that do not belong to it, are
refused; so are numbers that do not make a model, even if whoever wrote them made the hashes fit.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp import cards
from labeldp._files import folder_written_whole
from labeldp.any_card import ReadCard, read_any_card
from labeldp.errors import CardError, DataError, DataNotFoundError, LabelDPError, ParameterError
from labeldp.estimators import LabelReleaseRegressor, ModelReleaseRegressor
from labeldp.estimators.bayes import Posterior
from labeldp.estimators.features import Narrowing, PublicFeatures
from labeldp.estimators.learner import Blend, Knowledge
from labeldp.estimators.table import PIECE, FeatureTable
from labeldp.forest import Forest
from labeldp.tabular.columns import Tally
from labeldp.tabular.encoder import TableEncoder

__all__ = ["SavedModel", "load_model", "model_folder", "save_model"]

Array = NDArray[np.float64]

CARD, COLUMNS, MODEL, RELEASE = "card.json", "columns.json", "model.npz", "release.npz"
FORMAT = 1
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
        result = np.empty(len(X))
        for start in range(0, len(X), PIECE):  # a row becomes hundreds of features: not all rows at once
            piece = X[start : start + PIECE]
            result[start : start + PIECE] = self._blend.predict(
                FeatureTable(self._public, piece), np.arange(len(piece))
            )
        return result


# ---- writing ----------------------------------------------------------------------------------------------


@contextmanager
def model_folder(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[Path]:
    """Give a draft folder to save a model in; it takes the name ``path`` only if nothing goes wrong.

    Raises
    ------
    ParameterError
        If there is no folder around it, or something is there: a model may be replaced with ``force``, anything
        else is never removed.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise ParameterError(f"there is no folder {path.parent}: make it first")
    if os.path.lexists(path) and not _is_free(path):
        if not force:
            raise ParameterError(f"{path} is there already: choose another folder, or replace it with --force")
        if path.is_symlink() or not path.is_dir() or not {e.name for e in path.iterdir()} <= _REPLACED:
            raise ParameterError(
                f"{path} holds other things than a model, and is not replaced: choose another folder"
            )
    with folder_written_whole(path, replace=True) as draft:
        yield draft


_OURS = {CARD, COLUMNS, MODEL, RELEASE}
_REPLACED = _OURS | {"card.report.html"}  # where labeldp report puts a model's page


def _is_free(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and not any(path.iterdir())


def save_model(
    model: LabelReleaseRegressor | ModelReleaseRegressor, encoder: TableEncoder, folder: Path, *, label: str
) -> str:
    """Write a fitted regressor of either kind into a folder, and return its card.

    No true label is in any of the files.
    """
    public, blend = model._public, _blend_of(model)
    (folder / COLUMNS).write_text(json.dumps(encoder.as_data(), allow_nan=False), encoding="utf-8")
    np.savez(folder / MODEL, allow_pickle=False, **_arrays(public, blend))
    names = [COLUMNS, MODEL]
    if isinstance(model, LabelReleaseRegressor):
        model.release_.save(folder / RELEASE)
        names.append(RELEASE)
    content = cards.parse(model.to_card(), "labeldp.model")
    own = {"schema", "version"}
    card = cards.dump(
        {
            **{name: value for name, value in content.items() if name not in own},
            "label": label,
            "features": encoder.names,
            "format": FORMAT,
            "files": {name: _sha256(folder / name) for name in names},
            "versions": {
                "python": ".".join(map(str, sys.version_info[:3])),
                **{name: version(name) for name in ("labeldp", "numpy", "scikit-learn")},
            },
        },
        "labeldp.model",
    )
    (folder / CARD).write_text(card, encoding="utf-8")
    return card


def _blend_of(model: Any) -> Blend:
    """Return what predicts; a linear model alone is a blend without trees."""
    if isinstance(model, LabelReleaseRegressor):
        if model._blend is None:
            raise ParameterError(
                "only models of this library can be saved as plain numbers, and this one learnt with an estimator "
                "of yours: save release_ instead, and train that estimator on it again"
            )
        return model._blend
    if isinstance(model._model, Blend):
        return model._model
    linear, (low, high) = model._model, model.bounds_
    spread = linear.explained + linear.rest
    return Blend(linear, None, 0.0, linear.rest, spread, Knowledge(low, high, linear.mean, 0.0, spread, False))


_NUMBERS = ("low", "high", "mean", "mean_variance", "variance")


def _arrays(public: PublicFeatures, blend: Blend) -> dict[str, NDArray[Any]]:
    maps = {f.name: getattr(public, f.name) for f in fields(PublicFeatures) if f.name != "narrowing"}
    arrays = {f"public_{name}": np.asarray(value) for name, value in maps.items() if value is not None}
    if public.narrowing is not None:
        arrays |= {"narrow_matrix": public.narrowing.matrix, "narrow_shift": public.narrowing.shift}
    linear, known = blend.linear, blend.knowledge
    arrays |= {"linear_weights": linear.weights}
    arrays |= {f"linear_{name}": np.array(getattr(linear, name)) for name in ("mean", "explained", "rest")}
    arrays |= {f"blend_{name}": np.array(getattr(blend, name)) for name in ("weight", "rest", "error")}
    arrays |= {f"known_{name}": np.array(getattr(known, name)) for name in (*_NUMBERS, "counted")}
    if blend.trees is not None:
        forest = blend.trees if isinstance(blend.trees, Forest) else Forest.of(blend.trees)
        arrays |= {f"trees_{name}": array for name, array in forest.as_arrays().items()}
    return arrays


# ---- reading ----------------------------------------------------------------------------------------------


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
    card = read_any_card(_text(folder / CARD, cards.MAX_TEXT))
    if card.kind != "model" or "files" not in card.content:
        raise CardError(f"{folder / CARD} is no card of a saved model")
    if card.content.get("format") != FORMAT:
        raise CardError(f"the model was saved in another format than {FORMAT}, by another version of labeldp")
    hashes = card.content["files"]
    if not isinstance(hashes, dict) or not {COLUMNS, MODEL} <= set(hashes) <= _OURS - {CARD}:
        raise CardError(f"{folder / CARD} names other files than a model has")
    for name, expected in hashes.items():
        if _sha256(folder / name) != expected:
            raise CardError(f"{folder / name} is not what the card says: it was changed or mixed up")
    try:
        columns = json.loads(_text(folder / COLUMNS, MOST))
        arrays = _read_arrays(folder / MODEL)
        encoder = TableEncoder.from_data(columns)
        saved = SavedModel(card, str(card.content["label"]), encoder, _public(arrays), _blend(arrays))
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
        raise CardError(f"{path} is no text") from None


def _sha256(path: Path) -> str:
    try:
        with open(path, "rb") as stream:
            return "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        raise DataNotFoundError(f"the model is not whole: {path} is missing") from None


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


def _public(arrays: dict[str, NDArray[Any]]) -> PublicFeatures:
    names = [f.name for f in fields(PublicFeatures) if f.name not in ("narrowing", "waves", "block")]
    optional = {"directions", "direction_ranks"}
    maps: dict[str, Any] = {
        name: None if name in optional and f"public_{name}" not in arrays else _floats(arrays[f"public_{name}"])
        for name in names
    }
    waves, block = int(arrays["public_waves"]), arrays["public_block"].astype(np.int64)
    if not 1 <= waves <= 64 or (block < 0).any() or (block > 3).any() or (maps["scale"] <= 0).any():
        raise ValueError
    narrowing = None
    if "narrow_matrix" in arrays:
        narrowing = Narrowing(_floats(arrays["narrow_matrix"]), _floats(arrays["narrow_shift"]))
    return PublicFeatures(**maps, waves=waves, block=block, narrowing=narrowing)


def _floats(array: NDArray[Any]) -> Array:
    return np.asarray(array, dtype=np.float64)


def _blend(arrays: dict[str, NDArray[Any]]) -> Blend:
    weights = np.asarray(arrays["linear_weights"], dtype=np.float32)
    mean, explained, rest = (float(arrays[f"linear_{name}"]) for name in ("mean", "explained", "rest"))
    linear = Posterior(weights, mean, explained, rest, likely=())
    numbers = {name: float(arrays[f"known_{name}"]) for name in _NUMBERS}
    known = Knowledge(**numbers, counted=bool(arrays["known_counted"]))
    trees: Any = None
    if "trees_sizes" in arrays:
        parts = {name.removeprefix("trees_"): a for name, a in arrays.items() if name.startswith("trees_")}
        trees = Forest.from_arrays(parts)
    weight, rest, error = (float(arrays[f"blend_{name}"]) for name in ("weight", "rest", "error"))
    if not known.low < known.high or not 0 <= weight <= 1:
        raise ValueError
    return Blend(linear, trees, weight, rest, error, known)


def _try(saved: SavedModel) -> None:
    """Refuse numbers that do not go together, by predicting two made rows."""
    (low, high), known = saved.card.bounds[0], saved._blend.knowledge
    predicted = saved.predict_numbers(np.zeros((2, saved.encoder.width)))
    if (known.low, known.high) != (low, high) or not np.isfinite(predicted).all():
        raise CardError("the model's numbers do not fit its card")
