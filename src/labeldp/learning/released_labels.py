"""The result of `privatize`: private labels, one column or several, and how they came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from labeldp._values import Array, Data
from labeldp.accounts.explanation import SUMMARY, explain_labels
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.scope import Scope
from labeldp.accounts.scores import Figure
from labeldp.accounts.terms import Terms, TermsMixin, card_of_labels, join_terms
from labeldp.errors import ParameterError, Setting
from labeldp.learning.base import PrivateRegressor
from labeldp.learning.quality import Risk
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.group_means import group_figures, noise_variances, parse_groups


def _spread(values: Array, scope: Scope, rows: int) -> Array:
    """Return values at the rows that are used, and NaN at the others."""
    full = np.full((rows, *values.shape[1:]), np.nan)
    full[scope.kept] = values
    return full


@dataclass(frozen=True, slots=True, repr=False)
class ReleasedColumn(TermsMixin):
    """The private labels of one column of a `Release`.

    Attributes
    ----------
    name : str
        The name of the column; ``label`` where it has none.
    labels : array
        The labels for their purpose.
    values : array or None
        The values as the mechanism drew them; None for a release with a model, which has several mechanisms.
    model : regressor or None
        The private model behind the labels, if there is one; its predictions cost nothing more.
    error : Risk or None
        The model's error on true labels that it did not see, with noise.
    terms : Terms
        On which terms: mechanisms, priors, charges, bounds.
    entries : dict
        Further public entries of the card.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> Y = np.random.default_rng(0).uniform(0, 5, size=(4000, 2))
    >>> release = ldp.privatize(Y, epsilon=2.0, bounds=(0, 5), purpose="statistics")
    >>> column = release.columns["label 2"]
    >>> column.cost, bool(abs(column.means()[None].value - 2.5) < 0.5)
    (Budget(epsilon=1.0), True)
    """

    name: str
    labels: Array
    terms: Terms
    values: Array | None = None
    model: PrivateRegressor | None = None
    error: Risk | None = None
    entries: Mapping[str, Any] = field(default_factory=dict)

    @property
    def purpose(self) -> str:
        """The purpose of the labels: "training", "statistics" or "values"."""
        return str(self.entries["purpose"])

    @property
    def mechanism(self) -> Any:
        """The mechanism of each label, of a release without a model."""
        if self.model is not None:
            raise ParameterError("a release with a model has no mechanism of its own: see terms.mechanisms")
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
        """Return the mean of the true labels in each group, as `Release.means` does."""
        self._require_statistics("means")
        names, numbers = parse_groups(by, self.labels.size)
        is_released = ~np.isnan(self.labels)  # by a rule on public ids
        labels = self.labels[is_released]
        return group_figures([(np.arange(labels.size), self.mechanism)], labels, names, numbers[is_released])

    def _require_statistics(self, name: str) -> None:
        if self.purpose != "statistics":
            raise ParameterError(
                f"{name} needs unbiased labels, and these are for {self.purpose}: release them with ",
                Setting("purpose", "statistics"),
            )

    def summary(self) -> str:
        """Return the release of this column in plain words."""
        return self.terms.summary(**self.entries)

    def to_card(self, **additions: Any) -> str:
        """Return the card of this column alone; what other columns cost is not on it."""
        return self.terms.to_card(**self.entries, **additions)


@dataclass(frozen=True, slots=True, repr=False)
class Release(TermsMixin):
    """Private labels, and how they came about. Everything in here may be made public.

    Attributes
    ----------
    labels : array
        The labels for their purpose, in the shape of those given. For training: to fit models that learn a mean.
        For statistics: unbiased, for means and totals. For values: those of ``values``.
    columns : dict of ReleasedColumn
        Each label column by its name, with its own model, error, terms and mechanism.
    terms : Terms
        On which terms: mechanisms, priors, charges, bounds. Charges of several columns add up.
    ledger : Ledger or None
        Where the budget went; None in a copy that was pickled.

    Notes
    -----
    ``values``, ``model``, ``error``, ``mechanism``, ``prior``, ``noise_variance`` and ``means`` are those of the
    only column; where there are several, take them of one in ``columns``.

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
    columns: Mapping[str, ReleasedColumn]
    terms: Terms
    ledger: Ledger | None

    @classmethod
    def of(cls, columns: Sequence[ReleasedColumn], ledger: Ledger | None) -> Release:
        """Return the release of one column, or of several of the same rows."""
        labels = columns[0].labels
        if len(columns) > 1:
            labels = np.column_stack([column.labels for column in columns])
        terms = join_terms([column.terms for column in columns])
        return cls(labels, {column.name: column for column in columns}, terms, ledger)

    def spread(self, scope: Scope, rows: int) -> Release:
        """Return the release with a label for each row of a table: empty where the label was not used."""
        if scope.kept is None:
            return self
        columns = {}
        for name, column in self.columns.items():
            values = None if column.values is None else _spread(column.values, scope, rows)
            columns[name] = replace(column, labels=_spread(column.labels, scope, rows), values=values)
        return replace(self, labels=_spread(self.labels, scope, rows), columns=columns)

    def _only(self, name: str) -> ReleasedColumn:
        """Return the only column, for one of its attributes."""
        if len(self.columns) > 1:
            first = next(iter(self.columns))
            raise ParameterError(f"this release has {len(self.columns)} labels: take columns[{first!r}].{name}")
        return next(iter(self.columns.values()))

    @property
    def purpose(self) -> str:
        """The purpose of the labels: "training", "statistics" or "values"."""
        return next(iter(self.columns.values())).purpose

    @property
    def values(self) -> Array | None:
        """The values as the mechanism drew them; None for a release with a model."""
        return self._only("values").values

    @property
    def model(self) -> PrivateRegressor | None:
        """The private model behind the labels, if there is one; its predictions cost nothing more."""
        return self._only("model").model

    @property
    def error(self) -> Risk | None:
        """The model's error on true labels that it did not see, with noise.

        Labels for training are smoother than true ones, so they cannot measure an error.
        """
        return self._only("error").error

    @property
    def mechanism(self) -> Any:
        """The mechanism of each label, of a release without a model."""
        return self._only("mechanism").mechanism

    @property
    def prior(self) -> Histogram | None:
        """About where labels lie, if that was known or estimated."""
        return self._only("prior").prior

    @property
    def noise_variance(self) -> Array:
        """The variance of the noise in each label, of labels for statistics.

        Its mean over any rows is that of their noise. Single entries are estimates.
        """
        return self._only("noise_variance").noise_variance

    def means(self, by: ArrayLike | None = None) -> dict[Any, Figure]:
        """Return the mean of the true labels in each group, with its standard error by noise; for statistics.

        Parameters
        ----------
        by : array-like, optional
            The public group of each row, in the order of the labels that were given: an index of pandas is not
            compared. By default all rows are one, named None.

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
        return self._only("means").means(by)

    def summary(self) -> str:
        """Return the release in plain words: actions, cost, noise, and warnings."""
        if len(self.columns) == 1:
            return self._only("summary").summary()
        return explain_labels(self.terms, self._contents()).text(SUMMARY)

    def _contents(self) -> dict[str, tuple[Terms, Data]]:
        """Return the terms and entries of each column."""
        return {name: (column.terms, dict(column.entries)) for name, column in self.columns.items()}

    def _repr_html_(self) -> str:
        return self.terms.html_of(self.summary())

    def to_card(self, **additions: Any) -> str:
        """Return the card of the release: JSON with a checksum, and no label in it."""
        return card_of_labels(self._contents(), **additions)

    def __reduce__(self) -> tuple[Any, ...]:
        on_file = self.ledger is not None and self.ledger.path  # one in memory stays here
        ledger = self.ledger if on_file else None
        return Release, (self.labels, dict(self.columns), self.terms, ledger)
