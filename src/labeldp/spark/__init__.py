"""Label privacy on a Spark cluster: the same mechanisms, cards and ledger, on DataFrames.

Needs the extra ``labeldp[spark]``, on the driver and on the executors.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from labeldp.errors import MissingExtraError

if TYPE_CHECKING:
    from labeldp.spark.dataframe_model import fit_model
    from labeldp.spark.dataframe_ols import private_ols
    from labeldp.spark.dataframe_prior import estimate_prior
    from labeldp.spark.dataframe_release import SparkRelease, privatize

__all__ = ["SparkRelease", "estimate_prior", "fit_model", "private_ols", "privatize"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import_module("pyarrow")
        _ = import_module("pyspark.sql.functions").arrow_udf
    except (ImportError, AttributeError):
        raise MissingExtraError(
            'this needs PySpark 4.1 or newer and PyArrow, which are not installed: pip install "labeldp[spark]"'
        ) from None
    modules = {"fit_model": "dataframe_model", "estimate_prior": "dataframe_prior", "private_ols": "dataframe_ols"}
    return getattr(import_module(f"{__name__}.{modules.get(name, 'dataframe_release')}"), name)
