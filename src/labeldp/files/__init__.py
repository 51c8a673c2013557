"""Tables in files: read in batches, written whole or not at all."""

from labeldp.files.table import Table, open_table
from labeldp.files.writer import TableWriter

__all__ = ["Table", "TableWriter", "open_table"]
