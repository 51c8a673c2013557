"""What both regressors share: checks, charges, the card, and fitted state that changes all at once."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import column_or_1d, estimator_html_repr
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from labeldp._arrays import Array
from labeldp._names import name_of_labels
from labeldp._values import Labels
from labeldp.errors import LabelError, ParameterError
from labeldp.estimators.features import FeatureTable, PublicFeatures
from labeldp.estimators.fit_plan import FitRequest
from labeldp.estimators.learner import Blend
from labeldp.estimators.seen_rows import row_digests
from labeldp.estimators.units import from_units
from labeldp.estimators.wrappers import warn_of_wrappers
from labeldp.ledger import Charge, Ledger, as_ledger, warn_if_seen
from labeldp.release.plan import Payment, Plan
from labeldp.release.terms import Terms
from labeldp.tabular import TableEncoder, as_table, frame_names, is_frame, refuse_other_order
from labeldp.tabular.memory import refuse_too_wide


def _refuse_single_column(X: Any) -> None:
    """Refuse what is no table by its shape: scikit-learn would print it, and it may be y in the place of X."""
    dimensions = X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim
    if dimensions < 2:
        raise ParameterError(
            f"Expected 2D array, got {dimensions}D array instead: X is the table of features, rows × columns, and "
            "comes before y. Reshape your data with reshape(-1, 1) if it is a single feature, or with "
            "reshape(1, -1) if it is a single row"
        )


def _single_column(labels: NDArray[Any]) -> Array:
    """Return labels, one for each row, or refuse another shape."""
    if labels.ndim != 1 and (labels.ndim != 2 or labels.shape[1] != 1):
        raise LabelError(
            f"y must be one column of labels, got the shape {labels.shape}: fit a model for each column; "
            "their costs add up"
        )
    column: Array = column_or_1d(labels, warn=True).astype(np.float64)
    return column


class PrivateRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the regressors: scikit-learn's interface, and label privacy's checks."""

    epsilon: float
    bounds: tuple[float, float]
    ledger: Ledger | None
    rows_per_person: int
    terms_: Terms
    encoder_: TableEncoder | None
    label_name_: str | None
    _public: PublicFeatures
    _blend: Blend | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = True  # noise is fresh for every fit
        tags.regressor_tags.poor_score = True  # privacy has its price on tiny data
        return tags

    def _copy_for_fit(self) -> Self:
        """Return a copy for a fit to work on, so that a fit that stops half way changes nothing here."""
        self._get_ledger()
        draft = object.__new__(type(self))
        draft.__dict__.update(self.__dict__)
        return draft

    def _replace_state(self, draft: Self) -> None:
        """Take over all of a draft at once: one assignment, which no interrupt can cut in two."""
        self.__dict__ = draft.__dict__

    def request(self) -> FitRequest:
        """Return the parameters, checked."""
        raise NotImplementedError

    def _validate(self, X: Any, y: Any, unknown: dict[str, Any]) -> tuple[FitRequest, Any, Array]:
        """Return parameters, X, dense or sparse, and y, after every check that needs no label's value."""
        if unknown:
            raise ParameterError(
                f"fit does not take {', '.join(unknown)}: weights would change how much one label can move "
                "the result, and with it the guarantee; leave them out"
            )
        if y is None:
            raise ParameterError("this regressor requires y to be passed, but the target y is None")
        request = self.request()
        as_ledger(self.ledger)
        refuse_other_order(X, y)
        self.encoder_ = None
        self.label_name_ = name_of_labels(y, X)
        if is_frame(X):
            X = self._fit_encoder(X)
        else:
            _refuse_single_column(X)
            X = validate_data(self, X, dtype=np.float64, accept_sparse="csr", ensure_min_samples=1)
        labels = _single_column(Labels.parse(y).values)
        check_consistent_length(X, labels)
        self._rows_seen = row_digests(X)
        return request, X, labels

    def _fit_encoder(self, X: Any) -> Array:
        """Learn how the columns of a data frame become numbers, and return the numbers."""
        names = frame_names(X)
        table = as_table(X)
        self.encoder_ = TableEncoder.fit(table, names)
        refuse_too_wide(table.num_rows, self.encoder_.width)
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        if self.encoder_.left_out:
            listed = "; ".join(f"{name!r}: {why}" for name, why in self.encoder_.left_out)
            warnings.warn(f"columns of no use were left out ({listed})", UserWarning, stacklevel=4)
        return self.encoder_.transform(table)

    def _get_ledger(self) -> Ledger:
        """Return the ledger to charge, the user's or an own one in which all fits add up, also those that fail.

        An own one has no limit, and begins anew where a pickle of the estimator is fitted.
        """
        ledger = self.ledger if self.ledger is not None else getattr(self, "_charged", None)
        left_behind = (
            self.ledger is None and isinstance(ledger, Ledger) and ledger.limit is None and ledger.is_copy
        )
        self._charged = ledger if isinstance(ledger, Ledger) and not left_behind else Ledger()
        return self._charged

    def _pay(self, plan: Plan) -> Payment:
        """Charge all or none, before any label is used."""
        self.ledger_ = self._get_ledger()
        return Payment(self.ledger_, plan.charges())

    def _warn(self, y: Any) -> None:
        """Warn of what the guarantee leaves out, once nothing but the ledger can refuse any more."""
        warn_of_wrappers(stacklevel=4)
        if self.ledger is None:
            warn_if_seen(y, stacklevel=4)

    @property
    def charges_(self) -> tuple[Charge, ...]:
        """What the fit cost, part by part."""
        return self.terms_.charges

    @property
    def secure_(self) -> bool:
        """Whether the noise is secure; False if it came from a seed, and then the model is **not private**."""
        return self.terms_.secure

    def summary(self) -> str:
        """Return what a fit released and cost, for people."""
        check_is_fitted(self)
        return self.terms_.summary("model", model=type(self).__name__)

    def _repr_html_(self) -> str:
        """Show, in a notebook, what a fit released and cost; before a fit, scikit-learn's diagram."""
        if not hasattr(self, "terms_"):
            return str(estimator_html_repr(self))
        return self.terms_.html("model", code=repr(self), model=type(self).__name__)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def to_card(self, **more: Any) -> str:
        """Return a card for whoever gets the model: JSON with a checksum, and no label in it.

        Parameters
        ----------
        **more : pure data
            Further public entries, such as which files the model is in.
        """
        check_is_fitted(self)
        return self.terms_.to_card("labeldp.model", model=type(self).__name__, **more)

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
        public, blend = self.public_model()
        predicted = blend.predict(FeatureTable(public, X), np.arange(X.shape[0]))
        return from_units(predicted, self.terms_.bounds[0])

    def public_model(self) -> tuple[PublicFeatures, Blend]:
        """Return what predicts, in units of the bounds, as plain numbers.

        These are the feature maps, and a blend, without trees if it is linear.
        """
        check_is_fitted(self)
        if self._blend is None:
            raise ParameterError(
                "only models of this library can be saved as plain numbers, and this one learnt with an estimator "
                "of yours: save release_ instead, and train that estimator on it again"
            )
        return self._public, self._blend

    def _inputs(self, X: Any) -> Any:
        """Return X as numbers, after the checks of a prediction."""
        check_is_fitted(self)
        encoder: TableEncoder | None = getattr(self, "encoder_", None)
        if encoder is None:
            _refuse_single_column(X)
            return validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        if is_frame(X):
            return encoder.transform(as_table(X))
        warnings.warn(
            f"X does not have valid feature names, but {type(self).__name__} was fitted with feature names: its "
            "columns are taken in the order of the fit",
            UserWarning,
            stacklevel=3,
        )
        return encoder.transform(as_table(X, list(self.feature_names_in_)))

    def remembers(self, X: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint64] | None]:
        """Return digests of these rows' features and of those of the fit; None where these were not kept."""
        return row_digests(self._inputs(X)), getattr(self, "_rows_seen", None)
