"""What is compared: both regressors, a private constant, boosted trees without privacy, and other libraries.

Fits are seeded by the cell, so that a figure can be computed again and two versions of the library meet the same
words wherever they draw alike. The label of the version is no part of the seed, the repeat is.
"""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.accuracy.heldout import Array
from benchmarks.accuracy.label_private import fit_cond_dp, fit_noisy_moments
from benchmarks.accuracy.tables import Bounds, load

Fit = Callable[[Array, Array, Array, float, Bounds, int], Array]
"""From rows, labels, new rows, ε, bounds and a seed to predictions for the new rows."""

DRAWS = 4000
"""The private constant's error is averaged over this many draws of its noise: a fit costs nothing."""


@dataclass(frozen=True, order=True)
class Cell:
    """One fit. ``loose`` is how much too wide the bounds are: ``10`` on both sides, ``10left``, ``10right``.

    ``rows`` is the number of training rows, 0 for all of the 80 % of the split.
    """

    split: int
    repeat: int
    table: str
    method: str
    epsilon: float
    loose: str = "1"
    rows: int = 0
    label: str = ""


def widen(bounds: Bounds, loose: str) -> Bounds:
    """Return bounds that are too wide by a factor: around the middle, or on the named side only."""
    (low, high), side = bounds, loose.lstrip("0123456789.")
    extra = (float(loose.removesuffix(side)) - 1) * (high - low)
    left, right = {"": (0.5, 0.5), "left": (1.0, 0.0), "right": (0.0, 1.0)}[side]
    return low - left * extra, high + right * extra


def _library(name: str) -> Fit:
    def fit(X: Array, y: Array, new: Array, epsilon: float, bounds: Bounds, seed: int) -> Array:
        regressor = getattr(import_module("labeldp"), name)
        return np.asarray(regressor(epsilon=epsilon, bounds=bounds, random_state=seed).fit(X, y).predict(new))

    return fit


def _trees(X: Array, y: Array, new: Array, epsilon: float, bounds: Bounds, seed: int) -> Array:
    model = import_module("sklearn.ensemble").HistGradientBoostingRegressor(random_state=seed)
    return np.asarray(model.fit(X, y).predict(new))


def _laplace(X: Array, y: Array, new: Array, epsilon: float, bounds: Bounds, seed: int) -> Array:
    """Boosted trees on labels with Laplace noise."""
    noise = np.random.default_rng(seed).laplace(0, (bounds[1] - bounds[0]) / epsilon, len(y))
    return np.clip(_trees(X, np.clip(y, *bounds) + noise, new, epsilon, bounds, seed), *bounds)


def _eleventh(X: Array, y: Array, new: Array, epsilon: float, bounds: Bounds, seed: int) -> Array:
    """Trees without privacy on an eleventh of the rows: labels at ε = 1 carry about as much."""
    ensemble, validation = import_module("sklearn.ensemble"), import_module("sklearn.model_selection")
    rows = np.random.default_rng(seed).permutation(len(y))[: max(10, len(y) // 11)]
    forest = ensemble.ExtraTreesRegressor(300, min_samples_leaf=2, random_state=seed)
    models = [ensemble.HistGradientBoostingRegressor(random_state=seed), forest]
    scores = [validation.cross_val_score(m, X[rows], y[rows], scoring="neg_mean_squared_error") for m in models]
    best = models[int(np.argmax([score.mean() for score in scores]))]
    return np.asarray(best.fit(X[rows], y[rows]).predict(new))


def _diffprivlib(X: Array, y: Array, new: Array, epsilon: float, bounds: Bounds, seed: int) -> Array:
    """diffprivlib's linear regression; the columns are public, and so are their ranges."""
    regression = import_module("diffprivlib.models").LinearRegression
    ranges = (X.min(axis=0), X.max(axis=0))
    model = regression(epsilon=epsilon, bounds_X=ranges, bounds_y=bounds, random_state=seed)
    return np.asarray(np.clip(model.fit(X, y).predict(new), *bounds))


def _ebm(X: Array, y: Array, new: Array, epsilon: float, bounds: Bounds, seed: int) -> Array:
    """interpret's private additive model, δ = 1e-6, with 1 % of the budget for bins."""
    model = import_module("interpret.privacy").DPExplainableBoostingRegressor(
        epsilon=epsilon,
        delta=1e-6,
        bin_budget_frac=0.01,
        privacy_bounds=np.stack([X.min(axis=0), X.max(axis=0)], axis=1),
        privacy_target_min=bounds[0],
        privacy_target_max=bounds[1],
        feature_types=["continuous"] * X.shape[1],
        n_jobs=1,
        random_state=seed,
    )
    return np.asarray(np.clip(model.fit(X, np.clip(y, *bounds)).predict(new), *bounds))


def _dp_xgboost(X: Array, y: Array, new: Array, epsilon: float, bounds: Bounds, seed: int) -> Array:
    """DP-XGBoost, whose trees share ε: gradients must lie in [-1, 1], and the columns' ranges are public.

    The library seeds its noise by the clock's second, so that every fit waits for a new one.
    """
    time.sleep(1 - time.time() % 1)
    xgboost = import_module("dp_xgboost")
    ranges = {"feature_min": X.min(axis=0), "feature_max": X.max(axis=0)}
    middle, half = (bounds[0] + bounds[1]) / 2, (bounds[1] - bounds[0]) / 2
    settings = {
        "objective": "reg:squarederror",
        "tree_method": "approxDP",
        "dp_epsilon_per_tree": epsilon / 10,
        "max_depth": 2,
        "learning_rate": 0.3,
        "min_child_weight": min(0.4, 0.2 / epsilon**0.5) * len(y),
        "lambda": 0.1,
        "base_score": 0,
        "nthread": 1,
        "verbosity": 0,
    }
    rows = xgboost.DMatrix(X, label=(np.clip(y, *bounds) - middle) / half, **ranges)
    model = xgboost.train(settings, rows, num_boost_round=10)
    return np.asarray(np.clip(middle + half * model.predict(xgboost.DMatrix(new, **ranges)), *bounds))


METHODS: dict[str, Fit] = {
    "labels": _library("LabelReleaseRegressor"),
    "model": _library("ModelReleaseRegressor"),
    "trees": _trees,
    "eleventh": _eleventh,
    "laplace": _laplace,
    "moments": fit_noisy_moments,
    "cond-dp": fit_cond_dp,
    "ebm": _ebm,
    "dp-xgboost": _dp_xgboost,
    "diffprivlib": _diffprivlib,
}
OURS = ("labels", "model")
PEERS = ("laplace", "moments", "cond-dp", "ebm", "dp-xgboost", "diffprivlib")
LIBRARIES = {"ebm": "peers", "dp-xgboost": "peers", "diffprivlib": "peers"}
"""Methods that need other libraries, which may be in an environment of their own."""


def measure(cell: Cell) -> dict[str, Any]:
    """Fit a cell and return it with its test error and processor time."""
    X, y, public = load(cell.table)
    order = np.random.default_rng(cell.split).permutation(len(y))
    train, test = order[: int(0.8 * len(y))], order[int(0.8 * len(y)) :]
    train = train[: cell.rows or None]
    bounds = widen(public, cell.loose)
    seed = zlib.crc32(repr(replace(cell, label="")).encode())
    started = time.process_time()
    if cell.method == "constant":
        result = _constant(y[train], y[test], cell.epsilon, bounds, seed)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # seeds are not for releases, and the same rows are fitted often
            predictions = METHODS[cell.method](X[train], y[train], X[test], cell.epsilon, bounds, seed)
        result = {"error": float(np.mean((predictions - y[test]) ** 2))}
    return asdict(cell) | result | {"seconds": round(time.process_time() - started, 3)}


def _constant(train: Array, test: Array, epsilon: float, bounds: Bounds, seed: int) -> dict[str, Any]:
    """Return the mean error of the noisy mean of clipped labels, and its quantiles at 1/40, 3/40, …, 39/40."""
    noise = np.random.default_rng(seed).laplace(0, (bounds[1] - bounds[0]) / len(train) / epsilon, DRAWS)
    guesses = np.clip(np.clip(train, *bounds).mean() + noise, *bounds)
    errors = np.var(test) + (guesses - test.mean()) ** 2
    return {"error": float(errors.mean()), "quantiles": np.quantile(errors, np.arange(0.025, 1, 0.05)).tolist()}
