"""`ModelReleaseRegressor`: the curator keeps the labels; only the model is released."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Self, Unpack

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from labeldp._values import Array, Interval, Labels, refuse_other_order
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.scope import RowOptions, Scope
from labeldp.errors import ParameterError
from labeldp.exact.word_sources import RandomState, resolve_source
from labeldp.learning.base import PrivateRegressor, refuse_arguments, row_digests, single_column
from labeldp.learning.ensemble import EarlierFit
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import FitRequest
from labeldp.learning.label_rounds import ensemble_of, new_measurements
from labeldp.learning.threads import limit_libraries
from labeldp.learning.updates import earlier_fit, plan_update, refuse_predictions
from labeldp.release.label_access import LabelAccess
from labeldp.release.names import name_of_labels


class ModelReleaseRegressor(PrivateRegressor):
    """ε-label-DP regression by releasing a model, and no labels.

    Features are public, so noise is needed only where labels enter: in sums of labels over groups of similar rows.
    Where there are enough rows for the budget, the model learns from labels randomised one by one as well.

    Parameters
    ----------
    epsilon : float
        The whole budget, everything included.
    bounds : (lo, hi)
        Public bounds of the label. Never read them off the data.
    label_transform : {None, "log", "sqrt"}
        Learn this function of the label, which suits labels that are skewed. Predictions are in the label's own
        unit, and estimate its mean. "log" needs a lower bound above 0.
    ledger : Ledger, optional
        Is charged after validation and before any label is used.
    rows_per_person : int
        The number of rows that one person may have; the ledger is charged for all of them.
    random_state : None, int or source of words
        Leave it out for a release.
    verbose : bool
        Whether to print each step on standard error as it begins.

    Attributes
    ----------
    ledger_ : Ledger
        Where the budget went.
    weakness_ : str or None
        A weakness of the model, if its own predictions show one: it is a constant, or at a bound.
    mechanism_ : tuple
        The mechanisms that randomised labels one by one, if any did.
    encoder_ : TableEncoder or None
        How the columns of a data frame became numbers; None if the fit got an array.
    feature_names_in_ : array of str
        The columns of the fit; only if it got a data frame.
    n_features_in_ : int
        The number of columns of the fit.

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
        bounds: Interval,
        label_transform: Literal["log", "sqrt"] | None = None,
        ledger: Ledger | None = None,
        rows_per_person: int = 1,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.label_transform = label_transform
        self.ledger = ledger
        self.rows_per_person = rows_per_person
        self.random_state = random_state
        self.verbose = verbose

    def update(self, X: Any, y: Any = None, **rows: Unpack[RowOptions]) -> Self:
        """Learn on from further rows, which cost ε for themselves; features stay those of the first fit.

        All that was fitted changes at once, at the end. If learning fails after labels were measured, the earlier
        model stays, with all measurements and their cost: the next update learns from them. Without ``segment``,
        the ledger and the card add the cost to that of earlier rows.

        Parameters
        ----------
        X : array-like, rows × columns, or a data frame
            Public features of rows that the model did not learn from, with the columns of the fit. A new level of
            a category counts as a row without a level.
        y : array-like
            Their private labels, in the unit and the bounds of the fit.
        **rows
            As in `fit`. With ``segment``, the ledger must have the charges of the model.

        Examples
        --------
        >>> import numpy as np, labeldp as ldp
        >>> X = np.random.default_rng(0).normal(size=(600, 3))
        >>> y, ledger = np.clip(2.5 + X[:, 0], 0, 5), ldp.Ledger(limit=ldp.Budget(0.5))
        >>> model = ldp.ModelReleaseRegressor(epsilon=0.5, bounds=(0, 5), ledger=ledger)
        >>> model = model.fit(X[:300], y[:300], segment="May").update(X[300:], y[300:], segment="June")
        >>> model.terms_.rows, model.terms_.cost
        (600, Budget(epsilon=0.5))
        """
        check_is_fitted(self)
        refuse_arguments(self, y, rows)
        fitting = self._copy_for_fit()
        ledger = fitting._get_ledger()
        request = fitting.request().with_scope(Scope.parse(self.rows_per_person, labels=y, X=X, **rows))
        earlier = earlier_fit(self, request, ledger)
        X, labels = fitting._check_update(X, y)
        request = request.admit(ledger, labels.size)
        X, labels = request.scope.select(X), request.scope.select(labels)
        source = resolve_source(self.random_state)
        table = earlier.measurements.table(FeatureTable(replace(self._public, exact=True), X))
        refuse_predictions(earlier.ensemble, table)
        access = LabelAccess(self._scale.units(labels), source)
        try:
            fitting._update_table(earlier, request, table, access, y)
        finally:
            if fitting.terms_ is not self.terms_:  # it has measurements that were paid for
                self._replace_state(fitting)
        return self

    def _check_update(self, X: Any, y: Any) -> tuple[Any, Array]:
        """Return X and y of further rows, after every check that needs no label's value."""
        refuse_other_order(X, y)
        name = name_of_labels(y, X)
        predicted = getattr(self, "label_name_", None)
        if name is not None and predicted is not None and name != predicted:
            raise ParameterError(f"the model predicts {predicted!r}, and these labels are called {name!r}")
        X = self._inputs(X)
        labels = single_column(Labels.parse(y).values)
        check_consistent_length(X, labels)
        return X, labels

    @np.errstate(all="ignore")  # a user's strict settings must not lose a paid release
    @limit_libraries()
    def _update_table(
        self, earlier: EarlierFit, request: FitRequest, table: FeatureTable, access: LabelAccess, y: Any
    ) -> None:
        """Charge the ledger, release sums and labels of further rows, and fit the model to all measurements."""
        plan, ends = plan_update(request, access.rows, earlier.measurements.rows)
        digests = row_digests(table.X)
        rounds, sum_model, _, terms = self._release(request, plan, table, access, ends, earlier, y=y)
        if hasattr(self, "_rows_seen"):  # a model that was loaded does not know the rows of its fit
            self._rows_seen = np.append(self._rows_seen, digests)
        new = new_measurements(rounds, sum_model, sum_model.residual_variance)
        self._measurements = earlier.measurements.add(new, sum_model.residual_variance)
        self.terms_ = self.terms_.updated(terms)
        self._announce("model")
        self._ensemble = ensemble_of(rounds, sum_model)
        self.weakness_ = self._weakness(table.X)

    def request(self) -> FitRequest:
        """Return the parameters, checked."""
        return FitRequest(
            epsilon=self.epsilon,
            bounds=self.bounds,
            scope=Scope.parse(self.rows_per_person),
            label_transform=self.label_transform,
            labels=False,
        )
