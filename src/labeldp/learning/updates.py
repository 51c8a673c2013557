"""Update a fitted model: measure labels of further rows around its predictions, and add them to its measurements.

Features stay the functions of the first fit. Sums of further rows are of residuals, by groups that suit the
present posterior, and labels are randomised around present predictions. Each label of the further rows is in these
measurements alone, and earlier measurements are public: the further rows cost only themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from labeldp._values import Array
from labeldp.accounts.budget import Charge, missing_charges
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.terms import Terms
from labeldp.errors import ParameterError, Setting
from labeldp.learning.features import FeatureTable, PublicFeatures
from labeldp.learning.fit_plan import FitRequest
from labeldp.learning.label_rounds import Announce, RowPart, ensemble_of
from labeldp.learning.learner import EarlierFit, EarlierLabels, Ensemble
from labeldp.learning.measurements import Measurements
from labeldp.learning.model_average import MEAN_VARIANCE, average_priors, prior_grid
from labeldp.learning.sum_model import SumModel, update_sums
from labeldp.learning.threads import limit_libraries
from labeldp.release.label_access import LabelAccess
from labeldp.release.plan import Plan

_ONE_ROUND = np.array([0.0, 1.0])
"""Boundaries of the only round of rows that are fewer than those before: their intervals are good already."""


@dataclass(frozen=True, slots=True)
class Update:
    """A model and its measurements, which further rows update.

    Attributes
    ----------
    ensemble : Ensemble
    known : Measurements
    charges : sequence of Charge
    """

    ensemble: Ensemble
    known: Measurements
    charges: Sequence[Charge]

    @classmethod
    def of(cls, model: Any, request: FitRequest) -> Self:
        """Return the model to update, or refuse one that cannot learn on from labels of this request."""
        known: Measurements | None = model._measurements
        _, ensemble = model.public_model()
        if known is None:
            raise ParameterError("the model has no measurements to add to: it was saved without them")
        terms: Terms = model.terms_
        stated = {"bounds": tuple(request.bounds), "label_transform": request.label_transform}
        fitted = {"bounds": tuple(terms.bounds[0]), "label_transform": terms.label_transform}
        for name, value in stated.items():
            if value != fitted[name]:
                raise ParameterError(
                    Setting(name, value), f" is not that of the model, {fitted[name]}: its sums are in that unit"
                )
        return cls(ensemble, known, terms.charges)

    @classmethod
    @limit_libraries()
    def restore(cls, public: PublicFeatures, ensemble: Ensemble, known: Measurements) -> Ensemble:
        """Return a model that was read, with its linear part fitted to its measurements again."""
        limits = ensemble.label_summary.limits
        linear = average_priors(
            cls(ensemble, known, ()).earlier().observations(ensemble.linear.residual_variance),
            public.block,
            prior_grid(limits.width),
            mean=limits.middle,
            mean_variance=MEAN_VARIANCE * limits.width**2,
            log_prior_odds=known.log_prior_odds,
            strengths=known.strengths,
        )
        return replace(ensemble, linear=linear)

    def refuse_other_ledger(self, request: FitRequest, ledger: Ledger) -> None:
        """Refuse segments of a ledger that lacks the charges of the model: nobody would add them up."""
        if request.scope.segments is not None and missing_charges(self.charges, ledger.charges):
            raise ParameterError(
                Setting("segment"), " needs the ledger that was charged for the model: this one lacks its charges"
            )

    def plan(self, request: FitRequest, rows: int) -> tuple[Plan, Array]:
        """Return the plan for this many further rows, and the boundaries of their rounds.

        ε is split as for all rows together: the more a model has learnt, the less sums of further rows add to it.
        """
        plan = replace(request.plan(self.known.rows + rows), rows=rows)
        return plan, _ONE_ROUND if rows <= self.known.rows else request.round_ends(rows)

    def refuse_predictions(self, table: FeatureTable) -> None:
        """Refuse a model whose predictions for these rows are no numbers, before the charge."""
        if not np.isfinite(self.ensemble.predict(table, np.arange(table.rows))).all():
            raise ParameterError("the model's predictions for some of these rows are no numbers: do not update it")

    def earlier(self) -> EarlierFit:
        """Return the model as a fit to further rows takes it."""

        def labels(residual_variance: float) -> EarlierLabels:
            return replace(self.known.labels(residual_variance), trees=self.ensemble.trees)

        return EarlierFit(self.ensemble, self.known.sums, labels, self.known.rows)

    @limit_libraries()
    def measure_sums(self, table: FeatureTable, access: LabelAccess, plan: Plan, announce: Announce) -> SumModel:
        """Release noisy sums of residuals, and return the model with them, from which labels go on."""
        if plan.for_sums:
            announce("sums")
        return update_sums(table, access, self.earlier())

    @limit_libraries()
    def learn(self, fit: str, parts: list[RowPart], sum_model: SumModel) -> tuple[Ensemble, Measurements]:
        """Return the model fitted to all measurements, and these."""
        ensemble = ensemble_of(parts, sum_model) if parts else sum_model.ensemble()
        residual_variance = ensemble.linear.residual_variance
        new = Measurements.of_fit(fit, sum_model.table.rows, parts, sum_model, residual_variance)
        return ensemble, self.known.add(new.batches, residual_variance)
