"""`ModelReleaseRegressor`: the curator keeps the labels; only the model is released."""

from __future__ import annotations

from typing import Literal

from labeldp.accounts.ledger import Ledger
from labeldp.accounts.scope import Scope
from labeldp.exact.word_sources import WordSource
from labeldp.learning.base import PrivateRegressor
from labeldp.learning.fit_plan import FitRequest


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
        What is wrong with the model, if its own predictions show it: it is a constant, or at a bound.
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
        bounds: tuple[float, float],
        label_transform: Literal["log", "sqrt"] | None = None,
        ledger: Ledger | None = None,
        rows_per_person: int = 1,
        random_state: int | WordSource | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.label_transform = label_transform
        self.ledger = ledger
        self.rows_per_person = rows_per_person
        self.random_state = random_state
        self.verbose = verbose

    def request(self) -> FitRequest:
        """Return the parameters, checked."""
        return FitRequest(
            epsilon=self.epsilon,
            bounds=self.bounds,
            scope=Scope.parse(self.rows_per_person),
            label_transform=self.label_transform,
            labels=False,
        )
