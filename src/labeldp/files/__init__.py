"""Tables in files: read in batches, written whole or not at all."""

from labeldp.files.privatize import FileRelease, privatize_file
from labeldp.files.table import Table, open_table
from labeldp.files.writer import TableWriter

__all__ = ["FileRelease", "Table", "TableWriter", "open_table", "privatize_file"]
