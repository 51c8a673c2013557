"""Losses that an estimator is fitted or chosen by, and whether their minimum on noisy labels is a mean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_PARAMETERS = {"loss", "criterion", "objective", "loss_function", "scoring"}
"""Parameters that name a loss, of scikit-learn, XGBoost, LightGBM and CatBoost; a search has a scoring."""

_NO_MEAN = re.compile(
    r"absolute|quantile|pinball|max_error|huber|epsilon_insensitive|log_?cosh|expectile|^(mae|mape|fair|l1|regression_l1)\b"
)
"""Values of these parameters whose minimum is no mean: medians, quantiles, and what lies between."""

_ESTIMATORS = {
    "QuantileRegressor": "quantile",
    "HuberRegressor": "Huber's",
    "TheilSenRegressor": "median of slopes",
    "RANSACRegressor": "without outliers",
    "SVR": "epsilon_insensitive",
    "NuSVR": "epsilon_insensitive",
}
"""Estimators that always minimise such a loss."""


def loss_without_mean(estimator: Any) -> str | None:
    """Return the name of a loss whose minimum is no mean, of an estimator or of one inside it; None without one.

    Noise averages out of means alone: a quantile of noisy labels is that of labels and noise together.

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from sklearn.linear_model import HuberRegressor
    >>> from sklearn.pipeline import make_pipeline
    >>> loss_without_mean(HistGradientBoostingRegressor(loss="absolute_error"))
    'absolute_error'
    >>> loss_without_mean(make_pipeline(HuberRegressor())), loss_without_mean(HistGradientBoostingRegressor())
    ("Huber's", None)
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV
    >>> loss_without_mean(GridSearchCV(Ridge(), {}, scoring="neg_mean_absolute_error"))
    'neg_mean_absolute_error'
    """
    return next(_losses_without_mean(estimator), None)


def _losses_without_mean(estimator: Any) -> Iterator[str]:
    is_class = isinstance(estimator, type)  # a mistake that the trial on synthetic labels will name
    parameters = {} if is_class or not hasattr(estimator, "get_params") else estimator.get_params(deep=True)
    for candidate in [estimator, *parameters.values()]:
        if type(candidate).__name__ in _ESTIMATORS:
            yield _ESTIMATORS[type(candidate).__name__]
    yield from _named_losses(parameters)


def _named_losses(parameters: Mapping[str, Any]) -> Iterator[str]:
    for name, value in parameters.items():
        is_loss = name.rpartition("__")[2] in _PARAMETERS
        is_named = isinstance(value, str) or hasattr(value, "_score_func")  # of make_scorer
        if is_loss and is_named and _NO_MEAN.search(str(value).lower()):
            yield str(value)
