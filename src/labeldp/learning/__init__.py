"""Regressors that are ε-differentially private in every label, through scikit-learn's interface."""

from labeldp.learning.intervals import GroupWidth, IntervalModel, private_intervals
from labeldp.learning.label_regressor import LabelReleaseRegressor
from labeldp.learning.label_release import privatize
from labeldp.learning.model_regressor import ModelReleaseRegressor
from labeldp.learning.quality import Risk
from labeldp.learning.released_labels import Release, ReleasedColumn
from labeldp.learning.row_release import RowRelease
from labeldp.learning.score import fit_and_score, private_score, private_scores

__all__ = [
    "GroupWidth",
    "IntervalModel",
    "LabelReleaseRegressor",
    "ModelReleaseRegressor",
    "Release",
    "ReleasedColumn",
    "Risk",
    "RowRelease",
    "fit_and_score",
    "private_intervals",
    "private_score",
    "private_scores",
    "privatize",
]
