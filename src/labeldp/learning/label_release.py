"""`privatize`: private labels for others, in one call.

With public features, a model is fitted to noisy sums and private labels, and every label is replaced by its
posterior mean: a function of what was released, which costs nothing more. A part of the rows is held out: they
spend their ε on measuring the model's error. Without features, each label is randomised once by a mechanism.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeldp._values import Array, as_fraction
from labeldp.accounts.budget import declared
from labeldp.accounts.ledger import Ledger, as_ledger, ledger_to_charge
from labeldp.accounts.scores import Figure
from labeldp.accounts.terms import Terms, TermsMixin
from labeldp.errors import ParameterError, Setting, WeakModelWarning, warn
from labeldp.exact.word_sources import WordSource, resolve_source
from labeldp.learning.base import PrivateRegressor, column_encoder
from labeldp.learning.clipped_errors import ErrorPlan
from labeldp.learning.label_regressor import LabelReleaseRegressor
from labeldp.learning.label_rounds import report_step
from labeldp.learning.model_regressor import ModelReleaseRegressor
from labeldp.learning.quality import Risk, terms_with_score
from labeldp.learning.score import TEST_SIZE, fit_and_measure
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.arrays import one_column, randomize_labels
from labeldp.release.group_means import group_means, noise_variances
from labeldp.release.plan import MECHANISM_OPTIONS, Request

Purpose = Literal["training", "statistics", "values"]

LEAST_ROWS_EPSILON2 = 200
"""With less rows · ε² than this, no learner gains from labels that are randomised one by one."""


@dataclass(frozen=True, slots=True, repr=False)
class Release(TermsMixin):
    """Private labels, and how they came about. Everything in here may be made public.

    Attributes
    ----------
    labels : array
        The labels for their purpose. For training: to fit models that learn a mean. For statistics: unbiased, for
        means and totals. For values: those of ``values``.
    values : array or None
        The values as the mechanism drew them; None for a release with a model, which has several mechanisms.
    model : regressor or None
        The private model behind the labels, if there is one; its predictions cost nothing more.
    error : Risk or None
        The model's error on true labels that it did not see, with noise. Labels for training are smoother than
        true ones, so they cannot measure an error.
    terms : Terms
        On which terms: mechanisms, priors, charges, bounds.
    ledger : Ledger or None
        Where the budget went; None in a copy that was pickled.
    entries : dict
        Further public entries of the card.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> y = np.clip(2.5 + X[:, 0], 0, 5)
    >>> release = ldp.privatize(y, X=X, epsilon=1.0, bounds=(0, 5))
    >>> private = release.labels                    # train any model on these
    >>> bool(np.corrcoef(private, y)[0, 1] > 0.8), release.error.rows, release.cost
    (True, 200, Budget(epsilon=1.0))
    >>> card = release.to_card()                    # hand it on with the labels
    """

    labels: Array
    terms: Terms
    ledger: Ledger | None
    values: Array | None = None
    model: PrivateRegressor | None = None
    error: Risk | None = None
    entries: Mapping[str, Any] = field(default_factory=dict)

    @property
    def purpose(self) -> str:
        """What the labels are for: "training", "statistics" or "values"."""
        return str(self.entries["purpose"])

    @property
    def mechanism(self) -> Any:
        """The mechanism of each label, of a release without a model."""
        self._refuse_model("mechanism")
        return self.terms.mechanisms[0]

    @property
    def prior(self) -> Histogram | None:
        """About where labels lie, if that was known or estimated."""
        return self.terms.priors[0] if self.terms.priors else None

    @property
    def noise_variance(self) -> Array:
        """The variance of the noise in each label, of labels for statistics.

        Its mean over any rows is that of their noise. Single entries are estimates.
        """
        self._require_statistics("noise_variance")
        return noise_variances(self.mechanism, self.labels)

    def means(self, by: ArrayLike | None = None) -> dict[Any, Figure]:
        """Return the mean of the true labels in each group, with its standard error by noise; for statistics.

        Parameters
        ----------
        by : array-like, optional
            The public group of each row; by default all rows are one, named None.

        Returns
        -------
        dict of Figure
            By group. The value ± 1.96 standard errors covers the mean of the group's labels, clipped to the
            bounds, in 95 % of releases. For a total, multiply both by the number of rows.

        Examples
        --------
        >>> import numpy as np, labeldp as ldp
        >>> y, town = np.linspace(0, 5, 4000), np.repeat(["Bath", "York"], 2000)
        >>> release = ldp.privatize(y, epsilon=1.0, bounds=(0, 5), purpose="statistics")
        >>> means = release.means(by=town)
        >>> bool(abs(means["York"].value - 3.75) < 5 * means["York"].standard_error)
        True
        """
        self._require_statistics("means")
        return group_means(self.mechanism, self.labels, by)

    def _refuse_model(self, name: str) -> None:
        if self.model is not None:
            raise ParameterError(f"a release with a model has no {name} of its own: see terms.mechanisms")

    def _require_statistics(self, name: str) -> None:
        if self.purpose != "statistics":
            raise ParameterError(
                f"{name} needs unbiased labels, and these are for {self.purpose}: release them with ",
                Setting("purpose", "statistics"),
            )

    def summary(self) -> str:
        """Return the release in plain words: actions, cost, noise, and warnings."""
        return self.terms.summary(**self.entries)

    def _repr_html_(self) -> str:
        return self.terms.html(**self.entries)

    def to_card(self, **more: Any) -> str:
        """Return the card of the release: JSON with a checksum, and no label in it."""
        return self.terms.to_card(**self.entries, **more)

    def __reduce__(self) -> tuple[Any, ...]:
        on_file = self.ledger is not None and self.ledger.path  # one in memory stays here
        ledger = self.ledger if on_file else None
        return Release, (self.labels, self.terms, ledger, self.values, self.model, self.error, dict(self.entries))


def privatize(
    labels: ArrayLike,
    *,
    X: Any = None,
    epsilon: float,
    bounds: Any = None,
    purpose: Purpose = "training",
    mechanism: str | Mechanism = "auto",
    prior: Histogram | None = None,
    trust: Literal["curator", "local"] = "curator",
    method: Literal["laplace"] | None = None,
    epsilon_prior: float | None = None,
    sigma: float | None = None,
    zeta: float | None = None,
    outside: Literal["project", "uniform"] | None = None,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    intended_use: str | None = None,
    recipient: str | None = None,
    bounds_reason: str | None = None,
    verbose: bool = False,
    random_state: int | WordSource | None = None,
) -> Release:
    """Release private labels for ε in all: whatever is estimated on the way included.

    A label should be released **once**. Calling this again on the same labels spends ε again, which the
    ledger shows; to try other learners, reuse the release.

    Parameters
    ----------
    labels : array-like, n or n × 1
        Private labels. Those outside the bounds are clipped.
    X : array-like, rows × columns, or a data frame of pandas, Polars or Arrow, optional
        The public features that a recipient of the labels has. With them, labels for training are posterior means
        under a private model, which are far better to train on at the same ε; this takes as long as a fit.
    epsilon : float
        The total budget for a row.
    bounds : (lo, hi)
        Public bounds. Never read them off the data.
    purpose : {"training", "statistics", "values"}
        "training": to fit models that learn a mean, such as least squares, trees or networks.
        "statistics": unbiased for labels clipped to the bounds, for means and totals of groups with intervals.
        "values": as the mechanism drew them, for those who debias themselves.
    mechanism : str
        ``"auto"`` takes the one whose unbiased label serves best; or ``"rp"``, ``"laplace"``, ``"staircase"``,
        ``"two-point"``, ``"rr-on-bins"``, ``"unbiased"``; or, without X, a mechanism instance with this ε.
    prior : Histogram, optional
        A public distribution of the labels; costs nothing. This is the paper's Algorithm 2. A part
        outside the bounds counts as labels at the bounds, since those are clipped; then a warning says so.
    trust : {"curator", "local"}
        Who sees labels before noise: a curator, or nobody, so that each is randomised on its own.
    method : {None, "laplace"}
        ``trust="local", method="laplace"`` with ``epsilon_prior``, ``zeta`` and ``purpose="values"`` is the
        paper's Algorithm 4, but for one point: its α is a mass, and here a density.
    epsilon_prior : float, optional
        Without X, the part of ε for the prior; by default it follows from the number of labels and ε. 0 for none:
        then nothing but the bounds clips labels.
    sigma : float, optional
        Bin width of Algorithm 3; by default the standard deviation of the randomised labels, as in the paper.
    zeta : float, optional
        Half-width of RPWithPrior's window, with the paper's interval (Algorithm 1).
    outside : {"project", "uniform"}, optional
        RPWithPrior's answer to labels outside its interval: as to the nearer end, the default (the paper's
        equation 3.6); or uniform (3.7), which is biased and so for ``purpose="values"`` alone.
    ledger : Ledger, optional
        Is charged after validation and before any label is used.
    rows_per_person : int
        The most rows of one person; the ledger is charged for all of them.
    intended_use, recipient, bounds_reason : str, optional
        The aim, the recipient, and the source of the bounds; on the card and in the ledger.
    verbose : bool
        Print the steps of a release with X.
    random_state : None, int or source of words
        Leave it out for a release.

    Returns
    -------
    Release
        Its ``labels`` are those to use; ``summary()`` describes the release in words.

    Raises
    ------
    ParameterError, LabelError
        Before anything is charged.
    BudgetError
        If the ledger refuses; then nothing was released.

    Warns
    -----
    RepeatedReleaseWarning
        If the same labels were released before without a ledger.
    InsecureRandomnessWarning
        If ``random_state`` is a seed.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> release = ldp.privatize(np.linspace(1, 4, 5000), epsilon=1.0, bounds=(0, 5))
    >>> release.labels.shape, release.cost
    ((5000,), Budget(epsilon=1.0))
    """
    request = Request(
        epsilon=epsilon,
        bounds=bounds,
        mechanism=mechanism,
        prior=prior,
        trust=trust,
        method=method,
        epsilon_prior=epsilon_prior,
        sigma=sigma,
        zeta=zeta,
        outside=outside,
        rows_per_person=rows_per_person,
        purpose=purpose,
    )
    array = one_column(labels)
    if X is not None:
        refuse_mechanism_options(request)
    source = resolve_source(random_state)
    with declared(intended_use=intended_use, recipient=recipient, bounds_reason=bounds_reason):
        if X is not None:
            return release_with_model(request, X, labels, as_ledger(ledger), source, verbose=verbose)
        if is_only_mean(request, len(array)):
            return release_mean(request, labels, as_ledger(ledger), source)
        request.refuse_biased()
        charged = ledger_to_charge(as_ledger(ledger), labels)
        values, terms = randomize_labels(request, array, charged, source)
        private = request.labels_of(terms.mechanisms[0], values)
    return Release(private, terms, charged, values, entries={"purpose": request.purpose})


def refuse_mechanism_options(request: Request) -> None:
    """Refuse options of a release by one mechanism beside X, which is for a model."""
    if request.purpose != "training":
        raise ParameterError("X is for ", Setting("purpose", "training"), ": leave it out, or take that")
    if request.trust == "local":
        raise ParameterError(
            "X needs a curator: with ", Setting("trust", "local"), ", leave it out, or fit LabelReleaseRegressor"
        )
    if isinstance(request.mechanism, Mechanism):
        raise ParameterError("with X, ", Setting("mechanism"), " is a name: each label has its own interval")
    for name in MECHANISM_OPTIONS:
        if getattr(request, name) is not None:
            raise ParameterError(Setting(name), " is for a release without X: leave one of the two out")


def is_only_mean(request: Request, rows: int) -> bool:
    """Return whether labels for training without features are the private mean, by public numbers."""
    is_open = request.mechanism == "auto" and request.prior is None and request.epsilon_prior is None
    is_for_training = request.purpose == "training" and request.trust == "curator"
    return is_open and is_for_training and rows * float(request.epsilon) ** 2 < LEAST_ROWS_EPSILON2


def release_mean(request: Request, labels: Any, ledger: Ledger | None, source: WordSource) -> Release:
    """Return the private mean as the label of every row: a model without features."""
    warn(
        f"{len(labels):,} labels at ε = {float(request.epsilon):g} are too few to learn from: every released "
        "label is the private mean of all. Pass X, more rows or a larger epsilon",
        WeakModelWarning,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakModelWarning)
        model = ModelReleaseRegressor(**_shared(request, ledger, source))
        return _release_model(model, np.zeros((len(labels), 1)), labels, [], source)


def release_with_model(
    request: Request,
    X: Any,
    labels: Any,
    ledger: Ledger | None,
    source: WordSource,
    *,
    features: list[str] | None = None,
    verbose: bool = False,
) -> Release:
    """Return labels for training that a model of their public features has made better.

    ``features`` names the columns behind X; by default X has their names.
    """
    model = LabelReleaseRegressor(
        mechanism=str(request.mechanism), verbose=verbose, **_shared(request, ledger, source)
    )
    return _release_model(model, X, labels, features, source)


def _shared(request: Request, ledger: Ledger | None, source: WordSource) -> dict[str, Any]:
    """Return the parameters that both regressors have."""
    return {
        "epsilon": float(request.epsilon),
        "bounds": request.bounds,
        "ledger": ledger,
        "rows_per_person": request.rows_per_person,
        "random_state": source,
    }


def _release_model(
    model: PrivateRegressor, X: Any, labels: Any, features: list[str] | None, source: WordSource
) -> Release:
    """Fit a model, measure its error on rows held out if they are enough, and return the posterior means."""
    array = one_column(labels)
    rows, error = len(array), None
    plan = plan_error(rows, model.epsilon, model.bounds)
    if plan is None:
        model.fit(X, labels)
    else:
        flat = array.reshape(-1).astype(np.float64)
        model, error = fit_and_measure(model, X, labels, flat, plan, source)
    model.set_params(random_state=None)  # its words are secret, and the model is released
    report_step("labels")
    predicted = model.predict(X)
    residual = residual_variance(model, error)
    private = posterior_means(model, predicted, residual, error).reshape(array.shape)
    terms = model.terms_ if error is None else terms_with_score(model.terms_, error)
    entries: dict[str, Any] = {
        "purpose": "training",
        "features": feature_names(model) if features is None else features,
        "residual_variance": residual,
    }
    if error is not None:
        entries["quality"] = error.as_data()
    return Release(private, replace(terms, rows=rows), model.ledger_, None, model, error, entries)


def feature_names(model: PrivateRegressor) -> list[str]:
    """Return the names of the columns that a model learned from."""
    return column_encoder(model).names


def plan_error(rows: int, epsilon: float, bounds: tuple[float, float]) -> ErrorPlan | None:
    """Return how to measure the error on a tenth of the rows; None if they are too few, by public numbers."""
    try:
        return ErrorPlan.of(int(rows * TEST_SIZE), as_fraction(epsilon), bounds)
    except ParameterError:
        return None


def residual_variance(model: PrivateRegressor, error: Risk | None) -> float:
    """Return the private variance of labels around the model's predictions: measured, or as the fit estimates."""
    if error is not None:
        return error.mse
    low, high = model.bounds
    return float(model.public_model()[1].error) * (high - low) ** 2


def posterior_means(model: PrivateRegressor, predicted: Array, residual: float, error: Risk | None) -> Array:
    """Return the mean of each label given its prediction and its private label.

    That is prediction + w · (private label − prediction), with w = residual variance / (residual variance + noise
    variance of the private label). A row without a private label has its prediction.
    """
    release = getattr(model, "release_", None)
    if release is None:
        return predicted
    rows: NDArray[Any] = np.arange(predicted.size)
    if error is not None and error.split is not None:
        rows = error.split.indices()[0]
    weight = residual / (residual + release.noise + release.hidden)
    posterior = predicted.copy()
    posterior[rows] += weight * (release.labels - predicted[rows])
    return np.clip(posterior, *model.bounds)
