"""A small public table for tests of the model's parts: six features, so that plain loops do not take long."""

import numpy as np

from labeldp.estimators.feature_table import FeatureTable


class Few:
    """Stands in for `PublicFeatures`: a few features of two columns."""

    block = np.array([0, 0, 1, 2, 3])

    @classmethod
    def fit(cls, X):
        return cls()

    def transform(self, X):
        a, b = X[:, 0], X[:, -1]
        features = np.column_stack([a, b, a**2 - 1, a * b, np.sin(a + b), np.ones(len(X))])
        return features.astype(np.float32)

    def standardised(self, X):
        return X

    def spectrum(self, features):
        return np.geomspace(0.3, 0.01, 5)


def small_table(rows, seed=1):
    """Return a table of so many rows, two columns and six features."""
    scale = np.array([[1.0, 0.3], [0.0, 0.6]])
    return FeatureTable(Few(), np.random.default_rng(seed).normal(size=(rows, 2)) @ scale)
