"""Update a fitted model: measure labels of further rows around its predictions, and add them to its measurements.

Features stay the functions of the first fit. Sums of further rows are of residuals, by groups that suit the
present posterior, and labels are randomised around present predictions. Each label of the further rows is in these
measurements alone, and earlier measurements are public: the further rows cost only themselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from labeldp._values import Array, Interval
from labeldp.accounts.budget import missing_charges
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.schema import MAX_FITS
from labeldp.accounts.terms import Terms
from labeldp.errors import ParameterError, Setting
from labeldp.learning.ensemble import EarlierFit, Ensemble
from labeldp.learning.features import FeatureTable, PublicFeatures
from labeldp.learning.fit_plan import FitRequest
from labeldp.learning.measurement_files import MAX_SUMS
from labeldp.learning.measurements import Measurements
from labeldp.learning.model_average import average_priors, prior_grid
from labeldp.learning.threads import limit_libraries
from labeldp.mechanisms.card_format import MAX_TEXT
from labeldp.release.plan import Plan

_ONE_ROUND = np.array([0.0, 1.0])
"""Boundaries of the only round of rows that are fewer than those before: their intervals are good already."""


def earlier_fit(model: Any, request: FitRequest, ledger: Ledger) -> EarlierFit:
    """Return a model to update, or refuse one that cannot learn on from labels of this request.

    Segments of a ledger that lacks the charges of the model are refused: nobody would add them up.
    """
    _, ensemble = model.public_model()
    if model.measurements is None:
        raise ParameterError("the model has no measurements to add to: it was saved without them. Fit a new one")
    terms: Terms = model.terms_
    refuse_other_unit(terms, request.bounds, request.label_transform)
    if is_full(terms, model.measurements):
        raise ParameterError("the folder of the model has no place for a further update: fit a new model")
    if request.scope.segments is not None and missing_charges(terms.charges, ledger.charges):
        raise ParameterError(
            Setting("segment"), " needs the ledger that was charged for the model: this one lacks its charges"
        )
    return EarlierFit(ensemble, model.measurements)


def refuse_other_unit(terms: Terms, bounds: Interval, label_transform: str | None) -> None:
    """Refuse bounds or a transform that are not those of the model: its sums are in that unit."""
    learnt = {"bounds": tuple(terms.bounds[0]), "label_transform": terms.label_transform}
    for name, value in {"bounds": tuple(bounds), "label_transform": label_transform}.items():
        if value != learnt[name]:
            advice = ("give ", Setting(name, learnt[name])) if learnt[name] else ("leave it out",)
            raise ParameterError(Setting(name, value), " is not that of the model: ", *advice)


def is_full(terms: Terms, measurements: Measurements) -> bool:
    """Return whether a further update might be more than a card or a file of measurements holds."""
    sums = 0 if measurements.sums is None else measurements.sums.values.size
    return len(terms.fits) >= MAX_FITS or len(terms.to_card()) > MAX_TEXT // 2 or sums > MAX_SUMS // 2


def plan_update(request: FitRequest, rows: int, known_rows: int) -> tuple[Plan, Array]:
    """Return the plan for this many further rows, and the boundaries of their rounds.

    ε is split as for all rows together: the more a model has learnt, the less sums of further rows add to it.
    """
    plan = replace(request.plan(known_rows + rows), rows=rows)
    return plan, _ONE_ROUND if rows <= known_rows else request.round_ends(rows)


def refuse_predictions(ensemble: Ensemble, table: FeatureTable) -> None:
    """Refuse a model whose predictions for these rows are no numbers, before the charge."""
    if not np.isfinite(ensemble.predict(table, np.arange(table.rows))).all():
        raise ParameterError("the model's predictions for some of these rows are no numbers: do not update it")


@limit_libraries()
def restore(public: PublicFeatures, ensemble: Ensemble, measurements: Measurements) -> Ensemble:
    """Return a model that was read, with its linear part fitted to its measurements again."""
    limits = ensemble.label_summary.limits
    linear = average_priors(
        [*measurements.sum_observations(ensemble.linear.residual_variance), *measurements.labels],
        public.block,
        prior_grid(limits.width),
        limits=limits,
        log_prior_odds=measurements.log_prior_odds,
        strengths=measurements.strengths,
    )
    return replace(ensemble, linear=linear)
