"""`privatize` and `randomize` on a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from labeldp.errors import ParameterError
from labeldp.histogram import Histogram
from labeldp.ledger import Budget, Ledger
from labeldp.ledger.repetition import warn_if_seen
from labeldp.mechanisms.base import Mechanism, load_mechanism
from labeldp.priors import Reports
from labeldp.randomness import resolve_source
from labeldp.randomness.row_words import card_checksum
from labeldp.release.plan import Request
from labeldp.release.stream import LabelCounts, prepare_counts
from labeldp.release.terms import Terms
from labeldp.spark.asked import as_ledger, as_seed, release_key
from labeldp.spark.columns import RowColumns, need_spark
from labeldp.spark.counting import count_labels, count_rows, refuse_repeated_ids
from labeldp.spark.executor import releaser, reporter
from labeldp.spark.output import release_frame
from labeldp.spark.related import refuse_related
from labeldp.spark.repeatable import StableFrame, stable_frame
from labeldp.spark.secret import Sealed, refuse_telling_log, seal
from labeldp.spark.vectors import concatenate, sum_vectors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["SparkRelease", "privatize", "randomize"]

LABELS, REPORTS = 0, 1
"""Rounds of the words: a label's release, and its report for a prior where nobody is trusted."""


@dataclass(frozen=True, slots=True)
class SparkRelease:
    """A DataFrame with private labels, and how they came about.

    Spark computes the frame when it is asked to, each time with the same noise. That needs the release's secret:
    `close` it, or use it in a ``with`` block, once the frame is written.

    Attributes
    ----------
    frame : DataFrame
        All columns, the label replaced by a double that is private.
    terms : Terms
        What was decided and paid for.
    ledger : Ledger
    label, id : str
    name : str
        The release's public name, made at random.
    """

    frame: DataFrame
    terms: Terms = field(repr=False)
    ledger: Ledger = field(repr=False)
    label: str
    id: str
    name: str
    _sealed: Sealed = field(repr=False)
    _source: StableFrame = field(repr=False)

    @property
    def mechanism(self) -> Mechanism:
        """What each label was randomised with."""
        return self.terms.mechanisms[0]

    @property
    def prior(self) -> Histogram | None:
        """The prior, if one was needed."""
        return self.terms.priors[0]

    @property
    def cost(self) -> Budget:
        """What the release cost in all."""
        return self.terms.cost

    @property
    def card(self) -> str:
        """The card of the release, for `read_release_card`: JSON with a checksum, and no label in it."""
        return self.terms.to_card(label=self.label, id=self.id, release=self.name)

    def summary(self) -> str:
        """Return what was done, for people."""
        return self.terms.summary()

    def close(self) -> None:
        """Destroy the secret, and the copy of the rows if one was kept.

        Frames that were not written before then cannot be computed any more. Spark Connect cannot be told to
        forget: there both are gone when the frame, and all made from it, are.
        """
        self._sealed.destroy()
        self._source.drop()

    def __enter__(self) -> SparkRelease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def privatize(
    df: DataFrame,
    *,
    label: str,
    id: str,
    epsilon: float,
    bounds: Any = None,
    mechanism: str | Mechanism = "auto",
    prior: Histogram | None = None,
    trust: Literal["curator", "local"] = "curator",
    epsilon_prior: float | None = None,
    zeta: float | None = None,
    delta: float = 0.0,
    debiased: bool = False,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    check_ids: bool = True,
    materialize: bool | None = None,
    allow_related: Sequence[str] = (),
    random_state: int | None = None,
) -> SparkRelease:
    """Release a DataFrame's label column for ε in all: `labeldp.privatize` on a cluster.

    Labels are read now, to be checked and counted for the prior, and randomised when the frame is computed. The
    ledger is charged between the two. Spark may compute rows as often as it likes: a row's noise follows from its
    id.

    Parameters
    ----------
    df : DataFrame
        Classic or Spark Connect.
    label : str
        A top-level column of numbers; labels outside the bounds are clipped. Missing ones are refused.
    id : str
        A column that tells rows apart: integers, text or binary. It is public.
    epsilon, bounds, mechanism, prior, trust, epsilon_prior, zeta, delta, rows_per_person
        As for `labeldp.privatize`.
    debiased : bool
        Add a column ``<label>_debiased`` with unbiased labels.
    ledger : Ledger, optional
        Is charged after all checks, and before noise is drawn.
    check_ids : bool
        Whether to look for ids that two rows share, by a shuffle. False if you know that there are none.
    materialize : bool, optional
        True: compute ``df`` once and keep it (`DataFrame.localCheckpoint`). False: you know that it is the same
        whenever Spark computes it. By default its plan is asked, and refused if it may not be; with Spark Connect,
        whose plans cannot be asked, it is kept.
    allow_related : list of str
        Columns computed from the same data as the label which may be public nevertheless; others are refused.
    random_state : int, optional
        Leave it out for a release.

    Raises
    ------
    ParameterError, LabelError, DataError
        Before anything is charged.
    BudgetError
        If the ledger refuses; then nothing was released.
    """
    need_spark()
    request = Request(
        epsilon=epsilon,
        bounds=bounds,
        mechanism=mechanism,
        prior=prior,
        trust=trust,
        epsilon_prior=epsilon_prior,
        zeta=zeta,
        delta=delta,
        rows_per_person=rows_per_person,
    )
    seed = as_seed(random_state)
    columns = RowColumns.of(df, label, id)
    schema = columns.schema(df, f"{columns.label}_debiased" if debiased else None)
    given = as_ledger(ledger)
    if debiased:
        request.refuse_biased()
    refuse_telling_log(df)
    refuse_related(df, columns.label, allow_related, id=columns.id, rows_per_person=rows_per_person)
    source = stable_frame(df, materialize)
    try:
        return _release(df, source, columns, request, schema, check_ids=check_ids, ledger=given, seed=seed)
    except BaseException:
        source.drop()
        raise


def _release(
    df: DataFrame,
    source: StableFrame,
    columns: RowColumns,
    request: Request,
    schema: Any,
    *,
    check_ids: bool,
    ledger: Ledger | None,
    seed: int | None,
) -> SparkRelease:
    """Check and count the rows, charge the ledger, and set the release up."""
    rows = columns.ready(source.frame)
    label, id = f"c{columns.label_place}", f"c{columns.id_place}"
    count = count_rows(rows, label, id)
    if check_ids:
        refuse_repeated_ids(rows, id)
    counts = LabelCounts(count, LabelCounts.none().fine)
    if request.trust == "curator" and request.plan(count).for_prior:
        counts = count_labels(rows, label, request.bounds[0], count)
    if ledger is None:
        warn_if_seen(df)
        ledger = Ledger()
    with release_key(seed) as key:

        def reports(asked: Reports) -> NDArray[np.int64]:
            secret = key.secret(card=card_checksum(asked.mechanism), column=columns.label, round=REPORTS)
            sealed = seal(rows, secret)
            try:
                vectors, _ = sum_vectors(rows.select(label, id), reporter(asked, sealed))
            finally:
                sealed.destroy()
            return concatenate(vectors)

        terms = prepare_counts(request, counts, ledger=ledger, source=resolve_source(seed), reports=reports)
        chosen = terms.mechanisms[0]
        sealed = seal(rows, key.secret(card=card_checksum(chosen), column=columns.label, round=LABELS))
    try:
        debiased = len(schema) > len(columns.names)
        work = releaser(chosen.to_json(), sealed, debiased=debiased)
        frame = release_frame(rows, columns, work, schema, count)
    except BaseException:
        sealed.destroy()
        raise
    return SparkRelease(frame, terms, ledger, columns.label, columns.id, key.release, sealed, source)


def randomize(
    df: DataFrame,
    label: str,
    mechanism: Mechanism | str,
    *,
    id: str,
    debiased: bool = False,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    check_ids: bool = True,
    materialize: bool | None = None,
    allow_related: Sequence[str] = (),
    random_state: int | None = None,
) -> SparkRelease:
    """Release a DataFrame's label column with a mechanism that is made already.

    Parameters
    ----------
    df : DataFrame
    label : str
    mechanism : Mechanism or str
        Or its card, from ``to_json``.
    id, debiased, ledger, rows_per_person, check_ids, materialize, allow_related, random_state
        As for `privatize`.
    """
    if isinstance(mechanism, str) and not mechanism.lstrip().startswith("{"):
        raise ParameterError("mechanism must be a mechanism, or the text of its card, not a name or a path")
    made = load_mechanism(mechanism) if isinstance(mechanism, str) else mechanism
    if not isinstance(made, Mechanism):
        raise ParameterError("mechanism must be a mechanism that is made already, or its card")
    if not made.private:
        raise ParameterError("this mechanism gives no privacy at all")
    return privatize(
        df,
        label=label,
        id=id,
        epsilon=made.epsilon,
        bounds=made.domain,
        mechanism=made,
        debiased=debiased,
        ledger=ledger,
        rows_per_person=rows_per_person,
        check_ids=check_ids,
        materialize=materialize,
        allow_related=allow_related,
        random_state=random_state,
    )
