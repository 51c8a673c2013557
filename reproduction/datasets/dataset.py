"""A table with public features and one private label."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Dataset:
    """A table, preprocessed, with its public bounds. Its text form shows no label.

    Attributes
    ----------
    name : str
        What the table is called.
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

    Examples
    --------
    Make one of your own table, where its bounds are public.

    >>> import numpy as np, labeldp as ldp
    >>> from reproduction.datasets import Dataset
    >>> homes = Dataset("homes", np.zeros((300, 2)), np.full(300, 2.5), (0.0, 5.0), ("rooms", "area"))
    >>> homes.X.shape, homes.bounds
    ((300, 2), (0.0, 5.0))
    >>> release = ldp.privatize(homes.y, epsilon=1.0, bounds=homes.bounds)
    """

    name: str
    X: NDArray[np.float64] = field(repr=False)
    y: NDArray[np.float64] = field(repr=False)
    bounds: tuple[float, float]
    columns: tuple[str, ...] = field(repr=False)
    notes: tuple[str, ...] = ()
