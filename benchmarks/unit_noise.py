"""The noise of one private label at many ε, from which pages compute without Python.

``python -m benchmarks.unit_noise`` writes it anew, after a change to a mechanism that "auto" may choose.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import labeldp as ldp
from labeldp._values import EPSILON_RANGE

NODES = 320
"""Budgets, evenly spaced in √ε: between them noise is right to three digits."""


def main() -> None:
    """Write ``evidence/unit_noise.json``: ε times the noise in bounds (0, 1)."""
    budgets = np.clip(np.linspace(*np.sqrt(EPSILON_RANGE), NODES) ** 2, *EPSILON_RANGE)
    points = ldp.preview(rows=1, bounds=(0, 1), epsilon=budgets.tolist()).budgets
    noise = [float(f"{point.epsilon * point.label:.6g}") for point in points]
    path = Path(ldp.__file__).parent / "evidence" / "unit_noise.json"
    path.write_text(json.dumps(noise) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
