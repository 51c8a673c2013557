"""Rounds of a survey: a public interval for each respondent, around the prediction by a model of earlier reports.

The collector sends a respondent an interval and the card of a mechanism on [0, 1]. The device randomises the
answer's position in the interval, clipped to 0 and 1. A round is planned from public columns and earlier reports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labeldp._values import Array, Epsilon, Interval, LabelBounds, parse_integer
from labeldp.learning.ensemble import Ensemble
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import FREE_SUMMARY, FitRequest
from labeldp.learning.label_regressor import LabelReleaseRegressor
from labeldp.learning.label_rounds import (
    Residuals,
    in_bounds,
    place_intervals,
    round_interval,
)
from labeldp.learning.sum_model import SumModel
from labeldp.mechanisms.base import Mechanism
from labeldp.release.reports import Intervals


@dataclass(frozen=True, slots=True, eq=False)
class SurveyRound:
    """The plan of a round: what every respondent gets before they answer.

    Attributes
    ----------
    mechanism : Mechanism
        On [0, 1]: its card goes to every respondent.
    intervals : Intervals
        The interval of each respondent; ``intervals.low`` and ``intervals.high`` go to them.

    Examples
    --------
    >>> import numpy as np
    >>> from labeldp.learning.survey_rounds import plan_round
    >>> first = plan_round(np.ones((500, 1)), bounds=(0, 100), epsilon=2.0, rows=500)
    >>> first.mechanism.domain, first.positions(np.full(500, 50.0))[:2].tolist()
    ((0.0, 1.0), [0.5, 0.5])
    """

    mechanism: Mechanism
    intervals: Intervals

    def positions(self, answers: Any) -> Array:
        """Return the positions of answers in their intervals, as each device computes its own."""
        return np.clip((np.asarray(answers) - self.intervals.low) / self.intervals.widths, 0.0, 1.0)


def plan_round(
    X: Any,
    *,
    bounds: Interval,
    epsilon: float,
    rows: int,
    model: LabelReleaseRegressor | None = None,
) -> SurveyRound:
    """Return the intervals of the next respondents, and the mechanism for positions in them.

    Parameters
    ----------
    X : array-like, rows × columns, or a data frame
        Public columns of the respondents of this round.
    bounds : (lo, hi)
    epsilon : float
        The cost of an answer.
    rows : int
        The number of reports that all rounds together will have.
    model : LabelReleaseRegressor, optional
        Fitted to the reports of earlier rounds; None for the first.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> from labeldp.learning.survey_rounds import plan_round
    >>> X = np.random.default_rng(0).normal(size=(4000, 2))
    >>> answers = np.clip(50 + 20 * X[:, 0], 0, 100)                    # on 4,000 devices
    >>> survey = {"bounds": (0, 100), "epsilon": 2.0, "rows": 4000}
    >>> first = plan_round(X[:2000], **survey)
    >>> sent = first.mechanism.randomize(first.positions(answers[:2000]))
    >>> reports = ldp.Reports(sent, first.mechanism, intervals=first.intervals)
    >>> model = ldp.LabelReleaseRegressor(epsilon=2.0, bounds=(0, 100)).fit_reports(X[:2000], reports)
    >>> second = plan_round(X[2000:], **survey, model=model)
    >>> bool(first.intervals.widths.mean() > 2 * second.intervals.widths.mean())
    True
    """
    limits, budget = LabelBounds(bounds), Epsilon(epsilon)
    request = FitRequest(epsilon=budget, bounds=limits, trust="local")
    table, ensemble, residuals = _predict_respondents(X, model)
    noise, count = request.unit_noise(budget), parse_integer(rows, "rows")
    interval = round_interval(residuals, ensemble, table, FREE_SUMMARY, noise, count)
    mechanism = request.design(interval.unit_prior(), budget, rows)
    centre = ensemble.predict(table, np.arange(table.rows))
    intervals = in_bounds(place_intervals(centre, interval, mechanism, FREE_SUMMARY.limits), limits)
    return SurveyRound(mechanism, intervals)


def _predict_respondents(X: Any, model: LabelReleaseRegressor | None) -> tuple[FeatureTable, Ensemble, Residuals]:
    """Return the features of respondents, a model of their answers, and the distribution of its errors."""
    if model is None:
        table = FeatureTable.fit(np.asarray(X, dtype=np.float64))
        return table, SumModel.unmeasured(table).ensemble(), Residuals.uniform(FREE_SUMMARY.width)
    public, ensemble = model.public_model()
    residuals = Residuals.of_variance(ensemble.error, FREE_SUMMARY.width)
    return FeatureTable(public, model._inputs(X)), ensemble, residuals
