"""Diabetes: 442 patients, which scikit-learn ships, so that nothing is downloaded. The paper does not have it."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes as ships

from reproduction.datasets.dataset import Dataset

BOUNDS = (0.0, 3.5)


def load_diabetes() -> Dataset:
    """Return the diabetes table: 442 rows, 10 features, the progression of the disease after a year in hundreds.

    References
    ----------
    Efron, Hastie, Johnstone and Tibshirani, "Least angle regression".

    Examples
    --------
    >>> from reproduction.datasets import load_diabetes
    >>> load_diabetes().X.shape
    (442, 10)
    """
    table = ships(scaled=False)
    note = "442 patients, as scikit-learn ships them: for a first look. The paper does not have them."
    labels = np.asarray(table.target, dtype=np.float64) / 100  # about 1, as the paper's networks need them
    return Dataset("diabetes", np.asarray(table.data), labels, BOUNDS, tuple(table.feature_names), (note,))
