"""Write files of every format of this version into tests/data/VERSION: ``python tests/data/write_files.py``.

Run it once for a version that changes a format, and never again: files that are there stay as they are, for ever.
Labels are synthetic, the noise is secure, and the key that signs is thrown away.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import labeldp as ldp

sys.path.insert(0, str(Path(__file__).parents[1]))
from forged_cards import signature

FOLDER = Path(__file__).parent / ldp.__version__
BOUNDS = (0.0, 100.0)


def write_all() -> None:
    """Write a ledger, cards with a signature, a table, two models and a saved release, with what they must say."""
    FOLDER.mkdir()
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": np.arange(60.0), "town": ["Bath", "York", None] * 20})
    labels = np.clip(rng.normal(50, 20, 60), *BOUNDS)
    ledger = ldp.Ledger.open(FOLDER / "budget.jsonl", limit=ldp.Budget(epsilon=20, delta=1e-3))

    (FOLDER / "mechanism.json").write_text(ldp.Laplace(bounds=BOUNDS, epsilon=1.0).to_json(), encoding="utf-8")
    said = {"purpose": "a study", "recipient": "a lab", "bounds_reason": "the form"}
    release = ldp.privatize(labels, epsilon=1.0, bounds=BOUNDS, ledger=ledger, **said)
    (FOLDER / "release.json").write_text(release.to_card(), encoding="utf-8")
    local = {"epsilon": 2.0, "delta": 1e-4, "mechanism": "gaussian", "trust": "local"}
    columns = ldp.privatize(labels, bounds=BOUNDS, ledger=ledger, **local)
    (FOLDER / "columns.json").write_text(columns.to_card(), encoding="utf-8")

    raw = FOLDER / "raw.csv"
    frame.assign(income=labels).to_csv(raw, index=False)
    ldp.privatize_file(raw, FOLDER / "table.csv", label="income", epsilon=1.0, bounds=BOUNDS, ledger=ledger)
    raw.unlink()
    key = Ed25519PrivateKey.generate()
    (FOLDER / "key.pub").write_text(
        key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode(), encoding="utf-8"
    )
    card = (FOLDER / "table.csv.card.json").read_text(encoding="utf-8")
    (FOLDER / "table.csv.card.json.sig").write_text(signature(card, key), encoding="utf-8")

    expected = {}
    for name, kind in (("model", ldp.ModelReleaseRegressor), ("labels", ldp.LabelReleaseRegressor)):
        model = kind(epsilon=3.0, bounds=BOUNDS, ledger=ledger).fit(frame, labels)
        ldp.save_model(model, FOLDER / name, label="income")
        expected[name] = list(model.predict(frame))
    model.release_.save(FOLDER / "rows.npz")
    expected["rows"] = list(model.release_.labels)
    expected["spent"] = str(ledger.total)
    (FOLDER / "expected.json").write_text(json.dumps(expected), encoding="utf-8")


if __name__ == "__main__":
    write_all()
