"""`RowRelease`: labels released one by one, each in its own interval, with all that is public about each."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from labeldp._atomic import StrPath, atomic_file
from labeldp._values import Array, Data, Index, Numbers
from labeldp.accounts.accuracy import is_possible
from labeldp.accounts.card import Card
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.terms import Terms, TermsMixin
from labeldp.errors import CardError
from labeldp.learning.array_files import MAX_FILE, parse_specs, read_arrays
from labeldp.learning.fit_plan import LabelSummary
from labeldp.learning.measurements import precision_weights
from labeldp.mechanisms.base import array_bytes

SCHEMA = "labeldp.row-release"

_CARD = parse_specs("card <U -")
"""The card of a release, in the same file as its arrays."""

_ARRAYS = parse_specs("""
labels  <f8  rows
offset  <f8  rows
low     <f8  rows
high    <f8  rows
start   <f8  rows
scale   <f8  rows  0
noise   <f8  rows  0
hidden  <f8  rows  0
round   <i8  rows  0
part    <i8  rows  0
""")
"""All arrays of a release."""


@dataclass(frozen=True, slots=True, repr=False)
class RowRelease(TermsMixin):
    """Private labels for a learner, released in rounds. Everything in here may be made public.

    Attributes
    ----------
    labels : array
        Private labels, as close to unbiased as clipping allows: train on these.
    offset, scale : arrays
        The public map of each row: a label is offset + scale · its mechanism's unbiased output.
    noise : array
        Variance of the privacy noise in each label; 1/(noise + the model's own error) is a good weight.
    hidden : array
        Variance hidden by clipping around each label, estimated from earlier releases.
    low, high : arrays
        The interval to which each label was clipped, and in which it was randomised.
    start : array
        The prediction for each row before any label was released one by one.
    round, part : arrays of int
        The round in which each row was released, and the position of its mechanism in `mechanisms`.
    label_summary : LabelSummary
        The private range and variance of all labels, estimated before the rounds.
    terms : Terms
        Mechanisms, charges and cost. The mechanisms are for [0, 1], the label's position in its interval; those of
        reports are for the label itself.
    ledger : Ledger or None
        None for a release read from a file.

    Examples
    --------
    A `LabelReleaseRegressor` keeps one. Saved, it serves other learners later, and costs nothing more.

    >>> import tempfile, numpy as np, labeldp as ldp
    >>> from sklearn.linear_model import Ridge
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.clip(2.5 + X[:, 0], 0, 5)
    >>> release = ldp.LabelReleaseRegressor(Ridge(), epsilon=2.0, bounds=(0, 5)).fit(X, y).release_
    >>> path = tempfile.mkdtemp() + "/labels.npz"
    >>> release.save(path)
    >>> again = ldp.learning.RowRelease.load(path)           # its mechanisms are proven again
    >>> other = Ridge(alpha=10).fit(X, again.labels, sample_weight=1 / (again.noise + 1))
    >>> again.cost
    Budget(epsilon=2.0)
    """

    labels: Array
    offset: Array
    scale: Array
    noise: Array
    hidden: Array
    low: Array
    high: Array
    start: Array
    round: Index
    part: Index
    label_summary: LabelSummary
    terms: Terms
    ledger: Ledger | None = None

    kind = "row-release"

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        if self.ledger is not None and not self.ledger.path:  # one in memory stays where it is
            fields["ledger"] = None
        return RowRelease, tuple(fields.values())

    @property
    def weight(self) -> Array:
        """Sample weights for a learner, 1 on average; noisier labels have smaller ones."""
        return precision_weights(self.noise, self.label_summary.variance / 2)

    def summary(self) -> str:
        """Return a summary in plain words."""
        return self.terms.summary(self.kind)

    def to_card(self) -> str:
        """Return the card of the release: JSON with a checksum, and no label in it."""
        return self.terms.to_card(
            SCHEMA,
            rounds=int(self.round.max()) + 1,
            knowledge=dataclasses.asdict(self.label_summary),
            arrays={name: _digest(getattr(self, name)) for name in _ARRAYS},
        )

    def save(self, path: StrPath) -> None:
        """Write the release to a ``.npz`` file, whole or not at all.

        Parameters
        ----------
        path : path-like
            A file that is there is replaced.
        """
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        with atomic_file(path) as file, open(file, "wb") as stream:
            np.savez_compressed(stream, card=np.array(self.to_card()), **arrays)

    @classmethod
    def load(cls, path: StrPath) -> RowRelease:
        """Read a release that `save` wrote; its mechanisms are proven again.

        Parameters
        ----------
        path : path-like

        Returns
        -------
        RowRelease

        Raises
        ------
        CardError
            If the file is damaged or was changed, its labels are not those that its card states, or there is one
            that its mechanism cannot have given out.
        """
        text = str(read_arrays(path, _CARD, {}, skip_others=True)["card"])
        card = Card.parse(text)  # first: a later version may have other arrays
        arrays: Data = read_arrays(path, _CARD | _ARRAYS, {"rows": (1, MAX_FILE)})
        del arrays["card"]
        if {name: _digest(array) for name, array in arrays.items()} != card.content.get("arrays"):
            raise CardError(
                f"{os.fspath(path)} holds other labels than its card states: it was changed or mixed up"
            )
        summary = card.content.get("knowledge", {})  # its values were checked with the card
        if card.kind != cls.kind or set(summary) != {field.name for field in dataclasses.fields(LabelSummary)}:
            raise CardError(f"{os.fspath(path)} does not hold the card of a saved release")
        release = cls(**arrays, label_summary=LabelSummary(**summary), terms=card.terms)
        release._refuse_contradictions(os.fspath(path))
        return release

    def _refuse_contradictions(self, path: str) -> None:
        """Refuse arrays that do not fit the card, and labels that their mechanism cannot give out."""
        if not self._is_consistent():
            raise CardError(f"{path} holds arrays that do not fit its card")
        if not self._is_possible():
            raise CardError(
                f"{path} holds labels that their mechanism cannot give out, and that may be true: do not use or "
                "share the file"
            )

    def _is_consistent(self) -> bool:
        """Return whether arrays fit the card: its number of rows, its range of labels and its mechanisms."""
        low, high = self.label_summary.low, self.label_summary.high
        return bool(
            len(self.labels) == self.terms.rows
            and (self.low >= low).all()
            and (self.low < self.high).all()
            and (self.high <= high).all()
            and (self.part < len(self.terms.mechanisms)).all()
            and np.unique(self.round).size <= len(self.terms.mechanisms)
        )

    def _is_possible(self) -> bool:
        """Return whether every label is offset + scale · an unbiased output of its mechanism."""
        for number, mechanism in enumerate(self.terms.mechanisms):
            rows = self.part == number
            labels, offset, scale = self.labels[rows], self.offset[rows], self.scale[rows]
            if not is_possible(labels, mechanism, debiased=True, offset=offset, scale=scale).all():
                return False
        return True


def _digest(array: Numbers) -> str:
    return hashlib.sha256(array_bytes(array)).hexdigest()
