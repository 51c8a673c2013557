"""List the library's files that run in a call, in the order of their first use.

``python -m benchmarks.call_files`` traces calls with a profiler. Each call is made once before, so imports and
cached values are not counted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np

import labeldp as ldp

HOME = Path(ldp.__file__).parent


def traced(call: Callable[[], object]) -> list[str]:
    """Return the library's files in which functions ran during a call, in the order of their first use."""
    seen: dict[str, None] = {}

    def record(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(str(HOME)) and frame.f_code.co_name != "<module>":
            seen.setdefault(str(Path(path).relative_to(HOME)))

    call()  # imports, caches
    sys.setprofile(record)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(seen)


def calls(folder: Path) -> dict[str, Callable[[], object]]:
    """Return the calls to trace, by the code that a user would write."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.clip(2.5 + X[:, 0], 0, 5)
    (folder / "table.csv").write_text(
        "x,y\n" + "".join(f"{a:.3f},{b:.3f}\n" for a, b in zip(X[:, 0], y, strict=True))
    )
    how = {"epsilon": 1.0, "bounds": (0, 5)}
    return {
        'privatize(y, mechanism="laplace")': lambda: ldp.privatize(y, mechanism="laplace", **how),
        "privatize(y)": lambda: ldp.privatize(y, **how),
        "privatize_file(table.csv, out.parquet)": lambda: ldp.privatize_file(
            folder / "table.csv", folder / "out.parquet", label="y", force=True, **how
        ),
        "LabelReleaseRegressor.fit": lambda: ldp.LabelReleaseRegressor(**how).fit(X, y),
        "ModelReleaseRegressor.fit": lambda: ldp.ModelReleaseRegressor(**how).fit(X, y),
    }


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    warnings.simplefilter("ignore", ldp.errors.RepeatedReleaseWarning)
    with tempfile.TemporaryDirectory() as folder:
        for name, call in calls(Path(folder)).items():
            files = traced(call)
            print(f"{name}: {len(files)} files\n  {', '.join(files)}\n")


if __name__ == "__main__":
    main()
