"""Comparison of mechanisms, regressors and values of ε on a table whose labels are public.

Nothing here is private: errors are measured on true labels. On private ones that would itself spend budget.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labeldp._values import Array, Data, Index, Interval, as_fraction
from labeldp.accounts.accuracy import noise_and_bias
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.numbers import number
from labeldp.accounts.scores import Figure
from labeldp.errors import DataError, ParameterError, Setting, WeakModelWarning
from labeldp.evidence.curves import draw_comparison
from labeldp.exact.word_sources import resolve_source
from labeldp.learning.label_regressor import LabelReleaseRegressor
from labeldp.learning.model_regressor import ModelReleaseRegressor
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.registry import mechanism_class
from labeldp.release.curator import mean_variance
from labeldp.release.label_access import LabelAccess
from labeldp.release.plan import Request, prepare
from labeldp.tables.feature_encoder import TableEncoder
from labeldp.tables.frames import as_table, frame_names, is_frame

REGRESSORS: dict[str, Callable[..., Any]] = {
    "labels released": LabelReleaseRegressor,
    "model released": ModelReleaseRegressor,
}

CONSTANT = "private constant"
"""A mean with noise."""

NOT_PRIVATE = "not private"
"""Ridge regression or boosted trees on true labels, whichever cross-validation prefers."""

_MIN_ROWS = 40
"""The fewest rows whose held-out error says something."""

_DRAWS = 3
"""Priors to average over."""

Figures = dict[tuple[str, float], Figure]
"""Errors by name and ε."""


def _describe(figure: Figure) -> str:
    """Return a figure with its standard error, where that shows in three digits.

    Examples
    --------
    >>> print(_describe(Figure(15943.2, 103.7)), _describe(Figure(0.51234, 0.0021)), sep="; ")
    15,900 ± 100; 0.512 ± 0.0021
    >>> _describe(Figure(851.3, 0.0024))
    '851'
    """
    shows = figure.standard_error > 1e-4 * abs(figure.value)
    return number(figure.value, 3) + (f" ± {number(figure.standard_error, 2)}" if shows else "")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Errors of one private label and of models, by mechanism or model and ε.

    Attributes
    ----------
    budgets : tuple of float
        Values of ε.
    trained, judged : int
        Rows that models learnt from, and rows held out.
    figures : dict
        Typical errors by name and ε, as `Figure`. Under "label", those of one private label of each mechanism.
        Under "model", those on held-out labels of both regressors (the mean of several fits, each with noise of
        its own), of the "private constant" and of a model that is "not private". The standard error of a
        model's error is by the choice of rows and, with two fits or more, by their noise.
    biased : list of str
        Mechanisms whose labels have a bias.

    Examples
    --------
    >>> import numpy as np
    >>> from labeldp.evidence.comparison import compare_table
    >>> x = np.linspace(-1, 1, 200)
    >>> comparison = compare_table(x[:, None], 2 + x, (0, 5), budgets=[8.0], mechanisms=["laplace", "rp"])
    >>> comparison.figures["label"]["rp", 8.0].value < comparison.figures["label"]["laplace", 8.0].value
    True
    >>> comparison.table("model")[0]
    ['labels released', '...']
    """

    budgets: tuple[float, ...]
    trained: int
    judged: int
    figures: dict[str, Figures]
    biased: list[str]

    def table(self, of: Literal["label", "model"]) -> list[list[str]]:
        """Return the errors of one label, or of models: a line for each mechanism or model."""
        figures = self.figures[of]
        lines: dict[str, list[str]] = {}
        for (name, _), error in figures.items():
            lines.setdefault(name, [name]).append(_describe(error))
        return list(lines.values())

    def records(self) -> list[Data]:
        """Return every figure in full, for a data frame: of a label or a model, its name, and ε."""
        records = []
        for of, figures in self.figures.items():
            for (name, epsilon), error in figures.items():
                record: Data = {"of": of, "name": name, "epsilon": epsilon, "error": error.value}
                records.append({**record, "standard_error": error.standard_error})
        return records

    def notes(self) -> list[str]:
        """Return notes on the figures, in sentences."""
        notes = [
            f"Models learnt from {self.trained:,} rows; with more rows less ε does the same. ± is a standard "
            "error, by the choice of held-out rows and, with two fits or more at each ε, by their noise."
        ]
        if self.biased:
            notes.append(
                f"Labels of {', '.join(self.biased)} may have the least error, but a bias that does not average "
                "out: do not learn from them."
            )
        models = self.figures["model"]
        if models[NOT_PRIVATE, self.budgets[0]].value > 0.98 * models[CONSTANT, max(self.budgets)].value:
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
        Called with the task, the number of steps done, and the number of all steps.

    Examples
    --------
    >>> import numpy as np
    >>> from labeldp.evidence.comparison import compare_table
    >>> x = np.linspace(-1, 1, 200)
    >>> comparison = compare_table(x[:, None], 2 + x, (0, 5), budgets=[8.0], mechanisms=["laplace", "rp"])
    >>> comparison.trained, len(comparison.table("model"))
    (150, 4)
    """
    labels = np.asarray(labels, np.float64)
    if labels.size < _MIN_ROWS:
        raise DataError(f"{labels.size} rows are too few to compare models on: give at least {_MIN_ROWS}")
    rows = JudgedRows.split(_encode(X), np.clip(labels, *bounds))
    steps = len(budgets) * (len(mechanisms) + repeats * len(REGRESSORS)) + 2
    done = count(1)

    def step() -> None:
        if progress is not None:
            progress("comparing", next(done), steps)

    noise: Figures = {}
    biased: dict[str, None] = {}
    for name in mechanisms:
        for epsilon in budgets:
            noise[name, epsilon], is_unbiased = label_error(name, labels, bounds, epsilon, delta)
            if not is_unbiased:
                biased[name] = None
            step()
    models = _model_errors(rows, bounds, budgets, repeats, step)
    figures = {"label": noise, "model": models}
    return Comparison(tuple(budgets), rows.train.size, rows.test.size, figures, list(biased))


def _encode(X: Any) -> Array:
    """Return features as numbers, as the regressors encode them."""
    if is_frame(X):
        table = as_table(X)
        X = TableEncoder.fit(table, frame_names(X)).transform(table)
    return np.asarray(X, np.float64)


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """Features and labels, the rows to learn from, and the rows to judge by."""

    features: Array
    labels: Array
    train: Index
    test: Index

    @classmethod
    def split(cls, features: Array, labels: Array) -> Self:
        """Hold out a quarter of the rows, at random but always the same."""
        order = np.random.default_rng(0).permutation(labels.size)
        return cls(features, labels, train=order[labels.size // 4 :], test=order[: labels.size // 4])

    def best_model(self) -> Any:
        """Return ridge regression or boosted trees, whichever has the smaller cross-validated squared error."""
        models = [
            make_pipeline(StandardScaler(), RidgeCV(np.geomspace(0.01, 1e4, 13))),
            HistGradientBoostingRegressor(random_state=0),
        ]
        X, y = self.features[self.train], self.labels[self.train]
        scores = [cross_val_score(model, X, y, scoring="neg_mean_squared_error").mean() for model in models]
        return models[int(np.argmax(scores))]

    def error(self, model: Any) -> Figure:
        """Return a model's typical error on held-out rows; its standard error is by the choice of these rows."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WeakModelWarning)  # the comparison shows how weak a model is
            model.fit(self.features[self.train], self.labels[self.train])
        squares = (model.predict(self.features[self.test]) - self.labels[self.test]) ** 2
        typical = math.sqrt(float(squares.mean()))
        if not typical:
            return Figure(0.0, 0.0)
        error_of_mean = float(squares.std()) / math.sqrt(self.test.size)
        return Figure(typical, error_of_mean / (2 * typical))


def _model_errors(
    rows: JudgedRows, bounds: Interval, budgets: Sequence[float], repeats: int, step: Callable[[], None]
) -> Figures:
    """Return the errors of private regressors, of a mean with noise, and of a model without privacy."""
    errors: Figures = {}
    for name, regressor in REGRESSORS.items():
        for epsilon in budgets:
            fits = []
            for _ in range(repeats):
                fits.append(rows.error(regressor(epsilon=epsilon, bounds=bounds, ledger=Ledger())))
                step()
            errors[name, epsilon] = _mean(fits)
    constant = rows.error(DummyRegressor())
    step()
    not_private = rows.error(rows.best_model())
    step()
    for epsilon in budgets:
        variance = mean_variance(as_fraction(epsilon), rows.train.size, bounds)
        error = math.hypot(constant.value, math.sqrt(variance))
        errors[CONSTANT, epsilon] = Figure(error, constant.standard_error)
        errors[NOT_PRIVATE, epsilon] = not_private
    return errors


def _mean(fits: list[Figure]) -> Figure:
    """Return the mean error of repeated fits; its standard error is by their noise and by the choice of rows."""
    errors = [fit.value for fit in fits]
    by_noise = _standard_deviation(errors) / math.sqrt(len(fits))
    by_rows = float(np.mean([fit.standard_error for fit in fits]))
    return Figure(float(np.mean(errors)), math.hypot(by_noise, by_rows))


def _standard_deviation(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _designs(name: str, labels: Array, bounds: Interval, epsilon: float, delta: float) -> Iterator[Mechanism]:
    """Yield the mechanism of a name; a few draws of one that is designed with a noisy prior."""
    if name != "auto" and mechanism_class(name).needs_delta:  # no release takes it
        yield mechanism_class(name).for_bounds(bounds, epsilon, delta=delta)
        return
    request = Request(epsilon=epsilon, bounds=bounds, mechanism=name)
    plan, source = request.plan(labels.size), resolve_source(None)
    if not plan.for_prior:
        yield plan.mechanism_for(None)
        return
    for _ in range(_DRAWS):
        access = LabelAccess(labels, source, "prior")
        yield prepare(plan, Ledger(), access).mechanisms[0]


def label_error(
    name: str, labels: Array, bounds: Interval, epsilon: float, delta: float = 0.0
) -> tuple[Figure, bool]:
    """Return the typical error of one private label, by a mechanism's counts, and whether it is unbiased.

    The error is exact, but where a prior is needed: that takes its part of ε and has its noise, so this averages
    over a few of them. An unbiased label is, on average, the true one, as far as that was not clipped.

    Parameters
    ----------
    name : str
        A mechanism, as `privatize` knows it.
    labels : array
        Labels that anyone may see: the result follows from them exactly.
    bounds : (lo, hi)
        Public bounds of the label.
    epsilon, delta : float
        The budget; δ for "gaussian" only.

    Examples
    --------
    >>> import numpy as np
    >>> from labeldp.evidence.comparison import label_error
    >>> even = np.linspace(0, 5, 2000)
    >>> plain, window = (label_error(name, even, (0, 5), 1.0)[0].value for name in ("laplace", "rp"))
    >>> bool(7.0 < plain < 7.2 and window < plain)
    True
    """
    try:
        mechanisms = list(_designs(name, labels, bounds, epsilon, delta))
    except TypeError as error:  # of its constructor
        why = f": {name} has settings without a default: give them one, or define for_bounds"
        raise ParameterError(Setting("mechanisms"), why) from error
    draws = [noise_and_bias(mechanism, labels) for mechanism in mechanisms]
    errors = [math.sqrt(np.mean(deviation**2 + bias**2)) for deviation, bias, _ in draws]
    typical = math.sqrt(np.mean(np.square(errors)))
    return Figure(typical, _standard_deviation(errors)), all(unbiased for *_, unbiased in draws)
