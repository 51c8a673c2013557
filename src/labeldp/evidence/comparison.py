"""Which mechanism, which regressor and which ε suit a table whose labels are public, or stand in for private ones.

Nothing here is private: errors are measured on true labels. On private ones that would itself spend budget.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor

from labeldp._values import Data, Interval, as_fraction
from labeldp.accounts.ledger import Ledger
from labeldp.errors import DataError, WeakModelWarning
from labeldp.evidence.curves import draw_comparison
from labeldp.evidence.label_noise import Estimate, LabelNoise, label_noise
from labeldp.learning.label_regressor import LabelReleaseRegressor
from labeldp.learning.model_regressor import ModelReleaseRegressor
from labeldp.release.curator import mean_variance
from labeldp.tables.encoder import TableEncoder
from labeldp.tables.frames import as_table, frame_names, is_frame

REGRESSORS: dict[str, Callable[..., Any]] = {
    "labels released": LabelReleaseRegressor,
    "model released": ModelReleaseRegressor,
}

CONSTANT, TREES = "private constant", "not private"
"""What regressors are compared with: a mean with noise, and boosted trees on true labels."""

_FEWEST = 40
"""With fewer rows a held-out error says nothing."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was compared, and what came out.

    Attributes
    ----------
    budgets : tuple of float
        Values of ε.
    trained, judged : int
        Rows that models learnt from, and rows held out.
    noise : dict
        `LabelNoise` by mechanism and ε.
    models : dict
        `Estimate` of the typical error on held-out labels, by model and ε: both regressors (the mean of several
        fits, each with noise of its own), the "private constant" and boosted trees that are "not private". Its
        spread is by the noise of fits, unless there was one, and by the choice of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from labeldp.evidence.comparison import compare_table
    >>> x = np.linspace(-1, 1, 200)
    >>> comparison = compare_table(x[:, None], 2 + x, (0, 5), budgets=[8.0], mechanisms=["laplace", "rp"])
    >>> comparison.noise["rp", 8.0].error < comparison.noise["laplace", 8.0].error
    True
    >>> comparison.table("model")[0]
    ['labels released', '...']
    """

    budgets: tuple[float, ...]
    trained: int
    judged: int
    noise: dict[tuple[str, float], LabelNoise]
    models: dict[tuple[str, float], Estimate]

    @property
    def mechanisms(self) -> list[str]:
        """The mechanisms compared."""
        return list(dict.fromkeys(name for name, _ in self.noise))

    @property
    def figures(self) -> dict[str, dict[tuple[str, float], Estimate]]:
        """The errors of one label, by mechanism and ε, and those of models."""
        return {"label": {key: noise.error for key, noise in self.noise.items()}, "model": self.models}

    def table(self, of: Literal["label", "model"]) -> list[list[str]]:
        """Return the errors of one label, or of models: a line for each mechanism or model."""
        figures = self.figures[of]
        names = dict.fromkeys(name for name, _ in figures)
        return [[name, *(str(figures[name, epsilon]) for epsilon in self.budgets)] for name in names]

    def records(self) -> list[Data]:
        """Return every figure in full, for a data frame: what it is of, by which mechanism or model, and ε."""
        return [
            {"of": of, "name": name, "epsilon": epsilon, "error": float(one), "standard_error": one.spread}
            for of, figures in self.figures.items()
            for (name, epsilon), one in figures.items()
        ]

    def notes(self) -> list[str]:
        """Return what to know of the figures, in sentences."""
        biased = [name for name in self.mechanisms if not self.noise[name, self.budgets[0]].unbiased]
        notes = [
            f"Models learnt from {self.trained:,} rows; with more rows less ε does the same. ± is a standard "
            "error, by the choice of held-out rows and, with two fits or more at each ε, by their noise."
        ]
        if biased:
            what = "may have the least error, but a bias that does not average out: do not learn from them."
            notes.append(f"Labels of {', '.join(biased)} {what}")
        if self.models[TREES, self.budgets[0]] > 0.98 * self.models[CONSTANT, max(self.budgets)]:
            notes.append(
                "Even without privacy the features hardly predict this label: no ε will change that. Release a "
                "mean or a histogram instead, or find better features."
            )
        return notes

    def plot(self, label: str = "label") -> Any:
        """Return a Matplotlib figure of the errors of labels and of models against ε."""
        return draw_comparison(self, label)


def compare_table(
    X: Any,
    labels: ArrayLike,
    bounds: Interval,
    *,
    budgets: Sequence[float],
    mechanisms: Sequence[str],
    delta: float = 0.0,
    repeats: int = 2,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> Comparison:
    """Compare mechanisms and regressors on public labels; a quarter of the rows is held out to judge.

    Parameters
    ----------
    X : array-like, rows × columns, or a data frame of pandas, Polars or Arrow
        Features, as the regressors take them.
    labels : array-like
        Labels that anyone may see.
    bounds : (lo, hi)
        Public bounds of the label.
    budgets : sequence of float
        Values of ε to compare.
    mechanisms : sequence of str
        Names, as `privatize` knows them, those of registered mechanisms of your own too.
    delta : float
        For "gaussian".
    repeats : int
        Fits of each regressor at each ε, on the same rows: only their noise differs.
    progress : function, optional
        Is called with what is being done, how many steps of it are done, and of how many.

    Examples
    --------
    >>> import numpy as np
    >>> from labeldp.evidence.comparison import compare_table
    >>> x = np.linspace(-1, 1, 200)
    >>> comparison = compare_table(x[:, None], 2 + x, (0, 5), budgets=[8.0], mechanisms=["laplace", "rp"])
    >>> comparison.trained, comparison.mechanisms, len(comparison.table("model"))
    (150, ['laplace', 'rp'], 4)
    """
    if is_frame(X):
        table = as_table(X)
        X = TableEncoder.fit(table, frame_names(X)).transform(table)
    X, labels = np.asarray(X, np.float64), np.asarray(labels, np.float64)
    if labels.size < _FEWEST:
        raise DataError(f"{labels.size} rows are too few to compare models on: give at least {_FEWEST}")
    order = np.random.default_rng(0).permutation(labels.size)
    test, train = order[: labels.size // 4], order[labels.size // 4 :]
    clipped = np.clip(labels, *bounds)
    plain = {CONSTANT: DummyRegressor(), TREES: HistGradientBoostingRegressor(random_state=0)}
    total, done = len(budgets) * (len(mechanisms) + repeats * len(REGRESSORS)) + len(plain), 0

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress("comparing", done, total)

    def error(model: Any) -> Estimate:
        """Return the typical error of a model on held-out rows; its spread is by the choice of these rows."""
        squares = (model.fit(X[train], clipped[train]).predict(X[test]) - clipped[test]) ** 2
        step()
        typical = math.sqrt(float(squares.mean()))
        return Estimate(typical, float(squares.std()) / math.sqrt(test.size) / (2 * typical) if typical else 0.0)

    noise = {}
    for name in mechanisms:
        for epsilon in budgets:
            noise[name, epsilon] = label_noise(name, labels, bounds, epsilon, delta)
            step()
    models: dict[tuple[str, float], Estimate] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakModelWarning)  # the comparison shows how weak a model is
        for name, make in REGRESSORS.items():
            for epsilon in budgets:
                fits = [error(make(epsilon=epsilon, bounds=bounds, ledger=Ledger())) for _ in range(repeats)]
                models[name, epsilon] = _mean(fits)
    for name, model in plain.items():
        models |= dict.fromkeys([(name, epsilon) for epsilon in budgets], error(model))
    for epsilon in budgets:
        guess, variance = models[CONSTANT, epsilon], mean_variance(as_fraction(epsilon), train.size, bounds)
        models[CONSTANT, epsilon] = Estimate(math.sqrt(guess**2 + variance), guess.spread)
    return Comparison(tuple(budgets), train.size, test.size, noise, models)


def _mean(fits: list[Estimate]) -> Estimate:
    """Return the mean error of repeated fits; its spread is by their noise and by the choice of rows."""
    by_noise = float(np.std(fits, ddof=1)) / math.sqrt(len(fits)) if len(fits) > 1 else 0.0
    by_rows = float(np.mean([one.spread for one in fits]))
    return Estimate(float(np.mean(fits)), math.hypot(by_noise, by_rows))
