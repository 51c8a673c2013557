"""A fitted regressor, written to a folder."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np

from labeldp._atomic import atomic_folder
from labeldp.errors import DataNotFoundError
from labeldp.estimators import LabelReleaseRegressor, ModelReleaseRegressor
from labeldp.files.card_check import MODEL_FILES
from labeldp.files.models.model_arrays import as_arrays
from labeldp.files.places import refuse_target
from labeldp.tabular.encoder import TableEncoder

__all__ = ["CARD", "COLUMNS", "FORMAT", "MODEL", "model_folder", "save_model", "sha256"]

CARD, COLUMNS, MODEL, RELEASE = "card.json", "columns.json", "model.npz", "release.npz"
FORMAT = 1


@contextmanager
def model_folder(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[Path]:
    """Give a draft folder to save a model in; it takes the name ``path`` only if nothing goes wrong.

    Raises
    ------
    ParameterError
        If there is no folder around it, or something is there: a model may be replaced with ``force``, anything
        else is never removed.
    """
    names = {*MODEL_FILES, CARD, "card.report.html"}  # where labeldp report puts a model's page
    refuse = partial(refuse_target, f"{os.fspath(path)}/", force=force, folder=names.__contains__)
    refuse()
    with atomic_folder(path, check=refuse) as draft:
        yield draft


def save_model(
    model: LabelReleaseRegressor | ModelReleaseRegressor,
    encoder: TableEncoder,
    folder: Path,
    *,
    label: str,
    note: str | None = None,
) -> str:
    """Write a fitted regressor of either kind into a folder, and return its card.

    No true label is in any of the files.

    Parameters
    ----------
    model, encoder : fitted
    folder : path
    label : str
        The column that is predicted.
    note : str, optional
        What else to say on the card; it must be public.
    """
    (folder / COLUMNS).write_text(json.dumps(encoder.as_data(), allow_nan=False), encoding="utf-8")
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
    (folder / CARD).write_text(card, encoding="utf-8")
    return card


def sha256(path: Path) -> str:
    """Return the hash of a file, as the card has it."""
    try:
        with open(path, "rb") as stream:
            return "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        raise DataNotFoundError(f"the model is not whole: {path} is missing") from None
