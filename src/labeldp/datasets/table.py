"""`Dataset`: a table with public features and one private label, as experiments use it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dataset"]


@dataclass(frozen=True, slots=True)
class Dataset:
    """A table, preprocessed, with its public bounds. Its text form shows no label.

    Attributes
    ----------
    name : str
    X : array, rows × columns
        Public numeric features, as they come, not scaled.
    y : array
        The private label.
    bounds : (float, float)
        Public bounds of the label: of the form, the scale or the unit, not of the data.
    columns : tuple of str
        Names of the columns of ``X``.
    notes : tuple of str
        What was done to the raw file, for people.
    """

    name: str
    X: NDArray[np.float64] = field(repr=False)
    y: NDArray[np.float64] = field(repr=False)
    bounds: tuple[float, float]
    columns: tuple[str, ...] = field(repr=False)
    notes: tuple[str, ...] = ()
