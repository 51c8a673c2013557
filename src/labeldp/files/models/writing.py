"""A fitted regressor, written to a folder."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp import card_format
from labeldp._files import folder_written_whole
from labeldp.errors import ParameterError
from labeldp.estimators import LabelReleaseRegressor, ModelReleaseRegressor
from labeldp.estimators.features import PublicFeatures
from labeldp.estimators.learner import Blend, Knowledge
from labeldp.files.models.forest import Forest
from labeldp.files.models.layout import CARD, COLUMNS, FORMAT, KNOWN, MODEL, OURS, RELEASE, sha256
from labeldp.tabular.encoder import TableEncoder

__all__ = ["model_folder", "save_model"]


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
    _refuse_replacing(path, force)
    with folder_written_whole(path, replace=True, check=lambda: _refuse_replacing(path, force)) as draft:
        yield draft


def _refuse_replacing(path: Path, force: bool) -> None:
    if not os.path.lexists(path) or (path.is_dir() and not path.is_symlink() and not any(path.iterdir())):
        return
    if not force:
        raise ParameterError(f"{path} is there already: choose another folder, or replace it with --force")
    if path.is_symlink() or not path.is_dir() or not {each.name for each in path.iterdir()} <= _REPLACED:
        raise ParameterError(f"{path} holds other things than a model, and is not replaced: choose another folder")


_REPLACED = OURS | {"card.report.html"}  # where labeldp report puts a model's page


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
    public, blend = model._public, _blend_of(model)
    (folder / COLUMNS).write_text(json.dumps(encoder.as_data(), allow_nan=False), encoding="utf-8")
    np.savez(folder / MODEL, allow_pickle=False, **_arrays(public, blend))
    names = [COLUMNS, MODEL]
    if isinstance(model, LabelReleaseRegressor):
        model.release_.save(folder / RELEASE)
        names.append(RELEASE)
    content = card_format.parse(model.to_card(), "labeldp.model")
    own = {"schema", "version"}
    card = card_format.dump(
        {
            **{name: value for name, value in content.items() if name not in own},
            "label": label,
            "features": encoder.names,
            "format": FORMAT,
            **({} if note is None else {"note": note}),
            "files": {name: sha256(folder / name) for name in names},
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
    linear, (low, high) = model._model, model.terms_.bounds[0]
    spread = linear.explained + linear.rest
    return Blend(linear, None, 0.0, linear.rest, spread, Knowledge(low, high, linear.mean, 0.0, spread, False))


def _arrays(public: PublicFeatures, blend: Blend) -> dict[str, NDArray[Any]]:
    maps = {f.name: getattr(public, f.name) for f in fields(PublicFeatures) if f.name != "narrowing"}
    arrays = {f"public_{name}": np.asarray(value) for name, value in maps.items() if value is not None}
    if public.narrowing is not None:
        arrays |= {"narrow_matrix": public.narrowing.matrix, "narrow_shift": public.narrowing.shift}
    linear, known = blend.linear, blend.knowledge
    arrays |= {"linear_weights": linear.weights}
    arrays |= {f"linear_{name}": np.array(getattr(linear, name)) for name in ("mean", "explained", "rest")}
    arrays |= {f"blend_{name}": np.array(getattr(blend, name)) for name in ("weight", "rest", "error")}
    arrays |= {f"known_{name}": np.array(getattr(known, name)) for name in (*KNOWN, "counted")}
    if blend.trees is not None:
        forest = blend.trees if isinstance(blend.trees, Forest) else Forest.of(blend.trees)
        arrays |= {f"trees_{name}": array for name, array in forest.as_arrays().items()}
    return arrays
