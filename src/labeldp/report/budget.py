"""The budget as a bar: what was spent on what, and what a ledger says is left."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from labeldp._validation import rounded_up
from labeldp.ledger import Budget, Charge, Ledger, total_of
from labeldp.report.section import escaped, paragraphs_html, table_html

__all__ = ["Spent", "budget_html"]

MOST = 6
"""Parts of the bar; more would be slivers."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Charges of this release, beside all that a ledger holds.

    Attributes
    ----------
    own : tuple of Charge
    others : tuple of Charge
        The ledger's charges that are not this release's.
    limit : Budget or None
    missing : bool
        Whether the ledger lacks a charge of this release: then it does not tell the whole story.
    ledger : bool
        Whether a ledger was given.
    """

    own: tuple[Charge, ...]
    others: tuple[Charge, ...] = ()
    limit: Budget | None = None
    missing: bool = False
    ledger: bool = False

    @classmethod
    def of(cls, own: Sequence[Charge], ledger: Ledger | None) -> Spent:
        """Find this release's charges among those of a ledger."""
        if ledger is None:
            return cls(tuple(own))
        wanted = Counter(_key(charge) for charge in own)
        others = []
        for charge in ledger.charges:
            if wanted[_key(charge)] > 0:
                wanted[_key(charge)] -= 1
            else:
                others.append(charge)
        return cls(tuple(own), tuple(others), ledger.limit, wanted.total() > 0, True)


def _key(charge: Charge) -> str:
    return json.dumps(charge.as_data(), sort_keys=True, default=str)


def budget_html(spent: Spent) -> str:
    """Return the section with the bar and the table of charges."""
    parts = _parts(spent)
    total = total_of([*spent.own, *spent.others])
    own = total_of(spent.own)
    words = [f"This cost {own}."]
    if spent.others:
        words.append(f"With all else in the ledger, {total} is spent.")
    if spent.limit is not None:
        left = spent.limit.minus(total)
        words.append(f"The limit is {spent.limit}; left is {left}.")
        parts.append(("left of the limit", left.epsilon, "left-over"))
    elif spent.ledger:
        words.append("The ledger has no limit: it counts, and refuses nothing.")
    words.append("What was spent never comes back: another release of the same labels costs again, on top.")
    warned = ""
    if spent.missing:
        warned = '<p class="loud">The ledger given does not hold all charges of this release.</p>'
    return (
        f"<section><h2>The budget</h2>{warned}{paragraphs_html([' '.join(words)])}"
        f"{_bar(parts)}{_table(spent.own)}</section>"
    )


def _parts(spent: Spent) -> list[tuple[str, float, str]]:
    """Return (name, ε, class) for each part of the bar, largest first, the smallest together."""
    sums: dict[str, Budget] = {}
    for charge in spent.own:
        sums[charge.what] = sums.get(charge.what, Budget(0)) + charge.budget
    listed = sorted(sums.items(), key=lambda pair: -pair[1].epsilon)
    if len(listed) > MOST:
        rest = [budget for _, budget in listed[MOST - 1 :]]
        listed = [*listed[: MOST - 1], (f"{len(rest)} more", sum(rest, Budget(0)))]
    parts = [(what, budget.epsilon, f"s{k % 4 + 1}") for k, (what, budget) in enumerate(listed)]
    if spent.others:
        parts.append(("spent on other releases", total_of(spent.others).epsilon, "other"))
    return parts


def _bar(parts: Sequence[tuple[str, float, str]]) -> str:
    whole = sum(epsilon for _, epsilon, _ in parts)
    if not 0 < whole < float("inf"):
        return ""
    words = "; ".join(f"{what}: ε = {rounded_up(epsilon, 4)}" for what, epsilon, _ in parts)
    pieces = "".join(
        f'<span class="{kind}" style="flex-grow:{epsilon / whole:.6f}"></span>' for _, epsilon, kind in parts
    )
    keys = "".join(
        f'<li><span class="key {kind}"></span>{escaped(what)} <b>{rounded_up(epsilon, 4)}</b> '
        f"<small>({100 * epsilon / whole:.3g} %)</small></li>"
        for what, epsilon, kind in parts
    )
    return f'<div class="bar" role="img" aria-label="{escaped(words)}">{pieces}</div><ul class="keys">{keys}</ul>'


def _table(charges: Sequence[Charge]) -> str:
    with_delta = any(c.budget.exact_delta for c in charges)
    people = any(c.rows_per_person != 1 for c in charges)
    header = ["spent on", "ε", *(["δ"] if with_delta else []), *(["rows a person"] if people else []), "when"]
    rows = [
        [
            str(c.what),
            rounded_up(c.budget.epsilon),
            *([rounded_up(c.budget.delta, 3)] if with_delta else []),
            *([str(c.rows_per_person)] if people else []),
            str(c.when).replace("T", " ").replace("+00:00", " UTC"),
        ]
        for c in charges
    ]
    return table_html(header, rows)
