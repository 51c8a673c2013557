"""How wide are intervals of `private_ols` beside those of other libraries? ``python -m benchmarks.ols_peers``.

Runs in an environment of its own, made by ``pip install . -r benchmarks/peers.txt``. BinAgg and dp-statsmodels are
taken from checkouts, whose folders are given. A library that is not there is left out, and the page says so.
Writes benchmarks/ols_peers.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import labeldp as ldp
from benchmarks.report import keep, stamp

Array = NDArray[np.float64]
Fit = Callable[[Array, Array], tuple[Array, Array]]
"""From columns and labels to slopes, and half the widths of their 95 % intervals (NaN if there are none)."""

RESULTS = Path(__file__).with_suffix(".md")
SIZES = (1000, 10_000)
COLUMNS, SIGMA, EPSILON, DELTA = 5, 0.1, 1.0, 1e-5
LABELS, FEATURES = (-0.5, 0.5), (-4.0, 4.0)
SLOPES = SIGMA * np.array([0.5, 0.5, 0.5, 0.0, 0.0]) / np.sqrt(3)
NORMAL = 1.959964

# ---- libraries ----------------------------------------------------------------------------------------------


def least_squares(X: Array, y: Array) -> tuple[Array, Array]:
    import statsmodels.api as sm  # noqa: PLC0415 (only where the libraries are)

    found = sm.OLS(y, sm.add_constant(X)).fit(cov_type="HC1")
    return found.params[1:], NORMAL * found.bse[1:]


def private_ols(X: Array, y: Array) -> tuple[Array, Array]:
    table = ldp.private_ols(X, y, epsilon=EPSILON, bounds=LABELS)
    return table.params[1:], np.diff(table.conf_int()[1:])[:, 0] / 2


def diffprivlib(X: Array, y: Array) -> tuple[Array, Array]:
    from diffprivlib.models import LinearRegression  # noqa: PLC0415

    model = LinearRegression(epsilon=EPSILON, bounds_X=FEATURES, bounds_y=LABELS).fit(X, y)
    return model.coef_, np.full(COLUMNS, np.nan)


def binagg(X: Array, y: Array) -> tuple[Array, Array]:
    from binagg import dp_linear_regression, mu_from_eps_delta  # noqa: PLC0415

    mu = mu_from_eps_delta(EPSILON, DELTA)
    found = dp_linear_regression(X, y, [FEATURES] * COLUMNS, LABELS, mu=mu)
    return found.coefficients, np.diff(found.confidence_intervals)[:, 0] / 2


def dp_statsmodels(X: Array, y: Array) -> tuple[Array, Array]:
    from dp_statsmodels.api import Session  # noqa: PLC0415

    session = Session(EPSILON, DELTA, bounds_X=FEATURES, bounds_y=LABELS)
    found = session.OLS(y, X, epsilon=EPSILON)
    return found.params[1:], np.diff(found.conf_int()[1:])[:, 0] / 2


@dataclass(frozen=True)
class Library:
    """A library, what it protects, and how it is called."""

    name: str
    module: str
    protects: str
    fit: Fit


LIBRARIES = [
    Library("least squares (statsmodels, HC1)", "statsmodels", "nothing", least_squares),
    Library("`private_ols`", "labeldp", "labels", private_ols),
    Library("BinAgg", "binagg", "labels and features", binagg),
    Library("dp-statsmodels", "dp_statsmodels", "labels and features", dp_statsmodels),
    Library("diffprivlib `LinearRegression`", "diffprivlib", "labels and features", diffprivlib),
]


# ---- draws --------------------------------------------------------------------------------------------------


def draw(rows: int, columns: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return columns and labels; bounds clip next to none of them."""
    common = rng.normal(size=(rows, 1))
    X = np.clip(np.sqrt(0.7) * rng.normal(size=(rows, columns)) + np.sqrt(0.3) * common, *FEATURES)
    return X, np.clip(X[:, :COLUMNS] @ SLOPES + rng.normal(0, SIGMA, rows), *LABELS)


def simulate(fit: Fit, rows: int, draws: int) -> tuple[Array, Array]:
    """Return errors of slopes and half the widths of their intervals, a row for each draw, in units of σ."""
    rng = np.random.default_rng(rows)
    errors, reaches = np.empty((draws, COLUMNS)), np.empty((draws, COLUMNS))
    for k in range(draws):
        slopes, reaches[k] = fit(*draw(rows, COLUMNS, rng))
        errors[k] = slopes - SLOPES
    return errors / SIGMA, reaches / SIGMA


def table(draws: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| rows | library | protects | covered, % | width | × not private | RMSE | median absolute error |"
    yield "| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for rows in SIZES:
        plain = 1.0
        for library in LIBRARIES:
            if find_spec(library.module) is None:
                continue
            errors, reach = simulate(library.fit, rows, draws)
            cells = ["–", "–", "–"]
            if not np.isnan(reach).any():
                width = 2 * float(np.median(reach))
                plain = width if library.protects == "nothing" else plain
                cells = [f"{100 * np.mean(np.abs(errors) <= reach):.1f}", figure(width), figure(width / plain)]
            cells += [figure(float(np.sqrt((errors**2).mean()))), figure(float(np.median(np.abs(errors))))]
            yield f"| {rows:,} | {library.name} | {library.protects} | {' | '.join(cells)} |"
            print(library.name, rows, *cells, flush=True)


def figure(value: float) -> str:
    return "over 1,000" if value > 1000 else f"{value:.3g}"


# ---- page ---------------------------------------------------------------------------------------------------


def origin(module: str, folder: Path | None) -> str:
    """Return where a library came from, or that it was left out."""
    if find_spec(module) is None:
        return f"{module} is left out: it is not installed, and no checkout was given"
    if folder is None:
        return f"{module} {version(module)}"
    commit = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"],  # noqa: S607
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return f"{module} at commit {commit.stdout.strip()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binagg", type=Path, help="a checkout of github.com/Shuronglin/BinAgg")
    parser.add_argument("--dp-statsmodels", type=Path, help="a checkout of github.com/MaxGhenis/dp-statsmodels")
    parser.add_argument("--draws", type=int, default=200)
    given = parser.parse_args()
    folders = {"binagg": given.binagg, "dp_statsmodels": given.dp_statsmodels}
    sys.path += [str(path) for folder in folders.values() if folder for path in (folder / "src", folder)]
    warnings.simplefilter("ignore")  # of other libraries, about their noise
    used = [
        origin(library.module, folders.get(library.module)) for library in LIBRARIES if library.module != "labeldp"
    ]
    lines = list(table(given.draws))
    note = f"*{stamp()}; {given.draws} draws for each row; {'; '.join(used)}.*"
    keep("results", "\n".join([note, "", *lines]), RESULTS)


if __name__ == "__main__":
    main()
