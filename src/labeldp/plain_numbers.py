"""Budgets and shares in numbers that people know: odds, guesses, percent."""

from __future__ import annotations

import math

from labeldp.ledger import Budget

__all__ = ["guess_becomes", "odds_factor", "percent", "printable", "times"]


def printable(value: object, most: int = 200) -> str:
    """Return text from a card without what could command a terminal, and not longer than ``most``."""
    text = "".join(c if c.isprintable() else "\ufffd" for c in str(value)[: most + 1])
    return text if len(text) <= most else text[: most - 1] + "…"


def odds_factor(budget: Budget) -> float:
    """Return by how much odds on a label can rise: e^ε."""
    try:
        return math.exp(budget.epsilon)
    except OverflowError:
        return math.inf


def guess_becomes(budget: Budget, guess: float = 0.5) -> float:
    """Return the chance of being right, at most, of whoever held a label for true with chance ``guess``.

    With δ this is the best chance of telling two labels apart.

    Examples
    --------
    >>> round(guess_becomes(Budget(1.0)), 4)
    0.7311
    """
    factor = odds_factor(budget)
    if math.isinf(factor):
        return 1.0
    return min(1.0, (factor * guess + budget.delta * (1 - guess)) / (factor * guess + 1 - guess))


def times(factor: float) -> str:
    """Return a factor for people.

    Examples
    --------
    >>> times(2.718), times(54.6), times(22026.5), times(4.85e8)
    ('2.7×', '55×', '22,026×', '485 million ×')
    """
    if math.isinf(factor):
        return "any factor"
    if factor >= 1e9:
        return f"{factor:.1e}×"
    if factor >= 1e6:
        return f"{factor / 1e6:,.0f} million ×"
    return f"{factor:,.0f}×" if factor >= 10 else f"{factor:.2g}×" if factor >= 1.1 else f"{factor:.4g}×"


def percent(share: float) -> str:
    """Return a share in percent with as many digits as keep it apart from all.

    Examples
    --------
    >>> percent(0.7310586), percent(0.99995), percent(1.0)
    ('73 %', '99.995 %', '100 %')
    """
    if share >= 1:
        return "100 %"
    missing = 1 - share
    digits = math.ceil(-math.log10(missing)) - 2 if missing < 0.01 else 0
    return f"{100 * share:.{digits}f} %"
