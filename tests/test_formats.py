"""Files that an earlier version wrote are read for ever; those of a later one are refused by name.

The files are in tests/data/VERSION, and docs/formats.md states the promise.
"""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import labeldp as ldp
from forged_cards import forged
from labeldp.app import card_check

VERSIONS = sorted(path for path in Path(__file__).with_name("data").glob("[0-9]*") if path.is_dir())
NEWER = "which a newer labeldp wrote; this one reads version"


@pytest.fixture(params=VERSIONS, ids=lambda path: path.name)
def folder(request, tmp_path):
    return shutil.copytree(request.param, tmp_path / "kept")


def expected(folder):
    return json.loads((folder / "expected.json").read_text(encoding="utf-8"))


def test_a_card_of_every_kind_that_was_ever_written_holds_with_its_files(folder):
    for name, file in {
        "mechanism.json": None,
        "release.json": None,
        "columns.json": None,
        "table.csv.card.json": folder / "table.csv",
        "model/card.json": folder / "model",
        "labels/card.json": folder / "labels",
    }.items():
        result = card_check.verify_files((folder / name).read_text(encoding="utf-8"), file=file)
        assert result.verdict == "holds", (name, result.checks)


def test_a_ledger_that_was_ever_written_counts_what_was_spent_and_takes_further_charges(folder):
    path = folder / "budget.jsonl"
    before = path.read_bytes()
    ledger = ldp.Ledger.open(path)
    assert str(ledger.total) == expected(folder)["spent"]
    ledger.charge("labels", epsilon=1.0)
    assert path.read_bytes().startswith(before)
    assert ldp.Ledger.open(path).charges == ledger.charges


def test_a_release_that_was_ever_saved_has_the_labels_it_had(folder):
    for name in ("rows.npz", "labels/release.npz"):
        np.testing.assert_array_equal(ldp.learning.RowRelease.load(folder / name).labels, expected(folder)["rows"])


def test_files_of_a_later_version_are_refused_by_name_and_not_called_damaged(folder):
    content = json.loads(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json())
    card = forged({**content, "version": content["version"] + 1})
    assert ldp.verify_card(card).verdict == "cannot be checked here"
    with pytest.raises(ldp.errors.UncheckableError, match=f"the card has version 5, {NEWER} 4: update labeldp"):
        ldp.load_mechanism(card)

    ledger = folder / "budget.jsonl"
    text = ledger.read_text(encoding="utf-8")
    ledger.write_text(re.sub("labeldp.ledger/[0-9]", "labeldp.ledger/4", text), encoding="utf-8")
    with pytest.raises(ldp.errors.LedgerError, match=f"has version 4, {NEWER} 3: update labeldp"):
        ldp.Ledger.open(ledger)

    np.savez(folder / "rows.npz", card=np.array(card))
    with pytest.raises(ldp.errors.UncheckableError, match=f"the card has version 5, {NEWER}"):
        ldp.learning.RowRelease.load(folder / "rows.npz")
