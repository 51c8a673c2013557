"""A ledger as a page: the cost of a label, of a segment and of a person over time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from labeldp.accounts.budget import Budget, Charge, label_cost, rounded_up, sum_of, sums_by_segment
from labeldp.accounts.ledger_chain import Book, Chain
from labeldp.accounts.ledger_totals import describe_totals, median_total
from labeldp.app.report.card_report import templates
from labeldp.app.report.drawing import draw
from labeldp.errors import LedgerError

LINES = {
    "label": {"person": "a person with a row in every segment", "label": "a label"},
    "person": {
        "person": "the person with the largest total",
        "label": "a label",
        "median": "the median person",
    },
}
"""Lines of the drawing, by the unit of the ledger."""

ALTERNATIVE = "The cost of a label, of a person and of each segment after each charge, and the limit."


@dataclass(frozen=True, slots=True)
class Balance:
    """Totals after a record of a ledger.

    Attributes
    ----------
    when : datetime
    label : float
        The largest cost of a label.
    person : float
        The largest total of a person; without accounts of people, the cost of one row in every segment.
    median : float
        The median total of people who have an account; 0 without accounts.
    """

    when: datetime
    label: float
    person: float
    median: float


def render_ledger(book: Book) -> str:
    """Return the page of a ledger, as HTML that loads nothing and runs nothing.

    Parameters
    ----------
    book : Book

    Examples
    --------
    >>> import labeldp as ldp
    >>> ledger = ldp.Ledger(limit=ldp.Budget(epsilon=1.0))
    >>> for night in ("Monday", "Tuesday"):
    ...     charge = ledger.charge("labels", epsilon=0.5, segment=night)
    >>> page = render_ledger(ledger)
    >>> "Spent ε = 0.5 of ε = 1 in 2 charges" in page, "<td>Tuesday</td>" in page
    (True, True)
    """
    chain = book.chain
    limit = "and there is no limit" if book.limit is None else f"of {book.limit}"
    summary = f"Spent {book.total} {limit} in {len(chain.charges):,} charges."
    balances = replay(book)
    return (
        templates()
        .get_template("ledger.html")
        .render(
            name=Path(book.path or "in memory").name,
            time=f"{balances[-1].when:%Y-%m-%d %H:%M} UTC" if balances else "",
            sentences=[summary, *describe_totals(chain)],
            image=draw(lambda axes: plot_balances(axes, balances, book), 3.4),
            alternative=ALTERNATIVE,
            segments=_list_segments(chain, book.limit),
        )
    )


def replay(book: Book) -> list[Balance]:
    """Return the totals after each record with charges."""
    chain, balances = Chain("the ledger"), list[Balance]()
    for entry in json.loads(book.to_extract())["records"]:
        charges = len(chain.charges)
        chain.add(entry["record"], entry["hash"])
        if len(chain.charges) > charges:
            balances.append(_balance(chain))
    return balances


def _balance(chain: Chain) -> Balance:
    person = chain.total if chain.rules.unit == "person" else sum_of(chain.charges)
    label, median = label_cost(chain.charges), median_total(chain)
    return Balance(_time_of(chain.charges[-1]), label.epsilon, person.epsilon, median.epsilon)


def _time_of(charge: Charge) -> datetime:
    """Return the time of a charge, which an extract may have from anybody."""
    try:
        return datetime.fromisoformat(charge.when).astimezone(UTC)
    except (ValueError, OverflowError):
        raise LedgerError("a charge has a time that cannot be read: no page was written") from None


def plot_balances(axes: Any, balances: Sequence[Balance], book: Book) -> None:
    """Draw totals over time, and the limit."""
    times = [balance.when for balance in balances]
    for attribute, name in LINES[book.chain.rules.unit].items():
        axes.step(times, [getattr(balance, attribute) for balance in balances], where="post", label=name)
    latest = {name: charge for charge in book.charges if charge.segments for name in charge.segments.names}
    if latest:
        sums = sums_by_segment(book.charges)[1]
        costs = [Budget(sums[name]).epsilon for name in latest]
        axes.plot(list(map(_time_of, latest.values())), costs, ".", ms=3, color="0.5", label="each segment")
    if book.limit is not None:
        axes.axhline(book.limit.epsilon, color="#b04a00", ls="--", label="the limit")
    axes.set(xlabel="time of the charge (UTC)", ylabel="ε", ylim=(0, None))
    axes.tick_params(axis="x", rotation=30)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, fontsize=9)


def _list_segments(chain: Chain, limit: Budget | None) -> list[list[str]]:
    """Return the cost of one row of each segment, and the rest of the limit where it is one of a label."""
    common, sums = sums_by_segment(chain.charges)
    rows = [["segment", "ε", "left"]]
    for name, cost in (sums or {"all rows": Fraction(0)}).items():
        total = Budget(common + cost)
        remaining = "" if limit is None else rounded_up(limit.minus(total).exact_epsilon)
        rows.append([name, rounded_up(total.exact_epsilon), remaining])
    return rows if limit and chain.rules.unit == "label" else [row[:2] for row in rows]
