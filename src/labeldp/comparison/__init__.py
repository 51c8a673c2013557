"""Which mechanism, which regressor and which ε suit a table whose labels are public."""

from labeldp.comparison.comparison import REGRESSORS, Comparison, compare_table, with_error
from labeldp.comparison.label_noise import LabelNoise, label_noise, mechanism_noise

__all__ = [
    "REGRESSORS",
    "Comparison",
    "LabelNoise",
    "compare_table",
    "label_noise",
    "mechanism_noise",
    "with_error",
]
