"""What both regressors share: checks, charges, what is said of a fit, and state that changes all at once."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from labeldp import card_format
from labeldp._validation import as_bounds, as_epsilon, as_labels, as_roomy_bounds
from labeldp.errors import ParameterError
from labeldp.estimators.wrappers import warn_of_wrappers
from labeldp.ledger import Budget, Ledger, Purpose, new_charge, total_of
from labeldp.ledger.repetition import warn_if_seen
from labeldp.randomness import SecureWords, WordSource
from labeldp.release.terms import guarantee

__all__ = ["PrivateRegressor"]

Array = NDArray[np.float64]
_PURPOSES: dict[str, Purpose] = {
    "labels": "labels",
    "mean": "mean",
    "prior": "prior",
    "rough sums": "sums",
    "sums": "sums",
}


class PrivateRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the regressors: scikit-learn's interface, and label privacy's checks."""

    epsilon: float
    bounds: tuple[float, float]
    ledger: Ledger | None
    rows_per_person: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = True  # noise is fresh for every fit
        tags.regressor_tags.poor_score = True  # privacy has its price on tiny data
        return tags

    def _draft(self) -> Self:
        """Return a copy for a fit to work on, so that a fit that stops half way changes nothing here."""
        self._book()
        draft = object.__new__(type(self))
        draft.__dict__.update(self.__dict__)
        return draft

    def _become(self, draft: Self) -> None:
        """Take over all of a draft at once: one assignment, which no interrupt can cut in two."""
        self.__dict__ = draft.__dict__

    def _checked(self, X: Any, y: Any, unknown: dict[str, Any]) -> tuple[Any, Array]:
        """Return X, dense or sparse, and y, after every check that needs no label's value."""
        if unknown:
            raise ParameterError(
                f"fit does not take {', '.join(unknown)}: weights would change how much one label can move "
                "the result, and with it the guarantee; leave them out"
            )
        if y is None:
            raise ParameterError("this regressor requires y to be passed, but the target y is None")
        as_epsilon(self.epsilon)
        as_roomy_bounds(self.bounds)
        if self.ledger is not None and not isinstance(self.ledger, Ledger):
            raise ParameterError("ledger must be a Ledger; for a file use Ledger.open(path, limit=...)")
        X = validate_data(self, X, dtype=np.float64, accept_sparse="csr", ensure_min_samples=1)
        labels = column_or_1d(as_labels(y), warn=True).astype(np.float64)
        check_consistent_length(X, labels)
        return X, labels

    def _book(self) -> Ledger:
        """Return the ledger to charge, the user's or an own one in which all fits add up, also those that fail.

        An own one has no limit, and begins anew where a pickle of the estimator is fitted.
        """
        known = self.ledger if self.ledger is not None else getattr(self, "_charged", None)
        gone = self.ledger is None and isinstance(known, Ledger) and known.limit is None and known.is_copy
        self._charged = known if isinstance(known, Ledger) and not gone else Ledger()
        return self._charged

    def _charge(self, parts: dict[str, Budget]) -> range:
        """Charge all parts or none, and return the charges' places in the ledger."""
        self.ledger_ = self._book()
        return self.ledger_.charge_all(
            [
                new_charge(what, budget, purpose=_PURPOSES[what], rows_per_person=self.rows_per_person)
                for what, budget in parts.items()
            ]
        )

    def _warn(self, y: Any) -> None:
        """Warn of what the guarantee leaves out, once nothing but the ledger can refuse any more."""
        warn_of_wrappers(stacklevel=4)
        if self.ledger is None:
            warn_if_seen(y, stacklevel=4)

    def _describe(
        self, places: range, parts: Iterable[str], mechanisms: dict[str, str], rows: int, source: WordSource
    ) -> None:
        """Note in the ledger what each part was spent on, and keep what `summary` says of this fit."""
        for place, what in zip(places, parts, strict=True):
            self.ledger_.describe(place, mechanisms[what])
        self.charges_ = tuple(self.ledger_.charges[place] for place in places)
        self.rows_, self.bounds_ = rows, as_bounds(self.bounds)
        self.secure_ = isinstance(source, SecureWords)

    def summary(self) -> str:
        """Return what a fit released and cost, for people."""
        check_is_fitted(self)
        lines = [self._guarantee(), f"  {self.rows_:,} rows; bounds {self.bounds_[0]:g} to {self.bounds_[1]:g}"]
        lines += [f"  {charge}" for charge in self.charges_]
        return "\n".join(lines)

    def to_card(self) -> str:
        """Return a card for whoever gets the model: JSON with a checksum, and no label in it."""
        check_is_fitted(self)
        return card_format.dump(
            {
                "guarantee": self._guarantee(),
                "model": type(self).__name__,
                "words": "secure" if self.secure_ else "seeded, NOT PRIVATE",
                "rows": self.rows_,
                "bounds": list(self.bounds_),
                "charges": [charge.as_data() for charge in self.charges_],
            },
            "labeldp.model",
        )

    def _guarantee(self) -> str:
        cost = total_of(self.charges_)
        return guarantee(SimpleNamespace(secure=self.secure_, charges=self.charges_, cost=cost))

    def _inputs(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
