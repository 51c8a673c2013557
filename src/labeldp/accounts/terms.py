"""The terms of a release: all but its labels, as a value, in sentences and as a card."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import chain
from typing import Any, Literal

import numpy as np

from labeldp._values import Array, Data, Index, Interval
from labeldp.accounts.budget import (
    Budget,
    Charge,
    Declaration,
    exact_sum,
    label_cost,
    rounded_up,
    sum_of,
    total_of,
)
from labeldp.accounts.explanation import SUMMARY, explain
from labeldp.accounts.scope import People
from labeldp.accounts.segments import Segments
from labeldp.accounts.statistic import Statistic
from labeldp.mechanisms import card_format
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.typed_data import Natural, Positive, canonical, plain

REPORTS = "answers that respondents randomised themselves, in no ledger"
"""The description of the charge for reports: respondents spent it, and a card states it."""


def fit_times(charges: Iterable[Charge]) -> tuple[str, ...]:
    """Return the times of all charges but those for scores, in order: the identity of a fit."""
    return tuple(sorted(charge.when for charge in charges if charge.purpose != "score"))


@dataclass(frozen=True, slots=True)
class Split:
    """A split of rows into those of a fit and those of a score, by a public seed, never by labels.

    Attributes
    ----------
    seed : int
        Of the random order whose first rows are scored.
    train_rows, test_rows : int
        The number of rows of the fit, and of the others, of the score.
    fit_charges : tuple of str
        The time of each charge of the fit. It read the labels of the training rows, and the score those of the
        others.
    method : {"shuffled", "people"}
        With "people", all rows of a person are on one side: the random order is of people.
    """

    seed: Natural
    train_rows: Positive
    test_rows: Positive
    fit_charges: tuple[str, ...] = field(default=(), repr=False)
    method: Literal["shuffled", "people"] = field(default="shuffled", repr=False)

    @classmethod
    def of(cls, seed: int, rows: int, test_rows: int, people: Index | None = None) -> Split:
        """Return a split with this many rows to score, and further rows of the last person."""
        if people is not None:
            ordered = people[_row_order(seed, rows, people)]
            is_last_person = ordered[test_rows:] == ordered[test_rows - 1]
            test_rows += int(np.argmin(np.append(is_last_person, False)))
        return cls(seed, rows - test_rows, test_rows, method="shuffled" if people is None else "people")

    def separates(self, charges: Sequence[Charge]) -> bool:
        """Return whether these are the charges of the fit, beside those for its score."""
        return fit_times(charges) == self.fit_charges

    def indices(self, people: Index | None = None) -> tuple[Index, Index]:
        """Return the numbers of the rows to learn from and of those to score, in the order of the table.

        Parameters
        ----------
        people : array of int, optional
            The number of each row's person, which a split by people needs.
        """
        order = _row_order(self.seed, self.train_rows + self.test_rows, people)
        return np.sort(order[self.test_rows :]), np.sort(order[: self.test_rows])


def _row_order(seed: int, rows: int, people: Index | None) -> Index:
    """Return all rows in a random order, or people in a random order with all their rows."""
    random = np.random.default_rng(seed)
    if people is None:
        return random.permutation(rows)
    return np.argsort(random.permutation(int(people.max()) + 1)[people], kind="stable")


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms of a release: mechanisms, priors and costs. There is no label in it: all of it can be published.

    Attributes
    ----------
    rows : int
        The number of labels.
    mechanisms, priors : tuple
        One for each label column; a prior is None where none was needed. Rows that are released in rounds, and
        models, have one mechanism for each part of the rows; a model that learned from noisy sums has none.
    charges : tuple of Charge
        The cost, part by part.
    bounds : tuple of (lo, hi)
        One pair for each label column.
    trust : {"curator", "local"}
        The reader of labels before noise: a curator, or nobody.
    secure : bool
        False if the noise came from a seed: then this is an experiment, and **not private**.
    statistics : tuple of Statistic
        Integers of all rows that were released with noise, each part of a charge.
    split : Split or None
        The split of the rows into those of the fit and those of the score, if this library made it.
    declaration : Declaration
        The statements of the owner.
    label_transform : {None, "log", "sqrt"}
        The function of the label that a model learned.
    people : People or None
        The people whose rows were counted; None where the owner states their number of rows.
    fits : tuple of Terms
        The first fit and the updates of a model that learnt on; empty for all else.

    Examples
    --------
    >>> import labeldp as ldp
    >>> terms = ldp.privatize([2.5, 4.0], epsilon=1.0, bounds=(0, 5), mechanism="laplace").terms
    >>> terms.rows, terms.mechanisms, terms.cost
    (2, (Laplace(bounds=(0.0, 5.0), epsilon=1.0),), Budget(epsilon=1.0))
    >>> print(terms.guarantee)
    label differential privacy with ε = 1 for all that this card lists: changing one row's label changes the
    probability of any of it by at most a factor e^1; features, the number and order of rows, and bounds are public
    """

    rows: int
    mechanisms: tuple[Mechanism, ...]
    priors: tuple[Histogram | None, ...]
    charges: tuple[Charge, ...]
    bounds: tuple[Interval, ...]
    trust: str
    secure: bool
    statistics: tuple[Statistic, ...] = ()
    split: Split | None = None
    declaration: Declaration = Declaration()
    label_transform: str | None = None
    people: People | None = None
    fits: tuple[Terms, ...] = field(default=(), repr=False)

    def updated(self, terms: Terms) -> Terms:
        """Return the terms of a model with those of an update; scores of the model before are not of this one."""
        return join_fits([*(self.fits or [self.without_score()]), terms])

    def without_score(self) -> Terms:
        """Return the terms of a model alone."""
        charges = tuple(charge for charge in self.charges if charge.purpose != "score")
        statistics = tuple(statistic for statistic in self.statistics if statistic.purpose != "score")
        return replace(self, charges=charges, statistics=statistics, split=None)

    @property
    def cost(self) -> Budget:
        """The total of all charges: the largest cost of one label, or of all labels of a person in a segment.

        Of a model with updates, and rows counted by people: the sum over all of them, as a person may be in each.
        """
        if self.fits and self.counts_people:
            return Budget(exact_sum(fit.cost.exact_epsilon for fit in self.fits))
        return total_of(self.charges)

    @property
    def counts_people(self) -> bool:
        """True if a person may have several rows, or the rows of people were counted."""
        fits = self.fits or (self,)
        return any(fit.rows_per_person > 1 or fit.people is not None for fit in fits)

    @property
    def label_cost(self) -> Budget:
        """The largest cost of one label."""
        return label_cost(self.charges)

    @property
    def stated_cost(self) -> dict[str, float]:
        """The cost as a card states it."""
        return {"epsilon": self.cost.epsilon, "label": self.label_cost.epsilon}

    @property
    def segments(self) -> Segments | None:
        """The segments of the rows; None if the charges count for the rows of all, or a model has updates."""
        if self.fits:
            return None
        return next((charge.segments for charge in self.charges if charge.purpose != "prior"), None)

    def charges_for(self, purpose: str) -> list[Charge]:
        """Return the charges with a purpose."""
        return [charge for charge in self.charges if charge.purpose == purpose]

    @property
    def is_of_reports(self) -> bool:
        """True if respondents randomised their answers themselves, and spent the ε."""
        return any(charge.description == REPORTS for charge in self.charges)

    @property
    def rows_per_person(self) -> int:
        """The number of rows of one person that the cost covers."""
        return max((charge.rows_per_person for charge in self.charges), default=1)

    @property
    def guarantee(self) -> str:
        """The promise, in a sentence."""
        if not self.secure:
            return "NOT PRIVATE: the noise can be repeated from a seed"
        cost, total, people, count = self.cost, total_of(self.charges), self.rows_per_person, len(self.bounds)
        unit = "one row's label" if count == 1 else f"all {count} labels of one row"
        unit = unit if people == 1 else f"all labels of a person with up to {people} rows"
        if self.fits and self.counts_people:
            times = ", ".join(str(fit.rows_per_person) for fit in self.fits)
            unit = f"all labels of a person with up to {times} rows in its {len(self.fits)} fits"
        return (
            f"label differential privacy with {cost} for all that this card lists: changing {unit} changes the "
            f"probability of any of it by at most a factor e^{rounded_up(cost.epsilon)}"
            + ("; no row is in both the model and its score" if self.split else "")
            + ("; no row is in two of the segments charged" if total != sum_of(self.charges) else "")
            + "; features, the number and order of rows, and bounds are public"
        )

    def guarantee_of(self, file: Data) -> str:
        """Return the promise for a file: where its rows are in random order, their order is not public."""
        is_shuffled = file.get("row_order") == "shuffled"
        return self.guarantee.replace("number and order", "number") if is_shuffled else self.guarantee

    def summary(self, kind: str = "release", **entries: Any) -> str:
        """Return a summary for people: the part of `explain` in which releases differ."""
        return explain(self, kind, entries).text(SUMMARY)

    def html(self, kind: str = "release", *, code: str = "", **entries: Any) -> str:
        """Return the same for a notebook, under a line of code; no label is in it, and all text is escaped."""
        return self.html_of("\n".join(filter(None, [code, self.summary(kind, **entries)])))

    @staticmethod
    def html_of(text: str) -> str:
        """Return text for a notebook, escaped."""
        return f'<pre style="white-space:pre-wrap">{escape(text)}</pre>'

    def to_card(self, schema: str = "labeldp.release", **entries: Any) -> str:
        """Return a card: JSON with a checksum, and no label in it.

        Parameters
        ----------
        schema : {"labeldp.release", "labeldp.row-release", "labeldp.model"}
            The subject of the terms.
        **entries : pure data
            Further public entries, such as which file the labels are in.
        """
        return card_format.dump(self.content(**entries), "labeldp.updated-model" if self.fits else schema)

    def joint_content(self, file: Data) -> Data:
        """Return the common entries of the card of several labels, in a file if there is one."""
        return {
            "guarantee": self.guarantee_of(file),
            "cost": self.stated_cost,
            "secure": self.secure,
            "rows": self.rows,
        }

    def content(self, **entries: Any) -> Data:
        """Return the entries of a card, but for schema, version and checksum."""
        if self.fits:
            return {**entries, **self.joint_content({}), "fits": [fit.content() for fit in self.fits]}
        once = {id(mechanism): canonical(plain(mechanism)) for mechanism in self.mechanisms}
        texts = [once[id(mechanism)] for mechanism in self.mechanisms]
        distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        names = ("bounds", "priors", "charges", "statistics", "split", "label_transform", "people")
        fields = {name: getattr(self, name) for name in names}
        content = {
            **self.joint_content(entries.get("file", {})),
            "trust": self.trust,
            "mechanisms": list(map(json.loads, distinct)),
            "parts": [distinct[text] for text in texts],
            **{name: plain(value) for name, value in fields.items() if value is not None},
            **plain(self.declaration),
        }
        return {**entries, **content}


def join_terms(terms: Sequence[Terms]) -> Terms:
    """Return the terms of several labels of the same rows: their charges add up.

    Examples
    --------
    >>> import labeldp as ldp
    >>> how = {"epsilon": 0.5, "mechanism": "laplace", "ledger": ldp.Ledger()}
    >>> pay = ldp.privatize([2.5, 4.0], bounds=(0, 5), **how).terms
    >>> rent = ldp.privatize([1.0, 2.0], bounds=(0, 3), **how).terms
    >>> join_terms([pay, rent]).cost, join_terms([pay, rent]).bounds
    (Budget(epsilon=1.0), ((0.0, 5.0), (0.0, 3.0)))
    """
    if len(terms) == 1:
        return terms[0]
    lists = ("mechanisms", "priors", "charges", "bounds", "statistics")
    return _joined(terms, *lists, label_transform=None)


def _joined(terms: Sequence[Terms], *lists: str, **fields: Any) -> Terms:
    """Return the terms of the first part with lists of all parts; they are as secure as the least secure part."""
    for name in lists:
        fields[name] = tuple(chain.from_iterable(getattr(entry, name) for entry in terms))
    trust = "curator" if any(entry.trust == "curator" for entry in terms) else "local"
    is_secure = all(entry.secure for entry in terms)
    return replace(terms[0], trust=trust, secure=is_secure, split=None, **fields)


def join_fits(fits: Sequence[Terms]) -> Terms:
    """Return the terms of a model that learnt from several sets of rows: a first fit and its updates.

    Examples
    --------
    >>> import labeldp as ldp
    >>> how = {"bounds": (0, 5), "mechanism": "laplace", "ledger": ldp.Ledger()}
    >>> parts = [ldp.privatize([2.5], epsilon=0.5, segment=day, **how).terms for day in ("Monday", "Tuesday")]
    >>> join_fits(parts).cost, join_fits(parts).rows
    (Budget(epsilon=0.5), 2)
    """
    lists = ("mechanisms", "charges", "statistics")
    rows = sum(fit.rows for fit in fits)
    return _joined(fits, *lists, rows=rows, fits=tuple(fits), priors=(), people=None)


def card_of_labels(labels: Mapping[str, tuple[Terms, Data]], **shared: Any) -> str:
    """Return the card of one label or of several of the same rows, by their names.

    Parameters
    ----------
    labels : dict of (Terms, dict)
        The terms of each, and further public entries.
    **shared : pure data
        Further public entries of all, such as which file they are in.
    """
    if len(labels) == 1:
        ((terms, entries),) = labels.values()
        return terms.to_card(**entries, **shared)
    joint = join_terms([terms for terms, _ in labels.values()]).joint_content(shared.get("file", {}))
    contents = [{**terms.content(**entries), "label": name} for name, (terms, entries) in labels.items()]
    return card_format.dump({**shared, **joint, "labels": contents}, "labeldp.releases")


class TermsMixin:
    """Mixin for releases: properties that return the fields of their terms."""

    __slots__ = ()
    terms: Terms
    labels: Array
    kind = "release"

    @property
    def charges(self) -> tuple[Charge, ...]:
        """The cost of the release, part by part."""
        return self.terms.charges

    @property
    def cost(self) -> Budget:
        """The cost of the release in all."""
        return self.terms.cost

    @property
    def secure(self) -> bool:
        """True if the noise is secure; False if it came from a seed, and then this is **not private**."""
        return self.terms.secure

    def __repr__(self) -> str:
        state = "secure" if self.secure else "NOT PRIVATE"
        return f"<{type(self).__name__} of {len(self.labels):,} labels, {self.cost}, {state}>"

    def _repr_html_(self) -> str:
        return self.terms.html(self.kind)

    def summary(self) -> str:
        """Return the release in plain words: actions, cost, noise, and warnings."""
        return self.terms.summary()

    def to_card(self) -> str:
        """Return the card of the release: JSON with a checksum, and no label in it."""
        return self.terms.to_card()
