"""The notes and cautions of a preview: what its figures rest on, and why an ε may be too small or too large."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from labeldp.accounts.budget import Budget, group_budget, rounded_up
from labeldp.accounts.numbers import WEAK, is_weak, number, odds_figures

if TYPE_CHECKING:
    from labeldp.evidence.previews import BudgetPreview, Preview

LEAST_POWER = 60
"""With fewer rows × ε a fit releases the mean of all labels, and nothing of features (`epsilon_split`)."""

ROOMY_POWER = 1000
"""From this many rows × ε on, loose bounds cost little: ``benchmarks/accuracy.md``."""

SPREAD = 1 / math.sqrt(12)
"""Standard deviation of a uniform label, in widths of the bounds: the error of guessing the middle."""

NOTES = {
    "basis": (
        "No label is used for this, and nothing was spent. {labels} Groups are drawn at random. The last mean is "
        "that of all labels, with noise of its own, where neither a table nor a model is released."
    ),
    "even": (
        "Labels are spread evenly over the bounds, and noise is mostly less: a release takes up to 3/10 of ε to "
        "find, privately, about where labels lie, and moves those far out to the ends of a narrower range."
    ),
    "prior": "Labels are private ones, as privatize would release them with this prior, errors of clipping too.",
    "score": (
        "A score costs this ε more. It shows the typical error (RMSE) of predictions on {held} rows held out; an "
        "error below “error a score shows” is hidden by its noise."
    ),
    "model": (
        "A model keeps so much of what features explain: 100 % is as good as a good model without privacy, 0 % "
        "predicts the same for everybody. Median, and the middle half in brackets, over public tables on which "
        "labeldp was measured (its accuracy suite), with as many rows × ε (up to {tables} tables). Your table may "
        "differ."
    ),
    "unknown": "A model: labeldp was measured (its accuracy suite) on too few tables with as many rows × ε.",
}
"""What figures rest on; a page fills in the same sentences."""

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
        "With few rows, tight bounds matter at ε = {epsilon}: give the tightest that you can justify without "
        "looking at the data."
    ),
}
"""By name; a page fills in the same sentences."""


NOTHING = Budget(0)


def cost_to_person(plan: Preview, point: BudgetPreview, besides: Budget = NOTHING) -> float:
    """Return the total ε of one person: all of their rows in the release, and what was spent on them before."""
    return (group_budget(Budget(point.epsilon), plan.rows_per_person) + besides).epsilon


def cautions(plan: Preview, besides: Budget = NOTHING) -> list[str]:
    """Return the cautions for the budgets of a preview; each names the ε closest to having no such caution.

    Parameters
    ----------
    plan : Preview
    besides : Budget
        What else is spent on the same labels: how weak the promise is follows from all of it.

    Examples
    --------
    >>> from labeldp.evidence import preview
    >>> [text.split(":")[0] for text in cautions(preview(rows=100, bounds=(0, 200), epsilon=[0.1, 0.3]))]
    ['FEW', 'NOISY', 'With few rows, tight bounds matter at ε = 0.3']
    """
    rows, spread = plan.rows, SPREAD * (plan.bounds[1] - plan.bounds[0])
    said: dict[str, str] = {}
    for point in plan.budgets:
        cost, power, shown = (
            cost_to_person(plan, point, besides),
            rows * point.epsilon,
            rounded_up(point.epsilon, 4),
        )
        if is_weak(cost) and "weak" not in said:
            said["weak"] = WEAK.format(**odds_figures(cost))
        if power < LEAST_POWER:
            said["few"] = CAUTIONS["few"].format(rows=f"{rows:,}", epsilon=shown, power=number(power, 3))
        if point.mean >= spread:
            mean = number(point.mean, 3)
            said["noisy"] = CAUTIONS["noisy"].format(epsilon=shown, mean=mean, spread=number(spread, 3))
        if plan.prior is None and power < ROOMY_POWER:
            said["loose"] = CAUTIONS["loose"].format(epsilon=shown)
    return [said[name] for name in CAUTIONS if name in said]
