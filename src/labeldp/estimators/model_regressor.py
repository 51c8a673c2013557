"""`ModelReleaseRegressor`: the curator keeps the labels; only the model leaves."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from labeldp._validation import as_bounds, as_delta, as_epsilon, as_fraction
from labeldp.estimators.base import PrivateRegressor
from labeldp.estimators.bayes import Posterior
from labeldp.estimators.designs import Noise, Sums
from labeldp.estimators.feature_table import FeatureTable
from labeldp.estimators.features import PublicFeatures
from labeldp.estimators.label_rounds import LabelRows, Part, RowsHere, blend_of, draw_rounds
from labeldp.estimators.label_statistics import LabelBudget
from labeldp.estimators.learner import Blend, Knowledge
from labeldp.estimators.progress import Step, quiet, steps
from labeldp.estimators.round_design import ROUNDS, round_sizes
from labeldp.estimators.sums import Stage, SumPlan, fit_sums
from labeldp.ledger import Ledger
from labeldp.mechanisms import Mechanism
from labeldp.randomness import WordSource, resolve_source

__all__ = ["ModelReleaseRegressor"]

Array = NDArray[np.float64]

ENOUGH = 4000.0
"""From rows · ε² of this size on, labels one by one are more accurate than sums: their noise averages out."""


class ModelRows(LabelRows[Part], Protocol):
    """Private labels of public rows, in memory or on a cluster: what a model needs of them."""

    @property
    def all_here(self) -> bool:
        """Whether the table has all rows, which sums need; else it is a sample."""

    def add_up(self, stage: Stage) -> Sums:
        """Return a stage's exact sums over all labels."""


def _prefers_sums(rows: int, epsilon: float) -> bool:
    return rows * epsilon**2 < ENOUGH


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

    _model: Blend | Posterior
    _public: PublicFeatures

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
        """Learn a model that keeps ε for every label; all that was fitted changes at once, at the end.

        Parameters
        ----------
        X : array-like, rows × columns
            Public features.
        y : array-like
            Private labels.
        """
        draft = self._copy_for_fit()
        X, labels = draft._validate(X, y, unknown)
        bounds, source = as_bounds(self.bounds), resolve_source(self.random_state)
        as_delta(self.delta, smallest=0.0)
        self._warn(y)
        with steps(len(ROUNDS) + 2, shown=self.verbose) as step:
            step("public features")
            table = FeatureTable(PublicFeatures.fit(X), X)
            draft.fit_rows(RowsHere(table, labels, bounds, source), source, step)
        self._replace_state(draft)
        return self

    def fit_rows(self, rows: ModelRows, source: WordSource, step: Step = quiet) -> None:
        """Charge the ledger and learn from rows, wherever they are; the caller has checked the parameters."""
        epsilon = as_fraction(as_epsilon(self.epsilon))
        learn = (
            self._from_sums if rows.all_here and _prefers_sums(rows.count, float(epsilon)) else self._from_labels
        )
        self._model = learn(rows, epsilon, source, step)
        self._public = rows.table.public

    def _from_labels(self, rows: ModelRows, epsilon: Fraction, source: WordSource, step: Step) -> Blend:
        """Learn from labels randomised one by one, which need no δ."""
        spectrum = rows.table.spectrum()
        budget = LabelBudget.plan(epsilon, rows.count, spectrum, "curator")
        payment = self._pay(budget.charges(self.rows_per_person))
        sizes = round_sizes("auto", rows.count)
        parts, knowledge = draw_rounds(rows, budget, sizes, source, spectrum, step=step)
        mechanisms = tuple(part.mechanism for part in parts)
        payment.describe(budget.descriptions(mechanisms))
        self.terms_ = payment.terms(rows.count, (rows.bounds,), source, mechanisms=mechanisms)
        self.mechanism_: tuple[Mechanism | Noise, ...] = mechanisms
        step("model")
        return blend_of(rows.table, parts, knowledge, spectrum)

    def _from_sums(self, rows: ModelRows, epsilon: Fraction, source: WordSource, step: Step) -> Posterior:
        """Learn from noisy sums."""
        plan = SumPlan.make(rows.table, rows.bounds, epsilon, as_fraction(as_delta(self.delta, smallest=0.0)))
        payment = self._pay(plan.budget.charges(self.rows_per_person))
        model, noise = fit_sums(plan, rows.add_up, source, step)
        payment.describe([str(each) for each in noise])
        self.terms_ = payment.terms(rows.count, (rows.bounds,), source)
        self.mechanism_ = noise
        return model

    def public_model(self) -> tuple[PublicFeatures, Blend]:
        """Return what predicts, as plain numbers: the feature maps, and a blend, without trees if it is linear."""
        check_is_fitted(self)
        if isinstance(self._model, Blend):
            return self._public, self._model
        linear, (low, high) = self._model, self.terms_.bounds[0]
        spread = linear.explained + linear.rest
        knowledge = Knowledge(low, high, linear.mean, 0.0, spread, counted=False)
        return self._public, Blend(linear, None, 0.0, linear.rest, spread, knowledge)

    def predict(self, X: Any) -> Array:
        """Return predictions inside the bounds."""
        X = self._inputs(X)
        table, rows = FeatureTable(self._public, X), np.arange(X.shape[0])
        if isinstance(self._model, Blend):
            return np.asarray(self._model.predict(table, rows))
        return np.asarray(np.clip(table.predict(self._model, rows), *self.terms_.bounds[0]))
