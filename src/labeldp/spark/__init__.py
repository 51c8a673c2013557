"""Label privacy on a Spark cluster: the same mechanisms, cards and ledger, on DataFrames.

Needs the extra ``labeldp[spark]``, on the driver and on the executors.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from labeldp.errors import MissingExtraError

if TYPE_CHECKING:
    from labeldp.spark.dataframe_release import SparkRelease, privatize
    from labeldp.spark.dataframe_rows import collect_rows

__all__ = ["SparkRelease", "collect_rows", "privatize"]


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
    module = "dataframe_rows" if name == "collect_rows" else "dataframe_release"
    return getattr(import_module(f"{__name__}.{module}"), name)
