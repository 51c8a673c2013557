"""The budget as a bar: what was spent on what, and what a ledger says is left."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from labeldp._validation import rounded_up
from labeldp.ledger import Budget, Charge, Ledger, total_of
from labeldp.report.page import escaped, paragraphs_html, table_html

__all__ = ["budget_html"]

MOST = 6
"""Parts of the bar; more would be slivers."""


def budget_html(own: Sequence[Charge], ledger: Ledger | None) -> str:
    """Return the section with the bar and the table of a release's charges, beside all that a ledger holds."""
    others, missing = _others(own, () if ledger is None else ledger.charges)
    parts = _parts(own, others)
    total, people = total_of([*own, *others]), max(charge.rows_per_person for charge in own)
    words = [f"This cost {total_of(own)} in all."]
    if people > 1:
        words.append(f"That covers persons with up to {people:,} rows (group privacy).")
    if others:
        words.append(f"With all else in the ledger, {total} is spent.")
    if ledger is not None and ledger.limit is not None:
        left = ledger.limit.minus(total)
        words.append(f"The limit is {ledger.limit}; left is {left}.")
        parts.append(("left of the limit", left.epsilon, "left-over"))
    elif ledger is not None:
        words.append("The ledger has no limit: it counts, and refuses nothing.")
    words.append("What was spent never comes back: another release of the same labels costs again, on top.")
    warning = ""
    if ledger is not None and missing:
        warning = '<p class="loud">The ledger given does not hold all charges of this release.</p>'
    return (
        f"<section><h2>What it cost</h2>{warning}{paragraphs_html([' '.join(words)])}"
        f"{_bar(parts)}{_table(own)}</section>"
    )


def _others(own: Sequence[Charge], recorded: Sequence[Charge]) -> tuple[list[Charge], bool]:
    """Return a ledger's charges that are not this release's, and whether it lacks one that is."""
    wanted = Counter(_key(charge) for charge in own)
    others = []
    for charge in recorded:
        if wanted[_key(charge)] > 0:
            wanted[_key(charge)] -= 1
        else:
            others.append(charge)
    return others, wanted.total() > 0


def _key(charge: Charge) -> str:
    return json.dumps(charge.as_data(), sort_keys=True, default=str)


def _parts(own: Sequence[Charge], others: Sequence[Charge]) -> list[tuple[str, float, str]]:
    """Return (name, ε, class) for each part of the bar, largest first, the smallest together."""
    sums: dict[str, Budget] = {}
    for charge in own:
        sums[charge.what] = sums.get(charge.what, Budget(0)) + charge.budget
    listed = sorted(sums.items(), key=lambda pair: -pair[1].epsilon)
    if len(listed) > MOST:
        rest = [budget for _, budget in listed[MOST - 1 :]]
        listed = [*listed[: MOST - 1], (f"{len(rest)} more", sum(rest, Budget(0)))]
    parts = [(what, budget.epsilon, f"s{k % 4 + 1}") for k, (what, budget) in enumerate(listed)]
    if others:
        parts.append(("spent on other releases", total_of(others).epsilon, "other"))
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
    columns = {"spent on": [charge.what for charge in charges]}
    columns["ε"] = [rounded_up(charge.budget.epsilon) for charge in charges]
    if any(charge.budget.exact_delta for charge in charges):
        columns["δ"] = [rounded_up(charge.budget.delta, 3) for charge in charges]
    if any(charge.rows_per_person != 1 for charge in charges):
        columns["rows a person"] = [str(charge.rows_per_person) for charge in charges]
    columns["when"] = [charge.when.replace("T", " ").replace("+00:00", " UTC") for charge in charges]
    return table_html(list(columns), list(zip(*columns.values(), strict=True)))
