"""A regression table as a picture: each coefficient with its interval, with privacy and without."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from labeldp._values import Array
from labeldp.errors import MissingExtraError


def draw_table(
    names: Sequence[str], params: Array, ends: Array, ordinary: Array, alpha: float, ax: Any = None
) -> Any:
    """Return axes with a row for each coefficient; the first is on top."""
    if ax is None:
        try:
            from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)
        except ImportError:
            raise MissingExtraError('a plot needs Matplotlib: pip install "labeldp[plots]"') from None
        ax = Figure(figsize=(7, 1.2 + 0.4 * len(names)), layout="constrained").subplots()
    places = np.arange(len(names))
    reach = NormalDist().inv_cdf(1 - alpha / 2) * ordinary
    percent = f"{100 * (1 - alpha):g} %"
    ax.hlines(places, *ends.T, color="C0", linewidth=2, label=f"{percent} interval")
    ax.hlines(
        places + 0.2, params - reach, params + reach, color="C1", linewidth=2, label="its width without privacy"
    )
    ax.plot(params, places, "o", color="C0")
    ax.axvline(0, color="#777777", linewidth=0.8)
    ax.set_yticks(places, names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel("coefficient")
    ax.legend(frameon=False, fontsize=9)
    return ax
