"""Files that a plan reads, in either of Spark's two ways, and options by which rows would follow labels."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from labeldp.errors import DataError

__all__ = ["FileSource", "file_source"]

_MISSING = ("nullvalue", "nanvalue", "positiveinf", "negativeinf", "emptyvalue")
_MARKS = ("sep", "delimiter", "linesep", "quote", "escape", "chartoescapequoteescaping", "comment")
_LENGTHS = ("maxcharspercolumn", "maxnumlen")
_OF_NUMBERS = frozenset("0123456789+-.eE")
_TEXT = frozenset({"csv", "json", "text", "xml"})


@dataclass(frozen=True)
class FileSource:
    """Files, and how they are read.

    Attributes
    ----------
    kind : str
        The format: "csv", "parquet" and so on.
    paths : frozenset of str
        Each with "/" at its end; a link on this machine is followed.
    schema : str
    options : dict
        Names are in lower case; without paths.
    record : str
        The column, in lower case, that holds records which cannot be read.
    """

    kind: str
    paths: frozenset[str]
    schema: str
    options: dict[str, str]
    record: str

    @property
    def reading(self) -> str:
        """What tells ways of reading the same files apart."""
        return repr((self.kind, self.schema, sorted(self.options.items())))

    def keeps_numbers(self, kind: str) -> bool:
        """Return whether no number becomes missing, or not finite, because it does not fit a column's type.

        Parquet is read as what it is, or not at all. From other files a number that does not fit is missing.
        """
        return self.kind == "parquet" or kind in ("DOUBLE", "STRING")

    def refuse_options(self) -> None:
        """Refuse options by which a number, or a row, is missing because of the label's value or its digits."""
        if self.kind not in _TEXT:
            return
        if self.options.get("mode", "").upper() == "DROPMALFORMED":
            raise DataError(
                "the label's file is read with mode='DROPMALFORMED', so rows may be missing because of labels: "
                "leave the option out, and choose rows by public columns, or by whether the label is missing"
            )
        for name, value in self.options.items():
            number = name in _MISSING and any(letter.isdigit() for letter in value)
            mark = name in _MARKS and not _OF_NUMBERS.isdisjoint(value)
            if number or mark or (name in _LENGTHS and value != "-1"):
                raise DataError(
                    f"the label's file is read with the option {name}={value!r}, by which a label's value may "
                    "decide what is missing, or where a column ends: read it without the option, or write the "
                    "table in another format"
                )


def file_source(plan: Any) -> FileSource | None:
    """Return the files that a leaf of a plan reads; None if it is another kind of source."""
    name = str(plan.getClass().getSimpleName())
    if name == "LogicalRelation":
        relation = plan.relation()
        if str(relation.getClass().getSimpleName()) != "HadoopFsRelation":
            return None
        kind = str(relation.fileFormat().getClass().getSimpleName()).removesuffix("FileFormat")
        places = relation.location()
        pairs = relation.options().toSeq()
        options = {str(pairs.apply(k)._1()): str(pairs.apply(k)._2()) for k in range(pairs.size())}
    elif name == "DataSourceV2Relation":
        relation = plan.table()
        if str(relation.getClass().getSuperclass().getSimpleName()) != "FileTable":
            return None
        kind, places = str(relation.formatName()), relation.fileIndex()
        options = {str(key): str(value) for key, value in plan.options().asCaseSensitiveMap().items()}
    else:
        return None
    roots = places.rootPaths()
    lower = {key.lower(): value for key, value in options.items() if key.lower() not in ("path", "paths")}
    usual = str(relation.sparkSession().conf().get("spark.sql.columnNameOfCorruptRecord"))
    return FileSource(
        kind.lower(),
        frozenset(_place(roots.apply(k).toUri()) for k in range(roots.size())),
        str(relation.dataSchema().json()),
        lower,
        lower.get("columnnameofcorruptrecord", usual).lower(),
    )


def _place(uri: Any) -> str:
    """Return a path as text, without links where it is one of this machine."""
    if str(uri.getScheme()) == "file":
        return f"file:{os.path.realpath(str(uri.getPath()))}/"
    return f"{uri.toString()}/"
