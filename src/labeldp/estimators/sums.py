"""A model from noisy sums: a rough one first, then sums of clipped residuals around it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from labeldp.channels.noise import DiscreteLaplace
from labeldp.estimators.bayes import EXPLAINED, Choices, Observations, Posterior, fit_linear, unknown_variance
from labeldp.estimators.designs import Noise, PublicGeometry, choose_design
from labeldp.estimators.labels import count_between
from labeldp.estimators.progress import Step, quiet
from labeldp.estimators.table import FeatureTable
from labeldp.ledger import Budget
from labeldp.randomness import WordSource

__all__ = ["SumBudget", "fit_sums"]

Array = NDArray[np.float64]

_LEVELS = np.array([0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5])
"""Clip levels to choose from, in label ranges."""

LONE = 100.0
"""Below this many rows · ε there is one stage: a rough model would be too rough to measure residuals from."""

_FIRST = np.array([0.35, 0.3, 0.2, 0.15]) * np.mean(EXPLAINED)
"""Prior variance of each block of features before any release, in squared label ranges."""


@dataclass(frozen=True, slots=True)
class SumBudget:
    """How ε is split: a rough model, the size of its residuals, and the sums of those.

    Attributes
    ----------
    rough, clip, fine : Fraction
        Parts of ε. With one stage only, all is in ``fine``.
    rough_delta, fine_delta : Fraction
        Parts of δ.
    """

    rough: Fraction
    clip: Fraction
    fine: Fraction
    rough_delta: Fraction = Fraction(0)
    fine_delta: Fraction = Fraction(0)

    @classmethod
    def plan(cls, epsilon: Fraction, rows: int, delta: Fraction = Fraction(0)) -> SumBudget:
        """Return the split, by ε, δ and the number of rows alone.

        The rough model gets a fifth, and more where a fifth would be worth less than 50 rows without noise. Counts
        of residuals get a twentieth, 500 rows' worth at most, and nothing where they would drown in noise.
        """
        total = float(epsilon)
        if rows * total < LONE:
            return cls(Fraction(0), Fraction(0), epsilon, fine_delta=delta)
        share = min(0.35, max(0.2, 50 / (rows * total)))
        rough = Fraction(f"{min(share * total, 0.4):.4g}")
        counts = min(0.05 * total, 500 / rows)
        clip = Fraction(f"{counts:.4g}") if counts * rows >= 20 else Fraction(0)
        return cls(rough, clip, epsilon - rough - clip, delta / 2, delta / 2)

    def parts(self) -> dict[str, Budget]:
        """Return what is paid for, in the order in which it is released."""
        named = {
            "rough sums": Budget(self.rough, self.rough_delta),
            "clip level": Budget(self.clip),
            "sums": Budget(self.fine, self.fine_delta),
        }
        return {what: budget for what, budget in named.items() if budget.exact_epsilon}


def fit_sums(
    table: FeatureTable,
    labels: Array,
    bounds: tuple[float, float],
    budget: SumBudget,
    source: WordSource,
    step: Step = quiet,
) -> tuple[Posterior, dict[str, Noise]]:
    """Return the linear model learnt from noisy sums, and the noise of each of the budget's parts."""
    low, high = bounds
    width, middle = high - low, (low + high) / 2
    clipped = np.clip(labels, low, high)
    block = table.public.block
    prior = np.append(_FIRST[block] * width**2, width**2 / 12)
    geometry = PublicGeometry.of(table, prior)
    choices = unknown_variance(width)
    everyone = np.arange(table.rows)

    def learn(observations: list[Observations]) -> Posterior:
        return fit_linear(
            observations,
            block,
            mean=middle,
            mean_variance=width**2 / 12,
            choices=choices,
        )

    epsilon, delta = (budget.rough, budget.rough_delta) if budget.rough else (budget.fine, budget.fine_delta)
    step("rough sums" if budget.rough else "sums")
    design = choose_design(
        table,
        geometry,
        prior=prior,
        rest=0.02 * width**2,
        known=None,
        width=width,
        epsilon=epsilon,
        delta=delta,
    )
    noise = design.noise(epsilon, delta)
    averages = design.release(clipped - low, width, noise, source)
    averages -= design.average(np.full(table.rows, middle - low))
    first = design.observations(averages, design.variance(noise, width))
    rough = learn([first])
    if not budget.rough:
        return rough, {"sums": noise}
    guess = np.clip(table.predict(rough, everyone), low, high)

    step("sums of residuals")
    counting = DiscreteLaplace.calibrated(sensitivity=2, epsilon=budget.clip) if budget.clip else None
    reach = _clip_level(clipped - guess, width, float(budget.fine), counting, source)
    design = choose_design(
        table,
        geometry,
        prior=_updated_prior(rough.likely, choices, block, width),
        rest=rough.rest,
        known=first.gram / np.float32(first.share * rough.rest + first.noise),
        width=2 * reach,
        epsilon=budget.fine,
        delta=budget.fine_delta,
    )
    last = design.noise(budget.fine, budget.fine_delta)
    gaps = np.clip(clipped - guess, -reach, reach)
    averages = design.release(gaps + reach, 2 * reach, last, source)
    averages += design.average(guess - middle - reach)
    step("model")
    model = learn([first, design.observations(averages, design.variance(last, 2 * reach))])
    used = {"rough sums": noise, "clip level": counting, "sums": last}
    return model, {what: each for what, each in used.items() if each is not None}


def _updated_prior(likely: Choices, choices: Choices, block: NDArray[np.int64], width: float) -> Array:
    """Return the prior variance of each weight, by what the rough model found likely."""
    used = likely or choices[:5]
    each = [np.asarray(mix) * max(explained, 0.0006 * width**2) for mix, explained, _ in used]
    strength = np.maximum(np.mean(each, axis=0), 1e-4 * width**2)
    return np.append(strength[block], width**2 / 12)


def _clip_level(
    gaps: Array, width: float, epsilon: float, noise: DiscreteLaplace | None, source: WordSource
) -> float:
    """Return a level that few residuals exceed, by private counts of their sizes.

    The counts are shrunk towards those of a bell of usual width, as far as they are noise. The more noise sums of
    residuals will carry, at this ε, the more residuals may be clipped.
    """
    usual = 2 * norm.sf(_LEVELS / 0.14)
    tail = usual
    if noise is not None:
        edges = np.concatenate([[0.0], _LEVELS * width, [np.inf]])
        counts = count_between(np.abs(gaps), edges)
        noisy = counts + noise.sample(counts.size, source)
        above = np.cumsum(noisy[::-1])[::-1][1:] / gaps.size
        uncertain = noise.variance() / gaps.size**2 * np.arange(_LEVELS.size, 0, -1)
        spread = 0.09 * np.maximum(usual * (1 - usual), 1e-4)
        tail = (above * spread + usual * uncertain) / (spread + uncertain)
    allowed = 0.25 if epsilon < 1 else 0.1 if epsilon < 3 else 0.04
    fits = np.flatnonzero(tail <= allowed)
    return float(width * (_LEVELS[fits[0]] if fits.size else 0.5))
