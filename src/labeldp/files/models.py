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

import json
import math
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp import card_format
from labeldp._arrays import Array
from labeldp._atomic import atomic_file, atomic_folder
from labeldp.cards.reading import ReadCard, read_any_card
from labeldp.errors import CardError, DataError, DataNotFoundError, LabelDPError, ParameterError
from labeldp.estimators import LabelReleaseRegressor, ModelReleaseRegressor
from labeldp.estimators.features import PIECE, FeatureTable, PublicFeatures
from labeldp.estimators.learner import Blend
from labeldp.estimators.quality import Risk, terms_with_score
from labeldp.files.model_arrays import as_arrays, from_arrays
from labeldp.files.places import MODEL_FILES, refuse_target, reserve_target, sha256
from labeldp.release.terms import Terms
from labeldp.tabular import TableEncoder, Tally, as_table

CARD, COLUMNS, MODEL, RELEASE = "card.json", "columns.json", "model.npz", "release.npz"
FORMAT = 3

MOST = 1 << 31
"""Larger files are refused unread; a model of 300 columns takes 10 MB."""


@contextmanager
def reserve_model(
    path: str | os.PathLike[str], *, force: bool = False
) -> Iterator[Callable[[], AbstractContextManager[Path]]]:
    """Keep a name for a model during the block, and give what opens a draft folder that will take that name.

    Refused if there is no folder around it, or something is there: a model may be replaced with ``force``,
    anything else is never removed; or if another is being written there.
    """
    names = {*MODEL_FILES, CARD, f"{CARD}.sig", "card.report.html"}  # what sign and report put there
    place: dict[str, Any] = {"to": f"{os.fspath(path)}/", "force": force, "may_go": names.__contains__}
    with reserve_target(**place):
        yield partial(atomic_folder, path, check=partial(refuse_target, **place))


@contextmanager
def model_folder(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[Path]:
    """Give a draft folder to save a model in; it takes the name ``path`` only if nothing goes wrong."""
    with reserve_model(path, force=force) as open_draft, open_draft() as draft:
        yield draft


def save_model(
    model: LabelReleaseRegressor | ModelReleaseRegressor,
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    quality: Risk | None = None,
    force: bool = False,
) -> None:
    """Write a fitted regressor of either kind into a new folder, whole or not at all; no true label is in it.

    How a data frame's columns became numbers is kept with it. `load_model` reads the folder, and so does
    ``labeldp predict``.

    Parameters
    ----------
    model : LabelReleaseRegressor or ModelReleaseRegressor
        Fitted; a `LabelReleaseRegressor` with an estimator of your own cannot be saved as plain numbers.
    path : path-like
        The folder.
    label : str, optional
        What is predicted: the label's name. By default that of y in the fit, if y is a column with a name, else
        "label".
    quality : Risk, optional
        How good it is, from `private_score` or `private_risk`, to be said on its card and in its report.
    force : bool
        Whether a model that is there may be replaced.

    Examples
    --------
    >>> import tempfile, numpy as np, pandas as pd, labeldp as ldp
    >>> frame = pd.DataFrame({"size": np.arange(200.0), "town": ["York", "Bath"] * 100})
    >>> model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(0, 200)).fit(frame, np.arange(200.0))
    >>> with tempfile.TemporaryDirectory() as place:
    ...     ldp.save_model(model, f"{place}/model", label="price")
    ...     again = ldp.load_model(f"{place}/model")
    >>> bool(np.allclose(again.predict(frame[["town", "size"]]), model.predict(frame)))
    True
    """
    encoder = encoder_of(model)
    with model_folder(path, force=force) as draft:
        called = label or getattr(model, "label_name_", None) or "label"
        card = write_model(model, encoder, draft, label=called)
        if quality is not None:
            add_to_card(draft, card, terms_with_score(model.terms_, quality), quality=quality.as_data())


def encoder_of(model: LabelReleaseRegressor | ModelReleaseRegressor) -> TableEncoder:
    """Return how a model's columns become numbers; those of an array are numbers already."""
    if not isinstance(model, LabelReleaseRegressor | ModelReleaseRegressor):
        raise ParameterError(
            f"only a LabelReleaseRegressor or a ModelReleaseRegressor can be saved, got {type(model).__name__}: "
            "of a pipeline or a search, save the regressor inside, fitted to a data frame as it is or to numbers"
        )
    public, _ = model.public_model()
    fitted: TableEncoder | None = getattr(model, "encoder_", None)
    if fitted is not None:
        return fitted
    count = model.n_features_in_
    names = getattr(model, "feature_names_in_", [f"x{place}" for place in range(count)])
    fills = np.zeros(count) if public.narrowing is not None else public.center
    return TableEncoder.for_numbers(dict(zip(names, fills, strict=True)))


def write_model(
    model: LabelReleaseRegressor | ModelReleaseRegressor,
    encoder: TableEncoder,
    folder: Path,
    *,
    label: str,
    note: str | None = None,
) -> str:
    """Write a fitted regressor of either kind into a folder that is there, and return its card.

    Parameters
    ----------
    model, encoder : fitted
    folder : path-like
    label : str
        The column that is predicted.
    note : str, optional
        What else to say on the card; it must be public.
    """
    (folder / COLUMNS).write_text(json.dumps(encoder.as_data(), allow_nan=False), "utf-8", newline="\n")
    np.savez(folder / MODEL, allow_pickle=False, **as_arrays(*model.public_model()))
    names = [COLUMNS, MODEL]
    if isinstance(model, LabelReleaseRegressor):
        model.release_.save(folder / RELEASE)
        names.append(RELEASE)
    card = model.to_card(
        label=label,
        features=encoder.names,
        format=FORMAT,
        **({} if note is None else {"note": note}),
        files={name: sha256(folder / name) for name in names},
        versions={
            "python": ".".join(map(str, sys.version_info[:3])),
            **{name: version(name) for name in ("labeldp", "numpy", "scikit-learn")},
        },
    )
    (folder / CARD).write_text(card, encoding="utf-8", newline="\n")
    return card


def add_to_card(folder: Path, card: str, terms: Terms, **more: Any) -> str:
    """Write the terms and further public entries on the card of a saved model, if it is this one; return it."""
    if (folder / CARD).read_bytes() != card.encode():
        raise CardError(f"{folder / CARD} is another model's by now, and was left as it is")
    promised = card_format.parse(terms.to_card("labeldp.model"), "labeldp.model")
    card = card_format.dump({**card_format.parse(card, "labeldp.model"), **promised, **more}, "labeldp.model")
    with atomic_file(folder / CARD) as draft:
        draft.write_text(card, encoding="utf-8", newline="\n")
    return card


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SavedModel:
    """A model that was read, and may predict; `load_model` returns it.

    Attributes
    ----------
    card : ReadCard
        What it cost and promises.
    label : str
        The column it predicts.
    encoder : TableEncoder
        How the columns of a table become numbers.

    Examples
    --------
    >>> import tempfile, numpy as np, labeldp as ldp
    >>> X = np.linspace(0, 1, 300).reshape(150, 2)
    >>> model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(0, 2)).fit(X, X.sum(axis=1))
    >>> with tempfile.TemporaryDirectory() as place:
    ...     ldp.save_model(model, f"{place}/model", label="price")
    ...     saved = ldp.load_model(f"{place}/model")
    >>> saved.label, saved.card.terms.cost
    ('price', Budget(epsilon=1.0))
    """

    card: ReadCard
    label: str
    encoder: TableEncoder
    _public: PublicFeatures
    _blend: Blend

    def __repr__(self) -> str:
        return f"<SavedModel of {self.label!r} from {len(self.encoder.names)} columns, {self.card.terms.cost}>"

    @property
    def feature_names_in_(self) -> list[str]:
        """The columns that a table must have."""
        return self.encoder.names

    def predict(self, X: Any, tally: Tally | None = None) -> Array:
        """Return predictions inside the bounds for the rows of a data frame, or of an array in the fit's order.

        A data frame may be of pandas, Polars or Arrow; its columns may be in any order, among others.
        """
        return self.predict_numbers(self.encoder.transform(as_table(X, self.encoder.names), tally))

    def predict_numbers(self, X: Array) -> Array:
        """Return predictions for rows that are numbers already."""
        result = np.full(len(X), np.nan)
        with np.errstate(all="ignore"):  # numbers of a hostile file may overflow; loading checked what comes out
            for start in range(0, len(X), PIECE):  # a row becomes hundreds of features: not all rows at once
                piece = X[start : start + PIECE]
                result[start : start + PIECE] = self._blend.predict(
                    FeatureTable(self._public, piece), np.arange(len(piece))
                )
        return result


def load_model(folder: str | os.PathLike[str]) -> SavedModel:
    """Read a model that `save_model` or ``labeldp fit`` wrote; nothing in it is run.

    Parameters
    ----------
    folder : path-like
        What `save_model` or ``labeldp fit`` wrote.

    Returns
    -------
    SavedModel
        Its ``predict`` takes a data frame with the columns of the fit, in any order; ``card`` says what it cost.

    Raises
    ------
    DataNotFoundError
        If there is no model.
    CardError
        If a file was changed, or does not hold a model.

    Examples
    --------
    >>> import tempfile, numpy as np, labeldp as ldp
    >>> X = np.linspace(0, 1, 300).reshape(150, 2)
    >>> model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(0, 2)).fit(X, X.sum(axis=1))
    >>> with tempfile.TemporaryDirectory() as place:
    ...     ldp.save_model(model, f"{place}/model")
    ...     again = ldp.load_model(f"{place}/model")
    >>> again.feature_names_in_, again.predict(X).shape
    (['x0', 'x1'], (150,))
    """
    folder = Path(folder)
    card = read_any_card(_text(folder / CARD, card_format.MAX_TEXT))
    if card.kind != "model" or "files" not in card.content:
        raise CardError(f"{folder / CARD} is not the card of a saved model")
    card_format.require_version(f"the format of the model {folder}", card.content.get("format"), FORMAT)
    hashes = card.content["files"]
    if not isinstance(hashes, dict) or not {COLUMNS, MODEL} <= set(hashes) <= MODEL_FILES:
        raise CardError(f"{folder / CARD} names other files than a model has")
    for name, expected in hashes.items():
        if not (folder / name).is_file():
            raise DataNotFoundError(f"the model is not complete: {folder / name} is missing")
        if sha256(folder / name) != expected:
            raise CardError(f"{folder / name} is not what the card says: it was changed or mixed up")
    try:
        encoder = TableEncoder.from_data(json.loads(_text(folder / COLUMNS, MOST)))
        with np.errstate(all="ignore"):
            model = from_arrays(_read_arrays(folder / MODEL))
        saved = SavedModel(card, str(card.content["label"]), encoder, *model)
        _refuse_misfit(saved)
    except LabelDPError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError, zipfile.BadZipFile):
        raise CardError(
            f"{folder} does not hold a complete model: it is damaged, or was not written by labeldp"
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
                raise CardError(f"{path} is compressed, as no saved model is")
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
    if dtype.hasobject or any(each < 0 for each in shape) or math.prod(shape) * dtype.itemsize > size:
        raise CardError("an array in the model is not what its header says")


def _refuse_misfit(saved: SavedModel) -> None:
    """Refuse numbers that do not go together, by predicting two rows of zeros."""
    (low, high), known = saved.card.terms.bounds[0], saved._blend.knowledge
    predicted = saved.predict_numbers(np.zeros((2, saved.encoder.width)))
    if not low <= known.low < known.high <= high or not np.isfinite(predicted).all():
        raise CardError("the model's numbers do not fit its card")
