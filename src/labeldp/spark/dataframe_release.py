"""`privatize` on a DataFrame."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Literal

from pyspark.sql import DataFrame

from labeldp.accounts.ledger import Ledger, as_ledger, ledger_to_charge
from labeldp.accounts.scope import Scope
from labeldp.accounts.terms import Terms, TermsMixin
from labeldp.exact.row_words import ReleaseKey, card_checksum
from labeldp.exact.word_sources import resolve_source
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.curator import FINE
from labeldp.release.plan import Request, prepare
from labeldp.release.queries import Cells
from labeldp.spark.cluster_access import ClusterAccess
from labeldp.spark.executor import release_frame, releaser
from labeldp.spark.frame_checks import (
    StableFrame,
    check_id,
    check_label,
    check_rows,
    refuse_nested_columns,
    stable_frame,
)
from labeldp.spark.session import SealedSecret, as_seed, column, refuse_revealing_log, seal


@dataclass(frozen=True, slots=True)
class SparkRelease(TermsMixin):
    """A DataFrame with private labels, and how they came about.

    Spark computes the frame when an action needs it, each time with the same noise. That needs the release's
    secret: `close` it, or use it in a ``with`` block, once the frame is written.

    Attributes
    ----------
    frame : DataFrame
        All columns, the label replaced by a double that is private, and for the purpose.
    terms : Terms
        On which terms: mechanism, prior, charges, bounds.
    ledger : Ledger
        Where the budget went.
    label, id : str
        The columns of the labels and of the rows' ids.
    name : str
        The release's public name, generated at random.
    purpose : str
        The purpose of the labels, as in `labeldp.privatize`.

    Examples
    --------
    ``spark`` is a session of Spark 4, classic or Connect.

    >>> from labeldp import spark as private
    >>> df = spark.createDataFrame([(k, 10.0 + k % 40) for k in range(200)], ["order", "amount"])
    >>> options = {"label": "amount", "id": "order", "bounds": (0, 50), "epsilon": 1.0}
    >>> release = private.privatize(df, mechanism="two-point", **options)
    >>> release.cost, release.frame.columns
    (Budget(epsilon=1.0), ['order', 'amount'])
    >>> card = release.to_card()            # hand it on with the table
    >>> release.close()                     # once the frame is written
    """

    frame: DataFrame
    terms: Terms = field(repr=False)
    ledger: Ledger = field(repr=False)
    label: str
    id: str
    name: str
    purpose: str
    _sealed: SealedSecret = field(repr=False)
    _source: StableFrame = field(repr=False)

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of all labels."""
        return self.terms.mechanisms[0]

    @property
    def prior(self) -> Histogram | None:
        """The prior, if one was needed."""
        return self.terms.priors[0]

    def to_card(self) -> str:
        """Return the card of the release: JSON with a checksum, and no label in it."""
        return self.terms.to_card(label=self.label, id=self.id, release=self.name, purpose=self.purpose)

    def close(self) -> None:
        """Destroy the secret, and the copy of the rows if one was kept.

        Frames that were not written before then cannot be computed any more. Spark Connect cannot be made to
        forget: there both are gone when the frame, and all made from it, are.
        """
        self._sealed.destroy()
        self._source.drop()

    def __enter__(self) -> SparkRelease:
        return self

    def __exit__(self, *_: object) -> None:
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
    epsilon_prior: float | None = None,
    zeta: float | None = None,
    purpose: Literal["training", "statistics", "values"] = "training",
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    check_ids: bool = True,
    random_state: int | None = None,
) -> SparkRelease:
    """Release a DataFrame's label column for ε in all: `labeldp.privatize` on a cluster.

    Labels are read now, to be checked and counted for the prior, and randomised when the frame is computed. The
    ledger is charged between the two. Spark may compute rows as often as it likes: a row's noise follows from its
    id.

    Parameters
    ----------
    df : DataFrame
        Classic or Spark Connect. All columns but the label are public, and so is which rows there are: neither may
        be computed from labels, and no label may be in several rows unless ``rows_per_person`` says so. Unless it
        is a stored table (files, with nothing computed from them), it is computed once and kept
        (`DataFrame.localCheckpoint`): a row must have the same label each time Spark computes it.
    label : str
        A column of numbers; labels outside the bounds are clipped. Missing ones are refused.
    id : str
        A column of integers, text or binary, with another value in each row. It is public.
    epsilon, bounds, mechanism, prior, epsilon_prior, zeta, rows_per_person
        As for `labeldp.privatize`.
    purpose : {"training", "statistics", "values"}
        As for `labeldp.privatize` without X: the labels of a cluster are randomised one by one.
    ledger : Ledger, optional
        Is charged after all checks, and before noise is drawn.
    check_ids : bool
        Whether to look for ids that two rows share, by a shuffle. False if you know that there are none.
    random_state : int, optional
        Leave it out for a release.

    Returns
    -------
    SparkRelease
        Write its ``frame``, then close it; a ``with`` block does.

    Raises
    ------
    ParameterError, LabelError, DataError
        Before anything is charged.
    BudgetError
        If the ledger refuses; then nothing was released.

    Examples
    --------
    ``spark`` is a session of Spark 4, classic or Connect.

    >>> import tempfile
    >>> from labeldp import spark as private
    >>> df = spark.createDataFrame([(k, 10.0 + k % 40) for k in range(200)], ["order", "amount"])
    >>> folder = tempfile.mkdtemp() + "/private"
    >>> options = {"label": "amount", "id": "order", "bounds": (0, 50), "epsilon": 1.0}
    >>> with private.privatize(df, **options) as release:
    ...     release.frame.write.parquet(folder)
    >>> spark.read.parquet(folder).count(), release.cost
    (200, Budget(epsilon=1.0))
    """
    request = Request(
        epsilon=epsilon,
        bounds=bounds,
        mechanism=mechanism,
        prior=prior,
        epsilon_prior=epsilon_prior,
        zeta=zeta,
        scope=Scope.parse(rows_per_person),
        purpose=purpose,
    )
    seed, ledger = as_seed(random_state), as_ledger(ledger)
    check_label(df, label)
    check_id(df, id, label)
    request.refuse_biased()
    refuse_nested_columns(df)
    refuse_revealing_log(df)
    source = stable_frame(df)
    with ExitStack() as undo:
        undo.callback(source.drop)
        rows = source.frame
        plan = request.plan(check_rows(rows, label, id, check_ids=check_ids))
        access = ClusterAccess(rows.select(column(label)), plan.rows, resolve_source(seed), "prior")
        if plan.for_prior:
            access.count_ahead(Cells(request.bounds, FINE))
        ledger = ledger_to_charge(ledger, df)
        terms = prepare(plan, ledger, access)
        design = terms.mechanisms[0].with_origin(None)  # an origin has the time of its charge
        with ReleaseKey(seed) as key:
            sealed = seal(rows, key.secret(card=card_checksum(design), column=label))
        undo.callback(sealed.destroy)
        work = releaser(design, sealed, debiased=request.purpose != "values")
        frame = release_frame(rows, label, id, work, count=plan.rows)
        undo.pop_all()  # `SparkRelease.close` does both
    return SparkRelease(frame, terms, ledger, label, id, key.release, request.purpose, sealed, source)
