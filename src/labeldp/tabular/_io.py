"""Stand-in for the files room until it is here."""

# ruff: noqa
# mypy: ignore-errors
import sys, io, difflib
from pathlib import Path
import numpy as np
from labeldp.errors import DataError, DataNotFoundError, LabelError


def _ds(path, format=None):
    import pyarrow.dataset as ds
    import pyarrow.csv as csv

    suffix = Path(path).suffix.lower()
    kinds = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".feather": "feather", ".arrow": "feather"}
    kind = format or kinds.get(suffix)
    if kind is None:
        raise DataError(f"{path}: unknown kind of file")
    if kind == "tsv":
        return ds.CsvFileFormat(parse_options=csv.ParseOptions(delimiter="\t"))
    return kind


class _Table:
    def __init__(self, source, format=None):
        import pyarrow as pa, pyarrow.dataset as ds

        if not Path(source).exists():
            raise DataNotFoundError(f"there is no {source}")
        try:
            self.ds = ds.dataset(source, format=_ds(source, format))
        except pa.ArrowInvalid as e:
            raise DataError(f"{source} cannot be read") from None
        self.schema = self.ds.schema

    def column(self, name):
        if name not in self.schema.names:
            near = difflib.get_close_matches(name, self.schema.names, 1)
            raise DataError(f"there is no column {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        return self.schema.field(name)

    def batches(self, columns=None):
        import pyarrow as pa

        try:
            yield from self.ds.to_batches(columns=columns)
        except pa.ArrowInvalid:
            raise DataError("the file cannot be read") from None


def open_table(source, format=None):
    return _Table(str(source), format)


class TableWriter:
    def __init__(self, path, schema, format=None, force=False):
        self.path, self.schema, self.force = Path(path), schema, force
        self.got = []

    def __enter__(self):
        if self.path.exists() and not self.force:
            raise DataError(f"{self.path} is there already: --force replaces it")
        return self

    def write(self, batch):
        self.got.append(batch)

    def __exit__(self, kind, *rest):
        import pyarrow as pa, pyarrow.csv as csv, pyarrow.parquet as pq, pyarrow.feather as f

        if kind is None:
            t = pa.Table.from_batches(self.got, self.schema)
            s = self.path.suffix
            if s == ".parquet":
                pq.write_table(t, self.path)
            elif s in (".csv", ".tsv"):
                csv.write_csv(t, self.path, csv.WriteOptions(delimiter="\t" if s == ".tsv" else ","))
            else:
                f.write_feather(t, str(self.path))


def label_values(array, missing):
    import pyarrow as pa, pyarrow.compute as pc

    t = array.type
    if not (pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t)):
        raise LabelError(f"the label must be numbers; its column holds {t}")
    v = (
        pc.cast(array, pa.float64()).to_numpy(zero_copy_only=False)
        if not isinstance(array, pa.ChunkedArray)
        else pc.cast(array, pa.float64()).to_numpy()
    )
    v = np.asarray(v, dtype=float)
    ok = np.isfinite(v)
    if not ok.all() and missing == "error":
        raise LabelError("some labels are missing or not finite: --missing drop leaves their rows out")
    return v[ok]
