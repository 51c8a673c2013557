"""Measurements of a model in a file, an open format: docs/formats.md has a reader of 40 lines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labeldp._atomic import StrPath
from labeldp._values import Data, Small
from labeldp.learning.array_files import ArraySchema, parse_specs
from labeldp.learning.features import PublicFeatures
from labeldp.learning.linear_gaussian import Observation
from labeldp.learning.measurements import GroupedSums, LabelRows, Measurements

MEASUREMENTS = "measurements.npz"

_TABLE = """
fit_rows                <i8  -                      1
fit_strengths           <f8  features               0
fit_log_prior_odds      <f8  -
sums_features           <f4  sums,coefficients
sums_sizes              <f8  sums                   positive
sums_variance_factors   <f8  sums                   positive
sums_values             <f8  sums
sums_noise              <f8  sums                   positive
labels_gram             <f4  triangle
labels_moment           <f8  coefficients
labels_square           <f8  -                      0
labels_count            <i8  -                      1
labels_rows             <f8  -                      positive
labels_noise_variance   <f8  -                      positive
rows_codes              |u1  rows,columns
rows_labels             <f8  rows
rows_noise              <f8  rows                   positive
"""

_SCHEMA = ArraySchema(parse_specs(_TABLE), optional=("sums_", "labels_", "rows_"))
"""All arrays of the file; those that begin with ``sums``, ``labels`` or ``rows`` are all there, or none is."""

MAX_SUMS = 1 << 17
"""The most sums of a file; with 1,400 features they take 700 MB."""

_MAX_ROWS = 1 << 26


def save_measurements(measurements: Measurements, path: StrPath, *, keep_rows: bool) -> None:
    """Write measurements to a file; with ``keep_rows``, private labels with codes of the columns of their rows."""
    objects: Data = {"fit": measurements, "sums": measurements.sums}
    for labels in measurements.labels:
        objects["labels"] = replace(labels, gram=labels.gram[np.triu_indices(len(labels.gram))])
    if keep_rows:
        objects["rows"] = measurements.label_rows
    _SCHEMA.write(path, objects)


def read_measurements(path: StrPath, public: PublicFeatures) -> Measurements:
    """Return the measurements of a model with these features.

    Raises
    ------
    CardError
        If the file does not hold measurements of such a model.
    """
    size = public.size
    exact = {
        "features": size - 1,
        "coefficients": size,
        "triangle": size * (size + 1) // 2,
        "columns": public.tree_columns,
    }
    sizes = {name: (count, count) for name, count in exact.items()}
    sizes |= {"sums": (1, MAX_SUMS), "rows": (1, _MAX_ROWS)}
    objects = _SCHEMA.read(path, sizes)
    sums, labels, rows = objects["sums"], objects["labels"], objects["rows"]
    if labels:
        labels["gram"] = _square(labels["gram"], size)
    return Measurements(
        **objects["fit"],
        sums=GroupedSums(**sums) if sums else None,
        labels=[Observation(**labels)] if labels else [],
        label_rows=LabelRows(**rows) if rows else None,
    )


def _square(triangle: Small, size: int) -> Small:
    """Return the symmetric matrix with this upper triangle, row by row."""
    gram = np.zeros((size, size), dtype=np.float32)
    gram[np.triu_indices(size)] = triangle
    return gram + np.triu(gram, 1).T
