"""Tables in, numbers out: what stands between a file and a regressor."""

from labeldp.tabular.encoder import TableEncoder
from labeldp.tabular.encodings import Tally
from labeldp.tabular.memory import read_columns

__all__ = ["TableEncoder", "Tally", "read_columns"]
