"""California Housing: block groups of the 1990 census, and what houses there were worth."""

from __future__ import annotations

import socket
import warnings

import numpy as np

from labeldp.errors import DataNotFoundError
from reproduction.datasets.data_files import TIMEOUT, cache_folder, find, read_checked
from reproduction.datasets.dataset import Dataset

FILE = "california_housing.csv"
SHA256 = "94ef369b909f5c725340b512b7c9a05c1550a554b6592d29303990e3ba521a1f"
LABEL = "MedHouseVal"
BOUNDS = (0.0, 5.0001)

_BY_HAND = (
    f"To get it by hand: on a machine with a network, write the frame of scikit-learn's "
    f"fetch_california_housing(as_frame=True) to {FILE} without its index, and name the folder of that file "
    "in the environment variable LABELDP_DATA"
)
_NOTES = (
    "All 20,640 block groups, 8 features as the census gives them: not scaled.",
    "The label is the median house value in $100,000. Its bounds are the census form's: from 0 to just above "
    "$500,001, the code for everything over $500,000.",
)


def load_housing(*, download: bool = True) -> Dataset:
    """Return California Housing: 20,640 rows, 8 features, the label in $100,000.

    The file ``california_housing.csv`` (or ``.csv.gz``) is looked for in the folder that
    ``LABELDP_DATA`` names, then in the user's cache folder. Else scikit-learn's
    ``fetch_california_housing`` gets the table, checks it, and keeps it in the cache folder.

    Parameters
    ----------
    download : bool
        Whether the network may be used.

    Raises
    ------
    DataNotFoundError
        If the table is not on this machine and cannot be downloaded; the message says how to get it.
    DataError
        If the file is damaged, or another version.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from reproduction.datasets import load_housing
    >>> housing = load_housing()                        # doctest: +SKIP
    >>> housing.X.shape, housing.bounds                 # doctest: +SKIP
    ((20640, 8), (0.0, 5.0001))

    References
    ----------
    R. K. Pace and R. Barry, Sparse spatial autoregressions, Statistics & Probability Letters 33 (1997).
    """
    path = find(FILE)
    if path is None:
        return _from_scikit_learn(download)
    header, *lines = read_checked(path, SHA256).decode().splitlines()
    table = np.array([line.split(",") for line in lines], dtype=np.float64)
    return _dataset(tuple(header.split(",")[:-1]), table[:, :-1], table[:, -1])


def _from_scikit_learn(download: bool) -> Dataset:
    from sklearn.datasets import fetch_california_housing  # noqa: PLC0415 (slow to import)

    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT)  # scikit-learn sets none, and a server may stay silent for ever
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that it tries again
            table = fetch_california_housing(
                data_home=cache_folder(), download_if_missing=download, n_retries=1, delay=0.2
            )
    except OSError as error:
        raise DataNotFoundError(f"California Housing could not be fetched ({error}). {_BY_HAND}") from None
    finally:
        socket.setdefaulttimeout(before)
    return _dataset(tuple(table.feature_names), table.data, table.target)


def _dataset(names: tuple[str, ...], X: np.ndarray, y: np.ndarray) -> Dataset:
    return Dataset("housing", np.ascontiguousarray(X), np.ascontiguousarray(y), BOUNDS, names, notes=_NOTES)
