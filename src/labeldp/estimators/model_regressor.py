"""`ModelReleaseRegressor`: the curator keeps the labels; only the model leaves."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp._checks import as_bounds, as_delta, as_epsilon, as_fraction
from labeldp.estimators.base import PrivateRegressor
from labeldp.estimators.bayes import Posterior
from labeldp.estimators.designs import Noise
from labeldp.estimators.features import PublicFeatures
from labeldp.estimators.labels import LabelBudget, draw_labels
from labeldp.estimators.learner import Blend, fit_blend
from labeldp.estimators.progress import Step, steps
from labeldp.estimators.rounds import ROUNDS, round_sizes
from labeldp.estimators.sums import SumPlan, fit_sums
from labeldp.estimators.table import FeatureTable
from labeldp.ledger import Ledger
from labeldp.mechanisms import Mechanism
from labeldp.randomness import WordSource, resolve_source

__all__ = ["ModelReleaseRegressor"]

Array = NDArray[np.float64]

ENOUGH = 4000.0
"""From rows · ε² of this size on, labels one by one tell more than sums: their noise averages out."""


class ModelReleaseRegressor(PrivateRegressor):
    """ε-label-DP regression by releasing a model; no private label leaves the safe room.

    Features are public, so noise is needed only where labels enter: in sums of labels over groups of similar rows,
    or against a few directions. Where there are enough rows for the budget, a model is learnt from labels
    randomised one by one instead.

    Parameters
    ----------
    epsilon : float
        The whole budget, everything included.
    bounds : (lo, hi)
        Public bounds of the label. Never read them off the data.
    delta : float
        With δ > 0 sums get Gaussian noise where that is less than pure noise: against many directions. Where it is
        not, δ is not charged. 0 is pure ε.
    ledger : Ledger, optional
    rows_per_person : int
    random_state : None, int or source of words
        Leave it out for a release.
    verbose : bool
        Whether to show progress.

    Attributes
    ----------
    ledger_ : Ledger
    charges_ : tuple of Charge
        What this fit cost; `summary` and `to_card` say it in full.
    secure_ : bool
        False if the noise came from a seed: then the model is **not private**.
    mechanism_ : tuple
        What was added to the sums, exactly; or the mechanisms that randomised labels one by one.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> y = np.clip(2.5 + X[:, 0], 0, 5)
    >>> model = ModelReleaseRegressor(epsilon=0.5, bounds=(0, 5)).fit(X, y)
    >>> bool(np.mean((model.predict(X) - y) ** 2) < 0.5)
    True
    """

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: tuple[float, float],
        delta: float = 0.0,
        ledger: Ledger | None = None,
        rows_per_person: int = 1,
        random_state: int | WordSource | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.ledger = ledger
        self.rows_per_person = rows_per_person
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, **unknown: Any) -> ModelReleaseRegressor:
        """Learn a model that keeps ε for every label.

        Parameters
        ----------
        X : array-like, rows × columns
            Public features.
        y : array-like
            Private labels.
        """
        X, labels = self._checked(X, y, unknown)
        bounds, epsilon = as_bounds(self.bounds), as_fraction(as_epsilon(self.epsilon))
        delta = as_fraction(as_delta(self.delta, smallest=0.0))
        source = resolve_source(self.random_state)
        self._warn(y)
        with steps(len(ROUNDS) + 2, shown=self.verbose) as step:
            step("public features")
            table = FeatureTable(PublicFeatures.fit(X), X)
            fit = self._from_labels if X.shape[0] * float(epsilon) ** 2 >= ENOUGH else self._from_sums
            self._model: Any = fit(table, labels, bounds, epsilon, delta, source, step)
            self._public = table.public
        return self

    def _from_labels(
        self,
        table: FeatureTable,
        labels: Array,
        bounds: tuple[float, float],
        epsilon: Fraction,
        _: Fraction,
        source: WordSource,
        step: Step,
    ) -> Blend:
        """Learn from labels randomised one by one, which need no δ."""
        spectrum = table.spectrum()
        budget = LabelBudget.plan(epsilon, table.rows, spectrum, "curator")
        places = self._charge(budget.parts())
        sizes = round_sizes("auto", table.rows)
        drawn, known = draw_labels(table, labels, bounds, budget, sizes, source, spectrum, step=step)
        self._describe(places, budget.parts(), budget.mechanisms(drawn), table.rows, source)
        self.mechanism_: tuple[Mechanism | Noise, ...] = tuple(part.mechanism for part in drawn)
        step("model")
        return fit_blend(table, [part.private for part in drawn], known, spectrum)

    def _from_sums(
        self,
        table: FeatureTable,
        labels: Array,
        bounds: tuple[float, float],
        epsilon: Fraction,
        delta: Fraction,
        source: WordSource,
        step: Step,
    ) -> Posterior:
        """Learn from noisy sums."""
        plan = SumPlan.make(table, bounds, epsilon, delta)
        parts = plan.budget.parts()
        places = self._charge(parts)
        model, noise = fit_sums(plan, labels, source, step)
        self._describe(places, parts, {what: str(each) for what, each in noise.items()}, table.rows, source)
        self.mechanism_ = tuple(noise.values())
        return model

    def predict(self, X: Any) -> Array:
        """Return predictions inside the bounds."""
        X = self._inputs(X)
        table, rows = FeatureTable(self._public, X), np.arange(X.shape[0])
        if hasattr(self._model, "trees"):
            return np.asarray(self._model.predict(table, rows))
        return np.asarray(np.clip(table.predict(self._model, rows), *self.bounds_))
