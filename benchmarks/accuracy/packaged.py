"""What the suite measured, as the small table that `labeldp.preview` shows: one line for each table."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.accuracy.methods import OURS
from benchmarks.accuracy.tables import load

TARGET = Path(__file__).parents[2] / "src/labeldp/evidence/accuracy_suite.json"


def packaged(cells: list[dict[str, Any]], label: str) -> dict[str, Any]:
    """Return the mean errors of a version over those of the constant, by table, method and ε."""
    errors: dict[tuple[str, str, float, int], list[float]] = defaultdict(list)
    splits: dict[str, set[int]] = defaultdict(set)
    for cell in cells:
        if cell["loose"] == "1" and cell["label"] in {label, ""} and math.isfinite(cell.get("error", math.nan)):
            errors[cell["table"], cell["method"], cell["epsilon"], cell["rows"]].append(cell["error"])
            if cell["method"] in OURS:
                splits[cell["table"]].add(cell["split"])
    means = {key: sum(values) / len(values) for key, values in errors.items()}
    tables = []
    for name in dict.fromkeys(cell["table"] for cell in cells):
        constants = {(e, rows): mean for (t, m, e, rows), mean in means.items() if (t, m) == (name, "constant")}
        trees = [mean for (t, m, _, _), mean in means.items() if (t, m) == (name, "trees")]
        if not constants or not trees:
            continue
        X, labels = load(name)[:2]
        figures = [
            {
                "method": method,
                "epsilon": epsilon,
                "rows": min(rows or labels.size, round(0.8 * labels.size)),
                "error": _rounded(mean / constants[epsilon, rows]),
            }
            for (table, method, epsilon, rows), mean in sorted(means.items())
            if table == name and method in OURS and (epsilon, rows) in constants
        ]
        if figures:
            most = max(constants)
            tables.append(
                {
                    "table": name,
                    "columns": X.shape[1],
                    "splits": len(splits[name]),
                    "trees": _rounded(trees[0] / constants[most]),
                    "figures": figures,
                }
            )
    return {"version": label, "tables": tables}


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def write_packaged(cells: list[dict[str, Any]], label: str, path: Path) -> int:
    """Write the table for the library's planner; return how many tables it has."""
    content = packaged(cells, label)
    lines = ",\n".join(json.dumps(table) for table in content["tables"])
    path.write_text(f'{{"version": {json.dumps(label)}, "tables": [\n{lines}\n]}}\n', encoding="utf-8")
    return len(content["tables"])
