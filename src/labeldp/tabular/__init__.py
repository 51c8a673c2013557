"""Tables in, numbers out: what stands between a file or a data frame and a regressor."""

from typing import TYPE_CHECKING, Any

from labeldp.tabular.encoder import TableEncoder
from labeldp.tabular.encodings import Tally
from labeldp.tabular.frames import as_table, frame_names, is_frame, refuse_other_order, row_count
from labeldp.tabular.memory import read_columns

if TYPE_CHECKING:
    from labeldp.tabular.transformer import TableTransformer

__all__ = [
    "TableEncoder",
    "TableTransformer",
    "Tally",
    "as_table",
    "frame_names",
    "is_frame",
    "read_columns",
    "refuse_other_order",
    "row_count",
]


def __getattr__(name: str) -> Any:
    """Import the transformer when it is asked for: scikit-learn takes a second that most commands can save."""
    if name == "TableTransformer":
        from labeldp.tabular.transformer import TableTransformer  # noqa: PLC0415

        return TableTransformer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
