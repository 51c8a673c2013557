"""Tables in, numbers out: what stands between a file and a regressor."""

from labeldp.tabular.encoder import TableEncoder
from labeldp.tabular.reading import read_columns

__all__ = ["TableEncoder", "read_columns"]
