"""What models reached on the public tables of the accuracy suite, in ``accuracy_suite.json``.

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

_SIGNAL = 0.9
"""Tables on which boosted trees without privacy have more than this part of a constant's error are left out."""

_MARGIN = 0.1
_BEYOND = math.log(10)
"""How far below and above all measured rows × ε the nearest measurement is used, in logarithms."""

_FEWEST = 0.5
"""With fewer than this part of the tables nothing is returned: a few need not be typical."""


@dataclass(frozen=True, slots=True)
class KeptShare:
    """The share of what features explain without privacy that private models reached, at one rows × ε.

    Attributes
    ----------
    middle, low, high : float
        Median and quartiles over the tables: 1 is as good as boosted trees without privacy, 0 as a constant.
    tables : int
        How many.

    Examples
    --------
    >>> import labeldp as ldp
    >>> kept = ldp.preview(rows=20_000, bounds=(0, 200), epsilon=1.0).budgets[0].kept
    >>> 0 < kept.low <= kept.middle <= kept.high
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
        if points and table["trees"] < _SIGNAL:
            powers, errors = np.array(points).T
            curves.append((np.log(powers), np.clip((1 - errors) / (1 - table["trees"]), 0.0, 1.0)))
    return curves


def share_kept(rows: int, epsilon: float) -> KeptShare | None:
    """Return the share that models reached on the suite's tables, interpolated at this rows × ε.

    Returns
    -------
    KeptShare or None
        None where too few tables were measured there.

    Examples
    --------
    >>> kept = share_kept(20_000, 1.0)
    >>> 0 <= kept.low <= kept.middle <= kept.high <= 1
    True
    """
    place = np.log(rows * epsilon)
    shares = [
        float(np.interp(place, places, kept))
        for places, kept in _curves()
        if places[0] - _MARGIN <= place <= places[-1] + _BEYOND
    ]
    if len(shares) < _FEWEST * len(_curves()):
        return None
    low, middle, high = np.quantile(shares, [0.25, 0.5, 0.75]).tolist()
    return KeptShare(middle, low, high, len(shares))
