"""`LabelReleaseRegressor`: every label is released once, and a model is learnt from the release."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import has_fit_parameter

from labeldp._values import Array, Interval
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.scope import Scope
from labeldp.accounts.terms import Terms
from labeldp.errors import ParameterError, Setting, WeakModelWarning, describe, warn
from labeldp.exact.word_sources import RandomState
from labeldp.learning.base import PrivateRegressor
from labeldp.learning.ensemble import WEAKNESS_ROWS
from labeldp.learning.estimator_loss import loss_without_mean
from labeldp.learning.features import FeatureTable, even_rows
from labeldp.learning.fit_plan import FREE_SUMMARY, FitRequest, LabelScale, from_units, unit_labels
from labeldp.learning.held_out import finite_predictions
from labeldp.learning.label_rounds import LabelRound, in_bounds
from labeldp.learning.learner import TrainingData, fit_ensemble
from labeldp.learning.measurements import PrivateRows
from labeldp.learning.model_average import Posterior
from labeldp.learning.row_release import RowRelease
from labeldp.learning.sum_model import SumModel
from labeldp.learning.threads import limit_libraries
from labeldp.release.reports import Reports, unbiased_labels

_NOISE_LEARNT = 2.5
"""An estimator learns noise if its predictions vary so many times as much as labels do: good ones vary less, and
the variance of labels is known within a factor of two."""

_NO_MEAN = (
    "{estimator} minimises a loss that is no mean ({loss}): noise averages out of means alone, and medians or "
    "quantiles of private labels are those of labels and noise together; train and score with squared errors"
)


class LabelReleaseRegressor(PrivateRegressor):
    """ε-label-DP regression by releasing private labels, which can be shared.

    Parameters
    ----------
    estimator : scikit-learn regressor, optional
        Learns from the private labels. By default an ensemble that fits the noise: from the private constant
        through ridge and kernel ridge to boosted trees.
    epsilon : float
        The whole budget, everything included.
    bounds : (lo, hi)
        Public bounds of the label. Never read them off the data.
    mechanism : str
        "auto" takes the best for each round; or "rp", "two-point", "unbiased", "laplace", "staircase", or the name
        of a mechanism of your own that is unbiased.
    rounds : "auto" or int
        Rows are released in disjoint rounds, later ones over narrow intervals around what earlier ones
        predict; from 1 to 10, each larger than the one before.
    trust : {"curator", "local"}
        With "local" every label is randomised on its own, and nothing else is computed from labels.
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
    release_ : RowRelease
        The private labels, to keep, save and reuse.
    ledger_ : Ledger or None
        Where the budget went; None after `fit_reports`, which spends nothing.
    weakness_ : str or None
        A weakness of the model, if its own predictions or private labels show one: it is a constant, at a
        bound, or `estimator` learnt the noise.
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
    >>> model = ldp.LabelReleaseRegressor(epsilon=2.0, bounds=(0, 5)).fit(X, y)
    >>> bool(np.mean((model.predict(X) - y) ** 2) < 0.3)
    True
    """

    release_: RowRelease
    estimator_: Any
    _spread: float = 0.0

    def __init__(
        self,
        estimator: Any = None,
        *,
        epsilon: float,
        bounds: Interval,
        mechanism: str = "auto",
        rounds: str | int = "auto",
        trust: Literal["curator", "local"] = "curator",
        label_transform: Literal["log", "sqrt"] | None = None,
        ledger: Ledger | None = None,
        rows_per_person: int = 1,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.bounds = bounds
        self.mechanism = mechanism
        self.rounds = rounds
        self.trust = trust
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
            mechanism=self.mechanism,
            rounds=self.rounds,
            trust=self.trust,
            scope=Scope.parse(self.rows_per_person),
            label_transform=self.label_transform,
        )

    def _learn(self, rounds: list[LabelRound], sum_model: SumModel, linear: Posterior) -> None:
        self.estimator_ = None
        terms = replace(self.terms_, bounds=(self._scale.inner,))  # of a transform of labels
        self.release_ = _as_release(rounds, sum_model, terms, self.ledger_)  # last: with it, all this is kept
        try:
            if self.estimator is None:
                super()._learn(rounds, sum_model, linear)
            else:
                self._announce("model")
                self.estimator_ = self._fit_own(sum_model.table.X)
        except BaseException as error:
            error.add_note("the labels were released and paid for: train any learner on release_.labels")
            raise

    def fit_reports(self, X: Any, reports: Reports) -> Self:
        """Learn from answers that respondents randomised themselves.

        No label is read and nothing is charged: the respondents spent the ε, and the card of the model states it.

        Parameters
        ----------
        X : array-like, rows × columns, or a data frame of pandas, Polars or Arrow
            Public features of the respondents.
        reports : Reports
            Their released values, with the mechanism. ``epsilon``, ``bounds`` and ``rows_per_person`` of the
            regressor must be those of the reports; the mechanism, the rounds and the trust are theirs too.

        Examples
        --------
        >>> import numpy as np, labeldp as ldp
        >>> X = np.random.default_rng(0).normal(size=(4000, 3))
        >>> mechanism = ldp.Unbiased.for_bounds((0, 5), 2.0)
        >>> reports = ldp.Reports(mechanism.randomize(2.5 + X[:, 0]), mechanism)
        >>> model = ldp.LabelReleaseRegressor(epsilon=reports.epsilon, bounds=reports.bounds)
        >>> model = model.fit_reports(X, reports)
        >>> bool(np.corrcoef(model.predict(X), X[:, 0])[0, 1] > 0.9), model.terms_.trust
        (True, 'local')
        """
        fitting = self._copy_for_fit()
        _refuse_other_parameters(self, reports)
        request = fitting.request()
        X, _ = fitting._check_inputs(X, reports.values)
        self._refuse_estimator(X, request)
        fitting._learn_reports(fitting._features(X), reports)
        self._replace_state(fitting)
        if self.weakness_ is not None:
            warn(self.weakness_, WeakModelWarning)
        return self

    @np.errstate(all="ignore")  # as in a fit to labels
    @limit_libraries()
    def _learn_reports(self, table: FeatureTable, reports: Reports) -> None:
        """Fit the model to the unbiased labels of reports."""
        labels = _private_rows(reports)
        self.ledger_, self.terms_ = None, reports.terms
        self._public, self._ensemble, self.estimator_ = replace(table.public, exact=False), None, None
        self.release_ = _release_of_reports(reports)
        if self.estimator is None:
            data = TrainingData(table=table, label_summary=FREE_SUMMARY, labels=labels, observations=())
            self._ensemble = fit_ensemble(data.observed())
        else:
            self.estimator_ = self._fit_own(table.X)
        self.weakness_ = self._weakness(table.X)

    def _refuse_estimator(self, X: Any, request: FitRequest) -> None:
        """Refuse an estimator that cannot learn, before anything is spent: by a trial on synthetic labels.

        Some of them lie outside the bounds, as private labels do. A loss that is no mean gets a warning.
        """
        if self.estimator is None:
            return
        if isinstance(self.estimator, BaseEstimator) and is_classifier(self.estimator):
            raise ParameterError(
                f"estimator must be a regressor, got the classifier {type(self.estimator).__name__}: private "
                "labels are numbers with noise, no classes. Give a regressor, or no estimator: from labels 0 and "
                "1 it learns the probability of 1"
            )
        if not (hasattr(self.estimator, "fit") and hasattr(self.estimator, "predict")):
            raise ParameterError(f"estimator must have fit and predict, got {type(self.estimator).__name__}")
        low, high = LabelScale.parse(request.bounds, request.label_transform).inner
        if (loss := loss_without_mean(self.estimator)) is not None:
            warn(_NO_MEAN.format(estimator=type(self.estimator).__name__, loss=loss), WeakModelWarning)
        synthetic = np.linspace(2 * low - high, 2 * high - low, min(300, X.shape[0]))
        try:
            trial = clone(self.estimator).fit(X[: synthetic.size], synthetic)
            finite_predictions(trial, X[: synthetic.size], synthetic.size)
        except Exception as error:
            raise ParameterError(
                f"the estimator cannot learn from this table (tried on {synthetic.size} synthetic labels, some of "
                f"them outside the bounds, as private labels are): {error}"
            ) from error

    def _fit_own(self, X: Array) -> Any:
        """Return the user's estimator, fitted to the release; noisier rows weigh less if it can.

        Weights have the mean 1: so a penalty, such as Ridge's ``alpha``, means the same in any unit of the label.
        The variance of labels around the fit, without their noise, is the spread that a transform's mean needs. By
        p parameters learnt from n rows it is too small by p/n of all variance, and e^prediction too large by as
        much.
        """
        release, estimator = self.release_, clone(self.estimator)
        weights = {"sample_weight": release.weight} if has_fit_parameter(estimator, "sample_weight") else {}
        estimator.fit(X, release.labels, **weights)
        if self.terms_.label_transform is not None:
            excess = (release.labels - np.asarray(estimator.predict(X))) ** 2 - release.noise + release.hidden
            self._spread = max(0.0, float(np.average(excess, weights=release.weight**2)))
        return estimator

    def _weakness(self, X: Any) -> str | None:
        if self.estimator_ is not None and loss_without_mean(self.estimator) is not None:
            return None  # a warning before the charge has the reason of all that predictions show
        weakness = super()._weakness(X)
        if self.estimator_ is None or weakness is not None:
            return weakness
        units = self._fitted_units(X)[0]
        variance = self.release_.label_summary.variance / (self._scale.inner[1] - self._scale.inner[0]) ** 2
        if np.var(units) <= _NOISE_LEARNT * variance:
            return None
        return (
            f"{type(self.estimator).__name__} learns the noise of labels: its predictions vary more than labels "
            "do; let it average more rows (min_samples_leaf=100, n_neighbors=200), leave estimator out, or give a "
            "larger epsilon"
        )

    def _fitted_units(self, X: Any) -> tuple[Array, float]:
        if self._ensemble is not None:
            return super()._fitted_units(X)
        predicted = np.asarray(self.estimator_.predict(X[even_rows(X.shape[0], WEAKNESS_ROWS)]))
        return unit_labels(predicted, self._scale.inner), 0.0

    def _predict(self, X: Any) -> Array:
        if self._ensemble is not None:
            return super()._predict(X)
        if self.estimator_ is None:
            raise NotFittedError("the labels were released, but no model was learnt from them; see release_")
        predicted = self.release_.label_summary.clip(np.asarray(self.estimator_.predict(X)))
        return self._scale.means(predicted, self._spread)


_OF_REPORTS = {"mechanism": "auto", "rounds": "auto", "label_transform": None, "ledger": None}
"""Parameters that a fit to reports leaves to them, and their defaults."""


def _refuse_other_parameters(model: LabelReleaseRegressor, reports: Any) -> None:
    """Refuse parameters of a regressor that are not those of the reports."""
    if not isinstance(reports, Reports):
        raise ParameterError(f"fit_reports takes Reports(values, mechanism), got {describe(reports)}")
    settings = {"epsilon": reports.epsilon, "bounds": reports.bounds, "rows_per_person": reports.rows_per_person}
    for name, value in settings.items():
        setting = getattr(model, name)
        if (tuple(setting) if name == "bounds" and np.ndim(setting) else setting) != value:
            raise ParameterError(
                "the reports have ",
                Setting(name, value),
                f", and the regressor {setting}: give it that of the reports",
            )
    for name, default in _OF_REPORTS.items():
        if getattr(model, name) is not default and getattr(model, name) != default:
            raise ParameterError(
                Setting(name), " is settled for reports, by the card or by the respondents: leave it out"
            )


def _private_rows(reports: Reports) -> list[PrivateRows]:
    """Return the unbiased labels of reports, those of each mechanism with the same noise, in unit scale.

    Trees are judged on the last ones: labels of later rounds, or those of most rows where there are no rounds.
    """
    low, high = reports.bounds
    units = (unbiased_labels(reports) - low) / (high - low)
    labels = [
        PrivateRows(rows, units[rows], variance / (high - low) ** 2, 0)
        for (rows, _), variance in zip(reports.by_mechanism(), reports.noise_variances, strict=True)
    ]
    return labels if reports.intervals is not None else sorted(labels, key=lambda item: item.rows.size)


def _release_of_reports(reports: Reports) -> RowRelease:
    """Return reports as private labels: each is randomised in the bounds of its card, or in its interval."""
    rows, bounds = len(reports), reports.bounds
    domains = np.array([mechanism.domain for mechanism in reports.mechanisms])[reports.part]
    arrays = {
        "low": domains[:, 0],
        "high": domains[:, 1],
        "offset": np.zeros(rows),
        "scale": np.ones(rows),
        "noise": np.array(reports.noise_variances)[reports.part],
        "hidden": np.zeros(rows),
    }
    return RowRelease(
        **(arrays if reports.intervals is None else reports.intervals.arrays()),
        labels=reports.labels,
        start=np.full(rows, (bounds[0] + bounds[1]) / 2),
        round=reports.part if reports.intervals is not None else np.zeros(rows, dtype=np.int64),
        part=reports.part,
        label_summary=FREE_SUMMARY.in_bounds(bounds),
        terms=reports.terms,
    )


def _as_release(rounds: list[LabelRound], sum_model: SumModel, terms: Terms, ledger: Ledger | None) -> RowRelease:
    """Convert the rounds from unit scale to a release in the label's scale."""
    bounds = terms.bounds[0]
    private = [labels.private for labels in rounds]
    order = np.argsort(np.concatenate([labels.rows for labels in private]))  # every row is there once
    sizes = [labels.rows.size for labels in private]
    intervals = [in_bounds(labels.intervals, bounds).arrays() for labels in rounds]
    arrays = {name: np.concatenate([values[name] for values in intervals])[order] for name in intervals[0]}
    unit = np.concatenate([labels.unit for labels in rounds])[order]
    return RowRelease(
        **arrays,
        labels=arrays["offset"] + arrays["scale"] * unit,
        start=from_units(sum_model.start, bounds),
        round=np.repeat([labels.round for labels in private], sizes)[order],
        part=np.repeat(np.arange(len(rounds)), sizes)[order],
        label_summary=sum_model.label_summary.in_bounds(bounds),
        terms=terms,
        ledger=ledger,
    )
