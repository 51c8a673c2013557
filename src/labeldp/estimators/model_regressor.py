"""`ModelReleaseRegressor`: the curator keeps the labels; only the model leaves."""

from __future__ import annotations

from typing import Any

from labeldp.estimators.base import PrivateRegressor
from labeldp.estimators.features import FeatureTable, PublicFeatures
from labeldp.estimators.fit_plan import FitRequest
from labeldp.estimators.label_rounds import LabelRows, Part, RowsHere, blend_of, draw_rounds, measure
from labeldp.estimators.progress import Step, quiet, steps
from labeldp.estimators.round_design import ROUNDS, round_sizes
from labeldp.estimators.threads import idle_cores, limit_threads
from labeldp.estimators.units import unit_labels
from labeldp.ledger import Ledger
from labeldp.mechanisms import Mechanism
from labeldp.randomness import WordSource, resolve_source


class ModelReleaseRegressor(PrivateRegressor):
    """ε-label-DP regression by releasing a model; no private label leaves the safe room.

    Features are public, so noise is needed only where labels enter: in sums of labels over groups of similar rows.
    Where there are enough rows for the budget, the model learns from labels randomised one by one as well.

    Parameters
    ----------
    epsilon : float
        The whole budget, everything included.
    bounds : (lo, hi)
        Public bounds of the label. Never read them off the data.
    delta : float
        What may be spent of δ. A label is in one sum only, where Gaussian noise is no smaller than pure noise:
        none of it is needed, and none is charged.
    ledger : Ledger, optional
        Is charged after validation and before any label is used.
    rows_per_person : int
        How many rows one person may have; the ledger is charged for all of them.
    random_state : None, int or source of words
        Leave it out for a release.
    verbose : bool
        Whether to show progress.

    Attributes
    ----------
    ledger_ : Ledger
        Where the budget went.
    mechanism_ : tuple
        The mechanisms that randomised labels one by one, if any did.
    encoder_ : TableEncoder or None
        How the columns of a data frame became numbers; None if the fit got an array.
    feature_names_in_ : array of str
        The columns of the fit; only if it got a data frame.
    n_features_in_ : int
        How many columns the fit got.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> X = np.random.default_rng(0).normal(size=(600, 3))
    >>> y = np.clip(2.5 + X[:, 0], 0, 5)
    >>> model = ldp.ModelReleaseRegressor(epsilon=0.5, bounds=(0, 5)).fit(X, y)
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

    def request(self) -> FitRequest:
        """Return the parameters, checked."""
        return FitRequest(
            epsilon=self.epsilon,
            bounds=self.bounds,
            delta=self.delta,
            rows_per_person=self.rows_per_person,
            labels=False,
        )

    def fit(self, X: Any, y: Any = None, **unknown: Any) -> ModelReleaseRegressor:
        """Learn a model that keeps ε for every label; all that was fitted changes at once, at the end.

        Parameters
        ----------
        X : array-like, rows × columns, or a data frame of pandas, Polars or Arrow
            Public features. In a data frame, text, categories, dates and missing values are fine as they are.
        y : array-like
            Private labels: an array, a Series or an Arrow array.
        """
        draft = self._copy_for_fit()
        request, X, labels = draft._validate(X, y, unknown)
        source = resolve_source(self.random_state)
        self._warn(y)
        with steps(len(ROUNDS) + 5, shown=self.verbose) as step, limit_threads(idle_cores()):
            step("public features")
            table = FeatureTable(PublicFeatures.fit(X), X)
            bounds = request.bounds[0]
            rows = RowsHere(table, unit_labels(labels, bounds), bounds, source)
            draft.fit_rows(request, rows, source, step)
        self._replace_state(draft)
        return self

    def fit_rows(self, request: FitRequest, rows: LabelRows[Part], source: WordSource, step: Step = quiet) -> None:
        """Charge the ledger and learn from rows, wherever they are."""
        plan, spectrum = request.plan(rows.count, grouped=rows.all_here), rows.table.spectrum()
        noise = request.unit_noise(plan.epsilon) if plan.for_labels else None
        payment = self._pay(plan)
        measured = measure(rows, plan, source, step)
        blend, parts = measured.blend(rows.table), []
        if noise is not None:
            parts = draw_rounds(rows, measured, plan, noise, round_sizes("auto", rows.count), spectrum, step)
            step("model")
            blend = blend_of(rows.table, parts, measured, spectrum)
        self.mechanism_: tuple[Mechanism, ...] = tuple(part.mechanism for part in parts)
        self.terms_ = payment.terms(plan, source, mechanisms=self.mechanism_, statistics=measured.noise)
        self._blend, self._public = blend, rows.table.public
