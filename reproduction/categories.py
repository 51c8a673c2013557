"""Data sets with categories beside their numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reproduction.datasets.dataset import Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoricalDataset(Dataset):
    """A data set that also has categorical features.

    Attributes
    ----------
    ids : array of int32, rows × categories
        Integers from 0 to the vocabulary's size − 1; 0 is rare or missing.
    categories : tuple of str
        Names of the columns of ``ids``.
    sizes : tuple of int
        Vocabulary sizes of the columns of ``ids``.
    """

    ids: NDArray[np.int32] = field(repr=False)
    categories: tuple[str, ...] = field(repr=False)
    sizes: tuple[int, ...] = field(repr=False)


def categories_of(data: Dataset) -> tuple[NDArray[np.int32], tuple[int, ...]]:
    """Return a data set's categorical features and their vocabulary sizes; most data sets have none."""
    if isinstance(data, CategoricalDataset):
        return data.ids, data.sizes
    return np.zeros((len(data.y), 0), dtype=np.int32), ()
