"""Accuracy of models on the public tables of the accuracy suite, from ``accuracy_suite.json``.

``python -m benchmarks.accuracy package CELLS --version LABEL`` writes it anew.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from labeldp._values import Array, Data

_MAX_ERROR = 0.99
"""Tables on which boosted trees without privacy have more than this share of a constant's error are left out: the
share of nothing cannot be measured."""

_LOG_MARGIN_BELOW = 0.1
"""Rows × ε below all measurements, as a logarithm, for which the lowest measurement is used."""

_LOG_MARGIN_ABOVE = math.log(10)
"""Rows × ε above all measurements, as a logarithm, for which the highest measurement is used."""

_MIN_SHARE = 0.5
"""The least share of the tables for which a figure is returned: a few need not be typical."""


@dataclass(frozen=True, slots=True)
class ModelShare:
    """The share of what features explain without privacy that private models reached, at one rows × ε.

    Attributes
    ----------
    middle, low, high : float
        Median, least and largest share of the tables: 1 is as good as boosted trees without privacy, 0 as a
        constant. A further table of the same kind is within low and high with the odds n − 1 : 2, for n tables.
    tables : int
        Number of tables.

    Examples
    --------
    >>> import labeldp as ldp
    >>> share = ldp.preview(rows=20_000, bounds=(0, 200), epsilon=1.0).budgets[0].model
    >>> 0 < share.low <= share.middle <= share.high
    True
    """

    middle: float
    low: float
    high: float
    tables: int


@cache
def _curves() -> list[tuple[Array, Array]]:
    """Return for each table the logarithms of rows × ε, and the share that a model reached there."""
    content: Data = json.loads(Path(__file__).with_name("accuracy_suite.json").read_text(encoding="utf-8"))
    curves = []
    for table in content["tables"]:
        figures = [figure for figure in table["figures"] if figure["method"] == "model"]
        points = sorted((figure["rows"] * figure["epsilon"], figure["error"]) for figure in figures)
        if points and table["trees"] < _MAX_ERROR:
            powers, errors = np.array(points).T
            shares = (1 - errors) / (1 - table["trees"])
            curves.append((np.log(powers), np.clip(shares, 0.0, 1.0)))
    return curves


def model_share(rows: int, epsilon: float) -> ModelShare | None:
    """Return the share that models reached on the suite's tables, interpolated at this rows × ε.

    Returns
    -------
    ModelShare or None
        None where too few tables were measured there.

    Examples
    --------
    >>> share = model_share(20_000, 1.0)
    >>> 0 <= share.low <= share.middle <= share.high <= 1
    True
    """
    log_power = np.log(rows * epsilon)
    shares = []
    for log_powers, curve in _curves():
        if log_powers[0] - _LOG_MARGIN_BELOW <= log_power <= log_powers[-1] + _LOG_MARGIN_ABOVE:
            shares.append(float(np.interp(log_power, log_powers, curve)))
    if len(shares) < _MIN_SHARE * len(_curves()):
        return None
    low, middle, high = np.quantile(shares, [0, 0.5, 1]).tolist()
    return ModelShare(middle, low, high, len(shares))
