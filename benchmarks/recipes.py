"""LightGBM, PyTorch and Keras on released labels: ``python -m benchmarks.recipes`` prints the recipes' table.

Needs ``pip install lightgbm torch keras``. R² on true labels of held-out rows, clipped to the bounds, is a mean
over splits; labels are released for ε = 1, with the public columns and each by itself.
"""

from __future__ import annotations

import os

os.environ["KERAS_BACKEND"] = "torch"

import warnings
from collections.abc import Callable
from importlib.metadata import version

import keras
import lightgbm
import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import r2_score

import labeldp as ldp
from benchmarks.accuracy.tables import load
from benchmarks.report import commit
from labeldp.evidence import make_survey

SPLITS, MOST_ROWS, EPSILON = 2, 8_000, 1.0
Array = NDArray[np.float64]
Learner = Callable[[Array, Array, Array], Array]
"""Predictions for new rows, from rows and labels."""


def scaled(X: Array, new: Array) -> tuple[Array, Array]:
    """Return columns of zero mean and unit variance."""
    mean, scale = X.mean(axis=0), X.std(axis=0) + 1e-9
    return ((X - mean) / scale).astype("float32"), ((new - mean) / scale).astype("float32")


def light(**settings: float) -> Learner:
    """Return LightGBM."""

    def predict(X: Array, z: Array, new: Array) -> Array:
        return lightgbm.LGBMRegressor(objective="regression", verbose=-1, **settings).fit(X, z).predict(new)

    return predict


def pytorch(epochs: int, decay: float) -> Learner:
    """Return a network of PyTorch."""

    def predict(X: Array, z: Array, new: Array) -> Array:
        X, new = scaled(X, new)
        shift, scale = z.mean(), z.std() or 1.0
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Linear(X.shape[1], 64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, 64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, 1),
        )
        rows = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.tensor((z - shift) / scale).float())
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=decay)
        for _ in range(epochs):
            for batch, labels in torch.utils.data.DataLoader(rows, batch_size=256, shuffle=True):
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(net(batch).squeeze(1), labels).backward()
                optimizer.step()
        with torch.no_grad():
            return shift + scale * net(torch.from_numpy(new)).squeeze(1).numpy()

    return predict


def network(epochs: int, patience: int) -> Learner:
    """Return a network of Keras, which stops early on held-out private labels if it has patience."""

    def predict(X: Array, z: Array, new: Array) -> Array:
        X, new = scaled(X, new)
        shift, scale = z.mean(), z.std() or 1.0
        keras.utils.set_random_seed(0)
        layers = [keras.layers.Dense(64, "relu"), keras.layers.Dense(64, "relu"), keras.layers.Dense(1)]
        net = keras.Sequential(layers)
        net.compile("adam", "mse")
        stop = [keras.callbacks.EarlyStopping(patience=patience, restore_best_weights=True)] if patience else []
        net.fit(
            X, (z - shift) / scale, 256, epochs, verbose=0, callbacks=stop, validation_split=0.1 if patience else 0
        )
        return shift + scale * net.predict(new, verbose=0)[:, 0]

    return predict


LEARNERS: dict[str, Learner] = {
    "LightGBM, defaults": light(),
    "LightGBM, `min_child_samples=200, n_estimators=50`": light(min_child_samples=200, n_estimators=50),
    "PyTorch, 30 epochs": pytorch(30, 0.0),
    "PyTorch, 30 epochs, `weight_decay=1.0`": pytorch(30, 1.0),
    "PyTorch, 5 epochs": pytorch(5, 0.0),
    "Keras, 30 epochs": network(30, 0),
    "Keras, at most 30 epochs, `EarlyStopping(patience=3)`": network(30, 3),
}


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    survey = make_survey(10_000)
    tables = {
        "incomes (synthetic)": (survey.features, survey.income, survey.bounds),
        "house values (California)": load("housing"),
    }
    kinds = ("true labels", "with the public columns", "each by itself")
    found: dict[tuple[str, str, str], list[float]] = {}
    for name, (X, y, bounds) in tables.items():
        for split in range(SPLITS):
            rows = np.random.default_rng(split).permutation(len(y))[: MOST_ROWS * 5 // 4]
            train, test = np.split(rows, [len(rows) * 4 // 5])
            how = {"epsilon": EPSILON, "bounds": bounds, "ledger": ldp.Ledger()}
            labels = (
                np.clip(y[train], *bounds),
                ldp.privatize(y[train], X=X[train], **how).labels,
                ldp.privatize(y[train], **how).labels,
            )
            for kind, z in zip(kinds, labels, strict=True):
                for learner, predict in LEARNERS.items():
                    score = r2_score(np.clip(y[test], *bounds), predict(X[train], z, X[test]))
                    found.setdefault((learner, name, kind), []).append(score)
    columns = [(name, kind) for name in tables for kind in kinds]
    print("| learner | " + " | ".join(f"{name}, {kind}" for name, kind in columns) + " |")
    print("| --- |" + " ---: |" * len(columns))
    for learner in LEARNERS:
        cells = [f"{np.mean(found[learner, *column]):.2f}" for column in columns]
        print(f"| {learner} | {' | '.join(cells)} |")
    packages = ", ".join(f"{name} {version(name)}" for name in ("lightgbm", "torch", "keras"))
    print(f"\n{SPLITS} splits; labeldp {ldp.__version__} ({commit()}), {packages}.")


if __name__ == "__main__":
    main()
