"""Notes and cautions of a preview: the basis of its figures, and why an ε may be too small or too large."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from labeldp.accounts.budget import Budget, group_budget, rounded_up
from labeldp.accounts.numbers import WEAK, is_weak, number, odds_figures

if TYPE_CHECKING:
    from labeldp.evidence.previews import Preview

LEAST_POWER = 60
"""The rows × ε below which a fit releases the mean of all labels, and nothing of features (`epsilon_split`)."""

ROOMY_POWER = 1000
"""The rows × ε from which loose bounds cost little: ``benchmarks/accuracy.md``."""

NOTES = {
    "basis": (
        "No label is used for this, and nothing was spent. The ± of labels and means is their typical error "
        "(RMSE). {labels} Groups are drawn at random."
    ),
    "even": (
        "Labels are assumed to spread evenly over the bounds. Noise is mostly less: a release takes up to 3/10 "
        "of ε for a private estimate of the range of most labels, and clips the others to that range."
    ),
    "prior": "Labels are private ones, as privatize would release them with this prior, errors of clipping too.",
    "score": (
        "A score of a fit costs nothing beyond the model, up to the model's ε: {held} rows are held out for the "
        "score. It shows the typical error (RMSE) of predictions; an error below “error a score shows” is hidden "
        "by its noise."
    ),
    "model": (
        "A model reaches this share of the variation that features explain: 100 % is as good as a good model "
        "without privacy, 0 % predicts the same for everybody. Median over {tables} public tables with as many "
        "rows × ε that labeldp was measured on, and in brackets the worst and the best of them. Yours may be "
        "outside: a label that is skewed in wide bounds, or that features hardly explain, keeps less."
    ),
    "unknown": "A model: labeldp was measured (its accuracy suite) on too few tables with as many rows × ε.",
    "alone": (
        "The mean alone: the least noise that it can have. labeldp regress --on 1 releases it with an interval, "
        "and up to three times that noise."
    ),
    "interval": (
        "The ± of a 95 % interval of the mean. Labels are assumed to have a standard deviation of a tenth of the "
        "bounds' width."
    ),
    "coefficient": (
        "The ± of a 95 % interval, of a coefficient per standard deviation (SD) of its column. Labels are assumed "
        "to differ by a tenth of the bounds' width around the model, and columns to be uncorrelated numbers: with "
        "categories or correlated columns, intervals are up to half as wide again."
    ),
}
"""The basis of the figures."""


def cautions(plan: Preview, besides: Budget = Budget(0)) -> list[str]:  # noqa: B008 (it cannot change)
    """Return the cautions for the budgets of a preview; each names the ε closest to having no such caution.

    Parameters
    ----------
    plan : Preview
    besides : Budget
        Other charges for the same labels, which count towards a weak promise.

    Examples
    --------
    >>> from labeldp.evidence import preview
    >>> [text.split(":")[0] for text in cautions(preview(rows=100, bounds=(0, 200), epsilon=[0.1, 0.3]))]
    ['FEW', 'NOISY', 'With few rows, tight bounds matter at ε = 0.3']
    """
    uniform = (plan.bounds[1] - plan.bounds[0]) / math.sqrt(12)  # standard deviation of a uniform label
    weak = short = noisy = loose = ""
    for point in plan.budgets:
        cost = (group_budget(Budget(point.epsilon), plan.rows_per_person) + besides).epsilon
        power, epsilon = plan.rows * point.epsilon, rounded_up(point.epsilon, 4)
        if is_weak(cost) and not weak:
            weak = WEAK.format(**odds_figures(cost))
        if power < LEAST_POWER:
            short = (
                f"FEW: {plan.rows:,} rows are too few for a model at ε = {epsilon}: it would be a constant. It "
                f"takes rows × ε of {LEAST_POWER} at least, and here that is {number(power, 3)}."
            )
        if point.mean >= uniform:
            noisy = (
                f"NOISY: at ε = {epsilon} even the mean of all private labels is off by ±{number(point.mean, 3)}, "
                f"as much as labels anywhere in the bounds differ, ±{number(uniform, 3)}. Take a larger ε or "
                "tighter bounds, or release a model or a mean instead."
            )
        if plan.prior is None and power < ROOMY_POWER:
            loose = (
                f"With few rows, tight bounds matter at ε = {epsilon}: give the tightest that you can justify "
                "without looking at the data."
            )
    return [text for text in (weak, short, noisy, loose) if text]
