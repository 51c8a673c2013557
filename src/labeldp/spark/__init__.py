"""Label privacy on a Spark cluster: the same mechanisms, cards and ledger, on DataFrames.

Needs the extra ``labeldp[spark]``, on the driver and on the executors.
"""

from labeldp.errors import MissingExtraError

try:
    from labeldp.spark.dataframe_model import fit_model
    from labeldp.spark.dataframe_ols import private_ols
    from labeldp.spark.dataframe_prior import estimate_prior
    from labeldp.spark.dataframe_release import SparkRelease, privatize
except ImportError:
    raise MissingExtraError(
        'this needs PySpark 4.1 or newer and PyArrow, which are not installed: pip install "labeldp[spark]"'
    ) from None

__all__ = ["SparkRelease", "estimate_prior", "fit_model", "private_ols", "privatize"]
