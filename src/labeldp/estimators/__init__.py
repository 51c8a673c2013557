"""Regressors that keep ε for every label, through scikit-learn's interface."""

from labeldp.estimators.held_out import fit_and_score
from labeldp.estimators.intervals import IntervalModel, private_intervals
from labeldp.estimators.label_regressor import LabelReleaseRegressor
from labeldp.estimators.model_regressor import ModelReleaseRegressor
from labeldp.estimators.quality import Risk
from labeldp.estimators.row_release import RowRelease
from labeldp.estimators.score import private_score

__all__ = [
    "IntervalModel",
    "LabelReleaseRegressor",
    "ModelReleaseRegressor",
    "Risk",
    "RowRelease",
    "fit_and_score",
    "private_intervals",
    "private_score",
]
