"""Files of every format: a ledger, cards, a table, two models and a saved release of rows."""

import numpy as np
import pandas as pd

import labeldp as ldp

BOUNDS = (0.0, 100.0)
ROWS = 60


def sample_labels():
    return np.clip(np.random.default_rng(0).normal(50, 20, ROWS), *BOUNDS)


def sample_features():
    return pd.DataFrame({"size": np.arange(float(ROWS)), "town": ["Bath", "York", None] * (ROWS // 3)})


def write_samples(folder):
    """Write the files into a folder, and return it."""
    frame, labels = sample_features(), sample_labels()
    ledger = ldp.Ledger.open(folder / "budget.db", limit=ldp.Budget(epsilon=20))
    options = {"epsilon": 1.0, "bounds": BOUNDS, "ledger": ledger}
    release = ldp.privatize(labels, intended_use="a study", recipient="a lab", **options)
    mechanism = ldp.Laplace(bounds=BOUNDS, epsilon=1.0)
    (folder / "mechanism.json").write_text(mechanism.to_json(), encoding="utf-8")
    (folder / "release.json").write_text(release.to_card(), encoding="utf-8")
    raw = folder / "raw.csv"
    frame.assign(income=labels).to_csv(raw, index=False)
    ldp.privatize_file(raw, folder / "table.csv", label="income", **options)
    raw.unlink()
    regressors = {"model": ldp.ModelReleaseRegressor, "labels": ldp.LabelReleaseRegressor}
    for name, regressor in regressors.items():
        model = regressor(**options).fit(frame, labels)
        ldp.save_model(model, folder / name, label="income")
    model.release_.save(folder / "rows.npz")
    return folder
