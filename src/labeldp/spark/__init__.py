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

_MODULES = {
    "SparkRelease": "release",
    "estimate_prior": "prior",
    "fit_model": "model",
    "private_ols": "ols",
    "privatize": "release",
}
__all__ = ["SparkRelease", "estimate_prior", "fit_model", "private_ols", "privatize"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import_module("pyarrow")
        _ = import_module("pyspark.sql.functions").arrow_udf
    except (ImportError, AttributeError):
        raise MissingExtraError(
            'this needs PySpark 4.1 or newer and PyArrow, which are not installed: pip install "labeldp[spark]"'
        ) from None
    return getattr(import_module(f"{__name__}.dataframe_{_MODULES[name]}"), name)
