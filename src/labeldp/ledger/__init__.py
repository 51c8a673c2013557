"""What was spent on what, exactly, and never more than the limit."""

from labeldp.ledger.budget import Budget, group_budget
from labeldp.ledger.ledger import (
    Charge,
    Ledger,
    Purpose,
    as_ledger,
    name_of_charge,
    new_charge,
    refuse_overspend,
    total_of,
)

__all__ = [
    "Budget",
    "Charge",
    "Ledger",
    "Purpose",
    "as_ledger",
    "group_budget",
    "name_of_charge",
    "new_charge",
    "refuse_overspend",
    "total_of",
]
