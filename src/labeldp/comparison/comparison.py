"""Which mechanism, which regressor and which ε suit a table whose labels are public, or stand in for private ones.

Nothing here is private: errors are measured on true labels. On private ones that would itself spend budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.ensemble import HistGradientBoostingRegressor

from labeldp._arrays import Array
from labeldp._values import as_fraction, rounded_up
from labeldp.comparison.label_noise import LabelNoise, label_noise
from labeldp.errors import DataError
from labeldp.estimators import LabelReleaseRegressor, ModelReleaseRegressor
from labeldp.ledger import Ledger
from labeldp.priors.curator import mean_variance
from labeldp.release.numbers import number

Bounds = tuple[float, float]

REGRESSORS: dict[str, Callable[..., Any]] = {
    "labels released": LabelReleaseRegressor,
    "model released": ModelReleaseRegressor,
}

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
        Typical error on held-out labels, by regressor and ε: the mean of several fits, each with noise of its own.
    constant : dict
        Expected error of a mean with noise, by ε.
    not_private : float
        Error of boosted trees on true labels.
    spread : dict
        Standard error of what models have: by the noise of fits, unless there was one, and by the choice of rows.
    rows_spread : tuple of float
        Standard errors of the constant and of boosted trees, by the choice of rows.
    repeats : int
        How many fits there were.

    Examples
    --------
    >>> import numpy as np
    >>> from labeldp.comparison import compare_table
    >>> x = np.linspace(-1, 1, 200)
    >>> comparison = compare_table(x[:, None], 2 + x, (0, 5), budgets=[8.0], mechanisms=["laplace", "rp"])
    >>> comparison.best_mechanism(8.0), comparison.error("model released", 8.0)
    ('rp', '...')
    >>> comparison.advice()
    [...]
    """

    budgets: tuple[float, ...]
    trained: int
    judged: int
    noise: dict[tuple[str, float], LabelNoise]
    models: dict[tuple[str, float], float]
    constant: dict[float, float]
    not_private: float
    spread: dict[tuple[str, float], float]
    rows_spread: tuple[float, float]
    repeats: int = 1

    @property
    def mechanisms(self) -> list[str]:
        """The mechanisms compared."""
        return list(dict.fromkeys(name for name, _ in self.noise))

    @property
    def regressors(self) -> list[str]:
        """The regressors compared."""
        return list(dict.fromkeys(name for name, _ in self.models))

    def is_unbiased(self, mechanism: str) -> bool:
        """Return whether a mechanism's labels are right on average, as far as they were not clipped."""
        return self.noise[mechanism, self.budgets[0]].unbiased

    def best_mechanism(self, epsilon: float) -> str:
        """Return the mechanism that serves a learner best; "auto" unless another is better by a tenth.

        Biased ones are not considered, unless there is no other: their errors do not average out.
        """
        fair = [name for name in self.mechanisms if self.noise[name, epsilon].unbiased] or self.mechanisms
        risks = {name: self.noise[name, epsilon].risk for name in fair}
        best = min(risks, key=lambda name: risks[name])
        return "auto" if risks.get("auto", math.inf) <= 1.1 * risks[best] else best

    def best_model(self, epsilon: float) -> str:
        """Return the regressor with the least held-out error at an ε that was compared."""
        return min(self.regressors, key=lambda name: self.models[name, epsilon])

    def error(self, model: str, epsilon: float) -> str:
        """Return the error of a regressor, one of `regressors`, at an ε, for people: with its standard error."""
        return with_error(self.models[model, epsilon], self.spread[model, epsilon])

    def kept(self, epsilon: float) -> float:
        """Return how much the better regressor keeps of what features explain without privacy: 1 is all."""
        guess = self.constant[max(self.budgets)] ** 2
        reach = guess - self.not_private**2
        gain = guess - self.models[self.best_model(epsilon), epsilon] ** 2
        return float(np.clip(gain / reach, 0.0, 1.0)) if reach > 0 else 0.0

    def advice(self) -> list[str]:
        """Return what to do, in sentences."""
        guess = self.constant[max(self.budgets)]
        if self.not_private > 0.98 * guess:
            return [
                "Even without privacy the features hardly predict this label: no ε will change that. Release a "
                "mean or a histogram instead, or find better features."
            ]
        enough = [e for e in sorted(self.budgets) if round(self.kept(e), 2) >= 0.8]  # as it is shown
        epsilon = enough[0] if enough else max(self.budgets, key=self.kept)
        model, kept = self.best_model(epsilon), self.kept(epsilon)
        if enough:
            start = (
                f"Take ε = {rounded_up(epsilon)}: the least of those tried that keeps four fifths of what "
                "features explain."
            )
        elif kept > 0.05:
            start = (
                "None of these budgets keeps four fifths of what features explain; "
                f"ε = {rounded_up(epsilon)} keeps most."
            )
        else:
            start = (
                f"With {self.trained:,} rows none of these budgets is enough for a model: a constant does as well."
            )
        least = self.models[model, epsilon] + 2 * self.spread[model, epsilon]
        alike = [name for name in self.regressors if self.models[name, epsilon] <= least]
        names = " or ".join(REGRESSORS[name].__name__ for name in alike)
        errors = " and ".join(self.error(name, epsilon) for name in alike)
        typical = "typical errors of {}, too close to tell apart" if alike[1:] else "a typical error of {}"
        mechanism = self.best_mechanism(epsilon)
        shares = ", ".join(f"{100 * self.kept(e):.0f} % at ε = {rounded_up(e)}" for e in sorted(self.budgets))
        return [
            start,
            f"For a model: {names}, with {typical.format(errors)}, "
            f"beside {with_error(self.not_private, self.rows_spread[1])} without privacy and "
            f"{with_error(guess, self.rows_spread[0])} for a constant. Kept of what features explain: {shares}.",
            f'For private labels: mechanism="{mechanism}", whose labels carry '
            f"±{number(self.noise[mechanism, epsilon].one, 3)} each.",
            f"Models learnt from {self.trained:,} rows; with more rows less ε does the same.",
        ]


def compare_table(
    X: ArrayLike,
    labels: ArrayLike,
    bounds: Bounds,
    *,
    budgets: Sequence[float],
    mechanisms: Sequence[str],
    delta: float = 0.0,
    repeats: int = 1,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> Comparison:
    """Compare mechanisms and regressors on public labels; a quarter of the rows is held out to judge.

    Parameters
    ----------
    X : array-like
        Features.
    labels : array-like
        Labels that anyone may see.
    bounds : (lo, hi)
        Public bounds of the label.
    budgets : sequence of float
        Values of ε to compare.
    mechanisms : sequence of str
        Names, as `privatize` knows them.
    delta : float
        For "gaussian".
    repeats : int
        Fits of each regressor at each ε, on the same rows: only their noise differs. From two on, their spread is
        known; it is pooled over budgets, in proportion to the noise, 1/ε.
    progress : function, optional
        Is called with what is being done, how many steps of it are done, and of how many.

    Examples
    --------
    >>> import numpy as np
    >>> from labeldp.comparison import compare_table
    >>> x = np.linspace(-1, 1, 200)
    >>> comparison = compare_table(x[:, None], 2 + x, (0, 5), budgets=[8.0], mechanisms=["laplace", "rp"])
    >>> comparison.trained, comparison.mechanisms, comparison.regressors
    (150, ['laplace', 'rp'], ['labels released', 'model released'])
    """
    X, labels = np.asarray(X, np.float64), np.asarray(labels, np.float64)
    if labels.size < _FEWEST:
        raise DataError(f"{labels.size} rows are too few to compare models on: give at least {_FEWEST}")
    order = np.random.default_rng(0).permutation(labels.size)
    test, train = order[: labels.size // 4], order[labels.size // 4 :]
    clipped = np.clip(labels, *bounds)
    total = len(budgets) * (len(mechanisms) + repeats * len(REGRESSORS)) + 1
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress("comparing", done, total)

    noise = {}
    for name in mechanisms:
        for epsilon in budgets:
            noise[name, epsilon] = label_noise(name, labels, bounds, epsilon, delta)
            step()

    def error(predicted: Array) -> tuple[float, float]:
        """Return a typical error on held-out rows, and its standard error by the choice of these rows."""
        squares = (predicted - clipped[test]) ** 2
        mean = math.sqrt(float(squares.mean()))
        return mean, float(squares.std()) / math.sqrt(test.size) / (2 * mean) if mean else 0.0

    def fit(make: Callable[..., Any], epsilon: float) -> tuple[float, float]:
        model = make(epsilon=epsilon, bounds=bounds, ledger=Ledger()).fit(X[train], clipped[train])
        result = error(model.predict(X[test]))
        step()
        return result

    trees = HistGradientBoostingRegressor(random_state=0).fit(X[train], clipped[train])
    not_private, trees_spread = error(trees.predict(X[test]))
    step()
    models, spread = {}, {}
    for name, make in REGRESSORS.items():
        fits = np.array([[fit(make, epsilon) for _ in range(repeats)] for epsilon in budgets])
        variances = fits[:, :, 0].var(axis=1, ddof=1) if repeats > 1 else np.zeros(len(budgets))
        noise_unit = math.sqrt(float(np.mean(variances * np.square(budgets))) / repeats)
        for epsilon, (mean, by_rows) in zip(budgets, fits.mean(axis=1).tolist(), strict=True):
            models[name, epsilon] = mean
            spread[name, epsilon] = math.hypot(noise_unit / epsilon, by_rows)
    guess, guess_spread = error(np.full(test.size, clipped[train].mean()))
    constant = {e: math.sqrt(guess**2 + mean_variance(as_fraction(e), train.size, bounds)) for e in budgets}
    return Comparison(
        budgets=tuple(budgets),
        trained=train.size,
        judged=test.size,
        noise=noise,
        models=models,
        constant=constant,
        not_private=not_private,
        spread=spread,
        rows_spread=(guess_spread, trees_spread),
        repeats=repeats,
    )


def with_error(value: float, spread: float) -> str:
    """Return a figure of three digits for people, and its ± where that shows in them.

    Examples
    --------
    >>> with_error(15943.2, 103.7), with_error(0.51234, 0.0021), with_error(851.3, 0.0024)
    ('15,900 ± 100', '0.512 ± 0.0021', '851')
    """
    return number(value, 3) + (f" ± {number(spread, 2)}" if spread > 1e-4 * abs(value) else "")
