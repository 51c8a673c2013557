"""Cells as Markdown: errors over the constant's and the trees', two versions side by side, and the rules.

Ratios are geometric means over splits, on the same rows; the standard error is that of their mean logarithm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.accuracy.heldout import INTERACTIONS
from benchmarks.accuracy.methods import OURS
from benchmarks.accuracy.tables import load

KEY = ["method", "label", "epsilon", "loose", "rows", "table"]
WORSE, ERRORS = 1.02, 3.0
"""What one table may lose, beyond so many standard errors."""
BEHIND, TAIL = 1.03, 1.15
LOOSE, ENOUGH = {"10": 1.08, "100": 1.2}, 2000
"""What bounds that wide may cost from so many rows · ε on."""


def markdown(cells: list[dict[str, Any]], new: str = "", old: str = "") -> str:
    """Return all that the cells show; ``new`` and ``old`` are labels of versions to compare."""
    every = pd.DataFrame(cells)
    ours = every[~every.method.isin(["constant", "trees"])].copy()
    base = every[every.method == "constant"]
    trees = every[every.method == "trees"]
    over = _paired(ours, base, "method", "label", "repeat")
    above = _paired(ours, trees, "method", "label", "repeat", "epsilon", "loose")
    parts = [*_overview(over, above)]
    if new and old:
        parts += _versions(_paired(ours[ours.label == new], ours[ours.label == old], "label"), new, old)
    judged, behind = (frame[frame.method.isin(OURS)] for frame in (ours, over))
    return "\n".join([*parts, *_rules(judged, behind, base, new, old)])


def _paired(left: Any, right: Any, *free: str) -> Any:
    """Return ratios of errors per key of ``left``; pairs agree in the split and the key except in ``free``."""
    on = [name for name in (*KEY, "split", "repeat") if name not in free]
    both = left.merge(right[[*on, "error"]], on=on, suffixes=("", "_base"))
    both["log"] = np.log(both.error / both.error_base)
    several = both.groupby(KEY).split.transform("nunique") > 1  # then splits are the sample: repeats share rows
    both["unit"] = both.repeat.where(~several, -1)
    both = both.groupby([*KEY, "split", "unit"], as_index=False)[["log", "error", "error_base"]].mean()
    keys = both.groupby(KEY)
    means = keys[["error", "error_base"]].mean()
    both["rest"] = both.error - both.error_base * keys.error.transform("mean") / keys.error_base.transform("mean")
    table = pd.DataFrame({"ratio": np.exp(keys.log.mean()), "se": keys.log.sem(), "spread": keys.log.std()})
    table["mean_ratio"] = means.error / means.error_base
    table["mean_se"] = both.groupby(KEY).rest.sem() / means.error
    return table.fillna(0.0).reset_index()


def _grid(header: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)) + "\n"


def _name(row: Any, *without: str) -> str:
    """Name what a row of a table of ratios is about."""
    texts = {"table": row.table, "method": f"{row.method} {row.label}".strip(), "epsilon": f"ε = {row.epsilon:g}"}
    texts |= {"loose": f"bounds × {row.loose}"} if row.loose != "1" else {}
    texts |= {"rows": f"{row.rows} rows"} if row.rows else {}
    return ", ".join(text for part, text in texts.items() if part not in without)


def _overview(over: Any, above: Any) -> Iterator[str]:
    """Yield a table with a line for each table of data, and a column for each method and ε."""
    both = over.merge(above[[*KEY, "ratio"]], on=KEY, how="left", suffixes=("", "_trees"))
    if both.label[both.label != ""].nunique() == 1:
        both["label"] = ""  # one version of the library needs no name
    both["column"] = [_name(row, "table") for row in both.itertuples()]
    columns = list(dict.fromkeys(both.sort_values(["method", "label", "loose", "rows", "epsilon"]).column))
    rows = [["**geometric mean**", *(f"**{_cell(both[both.column == column])}**" for column in columns)]]
    for table, some in both.groupby("table"):
        rows.append([str(table), *(_cell(some[some.column == column]) for column in columns)])
    yield "Error over the private constant's / over boosted trees' without privacy.\n"
    yield _grid(["", *columns], rows)


def _cell(rows: Any) -> str:
    """Return the geometric means of both ratios; nothing if there are none."""
    if rows.empty:
        return ""
    constant, trees = np.exp(np.log(rows[["ratio", "ratio_trees"]]).mean())
    return f"{constant:.3f} / {trees:.2f}"


def _versions(ratios: Any, new: str, old: str) -> Iterator[str]:
    """Yield a table of ratios for each method, with means over all tables and over those with interactions."""
    budgets = sorted(ratios.epsilon.unique())
    yield f"Error of {new} over that of {old} on the same splits ± standard error.\n"
    for method, some in ratios.groupby("method"):
        rows = []
        for table, cells in some.groupby("table", sort=False):
            texts = {cell.epsilon: _against(cell) for cell in cells.itertuples()}
            rows.append([table, *(texts.get(epsilon, "") for epsilon in budgets)])
        few = some[some.table.isin(INTERACTIONS)]
        rows.append(["**geometric mean**", *_means(some)])
        if len(few):
            rows.append(["**interactions of few columns**", *_means(few)])
        yield _grid([method, *(f"ε = {epsilon:g}" for epsilon in budgets)], rows)


def _against(cell: Any) -> str:
    worse = cell.ratio * np.exp(-ERRORS * cell.se) > WORSE
    return f"{cell.ratio:.3f} ± {cell.se * cell.ratio:.3f}" + (" **worse**" if worse else "")


def _means(ratios: Any) -> Iterator[str]:
    """Yield the mean over tables for each ε."""
    for _, some in ratios.groupby("epsilon"):
        mean = np.exp(np.log(some.ratio).mean())
        yield f"**{mean:.3f} ± {mean * np.sqrt((some.se**2).sum()) / len(some):.3f}**"


def _rules(ours: Any, over: Any, base: Any, new: str, old: str) -> Iterator[str]:
    """Yield each rule with the cells that break it by more than two standard errors."""
    yield _verdict("Never behind a constant", over.assign(ratio=over.mean_ratio, se=over.mean_se), BEHIND)
    tail = ours.groupby(KEY).error.agg(lambda errors: errors.quantile(0.95) if len(errors) >= 20 else np.nan)
    draws = base.explode("quantiles").groupby(["epsilon", "loose", "rows", "table"]).quantiles
    limits = draws.agg(lambda some: np.quantile(some.to_numpy(dtype=float), 0.95))
    tail = tail.dropna().rename("ratio").reset_index()
    places = pd.MultiIndex.from_frame(tail[["epsilon", "loose", "rows", "table"]])
    tail = tail.assign(ratio=tail.ratio / limits.reindex(places).to_numpy(), se=0.0)
    yield _verdict("Its 95th percentile, where there are 20 fits", tail, TAIL)
    steps = ours[KEY].drop_duplicates().sort_values("epsilon")
    steps["higher"] = steps.groupby([name for name in KEY if name != "epsilon"]).epsilon.shift(-1)
    less = ours.merge(steps.dropna(subset="higher"), on=KEY)
    yield _verdict("More budget is never worse", _paired(ours, less.assign(epsilon=less.higher)), WORSE)
    wide = _paired(ours[ours.loose != "1"], ours[ours.loose == "1"], "loose")
    if len(wide):
        rows = wide.rows.where(wide.rows > 0, wide.table.map(lambda name: 0.8 * len(load(name)[1])))
        wide = wide[rows * wide.epsilon >= ENOUGH]
        for factor, most in LOOSE.items():
            yield _verdict(f"Bounds × {factor}", wide[wide.loose.str.rstrip("leftrigh") == factor], most)
    fits = ours.groupby([*KEY, "split"]).error.agg(["mean", "std"]).dropna()
    luck = np.sqrt(((fits["std"] / fits["mean"]) ** 2).groupby(KEY).mean()).rename("ratio").reset_index()
    lines = [[_name(row), f"{row.ratio:.1%}"] for row in luck.itertuples()]
    if lines:
        yield "Standard deviation of the error over fits of the same rows.\n"
        yield _grid(["", "deviation"], lines)
    if new and old:
        before = luck[(luck.label == old) & (luck.ratio > 0.1)].assign(label=new)
        half = luck.merge(before, on=KEY, suffixes=("", "_old"))
        yield _verdict("No lottery", half.assign(ratio=half.ratio / half.ratio_old, se=0.0), 0.5)


def _verdict(rule: str, ratios: Any, most: float) -> str:
    broken = ratios[ratios.ratio - 2 * ratios.se * ratios.ratio > most]
    lines = [f"- {_name(row)}: {row.ratio:.3f} ± {row.ratio * row.se:.3f}" for row in broken.itertuples()]
    head = f"**{rule}** (at most {most:g}): {len(ratios) - len(broken)} of {len(ratios)} hold."
    return "\n".join([head, *lines, ""])
