"""Which mechanism, which regressor and which ε suit a table whose labels are public."""

from labeldp.comparison.compare import REGRESSORS, Comparison, LabelNoise, compare_table, label_noise, steps_of

__all__ = ["REGRESSORS", "Comparison", "LabelNoise", "compare_table", "label_noise", "steps_of"]
