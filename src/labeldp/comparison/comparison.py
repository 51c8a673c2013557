"""Which mechanism, which regressor and which ε suit a table whose labels are public, or stand in for private ones.

Nothing here is private: errors are measured on true labels. On private ones that would itself spend budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from labeldp._validation import as_fraction, rounded_up
from labeldp.errors import DataError, NotUnbiasedError
from labeldp.estimators import LabelReleaseRegressor, ModelReleaseRegressor
from labeldp.ledger import Ledger
from labeldp.mechanisms import Mechanism, mechanism_class
from labeldp.mechanisms.interval import noise_weight
from labeldp.priors.curator import GRID, mean_noise
from labeldp.randomness import resolve_source
from labeldp.release.arrays import private_prior
from labeldp.release.numbers import number
from labeldp.release.plan import Request

__all__ = ["REGRESSORS", "Comparison", "LabelNoise", "compare_table", "label_noise", "mechanism_noise"]

Array = NDArray[np.float64]

_DRAWS = 3
"""Priors to average over."""


@dataclass(frozen=True, slots=True)
class LabelNoise:
    """What private labels of one mechanism carry, exactly, by its counts.

    Attributes
    ----------
    one : float
        Typical error of one private label.
    mean : float
        Typical error of the mean of all of them.
    risk : float
        Bias² + variance · d/n: what a learner on these rows suffers.
    unbiased : bool
        Whether a label is, on average, the true one, as far as that was not clipped.
    """

    one: float
    mean: float
    risk: float
    unbiased: bool


def label_noise(
    name: str, labels: Array, bounds: tuple[float, float], epsilon: float, delta: float = 0.0
) -> LabelNoise:
    """Return what private labels carry, were these randomised as `privatize` does it.

    Where a prior is needed it takes its part of ε and has its noise, so this averages over a few of them.

    Examples
    --------
    >>> even = np.linspace(0, 5, 2000)
    >>> plain, window = (label_noise(name, even, (0, 5), 1.0) for name in ("laplace", "rp"))
    >>> bool(7.0 < plain.one < 7.2 and window.one < plain.one)
    True
    """
    needs_delta = name != "auto" and mechanism_class(name).needs_delta
    request = Request(epsilon=epsilon, bounds=bounds, mechanism=name, delta=delta if needs_delta else 0.0)
    plan = request.plan(labels.size)
    source = resolve_source(None)
    draws = [
        mechanism_noise(plan.mechanism_for(private_prior(plan, labels, source), bounds), labels)
        for _ in range(_DRAWS if plan.for_prior else 1)
    ]
    return LabelNoise(
        one=math.sqrt(np.mean([draw.one**2 for draw in draws])),
        mean=math.sqrt(np.mean([draw.mean**2 for draw in draws])),
        risk=float(np.mean([draw.risk for draw in draws])),
        unbiased=all(draw.unbiased for draw in draws),
    )


def mechanism_noise(mechanism: Mechanism, labels: Array) -> LabelNoise:
    """Return what these labels carry once a mechanism has randomised them, unbiased where it allows that."""
    unbiased = True
    try:
        bias, variance = mechanism.debias(mechanism.mean(labels)) - labels, mechanism.unbiased_variance(labels)
    except NotUnbiasedError:
        bias, variance, unbiased = mechanism.bias(labels), mechanism.variance(labels), False
    noise = float(variance.mean())
    squared_bias = float(np.mean(bias**2))
    return LabelNoise(
        one=math.sqrt(squared_bias + noise),
        mean=math.sqrt(float(bias.mean()) ** 2 + noise / labels.size),
        risk=squared_bias + noise_weight(labels.size) * noise,
        unbiased=unbiased,
    )


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
        Standard deviation of those fits' errors; none where there was one fit.
    repeats : int
        How many fits there were.
    """

    budgets: tuple[float, ...]
    trained: int
    judged: int
    noise: dict[tuple[str, float], LabelNoise]
    models: dict[tuple[str, float], float]
    constant: dict[float, float]
    not_private: float
    spread: dict[tuple[str, float], float] = field(default_factory=dict)
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
        """Whether a mechanism's labels are right on average, as far as they were not clipped."""
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
        """Return the regressor with the least held-out error."""
        return min(self.regressors, key=lambda name: self.models[name, epsilon])

    def error(self, model: str, epsilon: float) -> str:
        """Return a regressor's error for people, with its spread if that is known."""
        spread = self.spread.get((model, epsilon))
        return number(self.models[model, epsilon], 3) + ("" if spread is None else f" ± {number(spread, 2)}")

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
        enough = [e for e in sorted(self.budgets) if self.kept(e) >= 0.8]
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
        mechanism = self.best_mechanism(epsilon)
        shares = ", ".join(f"{100 * self.kept(e):.0f} % at ε = {rounded_up(e)}" for e in sorted(self.budgets))
        return [
            start,
            f"For a model: {REGRESSORS[model].__name__}, with a typical error of {self.error(model, epsilon)}, "
            f"beside {number(self.not_private, 3)} without privacy and {number(guess, 3)} for a constant. Kept of "
            f"what features explain: {shares}.",
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
    X, labels : array-like
        Features, and labels that anyone may see.
    bounds : (lo, hi)
    budgets : sequence of float
    mechanisms : sequence of str
        Names, as `privatize` knows them.
    delta : float
        For "gaussian".
    repeats : int
        Fits of each regressor at each ε, on the same rows: only their noise differs.
    progress : function, optional
        Is called with what is being done, how many steps of it are done, and of how many.

    Examples
    --------
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

    def error(model: Any) -> float:
        return float(np.sqrt(np.mean((model.predict(X[test]) - clipped[test]) ** 2)))

    not_private = error(HistGradientBoostingRegressor(random_state=0).fit(X[train], clipped[train]))
    step()
    models, spread = {}, {}
    for name, make in REGRESSORS.items():
        for epsilon in budgets:
            errors = []
            for _ in range(repeats):
                model = make(epsilon=epsilon, bounds=bounds, ledger=Ledger()).fit(X[train], clipped[train])
                errors.append(error(model))
                step()
            models[name, epsilon] = float(np.mean(errors))
            if repeats > 1:
                spread[name, epsilon] = float(np.std(errors, ddof=1))
    guess = float(np.mean((clipped[test] - clipped[train].mean()) ** 2))
    constant = {e: math.sqrt(guess + _mean_noise(as_fraction(e), train.size, bounds)) for e in budgets}
    return Comparison(tuple(budgets), train.size, test.size, noise, models, constant, not_private, spread, repeats)


def _mean_noise(epsilon: Fraction, rows: int, bounds: Bounds) -> float:
    """Return the variance of a private mean's noise."""
    unit = (bounds[1] - bounds[0]) / GRID / rows
    return mean_noise(epsilon).variance() * unit**2
