"""The totals of a ledger in sentences: of a label, of a segment, of people."""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from itertools import accumulate

from labeldp.accounts.budget import Budget, label_cost, sum_of, sums_by_segment
from labeldp.accounts.ledger_chain import Chain


def describe_totals(chain: Chain) -> list[str]:
    """Return the figures of a label, of segments and of people, where they differ, and who vouches for them.

    Parameters
    ----------
    chain : Chain
    """
    sentences = [*_describe_segments(chain), *_describe_people(chain)]
    rows = max((charge.rows_per_person for charge in chain.charges), default=1)
    if rows > 1 and chain.rules.unit == "label":
        label = label_cost(chain.charges)
        sentences.insert(0, f"One label: {label}. A person with up to {rows:,} rows in a release: {chain.total}.")
    return sentences


def _describe_segments(chain: Chain) -> list[str]:
    """Return the largest segment, and who says that rows of different segments are different."""
    all_rows, sums = sums_by_segment(chain.charges)
    if not sums:
        return []
    largest = max(sums, key=lambda name: sums[name])
    name = f" by {chain.partition}" if chain.partition else ""
    is_checked = all(charge.segments.checked for charge in chain.charges if charge.segments is not None)
    vouched = "as all their ids showed" if is_checked else "as the owner declares"
    common = f", {Budget(all_rows)} for all rows" if all_rows else ""
    return [
        f"Segments{name}: {len(sums):,}, up to {Budget(sums[largest])} in "
        f"{largest}{common}. Each row is in one, {vouched}.",
        f"A person with rows in all segments: {sum_of(chain.charges)}."
        if chain.rules.unit == "label"
        else "The accounts of people add up over all segments.",
    ]


def _describe_people(chain: Chain) -> list[str]:
    """Return the distribution of the totals of people."""
    if chain.rules.unit == "label":
        return []
    limit, count = chain.rules.limit, chain.people.total()
    if not count:
        return ["Accounts of people: none yet."]
    exhausted = 0 if limit is None else chain.people[limit.exact_epsilon]
    withdrawn = f", {chain.withdrawn:,} withdrawn" if chain.withdrawn else ""
    return [
        f"Accounts of people: {count:,}. The largest total is {chain.total}, the median {median_total(chain)}; "
        f"{exhausted:,} have nothing left{withdrawn}."
    ]


def median_total(chain: Chain) -> Budget:
    """Return the lower median of the totals of people."""
    totals = sorted(chain.people)
    counts = list(accumulate(chain.people[total] for total in totals))
    middle = bisect_left(counts, (chain.people.total() + 1) // 2)
    return Budget(totals[middle] if totals else Fraction(0))
