"""Which columns of a DataFrame are meant, and whether their types can be used: settled before any row is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from labeldp.errors import DataError, LabelError, MissingExtraError, ParameterError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["RowColumns", "column", "feature_columns", "label_column", "need_spark"]


def need_spark() -> None:
    """Say which extra brings PySpark, if it is not there."""
    try:
        import pyarrow  # noqa: F401, PLC0415
        from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # noqa: F401, PLC0415
    except ImportError:
        raise MissingExtraError(
            "this needs PySpark 4.1 or newer and PyArrow, which are not installed: pip install 'labeldp[spark]'"
        ) from None


def column(name: str) -> Column:
    """Return a top-level column, whatever characters its name has."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    return F.col("`" + name.replace("`", "``") + "`")


def _field(df: DataFrame, name: object, what: str) -> Any:
    names = df.columns
    if not isinstance(name, str):
        raise ParameterError(f"{what} must be the name of a column, got {type(name).__name__}")
    if name in names:
        return df.schema[name]
    if "." in name and name.split(".", 1)[0] in names:
        raise ParameterError(
            f"{what}={name!r} is inside another column, which would carry it along: make it a column of its own, "
            "and take it out of the other"
        )
    texts = [one for one in names if not re.match(r"[\W_]*\d", one)]  # without a header, labels may be names
    near = [one for one in texts if one.lower() == name.lower()] or get_close_matches(name, texts, n=1)
    raise ParameterError(f"there is no column {name!r}" + (f"; is {near[0]!r} meant?" if near else ""))


def _refuse_repeated(names: Sequence[str]) -> None:
    if len({name.lower() for name in names}) < len(names):
        raise DataError("two columns have the same name, or differ only in upper and lower case: rename one")


def label_column(df: DataFrame, label: object) -> str:
    """Return the label's name, if it is a column of numbers."""
    from pyspark.sql import types as T  # noqa: N812, PLC0415

    if not type(df).__module__.startswith("pyspark.sql."):
        raise ParameterError(f"df must be a DataFrame of Spark, got {type(df).__module__}.{type(df).__name__}")
    _refuse_repeated(df.columns)
    field = _field(df, label, "label")
    if not isinstance(field.dataType, T.NumericType):
        kind = field.dataType.simpleString().split("<")[0].split("(")[0]
        raise LabelError(f"labels must be real numbers, got {kind}: convert the column first, with try_cast")
    return str(field.name)


@dataclass(frozen=True, slots=True)
class RowColumns:
    """The columns of a release.

    Attributes
    ----------
    names : tuple of str
        All columns, in their order.
    label, id : str
    """

    names: tuple[str, ...]
    label: str
    id: str

    @classmethod
    def of(cls, df: DataFrame, label: object, id: object) -> RowColumns:
        """Return the columns, if they and their types can be used."""
        from pyspark.sql import types as T  # noqa: N812, PLC0415

        name = label_column(df, label)
        if id is None:
            raise ParameterError(
                "id must name a column that tells rows apart: a row's noise follows from its id, so that a task "
                "that runs twice gives the same noise twice"
            )
        field = _field(df, id, "id")
        if not isinstance(field.dataType, T.IntegralType | T.StringType | T.BinaryType):
            raise ParameterError(
                f"ids must be integers, text or binary, got {field.dataType.simpleString()}: convert them"
            )
        if isinstance(field.dataType, T.StringType) and field.dataType.collation != "UTF8_BINARY":
            raise ParameterError("ids of text must be compared byte by byte: cast them to a plain string")
        if field.name == name:
            raise ParameterError("the label cannot be its own id")
        return cls(tuple(df.columns), name, str(field.name))

    @property
    def label_place(self) -> int:
        """Where the label is among the columns."""
        return self.names.index(self.label)

    @property
    def id_place(self) -> int:
        """Where the id is among the columns."""
        return self.names.index(self.id)

    def ready(self, df: DataFrame) -> DataFrame:
        """Return all columns, the label as a double, under names that need no quotes: c0, c1 and so on.

        What is said of a column (its metadata) stays behind: it may have been made from labels.
        """
        chosen = [column(name) for name in self.names]
        chosen[self.label_place] = chosen[self.label_place].cast("double")
        return df.select(*(one.alias(f"c{k}", metadata={}) for k, one in enumerate(chosen)))

    def schema(self, df: DataFrame, extra: str | None) -> Any:
        """Return the schema of the output: the label a double, and nothing left of what was said of it."""
        from pyspark.sql import types as T  # noqa: N812, PLC0415

        fields = [T.StructField(f.name, T.DoubleType()) if f.name == self.label else f for f in df.schema]
        if extra is not None:
            _refuse_repeated([*self.names, extra])
            fields.append(T.StructField(extra, T.DoubleType()))
        return T.StructType(fields)


def feature_columns(df: DataFrame, features: object, label: str) -> list[str]:
    """Return the features' names, if they are columns of numbers."""
    from pyspark.sql import types as T  # noqa: N812, PLC0415

    if isinstance(features, str) or not isinstance(features, Sequence) or not features:
        raise ParameterError("features must be a list of columns")
    names = []
    for feature in features:
        field = _field(df, feature, "features")
        if not isinstance(field.dataType, T.NumericType | T.BooleanType):
            raise ParameterError(f"feature {feature!r} is no number: encode it first, from what is public")
        names.append(str(field.name))
    if label in names or len(set(names)) < len(names):
        raise ParameterError("features must be different columns, and none of them the label")
    return names
