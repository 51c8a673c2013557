"""Which mechanism, which regressor and which ε suit a table whose labels are public."""

from labeldp.comparison.compare import REGRESSORS, Comparison, compare_table, steps_of
from labeldp.comparison.label_errors import LabelNoise, label_noise, mechanism_noise

__all__ = ["REGRESSORS", "Comparison", "LabelNoise", "compare_table", "label_noise", "mechanism_noise", "steps_of"]
