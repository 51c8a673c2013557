"""Fitted models in folders: plain numbers and JSON, safe to load from an untrusted source.

====================  ===================================================================================
``card.json``         the card: cost and promises of the model, and the hashes of the other files
``columns.json``      how a table's public columns become numbers
``model.npz``         the model's numbers, arrays without any Python object in them
``release.npz``       the private labels, if they were released too; `RowRelease.load` reads it
``measurements.npz``  the measurements of labels: the model follows from them, and learns on with them
====================  ===================================================================================

Nothing is unpickled and nothing imported by name. A card that was changed, or files that do not belong to it, are
refused; so are numbers that do not make a model, even if whoever wrote them made the hashes fit.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from labeldp._atomic import StrPath, as_path, atomic_folder, read_regular
from labeldp._values import Array, Data
from labeldp.accounts.card import Card
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.scope import RowOptions
from labeldp.accounts.terms import Terms
from labeldp.errors import CardError, DataNotFoundError, LabelDPError, ParameterError
from labeldp.exact.word_sources import RandomState
from labeldp.learning.array_files import MAX_FILE
from labeldp.learning.base import column_encoder
from labeldp.learning.ensemble import Ensemble
from labeldp.learning.features import FeatureTable, PublicFeatures
from labeldp.learning.fit_plan import UNIT, LabelScale
from labeldp.learning.inspection import importances
from labeldp.learning.label_regressor import LabelReleaseRegressor
from labeldp.learning.measurement_files import MEASUREMENTS, read_measurements, save_measurements
from labeldp.learning.measurements import Measurements
from labeldp.learning.model_arrays import read_model_arrays, save_model_arrays
from labeldp.learning.model_regressor import ModelReleaseRegressor
from labeldp.learning.quality import Risk, terms_with_score
from labeldp.learning.updates import restore
from labeldp.mechanisms import card_format
from labeldp.mechanisms.typed_data import canonical
from labeldp.release.names import UNNAMED, as_label_name
from labeldp.tables.column_encoders import Tally
from labeldp.tables.feature_encoder import TableEncoder
from labeldp.tables.frames import as_table
from labeldp.tables.paths import MODEL_FILES, Target, reserve, sha256

CARD, COLUMNS, MODEL, RELEASE = "card.json", "columns.json", "model.npz", "release.npz"
FORMAT = 1
"""The version of arrays and columns. Predictions are in units of the bounds."""

_PACKAGES = ("labeldp", "numpy", "scikit-learn")
"""Whose versions are on a card."""

MAX_COLUMNS = 1 << 25
"""Bytes of ``columns.json`` at most; a column of text with 10,000 values takes about 300 KB."""


@contextmanager
def reserve_model(path: StrPath, *, force: bool = False) -> Iterator[Callable[[], AbstractContextManager[Path]]]:
    """Keep a name for a model during the block, and yield what opens a new folder that will take that name.

    Refused if there is no folder around it, or something is there: a model may be replaced with ``force``,
    anything else is never removed; or if another is being written there.
    """
    names = {*MODEL_FILES, CARD, f"{CARD}.sig", "card.report.html"}  # which ssh-keygen and report put there
    target = Target(f"{as_path(path)}/", force, names.__contains__)
    with reserve(target):
        yield partial(atomic_folder, path, check=target.refuse_existing)


@contextmanager
def model_folder(path: StrPath, *, force: bool = False) -> Iterator[Path]:
    """Yield a new folder to save a model in; it takes the name ``path`` only if nothing goes wrong."""
    with reserve_model(path, force=force) as open_folder, open_folder() as folder:
        yield folder


def save_model(
    model: LabelReleaseRegressor | ModelReleaseRegressor,
    path: StrPath,
    *,
    label: str | None = None,
    quality: Risk | None = None,
    keep_rows: bool = False,
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
        The label's name. By default that of y in the fit, if y is a column with a name, else
        "label".
    quality : Risk, optional
        How good it is, from `fit_and_score` or `private_score`, to be said on its card and in its report.
    keep_rows : bool
        Whether private labels are kept one by one, with the public columns of their rows as codes of a byte each.
        Trees of a model that learns on are better with them.
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
    with model_folder(path, force=force) as folder:
        called = as_label_name(label or getattr(model, "label_name_", None) or UNNAMED)
        write_model(model, encoder, folder, label=called, quality=quality, keep_rows=keep_rows)


def encoder_of(model: LabelReleaseRegressor | ModelReleaseRegressor) -> TableEncoder:
    """Return how a model's columns become numbers; those of an array are numbers already."""
    if not isinstance(model, LabelReleaseRegressor | ModelReleaseRegressor):
        raise ParameterError(
            f"only a LabelReleaseRegressor or a ModelReleaseRegressor can be saved, got {type(model).__name__}: "
            "of a pipeline or a search, save the regressor inside, fitted to a data frame as it is or to numbers"
        )
    public, _ = model.public_model()
    return column_encoder(
        model, public.fills(model.n_features_in_) if getattr(model, "encoder_", None) is None else None
    )


def write_model(
    model: LabelReleaseRegressor | ModelReleaseRegressor,
    encoder: TableEncoder,
    folder: Path,
    *,
    label: str,
    note: str | None = None,
    quality: Risk | None = None,
    keep_rows: bool = False,
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
    quality : Risk, optional
        Its score.
    keep_rows : bool
        Whether private labels are kept with codes of the columns of their rows.
    """
    terms = model.terms_
    entries: Data = {} if note is None else {"note": note}
    if quality is not None:
        if terms.fits:
            raise ParameterError("the card of a model that learnt on has no score: save it without quality")
        terms, entries["quality"] = terms_with_score(terms, quality), quality.as_data()
    names = _write_files(model, columns_text(encoder, label), folder, keep_rows=keep_rows)
    card = terms.to_card(
        "labeldp.model",
        model=type(model).__name__,
        label=label,
        features=encoder.names,
        format=FORMAT,
        files={name: sha256(folder / name) for name in names},
        versions={"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
        **entries,
    )
    (folder / CARD).write_text(card, encoding="utf-8", newline="\n")
    return card


def _write_files(
    model: LabelReleaseRegressor | ModelReleaseRegressor, columns: str, folder: Path, *, keep_rows: bool
) -> list[str]:
    """Write the files beside a card, and return their names."""
    names = [COLUMNS, MODEL]
    (folder / COLUMNS).write_text(columns, "utf-8", newline="\n")
    save_model_arrays(folder / MODEL, *model.public_model())
    if isinstance(model, LabelReleaseRegressor):
        model.release_.save(folder / RELEASE)
        names.append(RELEASE)
    if model.measurements is not None:
        save_measurements(model.measurements, folder / MEASUREMENTS, keep_rows=keep_rows)
        names.append(MEASUREMENTS)
    return names


def columns_text(encoder: TableEncoder, label: str) -> str:
    """Return the text of ``columns.json``, or refuse what `load_model` would refuse; call it before a charge."""
    if column := encoder.column_like(label):
        raise ParameterError(
            f"the label is called {label!r}, and {column!r} is among the other columns: rename one of them"
        )
    text = encoder.to_json()
    if len(text) > MAX_COLUMNS:
        raise ParameterError(
            f"the values of the text columns would take {len(text):,} bytes in the model, and may take "
            f"{MAX_COLUMNS:,}: drop columns, or shorten values"
        )
    if len(canonical(list(encoder.names))) > card_format.MAX_TEXT // 4:
        raise ParameterError("the names of the columns are too long for a card: shorten them")
    return text


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SavedModel:
    """A model that `load_model` read from a folder; it can predict.

    Attributes
    ----------
    card : Card
        Its cost and promises.
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

    card: Card
    label: str
    encoder: TableEncoder
    _public: PublicFeatures
    _ensemble: Ensemble
    _scale: LabelScale
    _folder: Path

    def __repr__(self) -> str:
        return f"<SavedModel of {self.label!r} from {len(self.encoder.names)} columns, {self.card.terms.cost}>"

    @property
    def secure_(self) -> bool:
        """True if the noise is secure, by the card; False if it came from a seed."""
        return self.card.terms.secure

    @property
    def terms_(self) -> Terms:
        """The cost and promises of the model, as a fitted regressor has them."""
        return self.card.terms

    @property
    def feature_names_in_(self) -> list[str]:
        """The columns that a table must have."""
        return self.encoder.names

    def predict(self, X: Any, tally: Tally | None = None) -> Array:
        """Return predictions inside the bounds for the rows of a data frame, or of an array in the fit's order.

        A data frame may be of pandas, Polars or Arrow; its columns may be in any order, among others.
        """
        return self.predict_numbers(self.encoder.transform(as_table(X, self.encoder.names), tally))

    def importances(self, X: Any, *, repeats: int = 5) -> dict[str, float]:
        """Return the permutation importance of each column for public rows, as the regressors do."""
        numbers = self.encoder.transform(as_table(X, self.encoder.names))
        return importances(self.predict_numbers, numbers, self.encoder.slices(), repeats)

    def predict_numbers(self, X: Array) -> Array:
        """Return predictions for rows that are numbers already."""
        with np.errstate(all="ignore"):  # numbers of a hostile file may overflow
            result = self._ensemble.predict(FeatureTable(self._public, X), np.arange(len(X)))
        if not np.isfinite(result).all():
            raise CardError("the model's numbers are so large that a prediction is not a number: do not use it")
        return self._scale.from_units(result, self._ensemble.error)

    def measurements(self) -> Measurements:
        """Return the measurements of labels, from the file beside the model."""
        expected = self.card.content["files"].get(MEASUREMENTS)
        if expected is None:
            raise ParameterError("the model was saved without its measurements: it cannot learn on")
        path = self._folder / MEASUREMENTS
        _refuse_other_file(path, expected)
        return read_measurements(path, self._public)

    def regressor(
        self,
        *,
        epsilon: float,
        ledger: Ledger | None = None,
        rows_per_person: int = 1,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> ModelReleaseRegressor:
        """Return the model as a fitted regressor that can learn on; parameters are those of its updates.

        Examples
        --------
        >>> import tempfile, numpy as np, labeldp as ldp
        >>> X = np.random.default_rng(0).normal(size=(600, 3))
        >>> y, ledger = np.clip(2.5 + X[:, 0], 0, 5), ldp.Ledger()
        >>> model = ldp.ModelReleaseRegressor(epsilon=0.5, bounds=(0, 5), ledger=ledger)
        >>> model = model.fit(X[:300], y[:300], segment="May")
        >>> with tempfile.TemporaryDirectory() as place:
        ...     ldp.save_model(model, f"{place}/model")
        ...     model = ldp.load_model(f"{place}/model").regressor(epsilon=0.5, ledger=ledger)
        ...     model = model.update(X[300:], y[300:], segment="June")
        ...     ldp.save_model(model, f"{place}/model", force=True)
        >>> model.terms_.rows, model.terms_.cost
        (600, Budget(epsilon=0.5))
        """
        if self.card.content["model"] != ModelReleaseRegressor.__name__:
            raise ParameterError("only a ModelReleaseRegressor learns on, and this is another model")
        terms, names = self.card.terms, self.encoder.names
        transform: Any = terms.label_transform
        model = ModelReleaseRegressor(
            epsilon=epsilon,
            bounds=terms.bounds[0],
            label_transform=transform,
            ledger=ledger,
            rows_per_person=rows_per_person,
            random_state=random_state,
            verbose=verbose,
        )
        model.request()  # refuses parameters before anything is read
        measurements = self.measurements()
        is_array = names == [f"x{number}" for number in range(len(names))]
        model.__dict__ |= {
            "encoder_": self.encoder,
            "label_name_": None if self.label == UNNAMED else self.label,
            "n_features_in_": len(names),
            "ledger_": ledger,
            "terms_": terms.without_score(),
            "weakness_": None,
            "_public": self._public,
            "_ensemble": restore(self._public, self._ensemble, measurements),
            "_measurements": measurements,
        }
        if not is_array:
            model.feature_names_in_ = np.array(names, dtype=object)
        return model

    def update(
        self, X: Any, y: Any = None, *, epsilon: float, ledger: Ledger | None = None, **rows: Unpack[RowOptions]
    ) -> ModelReleaseRegressor:
        """Return a fitted regressor that learnt on from further rows; as `regressor`, then its ``update``."""
        return self.regressor(epsilon=epsilon, ledger=ledger).update(X, y, **rows)


def load_model(folder: StrPath) -> SavedModel:
    """Read a model that `save_model` or ``labeldp fit`` wrote; nothing in it is run.

    Parameters
    ----------
    folder : path-like
        What `save_model` or ``labeldp fit`` wrote.

    Returns
    -------
    SavedModel
        Its ``predict`` takes a data frame with the columns of the fit, in any order; ``card`` states the cost.

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
    try:
        return _read_model(Path(folder))
    except DataNotFoundError as error:
        raise DataNotFoundError(f"there is no model here, or it is not complete: {error}") from None
    except (LabelDPError, OSError):
        raise
    except Exception as error:  # a stranger's files must not end in any other way
        raise CardError(f"{folder} is damaged, or was not written by labeldp: {type(error).__name__}") from None


def _read_model(folder: Path) -> SavedModel:
    card = _read_card(folder)
    encoder = TableEncoder.from_json(_read_text(folder / COLUMNS, MAX_COLUMNS))
    label = card.content.get("label")
    if label is None or len(card.terms.bounds) != 1 or card.content.get("features") != encoder.names:
        raise CardError(f"{folder / CARD} names other columns than {COLUMNS}, or not one label and its bounds")
    if column := encoder.column_like(label):
        raise CardError(f"the model predicts {label!r}, and lists {column!r} among its columns: do not use it")
    public, ensemble = read_model_arrays(folder / MODEL, encoder.width)
    summary = ensemble.label_summary
    if not UNIT[0] <= summary.low < summary.high <= UNIT[1]:
        raise CardError("the model predicts outside the bounds on its card")
    scale = LabelScale(card.terms.bounds[0], card.terms.label_transform)
    return SavedModel(card, label, encoder, public, ensemble, scale, folder)


def _read_card(folder: Path) -> Card:
    """Return the card of a saved model, whose other files have the hashes on it."""
    card = Card.parse(_read_text(folder / CARD, card_format.MAX_TEXT))
    if card.kind != "model" or "files" not in card.content:
        raise CardError(f"{folder / CARD} is not the card of a saved model")
    card_format.require_version(f"the model {folder}", card.content.get("format"), FORMAT)
    hashes = card.content["files"]
    if not {COLUMNS, MODEL} <= set(hashes) <= MODEL_FILES:
        raise CardError(f"{folder / CARD} names other files than a model has")
    for name, expected in hashes.items():
        _refuse_other_file(folder / name, expected)
    return card


def _refuse_other_file(path: Path, expected: str) -> None:
    """Refuse a file without the hash that the card states."""
    if sha256(path, MAX_COLUMNS if path.name == COLUMNS else MAX_FILE) != expected:
        raise CardError(f"{path} is not the file of the card: it was changed or mixed up")


def _read_text(path: Path, limit: int) -> str:
    return read_regular(path, limit).decode("utf-8", "replace")  # bytes that are no text fit no checksum or schema
