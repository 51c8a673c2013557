"""Categories of many levels: R² lost by two that say nothing, and R² with some that matter.

python -m benchmarks.wide --out build/wide.jsonl                                              # that say nothing
python -m benchmarks.wide --out build/wide.jsonl --tables cells,shops,zones,makes             # that matter

Categories are text columns of a data frame, or the same as columns of 0 and 1 of an array. Cells that the file
holds already are not measured again; ``--label`` names the version of the library that ``PYTHONPATH`` finds.
"""

from __future__ import annotations

import json
import time
import warnings
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import labeldp as ldp
from benchmarks.accuracy.tables import load

TABLES = "housing,friedman,checkers,steps,tails,counts"
USEFUL = ("cells", "shops", "zones", "makes")
FORMS = ("without", "frame", "array")
LEVELS = 200


def useless(rows: int, levels: int) -> list[Any]:
    """Return two categories that are drawn independently of all else."""
    rng = np.random.default_rng(levels)
    share = rng.dirichlet(np.full(levels, 1.0), 2)  # levels are common and rare
    return [rng.choice(levels, rows, p=one) for one in share]


def useful(name: str) -> tuple[Any, list[Any], Any, tuple[float, float]]:
    """Return the quantities, categories, labels and bounds of a table whose categories matter."""
    if name == "cells":  # houses by the cell of a map, of half a degree, in place of their coordinates
        X, y, bounds = load("housing")
        return X[:, :-2], [np.unique(np.floor(2 * X[:, -2:]), axis=0, return_inverse=True)[1]], y, bounds
    rng = np.random.default_rng(len(name))
    rows = 8_000
    X = rng.uniform(-1, 1, (rows, 6))
    if name == "shops":  # effects of 50 levels, and slopes of their own
        code = rng.choice(50, rows, p=rng.dirichlet(np.full(50, 1.0)))
        y = rng.normal(size=50)[code] + X[:, 0] * (1 + rng.normal(size=50)[code]) + X[:, 1] ** 2
        return X, [code], y + 0.5 * rng.normal(size=rows), (-6.0, 6.0)
    if name == "zones":  # two categories of 200 levels that say little beside a distance
        places = rng.normal(size=(200, 2))
        ends = [rng.choice(200, rows, p=rng.dirichlet(np.full(200, 0.5))) for _ in range(2)]
        distance = np.linalg.norm(places[ends[0]] - places[ends[1]], axis=1) * np.exp(0.1 * rng.normal(size=rows))
        y = 3 + 4 * distance + rng.normal(size=200)[ends[0]] + X[:, 0] + 2 * rng.standard_t(4, size=rows)
        return np.column_stack([distance, X[:, :3]]), ends, y, (0.0, 40.0)
    levels = 2_000  # makes: most levels are rare
    code = rng.choice(levels, rows, p=rng.dirichlet(np.full(levels, 0.1)))
    y = rng.normal(size=levels)[code] + X[:, 0] + X[:, 1] * X[:, 2]
    return X, [code], y + 0.5 * rng.normal(size=rows), (-6.0, 6.0)


def inputs(X: Any, codes: list[Any], form: str) -> Any:
    """Return quantities, and categories in some form."""
    if form == "without":
        return X
    if form == "array":
        levels = 1 + max(code.max() for code in codes)
        return np.concatenate([X, *(np.eye(levels)[code] for code in codes)], axis=1)
    import pandas as pd  # noqa: PLC0415

    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    return frame.assign(**{f"category{k}": [f"level {c}" for c in code] for k, code in enumerate(codes)})


def measure(table: str, form: str, method: str, epsilon: float, split: int, levels: int) -> dict[str, float]:
    """Return R² on a fifth of the rows, and the processor time of the fit."""
    if table in USEFUL:
        X, codes, y, bounds = useful(table)
    else:
        X, y, bounds = load(table)
        codes = useless(len(X), levels)
    order = np.random.default_rng(split).permutation(len(y))
    train, test = order[: int(0.8 * len(y))], order[int(0.8 * len(y)) :]
    rows = inputs(X, codes, form)
    take = (lambda at: rows.iloc[at]) if form == "frame" else (lambda at: rows[at])
    seed = zlib.crc32(repr((table, method, epsilon, split)).encode())  # the same noise for all forms
    regressor = {"model": ldp.ModelReleaseRegressor, "labels": ldp.LabelReleaseRegressor}[method]
    started = time.process_time()
    model = regressor(epsilon=epsilon, bounds=bounds, random_state=seed).fit(take(train), y[train])
    seconds = time.process_time() - started
    error = float(np.mean((model.predict(take(test)) - y[test]) ** 2))
    return {"r2": 1 - error / float(np.var(y[test])), "seconds": round(seconds, 2)}


def summary(cells: list[dict[str, Any]]) -> str:
    """Return the loss of each table: its mean over splits, and the standard error of that mean."""
    by_key: dict[Any, dict[Any, float]] = defaultdict(dict)
    for cell in cells:
        key = cell["label"], cell["method"], cell["epsilon"], cell["table"]
        by_key[key][cell["form"], cell["split"]] = cell["r2"]
    lines = []
    for (label, method, epsilon, table), found in sorted(by_key.items()):
        line = f"{label:10} {method:7} {epsilon:4} {table:10}"
        plain = [r2 for (form, _), r2 in found.items() if form == "without"]
        line += f" R² {np.mean(plain):.3f}" if plain else ""
        for form in FORMS[1:]:
            lost = [
                found["without", k] - r2 for (f, k), r2 in found.items() if f == form and ("without", k) in found
            ]
            if lost:
                line += f"  {form}: lost {np.mean(lost):+.3f} ± {np.std(lost, ddof=1) / len(lost) ** 0.5:.3f}"
        lines.append(line)
    return "\n".join(lines)


def main(
    tables: str = TABLES,
    forms: str = ",".join(FORMS),
    methods: str = "model",
    epsilons: str = "1",
    splits: Annotated[int, typer.Option(help="how many")] = 3,
    levels: int = LEVELS,
    label: str = "this",
    out: Path = Path("build/wide.jsonl"),
) -> None:
    """Measure what the file does not hold yet, and print all of it."""
    warnings.simplefilter("ignore")  # seeds are not for releases
    out.parent.mkdir(parents=True, exist_ok=True)
    cells = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    for split in range(splits):
        for table in tables.split(","):
            for epsilon in map(float, epsilons.split(",")):
                for method in methods.split(","):
                    for form in forms.split(","):
                        key = {"label": label, "table": table, "form": form, "method": method}
                        key |= {"epsilon": epsilon, "split": split, "levels": levels}
                        if any(key.items() <= cell.items() for cell in cells):
                            continue
                        cells.append(key | measure(table, form, method, epsilon, split, levels))
                        with out.open("a") as file:
                            file.write(json.dumps(cells[-1]) + "\n")
    print(summary([cell for cell in cells if cell["levels"] == levels]))


if __name__ == "__main__":
    typer.run(main)
