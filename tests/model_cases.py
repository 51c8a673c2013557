"""Models of every kind, fitted once, and their folders with anything changed in them."""

import json
from functools import cache

import numpy as np
import pyarrow as pa
from sklearn.ensemble import HistGradientBoostingRegressor

import labeldp as ldp
from forged_cards import forged
from labeldp.learning import ensemble, features, fit_plan, models

BOUNDS = (0.0, 5.0)


@cache
def table():
    rng = np.random.default_rng(0)
    return pa.table({"a": rng.normal(size=300), "b": rng.normal(size=300), "town": rng.choice(["x", "y"], 300)})


@cache
def labels():
    noise = np.random.default_rng(1).normal(size=300) * 0.1
    return 2.5 + np.tanh(table()["a"].to_numpy()) + noise


@cache
def encoder():
    return ldp.tables.TableEncoder.fit(table(), table().column_names)


@cache
def fitted():
    return ldp.ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(encoder().transform(table()), labels())


@cache
def with_trees():
    """The same model with boosted trees blended in, as fits on many rows have them."""
    X = encoder().transform(table())
    known = fit_plan.LabelSummary(0.0, 1.0, variance=1.0, sums=3)
    inputs = features.FeatureTable(fitted()._public, X).codes(np.arange(len(X)))
    synthetic = np.random.default_rng(2).normal(size=len(X))
    trees = HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=5, max_features=0.6, random_state=0)
    trees.fit(inputs, synthetic)
    model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS)
    model.__dict__.update(fitted().__dict__)
    model._ensemble = ensemble.Ensemble(fitted()._ensemble.linear, trees, 0.5, 0.1, 0.2, known)
    return model


@cache
def released():
    model = ldp.LabelReleaseRegressor(epsilon=2.0, bounds=BOUNDS, rounds=1)
    return model.fit(encoder().transform(table()), labels())


def saved(model, path, own=None, *, label="price", force=False):
    """Save a model, of the table of all but wide models unless it has an encoder of its own."""
    with models.model_folder(path, force=force) as draft:
        models.write_model(model, own or encoder(), draft, label=label)
    return path


def arrays_in(path):
    with np.load(path / "model.npz") as stored:
        return dict(stored)


def resealed(path, **card):
    """Make a model's card say what is given, and its hashes fit, as a forger would."""
    content = json.loads((path / "card.json").read_text())
    content["files"] = {name: models.sha256(path / name) for name in content["files"]}
    (path / "card.json").write_text(forged({**content, **card}))
    return path


def with_arrays(path, changed):
    """Change a model's arrays, given by name or as the bytes of the file."""
    if isinstance(changed, bytes):
        (path / "model.npz").write_bytes(changed)
    else:
        np.savez(path / "model.npz", **{**arrays_in(path), **changed})
    return resealed(path)


def with_columns(path, change, **card):
    """Change what a model says of its columns, or its card."""
    columns = json.loads((path / "columns.json").read_text())
    change(columns)
    (path / "columns.json").write_text(json.dumps(columns))
    return resealed(path, **{"features": [column["name"] for column in columns["columns"]], **card})
