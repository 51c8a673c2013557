"""Measurements of a model in a file, an open format: docs/formats.md has a reader of 40 lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labeldp._atomic import StrPath
from labeldp._values import Small
from labeldp.errors import CardError
from labeldp.learning.array_files import Arrays, read_arrays
from labeldp.learning.features import PublicFeatures
from labeldp.learning.learner import LabelRows
from labeldp.learning.linear_gaussian import Observation
from labeldp.learning.measurements import MAX_BATCHES, Batch, GroupedSums, Measurements
from labeldp.learning.model_arrays import parse_specs

MEASUREMENTS = "measurements.npz"

_SPECS = parse_specs("""
prior_strengths         <f8  features               0
prior_log_odds          <f8  -
batch_fits              <i8  batches                1
batch_rows              <i8  batches                1
sums_batch              <i8  sums                   0
sums_features           <f4  sums,coefficients
sums_sizes              <f8  sums                   positive
sums_variance_factors   <f8  sums                   positive
sums_values             <f8  sums
sums_noise              <f8  sums                   positive
labels_batch            <i8  parts                  0
labels_gram             <f4  parts,triangle
labels_moment           <f8  parts,coefficients
labels_square           <f8  parts                  0
labels_count            <i8  parts                  1
labels_rows             <f8  parts                  positive
labels_noise            <f8  parts                  positive
rows_batch              <i8  rows                   0
rows_codes              |u1  rows,columns
rows_labels             <f8  rows
rows_noise              <f8  rows                   positive
""")
"""All arrays of the file; those that begin with ``sums``, ``labels`` or ``rows`` are all there, or none is."""

_MAX_SUMS, _MAX_ROWS = 1 << 17, 1 << 26


def save_measurements(measurements: Measurements, path: StrPath, *, keep_rows: bool) -> None:
    """Write measurements to a file; with ``keep_rows``, private labels with codes of the columns of their rows."""
    batches = measurements.batches
    arrays: dict[str, Any] = {
        "prior_strengths": measurements.strengths,
        "prior_log_odds": measurements.log_prior_odds,
        "batch_fits": [len(batch.fits) for batch in batches],
        "batch_rows": [batch.rows for batch in batches],
    }
    sums = {number: batch.sums for number, batch in enumerate(batches) if batch.sums is not None}
    if sums:
        joined = GroupedSums.join(list(sums.values()))
        arrays["sums_batch"] = np.repeat(list(sums), [each.values.size for each in sums.values()])
        arrays |= {f"sums_{name}": getattr(joined, name) for name in GroupedSums.__dataclass_fields__}
    labels = {number: batch.labels for number, batch in enumerate(batches) if batch.labels is not None}
    if labels:
        each = list(labels.values())
        arrays["labels_batch"] = list(labels)
        arrays["labels_gram"] = np.array([_triangle(one.gram) for one in each])
        fields = {"moment": "moment", "square": "square", "count": "count", "rows": "rows"}
        fields["noise"] = "noise_variance"
        arrays |= {f"labels_{name}": [getattr(one, field) for one in each] for name, field in fields.items()}
    rows = {number: batch.label_rows for number, batch in enumerate(batches) if batch.label_rows is not None}
    if keep_rows and rows:
        kept = LabelRows.join(list(rows.values()))
        arrays["rows_batch"] = np.repeat(list(rows), [one.labels.size for one in rows.values()])
        arrays |= {"rows_codes": kept.codes, "rows_labels": kept.labels, "rows_noise": kept.noise}
    typed = {name: np.asarray(value, dtype=_SPECS[name].dtype) for name, value in arrays.items()}
    np.savez(path, allow_pickle=False, **typed)


def read_measurements(path: StrPath, public: PublicFeatures, fits: Sequence[str]) -> Measurements:
    """Return the measurements of a model with these features.

    Parameters
    ----------
    path : path-like
    public : PublicFeatures
    fits : sequence of str
        The time of the first charge of each fit, from the card.

    Raises
    ------
    CardError
        If the file does not hold measurements, or not those of such a model.
    """
    size = public.size
    sizes = {
        "features": (size - 1, size - 1),
        "coefficients": (size, size),
        "triangle": (size * (size + 1) // 2, size * (size + 1) // 2),
        "columns": (public.tree_columns, public.tree_columns),
        "batches": (1, MAX_BATCHES),
        "sums": (1, _MAX_SUMS),
        "parts": (1, MAX_BATCHES),
        "rows": (1, _MAX_ROWS),
    }
    arrays = read_arrays(path, _SPECS, sizes, optional=("sums_", "labels_", "rows_"))
    count = arrays["batch_fits"].size
    ends = np.cumsum(arrays["batch_fits"]).tolist()
    owners = [arrays[name] for name in ("sums_batch", "labels_batch", "rows_batch") if name in arrays]
    is_whole = ends[-1] == len(fits) and all(owner.max() < count for owner in owners)
    owned = arrays.get("labels_batch", np.arange(0))
    if not is_whole or np.unique(owned).size < owned.size:
        raise CardError("the model's measurements do not fit the fits on its card")
    batches = [
        Batch(tuple(fits[end - fitted : end]), rows, *_parts_of(arrays, number, size))
        for number, (end, fitted, rows) in enumerate(
            zip(ends, arrays["batch_fits"].tolist(), arrays["batch_rows"].tolist(), strict=True)
        )
    ]
    return Measurements(tuple(batches), arrays["prior_strengths"], arrays["prior_log_odds"].item())


def _parts_of(
    arrays: Arrays, number: int, size: int
) -> tuple[GroupedSums | None, Observation | None, LabelRows | None]:
    """Return the sums, the labels and the rows of a batch."""

    def select(prefix: str) -> dict[str, Any]:
        owner = arrays.get(f"{prefix}_batch")
        if owner is None or not (owner == number).any():
            return {}
        names = [name for name in arrays if name.startswith(f"{prefix}_") and name != f"{prefix}_batch"]
        return {name.removeprefix(f"{prefix}_"): arrays[name][owner == number] for name in names}

    sums, labels, rows = select("sums"), select("labels"), select("rows")
    observation = None
    if labels:
        moment, gram = labels.pop("moment")[0], _square(labels.pop("gram")[0], size)
        rest = {name: value[0].item() for name, value in labels.items()}
        observation = Observation(gram, moment, noise_variance=rest.pop("noise"), **rest)
    return GroupedSums(**sums) if sums else None, observation, LabelRows(**rows) if rows else None


def _triangle(gram: Small) -> Small:
    """Return the upper triangle of a symmetric matrix, row by row."""
    return np.asarray(gram[np.triu_indices(len(gram))])


def _square(triangle: Small, size: int) -> Small:
    """Return the symmetric matrix with this upper triangle."""
    gram = np.zeros((size, size), dtype=np.float32)
    gram[np.triu_indices(size)] = triangle
    return gram + np.triu(gram, 1).T
