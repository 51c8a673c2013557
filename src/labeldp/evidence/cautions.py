"""What to say before an ε is spent that buys little: by rows, bounds and ε alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from labeldp.accounts.budget import Budget, group_budget
from labeldp.accounts.numbers import WEAK, is_weak, number, odds_figures

if TYPE_CHECKING:
    from labeldp.evidence.previews import BudgetPreview, Preview

LEAST_POWER = 60
"""With fewer rows × ε a fit releases the mean of all labels, and nothing of features (`learning.sums`)."""

ROOMY_POWER = 1000
"""With as many rows × ε it is found where labels lie inside loose bounds; see ``benchmarks/accuracy.md``."""

SPREAD = 1 / math.sqrt(12)
"""Standard deviation of labels spread evenly, in widths of the bounds: the error of who guesses their middle."""

CAUTIONS = {
    "weak": WEAK,
    "few": (
        "FEW: {rows} rows are too few for a model at ε = {epsilon}: it would be a constant. It takes rows × ε of "
        f"{LEAST_POWER} at least, and here that is {{power}}."
    ),
    "noisy": (
        "NOISY: at ε = {epsilon} even the mean of all private labels is off by ±{mean}, as much as labels "
        "anywhere in the bounds differ, ±{spread}. Take a larger ε or tighter bounds, or release a model or a "
        "mean instead."
    ),
    "loose": (
        f"Bounds matter: below rows × ε of about {ROOMY_POWER:,}, and here that is {{power}} at ε = {{epsilon}}, "
        "where labels really lie is hard to find, and loose bounds cost dearly. Give the tightest that are public."
    ),
}
"""By name; a page fills in the same sentences."""


NOTHING = Budget(0)


def cost_to_person(plan: Preview, point: BudgetPreview, besides: Budget = NOTHING) -> float:
    """Return the ε that one person is exposed to by all rows of a release, and by what else was spent on them."""
    return (group_budget(Budget(point.epsilon), plan.rows_per_person) + besides).epsilon


def cautions(plan: Preview, besides: Budget = NOTHING) -> list[str]:
    """Return what speaks against the budgets of a preview, each at the ε that is nearest to none of it.

    Parameters
    ----------
    plan : Preview
    besides : Budget
        What else is spent on the same labels: how weak the promise is follows from all of it.

    Examples
    --------
    >>> from labeldp.evidence import preview
    >>> [text.split(":")[0] for text in cautions(preview(rows=100, bounds=(0, 200), epsilon=[0.1, 0.3]))]
    ['FEW', 'NOISY', 'Bounds matter']
    """
    rows, spread = plan.rows, SPREAD * (plan.bounds[1] - plan.bounds[0])
    holds: dict[str, Callable[[BudgetPreview], bool]] = {
        "weak": lambda point: is_weak(cost_to_person(plan, point, besides)),
        "few": lambda point: rows * point.epsilon < LEAST_POWER,
        "noisy": lambda point: point.mean >= spread,
        "loose": lambda point: plan.prior is None and rows * point.epsilon < ROOMY_POWER,
    }
    said = []
    for name, text in CAUTIONS.items():
        against = [point for point in plan.budgets if holds[name](point)]
        if against:
            point = against[0 if name == "weak" else -1]
            cost = cost_to_person(plan, point, besides) if name == "weak" else point.epsilon
            figures = {
                **odds_figures(cost),
                "rows": f"{rows:,}",
                "power": number(rows * point.epsilon, 3),
                "mean": number(point.mean, 3),
                "spread": number(spread, 3),
            }
            said.append(text.format(**figures))
    return said
