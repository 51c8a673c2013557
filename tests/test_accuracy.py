"""A small version of benchmarks/accuracy.py: would catch a regressor that got worse."""

import os
from pathlib import Path

import numpy as np
import pytest
from benchmarks.accuracy import BUDGETS, TARGETS, measure

FOLDER = Path(os.environ.get("LABELDP_DATA", "nowhere"))
needs_data = pytest.mark.skipif(
    not (FOLDER / "communities.data.gz").exists(), reason="set LABELDP_DATA to a folder with communities.data.gz"
)


@needs_data
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
@pytest.mark.parametrize("regressor", ["labels", "model"])
def test_errors_on_crime_stay_near_their_targets(regressor, epsilon):
    results = [measure(("crime", regressor, epsilon, split)) for split in range(3)]
    target = TARGETS["crime", regressor][BUDGETS.index(epsilon)]
    assert np.mean([r.error for r in results]) < 1.3 * target  # three splits spread by about 15 %
