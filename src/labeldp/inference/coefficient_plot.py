"""The picture of a regression table: effects with their intervals."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from labeldp._values import Array
from labeldp.errors import MissingExtraError

if TYPE_CHECKING:
    from labeldp.inference.regression_table import RegressionTable

_WIDE = 6
"""Ratios with ends further apart than this factor have ticks at 1, 2, 5 and their powers of ten."""


def draw_effects(table: RegressionTable, ax: Any, alpha: float) -> Any:
    """Draw an effect in each line, with its intervals below each other; ratios on a logarithmic axis.

    ``ax`` may be None for those of a new figure of pyplot.
    """
    ax = ax or _new_axes(len(table.names))
    estimates, scales = table.estimates, _column_scales(table)
    effects = estimates.coefficients[1:] * scales
    half_widths = np.diff(estimates.intervals(alpha)).ravel()[1:] / 2 * scales
    ordinary = NormalDist().inv_cdf(1 - alpha / 2) * estimates.ordinary_errors[1:] * scales
    intervals = {f"{100 * (1 - alpha):g} % interval": half_widths, "its width without privacy": ordinary}
    scaled = np.asarray if table.family.is_linear else np.exp
    heights = np.arange(1, len(table.names))
    for k, (text, reach) in enumerate(intervals.items()):
        if not np.isnan(reach).any():
            ax.hlines(heights + k / 5, scaled(effects - reach), scaled(effects + reach), f"C{k}", label=text)
    ax.plot(scaled(effects), heights, "oC0")
    ax.axvline(scaled(0.0), color="#777777", linewidth=0.8)
    _set_axes(ax, table)
    return ax


def _set_axes(ax: Any, table: RegressionTable) -> None:
    """Set the scale, the ticks and the texts of axes."""
    from matplotlib.ticker import LogLocator, MaxNLocator  # noqa: PLC0415 (an extra)

    ratios = table.family.ratios
    if ratios:
        ax.set_xscale("log")
        low, high = ax.get_xlim()
        narrow = MaxNLocator(4, steps=[1, 2, 2.5, 5, 10])
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)) if high > _WIDE * low else narrow)
        ax.xaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
    unit = "one more" if table.rows is None else "one standard deviation more or from 0 to 1"
    effect = f"{ratios} of" if ratios else "difference of"
    ax.set_xlabel(f"{effect} {table.label}, for {unit}")
    names = table.names[1:]
    ax.set(yticks=range(1, len(names) + 1), yticklabels=names, ylim=(len(names) + 0.5, 0.5))
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, fontsize=9)


def _column_scales(table: RegressionTable) -> Array:
    """Return the standard deviation of each column; 1 for columns of 0 and 1, and where columns are not known."""
    if table.rows is None:
        return np.ones(len(table.names) - 1)
    columns = table.columns.transform(table.rows)
    is_binary = np.isin(columns, (0, 1)).all(axis=0)
    return np.where(is_binary, 1.0, columns.std(axis=0))


def _new_axes(rows: int) -> Any:
    """Return the axes of a new figure."""
    try:
        from matplotlib import pyplot  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError('a plot needs Matplotlib: pip install "labeldp[plots]"') from None
    return pyplot.subplots(figsize=(7, 1.2 + 0.4 * rows), layout="constrained")[1]
