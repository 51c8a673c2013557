"""Budgets, the ledger and its file, the terms of a release, cards, and the verification of a card."""

from labeldp.accounts.budget import Budget, Charge, Declaration, Purpose, declared
from labeldp.accounts.card import Card, load_mechanism
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.statistic import Origin, Statistic
from labeldp.accounts.terms import Split, Terms
from labeldp.accounts.verification import Check, Verification, verify_card

__all__ = [
    "Budget",
    "Card",
    "Charge",
    "Check",
    "Declaration",
    "Ledger",
    "Origin",
    "Purpose",
    "Split",
    "Statistic",
    "Terms",
    "Verification",
    "declared",
    "load_mechanism",
    "verify_card",
]
