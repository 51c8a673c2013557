"""A model from noisy sums: a rough one first, then sums of clipped residuals around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from labeldp.estimators.bayes import EXPLAINED, Choices, Observations, Posterior, fit_linear, unknown_variance
from labeldp.estimators.designs import Design, Noise, PublicGeometry, Sums, choose_design
from labeldp.estimators.feature_table import FeatureTable
from labeldp.estimators.progress import Step, quiet
from labeldp.ledger import Budget, Charge, new_charge
from labeldp.noise import DiscreteGaussian
from labeldp.randomness import WordSource

__all__ = ["Stage", "SumBudget", "SumPlan", "fit_sums"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

LONE = 60.0
"""Below this many rows · ε there is one stage: a rough model would be too rough to measure residuals from."""

_FIRST = np.array([0.35, 0.3, 0.2, 0.15]) * np.mean(EXPLAINED)
"""Prior variance of each block of features before any release, in squared label ranges."""


@dataclass(frozen=True, slots=True)
class SumBudget:
    """How ε is split: a rough model, and sums of its residuals.

    Attributes
    ----------
    rough, fine : Fraction
        Parts of ε. With one stage only, all is in ``fine``.
    rough_delta, fine_delta : Fraction
        Parts of δ.
    """

    rough: Fraction
    fine: Fraction
    rough_delta: Fraction = Fraction(0)
    fine_delta: Fraction = Fraction(0)

    @classmethod
    def plan(cls, epsilon: Fraction, rows: int, delta: Fraction = Fraction(0)) -> SumBudget:
        """Return the split, by ε, δ and the number of rows alone.

        The rough model gets a fifth, and more where a fifth would be worth less than 50 rows without noise.
        """
        total = float(epsilon)
        if rows * total < LONE:
            return cls(Fraction(0), epsilon, fine_delta=delta)
        share = min(0.35, max(0.2, 50 / (rows * total)))
        rough = Fraction(f"{min(share * total, 0.4):.4g}")
        return cls(rough, epsilon - rough, delta / 2, delta / 2)

    def charges(self, rows_per_person: int) -> list[Charge]:
        """Return what is to be paid, in the order in which it is released."""
        parts = {
            "rough sums": Budget(self.rough, self.rough_delta),
            "sums": Budget(self.fine, self.fine_delta),
        }
        return [
            new_charge(what, budget, purpose="sums", rows_per_person=rows_per_person)
            for what, budget in parts.items()
            if budget.exact_epsilon
        ]


@dataclass(frozen=True, slots=True)
class SumPlan:
    """All that is decided before any label is read: the split of the budget, and what the first stage sums."""

    table: FeatureTable
    bounds: tuple[float, float]
    budget: SumBudget
    geometry: PublicGeometry
    design: Design
    noise: Noise

    @classmethod
    def make(cls, table: FeatureTable, bounds: tuple[float, float], epsilon: Fraction, delta: Fraction) -> SumPlan:
        """Return the plan. δ is given up, and not charged, if the first stage has no use for it."""
        width = bounds[1] - bounds[0]
        prior = np.append(_FIRST[table.public.block] * width**2, width**2 / 12)
        geometry = PublicGeometry.of(table, prior)
        budget = SumBudget.plan(epsilon, table.rows, delta)
        spent, extra = (budget.rough, budget.rough_delta) if budget.rough else (budget.fine, budget.fine_delta)
        design = choose_design(
            table,
            geometry,
            prior=prior,
            rest=0.02 * width**2,
            precision=None,
            width=width,
            epsilon=spent,
            delta=extra,
        )
        noise = design.noise(spent, extra)
        if not isinstance(noise, DiscreteGaussian):
            budget = replace(budget, rough_delta=Fraction(0), fine_delta=Fraction(0))
        return cls(table, bounds, budget, geometry, design, noise)


@dataclass(frozen=True, slots=True)
class Stage:
    """What is summed of each label: its place in the bounds, or how far it is from a guess.

    Attributes
    ----------
    design : Design
    bounds : (lo, hi)
    guess : array or None
        Of every row of the design.
    reach : float
        How far from its guess a label counts.
    """

    design: Design
    bounds: tuple[float, float]
    guess: Array | None = None
    reach: float = 0.0

    @property
    def width(self) -> float:
        """The range of what is summed."""
        return self.bounds[1] - self.bounds[0] if self.guess is None else 2 * self.reach

    @np.errstate(all="ignore")
    def sums(self, labels: Array, rows: Index | None = None) -> Sums:
        """Return exact sums over some of the design's rows, or over all; sums of parts add up."""
        low, high = self.bounds
        clipped = np.clip(labels, low, high)
        if self.guess is None:
            return self.design.sums(clipped - low, self.width, rows)
        guess = self.guess if rows is None else self.guess[rows]
        gaps = np.clip(clipped - guess, -self.reach, self.reach)
        return self.design.sums(gaps + self.reach, self.width, rows)


AddUp = Callable[[Stage], Sums]
"""Returns a stage's exact sums over all rows, wherever their labels are."""


def fit_sums(
    plan: SumPlan, add_up: AddUp, source: WordSource, step: Step = quiet
) -> tuple[Posterior, tuple[Noise, ...]]:
    """Return the linear model learnt from noisy sums, and the noise of each of the budget's parts.

    Labels are summed once a stage, by ``add_up``; noise is added here, and what follows sees nothing else.
    """
    table, budget, (low, high) = plan.table, plan.budget, plan.bounds
    width, middle = high - low, (low + high) / 2
    block = table.public.block
    choices = unknown_variance(width)

    def learn(observations: list[Observations]) -> Posterior:
        return fit_linear(observations, block, mean=middle, mean_variance=width**2 / 12, choices=choices)

    step("rough sums" if budget.rough else "sums")
    stage = Stage(plan.design, plan.bounds)
    averages = plan.design.noisy(add_up(stage), width, plan.noise, source)
    averages -= plan.design.average(np.full(table.rows, middle - low))
    first = plan.design.observations(averages, plan.design.variance(plan.noise, width))
    rough = learn([first])
    if not budget.rough:
        return rough, (plan.noise,)
    guess = np.clip(table.predict(rough, np.arange(table.rows)), low, high)

    step("sums of residuals")
    reach = _reach(float(budget.fine)) * width
    design = choose_design(
        table,
        plan.geometry,
        prior=_updated_prior(rough.likely, choices, block, width),
        rest=rough.rest,
        precision=first.gram / np.float32(first.share * rough.rest + first.noise),
        width=2 * reach,
        epsilon=budget.fine,
        delta=budget.fine_delta,
    )
    noise = design.noise(budget.fine, budget.fine_delta)
    stage = Stage(design, plan.bounds, guess, reach)
    averages = design.noisy(add_up(stage), stage.width, noise, source)
    averages += design.average(guess - middle - reach)
    step("model")
    model = learn([first, design.observations(averages, design.variance(noise, 2 * reach))])
    return model, (plan.noise, noise)


def _updated_prior(likely: Choices, choices: Choices, block: NDArray[np.int64], width: float) -> Array:
    """Return the prior variance of each weight, by what the rough model found likely."""
    options = likely or choices[:5]
    each = [np.asarray(mix) * max(explained, 0.0006 * width**2) for mix, explained, _ in options]
    strength = np.maximum(np.mean(each, axis=0), 1e-4 * width**2)
    return np.append(strength[block], width**2 / 12)


def _reach(epsilon: float) -> float:
    """Return how far residuals count, in label ranges; the more noise, the more of them may be clipped.

    For residuals in a bell of a typical width, 0.14, that clips 15, 7 or 3 % of them. Private counts of residuals
    found no better level for their price (`benchmarks/ablation.md`).
    """
    return 0.2 if epsilon < 1 else 0.25 if epsilon < 3 else 0.3
