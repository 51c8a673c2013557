"""Budgets, the ledger and its file, the terms of a release, cards, and the verification of a card."""

from labeldp.accounts.budget import Budget, Charge, Declaration, Purpose, declared
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.reading import ReadCard, load_mechanism, read_any_card
from labeldp.accounts.statistic import Origin, Statistic
from labeldp.accounts.terms import Split, Terms
from labeldp.accounts.verification import Check, Verification, verify_card

__all__ = [
    "Budget",
    "Charge",
    "Check",
    "Declaration",
    "Ledger",
    "Origin",
    "Purpose",
    "ReadCard",
    "Split",
    "Statistic",
    "Terms",
    "Verification",
    "declared",
    "load_mechanism",
    "read_any_card",
    "verify_card",
]
