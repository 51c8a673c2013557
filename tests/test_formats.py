"""Files are read by the version that wrote them; those of another version are refused by name.

docs/formats.md states the promise.
"""

import json

import numpy as np
import pytest

import labeldp as ldp
from forged_cards import forged
from labeldp.app import card_check
from sample_files import sample_features, write_samples

CARDS = {
    "mechanism.json": None,
    "release.json": None,
    "table.csv.card.json": "table.csv",
    "model/card.json": "model",
    "labels/card.json": "labels",
}


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    return write_samples(tmp_path_factory.mktemp("samples"))


def test_a_card_of_every_kind_holds_with_its_files(samples):
    for name, file in CARDS.items():
        text = (samples / name).read_text(encoding="utf-8")
        result = card_check.verify_files(text, file=None if file is None else samples / file)
        assert result.holds, (name, result.checks)


def test_saved_models_and_releases_are_read_again(samples):
    for name in ("model", "labels"):
        assert np.isfinite(ldp.load_model(samples / name).predict(sample_features())).all()
    for name in ("rows.npz", "labels/release.npz"):
        assert ldp.learning.RowRelease.load(samples / name).cost == ldp.Budget(1)


VERSIONS = {2: "never published", 3: "never published", 4: "never published", 5: "newer version"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_of_another_version_is_refused_by_name_and_not_called_damaged(samples, tmp_path, version):
    content = json.loads((samples / "mechanism.json").read_text(encoding="utf-8"))
    card = forged({**content, "version": version})
    assert not ldp.verify_card(card).checks[-1].holds
    with pytest.raises(ldp.errors.UncheckableError, match=VERSIONS[version]):
        ldp.load_mechanism(card)

    ledger = tmp_path / "budget.db"
    content = (samples / "budget.db").read_bytes()
    ledger.write_bytes(content.replace(b"labeldp.ledger/1", f"labeldp.ledger/{version}".encode()))
    with pytest.raises(ldp.errors.LedgerError, match=VERSIONS[version]):
        ldp.Ledger.open(ledger)

    np.savez(tmp_path / "rows.npz", card=np.array(card))
    with pytest.raises(ldp.errors.UncheckableError, match=VERSIONS[version]):
        ldp.learning.RowRelease.load(tmp_path / "rows.npz")


def test_anyone_checks_the_text_of_a_card_in_five_lines(samples):
    """As docs/formats.md says: no language has to write the JSON again."""
    import hashlib

    for name in CARDS:
        text = (samples / name).read_text(encoding="utf-8").strip()
        digest = hashlib.sha256(text[86:].encode("ascii")).hexdigest()
        assert text[:86] == f'{{"checksum":"sha256:{digest}",'
        assert all(abs(number) <= 2**53 for number in integers(json.loads(text))), name


def integers(content):
    """Yield every integer in nested data."""
    if isinstance(content, dict | list):
        for value in content.values() if isinstance(content, dict) else content:
            yield from integers(value)
    elif isinstance(content, int):
        yield content
