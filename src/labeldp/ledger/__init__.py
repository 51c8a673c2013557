"""What was spent on what, exactly, and never more than the limit."""

from labeldp.ledger.budget import (
    Budget,
    Charge,
    Purpose,
    group_budget,
    name_of_charge,
    new_charge,
    refuse_overspend,
    total_of,
)
from labeldp.ledger.ledger import Ledger, as_ledger, warn_if_seen
from labeldp.ledger.statistic import RULES, Statistic, cost_of

__all__ = [
    "RULES",
    "Budget",
    "Charge",
    "Ledger",
    "Purpose",
    "Statistic",
    "as_ledger",
    "cost_of",
    "group_budget",
    "name_of_charge",
    "new_charge",
    "refuse_overspend",
    "total_of",
    "warn_if_seen",
]
