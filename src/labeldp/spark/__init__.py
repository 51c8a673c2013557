"""Label privacy on a Spark cluster: the same mechanisms, cards and ledger, on DataFrames.

Needs the extra ``labeldp[spark]``, on the driver and on the executors.
"""

from labeldp.spark.dataframe_model import fit_model
from labeldp.spark.dataframe_prior import estimate_prior
from labeldp.spark.dataframe_release import SparkRelease, privatize, randomize

__all__ = ["SparkRelease", "estimate_prior", "fit_model", "privatize", "randomize"]
