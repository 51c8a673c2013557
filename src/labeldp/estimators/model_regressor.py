"""`ModelReleaseRegressor`: the curator keeps the labels; only the model leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp._checks import as_bounds, as_epsilon, as_fraction
from labeldp.estimators.base import PrivateRegressor
from labeldp.estimators.features import PublicFeatures
from labeldp.estimators.label_regressor import ROUNDS
from labeldp.estimators.labels import LabelBudget, draw_labels
from labeldp.estimators.learner import fit_blend
from labeldp.estimators.sums import SumBudget, fit_sums
from labeldp.estimators.table import FeatureTable
from labeldp.ledger import Budget, Ledger, new_charge
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
    ledger : Ledger, optional
    rows_per_person : int
    random_state : None, int or source of words
        Leave it out for a release.

    Attributes
    ----------
    ledger_ : Ledger
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
        ledger: Ledger | None = None,
        rows_per_person: int = 1,
        random_state: int | WordSource | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.ledger = ledger
        self.rows_per_person = rows_per_person
        self.random_state = random_state

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
        source = resolve_source(self.random_state)
        ledger = Ledger() if self.ledger is None else self.ledger
        table = FeatureTable(PublicFeatures.fit(X), X)
        self._public, self.ledger_ = table.public, ledger
        if len(X) * float(epsilon) ** 2 >= ENOUGH:
            spectrum = table.spectrum()
            rows = LabelBudget.plan(epsilon, len(X), spectrum, "curator")
            self._charge(ledger, {"labels": rows.labels, "mean": rows.mean, "prior": rows.prior})
            drawn, known = draw_labels(table, labels, bounds, rows, ROUNDS, source, spectrum)
            self._model: Any = fit_blend(table, [part.private for part in drawn], known, spectrum)
        else:
            sums = SumBudget.plan(epsilon, len(X))
            self._charge(ledger, {"rough sums": sums.rough, "clip level": sums.clip, "sums": sums.fine})
            self._model = fit_sums(table, labels, bounds, sums, source)
        return self

    def _charge(self, ledger: Ledger, parts: dict[str, Any]) -> None:
        ledger.charge_all(
            [
                new_charge(what, Budget(part), rows_per_person=self.rows_per_person)
                for what, part in parts.items()
                if part
            ]
        )

    def predict(self, X: Any) -> Array:
        """Return predictions inside the bounds."""
        X = self._inputs(X)
        table, rows = FeatureTable(self._public, X), np.arange(len(X))
        if hasattr(self._model, "trees"):
            return np.asarray(self._model.predict(table, rows))
        return np.asarray(np.clip(table.predict(self._model, rows), *as_bounds(self.bounds)))
