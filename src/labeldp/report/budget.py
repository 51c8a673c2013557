"""The budget as a bar: what was spent on what, and what a ledger says is left."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

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
    whole = spent.limit.epsilon if spent.limit is not None else total.epsilon
    own = total_of(spent.own)
    words = [f"This cost ε = {_amount(own)}."]
    if spent.others:
        words.append(f"With all else in the ledger, ε = {_amount(total)} is spent.")
    if spent.limit is not None:
        words.append(f"The limit is ε = {_amount(spent.limit)}; left is ε = {_amount(spent.limit.minus(total))}.")
        parts.append(("left of the limit", max(0.0, whole - total.epsilon), "left-over"))
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


def _amount(budget: Budget) -> str:
    return f"{budget.epsilon:.6g}" + (f" and δ = {budget.delta:.3g}" if budget.exact_delta else "")


def _parts(spent: Spent) -> list[tuple[str, float, str]]:
    """Return (name, ε, class) for each part of the bar, largest first, the smallest together."""
    sums: Counter[str] = Counter()
    for charge in spent.own:
        sums[str(charge.what)] += charge.budget.epsilon  # type: ignore[assignment]
    listed = [(what, float(epsilon)) for what, epsilon in sums.most_common()]
    if len(listed) > MOST:
        rest = listed[MOST - 1 :]
        listed = [*listed[: MOST - 1], (f"{len(rest)} more", sum(epsilon for _, epsilon in rest))]
    parts = [(what, epsilon, f"s{k % 4 + 1}") for k, (what, epsilon) in enumerate(listed)]
    if spent.others:
        parts.append(("spent on other releases", total_of(spent.others).epsilon, "other"))
    return parts


def _bar(parts: Sequence[tuple[str, float, str]]) -> str:
    whole = sum(epsilon for _, epsilon, _ in parts)
    if not 0 < whole < float("inf"):
        return ""
    words = "; ".join(f"{what}: ε = {epsilon:.4g}" for what, epsilon, _ in parts)
    pieces = "".join(
        f'<span class="{kind}" style="flex-grow:{epsilon / whole:.6f}"></span>' for _, epsilon, kind in parts
    )
    keys = "".join(
        f'<li><span class="key {kind}"></span>{escaped(what)} <b>{epsilon:.4g}</b> '
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
            f"{c.budget.epsilon:.6g}",
            *([f"{c.budget.delta:.3g}"] if with_delta else []),
            *([str(c.rows_per_person)] if people else []),
            str(c.when).replace("T", " ").replace("+00:00", " UTC"),
        ]
        for c in charges
    ]
    return table_html(header, rows)
