"""The learner for private labels and noisy sums: a Bayesian linear model, and trees where the noise allows."""

from __future__ import annotations

from collections.abc import Sequence

from labeldp.learning.bayes import Posterior, explained_risk, unknown_variance
from labeldp.learning.bayes_solvers import Observations
from labeldp.learning.boosted_trees import AT_LAST, BETWEEN_ROUNDS, Growth, add_trees
from labeldp.learning.ensemble import Ensemble, PrivateRows
from labeldp.learning.feature_table import FeatureTable
from labeldp.learning.label_units import LabelSummary

_WORTH = 60
"""Trees are tried only if this many rows average the noise below the labels' variance."""


def fit_ensemble(
    table: FeatureTable,
    parts: list[PrivateRows],
    knowledge: LabelSummary,
    *,
    sums: Sequence[Observations] = (),
    quick: bool = False,
    observed: list[Observations] | None = None,
) -> Ensemble:
    """Return the model for private rows and noisy sums.

    Parameters
    ----------
    table : FeatureTable
    parts : list of PrivateRows
        Round by round.
    knowledge : LabelSummary
    sums : list of Observations
        Of noisy sums.
    quick : bool
        Whether an average over few choices, and few trees, will do, as between rounds.
    observed : list of Observations, optional
        Where the table is a sample, the statistics of all rows, round by round: the linear model learns from
        these, and trees from the sample.
    """
    if observed is None:
        observed = _observe(table, parts, knowledge)
    choices = unknown_variance(knowledge.width, few=quick)
    linear = table.fit_linear([*sums, *observed], knowledge.limits, choices)
    rows = sum(each.count for each in observed)
    noise = rows / sum(each.count / (each.noise + linear.rest) for each in observed)  # of a row, harmonic mean
    variance = linear.explained + linear.rest
    error = linear.rest + explained_risk(table.spectrum, linear.explained, noise / rows)
    plain = Ensemble(linear, None, 0.0, linear.rest, min(variance, error), knowledge)
    if noise / rows * _WORTH > variance:
        return plain
    growth = Growth.for_noise(noise / variance, sum(part.rows.size for part in parts))
    return add_trees(table, parts, plain, list(sums), growth, BETWEEN_ROUNDS if quick else AT_LAST)


def quick_linear(
    table: FeatureTable, parts: list[PrivateRows], knowledge: LabelSummary, sums: Sequence[Observations]
) -> Posterior:
    """Return the linear model for private rows and noisy sums, averaged over few choices."""
    observed = _observe(table, parts, knowledge)
    choices = unknown_variance(knowledge.width, few=True)
    return table.fit_linear([*sums, *observed], knowledge.limits, choices)


def _observe(table: FeatureTable, parts: list[PrivateRows], knowledge: LabelSummary) -> list[Observations]:
    return [part.observations(table, knowledge.middle) for part in parts if part.rows.size]
