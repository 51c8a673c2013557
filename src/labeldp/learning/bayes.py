"""A Bayesian linear model with known noise, averaged over how much signal there is and of what kind.

Observations are s = Hθ + noise of known variance plus what the features do not explain. The prior of θ
gives each block of features a part of the explained variance. The mix of blocks, and how much is
explained, are averaged over a small grid by their evidence, a model without features among them. So at
little data it is the mean, and with more data ridge, additive or kernel regression.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labeldp._values import Array, Index, Small
from labeldp.learning.bayes_solvers import Choice, Choices, Observations, choose_solver
from labeldp.learning.features import BLOCKS, INTERACTIONS

MIXES = (
    (1.0, 0.0, 0.0, 0.0, 0.0),
    (0.5, 0.5, 0.0, 0.0, 0.0),
    (0.05, 0.55, 0.4, 0.0, 0.0),
    (0.4, 0.2, 0.1, 0.3, 0.0),
    (0.1, 0.2, 0.3, 0.4, 0.0),
    (0.4, 0.2, 0.0, 0.0, 0.4),
    (0.1, 0.2, 0.0, 0.0, 0.7),
    (0.05, 0.25, 0.2, 0.2, 0.3),
)
"""How the explained variance is split over the blocks of `PublicFeatures`; the last three need interactions."""

FEW_MIXES = (0, 2, 3, 5)
"""Positions of mixes, one of each kind: enough between rounds of labels."""

EXPLAINED = (1e-6, 3e-5, 0.0006, 0.0025, 0.01, 0.04)
RESTS = (1e-5, 2e-4, 0.001, 0.004, 0.015, 0.05)
"""The explained variance, and the rest, in squared ranges: labels that fill their range evenly have 0.083 in all,
and bounds may be a hundred times too wide."""

_MOST_RATIO = 30
"""Between the explained variance and the rest, either way: beyond, all or nothing is explained."""

MEAN_VARIANCE = 25.0
"""Of the labels' mean before anything is known, in squared ranges: next to flat, since a mean near a bound, as of
skewed labels, must not be drawn to the middle."""

_NO_SIGNAL = 0.1
"""Prior probability that the features explain nothing."""


@dataclass(frozen=True, slots=True)
class Posterior:
    """The averaged model: ``mean + features @ weights``.

    Attributes
    ----------
    weights : array
    mean : float
        The centre that labels were measured from.
    explained, rest : float
        Posterior means of the variance that features explain, and of what they do not.
    likely : Choices
        The choices of most weight, best first; none if features seem to explain nothing.
    blocks : tuple of float
        The explained variance by blocks of features.
    """

    weights: Small
    mean: float
    explained: float
    rest: float
    likely: Choices
    blocks: tuple[float, ...] = (0.0,) * BLOCKS

    def predict(self, features: Small) -> Array:
        """Return predictions for rows of features."""
        return np.asarray(features @ self.weights + self.mean, dtype=np.float64)


def unknown_variance(width: float, *, few: bool = False) -> Choices:
    """Return what to average over where only the labels' range is known; a part of it if few will do."""
    return tuple(
        Choice(mix, explained * width**2, rest * width**2)
        for explained in EXPLAINED
        for rest in RESTS
        if explained / _MOST_RATIO < rest < _MOST_RATIO * explained
        for mix in ([MIXES[k] for k in FEW_MIXES] if few else MIXES)
    )


def fit_linear(
    observations: list[Observations],
    block: Index,
    *,
    mean: float,
    mean_variance: float,
    choices: Choices,
    doubt: float = 0.0,
) -> Posterior:
    """Return the posterior mean, averaged over mixes and strengths by evidence.

    Parameters
    ----------
    observations : list
    block : array
        The block of each feature.
    mean, mean_variance : float
        The labels' mean, as it is known, and how uncertain it is.
    choices : Choices
        What to average over, besides features that explain nothing.
    doubt : float
        Log odds against interactions.
    """
    if block[-1] != INTERACTIONS:
        choices = tuple(choice for choice in choices if not choice.mix[INTERACTIONS])
    totals = sorted({choice.explained + choice.rest for choice in choices})
    no_signal = tuple(Choice((0.0,) * BLOCKS, 0.0, total) for total in totals)
    options = (*no_signal, *choices)
    solve = choose_solver(observations, block, len(choices))
    log_evidence, weights = solve(observations, block, mean_variance, options)
    is_null = np.arange(len(options)) < len(totals)
    prior = np.where(is_null, _NO_SIGNAL / len(totals), (1 - _NO_SIGNAL) / max(1, len(choices)))
    interacts = np.array([choice.mix[INTERACTIONS] > 0 for choice in options])
    score = log_evidence + np.log(prior) - doubt * interacts
    posterior = np.exp(score - score.max())
    posterior /= posterior.sum()
    best_first = np.argsort(-score, kind="stable")
    likely = tuple(options[k] for k in best_first if not is_null[k])[:5]
    if is_null[int(np.argmax(posterior))] and posterior.max() > 0.5:
        likely = ()
    mixes, explained, rest = (np.array(each) for each in zip(*options, strict=True))
    return Posterior(
        weights=(posterior @ weights).astype(np.float32),
        mean=mean,
        explained=float(posterior @ explained),
        rest=float(posterior @ rest),
        likely=likely,
        blocks=tuple((posterior * explained) @ mixes),
    )


def explained_risk(spectrum: Array, signal: float, noise: float) -> float:
    """Return Σ s v/(s + v): what estimating the signal costs, at noise v a row over the number of rows."""
    strength = spectrum * signal
    return float((strength * noise / (strength + noise)).sum())
