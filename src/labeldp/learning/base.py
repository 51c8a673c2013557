"""The base class of both regressors: steps of a fit, predictions, the card, and the atomic change of fitted state.

A fit, step by step, with the module of each step:

1. X and y are checked, and columns of a data frame become numbers (here).
2. Columns become public features (`features`), labels numbers from 0 to 1 (`fit_plan`).
3. ε is split between sums and labels (`epsilon_split`), and the ledger is charged.
4. The range of labels inside the bounds is estimated (`label_queries`).
5. Groups of similar rows are formed (`groups`); labels are summed by group, with noise (`label_queries`).
6. A linear Gaussian model is fitted to the noisy sums (`model_average`), and length scales of columns are learnt
   (`length_scales`).
7. Steps 5 and 6 are repeated with residuals in place of labels (`sum_model`).
8. If ε suffices, labels are released one by one around predictions, in rounds (`label_rounds`).
9. The linear model is fitted to labels too, and boosted trees are added if they help (`learner`).
10. The fitted state replaces the old one; a warning says if the model is weak (`ensemble`).

Only steps 4, 5 and 8 measure labels, by `LabelAccess`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, Self, Unpack

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import column_or_1d, estimator_html_repr
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from labeldp._values import Array, Interval, Labels, Numbers, Words, refuse_other_order
from labeldp.accounts.budget import Charge
from labeldp.accounts.ledger import Ledger, as_ledger, warn_if_seen
from labeldp.accounts.scope import RowOptions, Scope
from labeldp.accounts.terms import Terms
from labeldp.errors import DataError, LabelError, ParameterError, WeakModelWarning, warn
from labeldp.exact.word_sources import RandomState, resolve_source
from labeldp.learning.ensemble import WEAKNESS_ROWS, EarlierFit, Ensemble, describe_weakness
from labeldp.learning.features import PIECE, FeatureTable, PublicFeatures, even_rows
from labeldp.learning.fit_plan import FitRequest, LabelScale
from labeldp.learning.inspection import importances
from labeldp.learning.label_rounds import (
    LabelRound,
    draw_rounds,
    ensemble_of,
    learn_interactions,
    new_measurements,
    report_step,
)
from labeldp.learning.measurements import Measurements
from labeldp.learning.model_average import Posterior
from labeldp.learning.sum_model import SumModel, release_sums
from labeldp.learning.threads import limit_libraries
from labeldp.mechanisms.base import Mechanism
from labeldp.release.label_access import LabelAccess
from labeldp.release.names import name_of_labels
from labeldp.release.plan import Plan, state_terms
from labeldp.tables.feature_encoder import TableEncoder
from labeldp.tables.frames import as_table, frame_names, is_frame
from labeldp.tables.memory import refuse_too_large


def refuse_arguments(model: PrivateRegressor, y: Any, options: RowOptions) -> None:
    """Refuse a fit without labels, weights, and parameters of the regressor; `Scope.parse` refuses other names."""
    for name in options:
        if name in model.get_params(deep=False):
            raise ParameterError(
                f"{name} is a parameter of the regressor, not of this method: set it before, with "
                f"{type(model).__name__}({name}=...) or set_params({name}=...)"
            )
        if "weight" in name:
            raise ParameterError(
                f"{name} is not supported: weights would change the influence of a label on the result, and with "
                "it the guarantee; leave them out"
            )
    if y is None:
        raise ParameterError("this regressor requires y to be passed, but the target y is None")


def refuse_single_column(X: Any) -> None:
    """Raise if X is not two-dimensional: it may be y, whose values an error of scikit-learn would print."""
    dimensions = X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim
    if dimensions < 2:
        raise ParameterError(
            f"Expected 2D array, got {dimensions}D array instead: X is the table of features, rows × columns, and "
            "comes before y. Reshape your data with reshape(-1, 1) if it is a single feature, or with "
            "reshape(1, -1) if it is a single row"
        )


def refuse_gaps(X: Any) -> None:
    """Refuse numbers of an array that are missing or infinite."""
    if not np.isfinite(X.data if sparse.issparse(X) else X).all():
        raise DataError(
            "X contains NaN or infinity: fill these values or drop their rows; or fit to a data frame, where "
            "missing values are fine"
        )


def single_column(labels: Numbers) -> Array:
    """Return labels, one for each row, or refuse another shape."""
    if labels.ndim != 1 and (labels.ndim != 2 or labels.shape[1] != 1):
        raise LabelError(
            f"y must be one column of labels, got the shape {labels.shape}: fit a model for each column, with a "
            "part of epsilon each, as costs add up"
        )
    column: Array = column_or_1d(labels, warn=True).astype(np.float64, copy=False)
    return column


def column_encoder(model: PrivateRegressor, fills: Array | None = None) -> TableEncoder:
    """Return the encoder of a model's columns; for an array, one of numbers, with ``fills`` for missing ones."""
    encoder: TableEncoder | None = getattr(model, "encoder_", None)
    if encoder is not None:
        return encoder
    count = model.n_features_in_
    names = getattr(model, "feature_names_in_", [f"x{k}" for k in range(count)])
    return TableEncoder.for_numbers(dict(zip(names, np.zeros(count) if fills is None else fills, strict=True)))


def row_digests(X: Any) -> Words:
    """Return 64 bits for each row of checked public features, equal for equal rows, dense or sparse."""
    multipliers = np.random.default_rng(0).integers(0, 1 << 63, X.shape[1], dtype=np.uint64) * np.uint64(
        2
    ) + np.uint64(1)
    return np.concatenate(
        [_mixed(X[start : start + PIECE]) @ multipliers for start in range(0, X.shape[0], PIECE)]
    )


def _mixed(X: Any) -> Any:
    """Return the bits of numbers, with the high half mixed into the low one; 0 becomes 0, as in sparse tables."""
    if sparse.issparse(X):
        return sparse.csr_array((_mixed(X.data), X.indices, X.indptr), shape=X.shape)
    bits = np.ascontiguousarray(X + 0.0).view(np.uint64)
    return bits ^ (bits >> np.uint64(32))


class PrivateRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """The base class of `LabelReleaseRegressor` and `ModelReleaseRegressor`.

    Attributes
    ----------
    encoder_ : TableEncoder or None
        How the columns of a data frame became numbers.
    label_name_ : str or None
        The name of y, if it has one.
    """

    epsilon: float
    bounds: Interval
    ledger: Ledger | None
    ledger_: Ledger | None
    rows_per_person: int
    random_state: RandomState
    verbose: bool
    terms_: Terms
    encoder_: TableEncoder | None
    label_name_: str | None
    weakness_: str | None
    _public: PublicFeatures
    _ensemble: Ensemble | None
    _measurements: Measurements | None = None
    _charged: Ledger | None = None
    _scope: Scope | None = None
    _rows_seen: Words

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = True  # noise is fresh for every fit
        tags.regressor_tags.poor_score = True  # privacy has its price on tiny data
        return tags

    def _check_inputs(self, X: Any, y: Any) -> tuple[Any, Array]:
        """Return X, dense or sparse, and y, after every check that needs no label's value."""
        refuse_other_order(X, y)
        self.encoder_ = None
        self.label_name_ = name_of_labels(y, X)
        X = self._fit_encoder(X) if is_frame(X) else self._check_array(X, reset=True)
        labels = single_column(Labels.parse(y).values)
        check_consistent_length(X, labels)
        self._rows_seen = row_digests(X)
        return X, labels

    def _check_array(self, X: Any, *, reset: bool) -> Any:
        """Return X as finite numbers, dense or sparse; ``reset`` for a fit, which learns the number of columns."""
        refuse_single_column(X)
        try:
            X = validate_data(self, X, dtype=np.float64, accept_sparse="csr", ensure_all_finite=False, reset=reset)
        except ValueError as error:
            if not str(error).startswith("could not convert string to float"):
                raise
            raise DataError(f"{error}: give text in a data frame, which is encoded, or as numbers") from None
        refuse_gaps(X)
        return X

    def _fit_encoder(self, X: Any) -> Array:
        """Learn how the columns of a data frame become numbers, and return the numbers."""
        names = frame_names(X)
        table = as_table(X)
        self.encoder_ = TableEncoder.fit(table, names)
        refuse_too_large(8 * table.num_rows * self.encoder_.width)
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        if self.encoder_.left_out:
            reasons = "; ".join(f"{name!r}: {why}" for name, why in self.encoder_.left_out)
            warn(f"columns of no use were left out ({reasons})")
        return self.encoder_.transform(table)

    def _features(self, X: Any) -> FeatureTable:
        """Return the public features of checked rows; a column of text is one category."""
        return FeatureTable.fit(X, [] if self.encoder_ is None else self.encoder_.categories())

    def _inputs(self, X: Any) -> Any:
        """Return X as numbers, after the checks of a prediction."""
        check_is_fitted(self)
        encoder: TableEncoder | None = getattr(self, "encoder_", None)
        if encoder is None:
            return self._check_array(X, reset=False)
        if is_frame(X):
            return encoder.transform(as_table(X))
        if hasattr(self, "feature_names_in_"):
            warn(
                f"X does not have valid feature names, but {type(self).__name__} was fitted with feature names: "
                "its columns are taken in the order of the fit"
            )
        return encoder.transform(as_table(X, encoder.names))

    def remembers(self, X: Any) -> tuple[Words, Words | None]:
        """Return digests of these rows, and of the rows of the fit; None if the latter were not kept."""
        return row_digests(self._inputs(X)), getattr(self, "_rows_seen", None)

    def fit(self, X: Any, y: Any = None, **rows: Unpack[RowOptions]) -> Self:
        """Release what this regressor releases, and learn from it.

        All that was fitted changes at once, at the end. Labels that were released are kept, without a model, if
        learning from them fails: they were paid for.

        Parameters
        ----------
        X : array-like, rows × columns, or a data frame of pandas, Polars or Arrow
            Public features. In a data frame, text, categories, dates and missing values are fine as they are.
        y : array-like
            Private labels: an array, a Series or an Arrow array.
        **rows
            ``segment``, ``id``, ``person`` and ``most_rows_per_person``, as in `labeldp.privatize`.
        """
        fitting = self._copy_for_fit()
        refuse_arguments(self, y, rows)
        as_ledger(self.ledger)
        request = fitting.request().with_scope(
            self._scope or Scope.parse(self.rows_per_person, labels=y, X=X, **rows)
        )
        X, labels = fitting._check_inputs(X, y)
        if self._scope is None:
            request = request.admit(fitting._get_ledger(), labels.size)
            X, labels = request.scope.select(X), request.scope.select(labels)
        self._refuse_estimator(X, request)
        source = resolve_source(self.random_state)
        scale = LabelScale.parse(request.bounds, request.label_transform)
        table, access = fitting._features(X), LabelAccess(scale.units(labels), source)
        try:
            fitting.fit_table(request, table, access, y=y)
        except BaseException:
            if getattr(fitting, "release_", None) is not getattr(self, "release_", None):
                self._replace_state(fitting)
            raise
        self._replace_state(fitting)
        if self.weakness_ is not None:
            warn(self.weakness_, WeakModelWarning)
        return self

    @contextmanager
    def charging(self, scope: Scope) -> Iterator[None]:
        """Let fits in the block be charged for rows that were admitted before, with those held out of the fit."""
        self._scope = scope
        try:
            yield
        finally:
            self._scope = None

    @np.errstate(all="ignore")  # a user's strict settings must not lose a paid release
    def fit_table(self, request: FitRequest, table: FeatureTable, access: LabelAccess, *, y: Any = None) -> None:
        """Charge the ledger, release sums and labels, and fit the model to them.

        ``y`` is the object that has the labels: a warning is given if it is released again without a ledger.
        """
        plan, ends = request.plan(access.rows), request.round_ends(access.rows)
        rounds, sum_model, linear, terms = self._release(request, plan, table, access, ends, y=y)
        self.terms_ = replace(terms, label_transform=request.label_transform)
        self._set_model(sum_model, None)
        self._learn(rounds, sum_model, linear)
        if self._ensemble is not None and request.label_transform is not None:
            errors = [
                self._ensemble.residual_variance,
                self._ensemble.error,
            ]  # the smallest of all private estimates
            self._ensemble = replace(self._ensemble, error=min(errors + [sum_model.error] * bool(sum_model.sums)))
        self.weakness_ = self._weakness(table.X)

    def _release(
        self,
        request: FitRequest,
        plan: Plan,
        table: FeatureTable,
        access: LabelAccess,
        ends: Array,
        earlier: EarlierFit | None = None,
        *,
        y: Any,
    ) -> tuple[list[LabelRound], SumModel, Posterior, Terms]:
        """Charge the ledger, and release sums and labels; return them with their terms.

        Also returned is the linear model on which the last round of labels was centred.
        """
        noise = request.unit_noise(plan.epsilon) if plan.for_labels else None
        _ = table.spectrum  # may need more memory than there is: before the charge
        if self.ledger is None and y is not None:
            warn_if_seen(y)
        self.ledger_ = self._get_ledger()
        charges = plan.pay(self.ledger_, access)
        sum_model = release_sums(table, access, plan, self._announce, earlier)
        rounds: list[LabelRound] = []
        linear = sum_model.linear
        if noise is not None:
            if access.remaining:
                plan = plan.give_to_labels(access.remaining)
                access.give_to_labels()
                noise = request.unit_noise(plan.epsilon)
            rounds, linear = draw_rounds(access, sum_model, plan, noise, ends, self._announce)
        mechanisms = [labels.mechanism for labels in rounds]
        terms = state_terms(plan, charges, access, mechanisms=mechanisms, statistics=access.statistics)
        return rounds, sum_model, linear, terms

    @limit_libraries()
    def _learn(self, rounds: list[LabelRound], sum_model: SumModel, linear: Posterior) -> None:
        """Fit the model to the released sums, and to the released labels if there are any.

        ``linear`` is the model before the last round of labels.
        """
        if rounds:
            self._announce("model")
            rounds, sum_model = learn_interactions(rounds, sum_model, linear)
        ensemble = ensemble_of(rounds, sum_model)
        self._set_model(sum_model, ensemble)
        self._measurements = new_measurements(rounds, sum_model, ensemble.linear.residual_variance)

    def _set_model(self, sum_model: SumModel, ensemble: Ensemble | None) -> None:
        self._public, self._ensemble = replace(sum_model.table.public, exact=False), ensemble

    def _announce(self, step: str) -> None:
        """Report that a step of the fit begins."""
        if self.verbose:
            print(f"labeldp: {step}", file=sys.stderr)
        report_step(step)

    def _weakness(self, X: Any) -> str | None:
        """Return a sentence on a weakness of the model, from private values only; None if there is none."""
        return describe_weakness(*self._fitted_units(X), self._scale.bounds)

    def _fitted_units(self, X: Any) -> tuple[Array, float]:
        """Return predictions for some public rows, and the private variance around them, in unit scale."""
        public, ensemble = self.public_model()
        rows = even_rows(X.shape[0], WEAKNESS_ROWS)
        return ensemble.predict(FeatureTable(public, X[rows]), np.arange(rows.size)), ensemble.error

    def _refuse_estimator(self, X: Any, request: FitRequest) -> None:
        """Raise if the user's own estimator cannot be fitted to such a table."""

    def _copy_for_fit(self) -> Self:
        """Return a copy for a fit to change, so that a fit that stops half way changes nothing here.

        It has no measurements: those of an earlier fit are not on the card of the next.
        """
        self._get_ledger()
        fitting = copy(self)
        fitting._measurements = None
        return fitting

    def _replace_state(self, fitting: Self) -> None:
        """Take over all of a copy at once: one assignment, which no interrupt can cut in two."""
        self.__dict__ = fitting.__dict__

    def request(self) -> FitRequest:
        """Return the parameters, checked."""
        raise NotImplementedError

    def _get_ledger(self) -> Ledger:
        """Return the ledger to charge, the user's or an own one in which all fits add up, also those that fail.

        An own one has no limit, and begins anew where a pickle of the estimator is fitted.
        """
        ledger = self._charged if self.ledger is None else self.ledger
        is_left_behind = self.ledger is None and ledger is not None and ledger.limit is None and ledger.is_copy
        self._charged = ledger if isinstance(ledger, Ledger) and not is_left_behind else Ledger()
        return self._charged

    @property
    def charges_(self) -> tuple[Charge, ...]:
        """The charges of the fit."""
        return self.terms_.charges

    @property
    def mechanism_(self) -> tuple[Mechanism, ...]:
        """The mechanisms that randomised labels one by one, on the unit interval; none if only sums were used."""
        check_is_fitted(self)
        return self.terms_.mechanisms

    @property
    def secure_(self) -> bool:
        """True if the noise is secure; False if it came from a seed, and then the model is **not private**."""
        return self.terms_.secure

    def summary(self) -> str:
        """Return the releases and the cost of a fit, for people."""
        check_is_fitted(self)
        return self.terms_.summary("model", model=type(self).__name__)

    def _repr_html_(self) -> str:
        """Show, in a notebook, the releases and the cost of a fit; before a fit, scikit-learn's diagram."""
        if not hasattr(self, "terms_"):
            return str(estimator_html_repr(self))
        return self.terms_.html("model", code=repr(self), model=type(self).__name__)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def to_card(self, **entries: Any) -> str:
        """Return a card for whoever gets the model: JSON with a checksum, and no label in it.

        Parameters
        ----------
        **entries : pure data
            Further public entries, such as which files the model is in.
        """
        check_is_fitted(self)
        return self.terms_.to_card("labeldp.model", model=type(self).__name__, **entries)

    def predict(self, X: Any) -> Array:
        """Predict labels.

        Parameters
        ----------
        X : array-like, rows × columns, or a data frame of pandas, Polars or Arrow
            Public features; of a data frame, the columns of the fit, in any order, among others.

        Returns
        -------
        array
            A prediction for each row, inside the bounds. They cost nothing more, however many there are.
        """
        return self._predict(self._inputs(X))

    def _predict(self, X: Any) -> Array:
        public, ensemble = self.public_model()
        predicted = ensemble.predict(FeatureTable(public, X), np.arange(X.shape[0]))
        return self._scale.from_units(predicted, ensemble.error)

    @property
    def _scale(self) -> LabelScale:
        return LabelScale(self.terms_.bounds[0], self.terms_.label_transform)

    def importances(self, X: Any, *, repeats: int = 5) -> dict[str, float]:
        """Return the effect of each column on the model's predictions for public rows; it costs nothing.

        Parameters
        ----------
        X : array-like, rows × columns, or a data frame of pandas, Polars or Arrow
            Public rows, such as those of the fit.
        repeats : int
            The number of times that each column is shuffled.

        Returns
        -------
        dict
            By a column's name, the typical change of a prediction, in the label's unit, if the column's rows are
            shuffled (permutation importance); the largest first. Columns of an array are x0, x1, …

        Examples
        --------
        >>> import numpy as np, labeldp as ldp
        >>> X = np.random.default_rng(0).normal(size=(600, 2))
        >>> model = ldp.ModelReleaseRegressor(epsilon=2.0, bounds=(0, 5)).fit(X, np.clip(2.5 + X[:, 1], 0, 5))
        >>> list(model.importances(X))
        ['x1', 'x0']
        """
        return importances(self._predict, self._inputs(X), column_encoder(self).slices(), repeats)

    @property
    def measurements(self) -> Measurements | None:
        """The measurements of labels, as a linear model takes them; None with an estimator of the user."""
        return self._measurements

    def public_model(self) -> tuple[PublicFeatures, Ensemble]:
        """Return what predicts, in units of the bounds, as plain numbers.

        These are the feature maps, and an ensemble, without trees if it is linear.
        """
        check_is_fitted(self)
        if self._ensemble is None:
            raise ParameterError(
                "only models of this library can be saved as plain numbers, and this one learnt with an estimator "
                "of yours: save release_ instead, and train that estimator on it again"
            )
        return self._public, self._ensemble
