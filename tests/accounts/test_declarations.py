"""What an owner says of a release is on its card and in its ledger, and in nothing that is compared."""

import json

import numpy as np
import pytest

import labeldp as ldp
from accounts.ledger_cases import ENTRY, HEADER, write_ledger
from accounts.test_verify_card import FALSE, library, mine
from forged_cards import forged
from labeldp.accounts import declared
from labeldp.app import regression

SAID = {"intended_use": "rent index", "recipient": "the city", "bounds_reason": "set by law"}
LABELS = np.linspace(1.0, 4.0, 300)
GIVEN = {"epsilon": 1.0, "bounds": (0, 5)}


def fitted(ledger, **said):
    with declared(**said):
        model = ldp.ModelReleaseRegressor(**GIVEN, ledger=ledger).fit(np.arange(300.0).reshape(-1, 1), LABELS)
    return model.terms_.to_card("labeldp.model", model="ModelReleaseRegressor")


def of_file(release):
    def run(ledger, tmp_path, **said):
        path = tmp_path / "rents.csv"
        path.write_text("area,rent\n" + "".join(f"{k},{label}\n" for k, label in enumerate(LABELS)))
        release(path, tmp_path / "out.csv", label="rent", **GIVEN, ledger=ledger, **said)
        folder = tmp_path / "out.csv" / "card.json"
        return (folder if folder.exists() else tmp_path / "out.csv.card.json").read_text()

    return run


RELEASES = {
    "privatize": lambda ledger, _, **said: ldp.privatize(LABELS, **GIVEN, ledger=ledger, **said).to_card(),
    "private_ols": lambda ledger, _, **said: ldp.private_ols(
        np.arange(300.0).reshape(-1, 1), LABELS, **GIVEN, ledger=ledger, **said
    ).to_card(),
    "a regressor": lambda ledger, _, **said: fitted(ledger, **said),
    "privatize_file": of_file(ldp.privatize_file),
    "fit_file": of_file(ldp.fit_file),
    "regress_file": of_file(regression.regress_file),
}


@pytest.mark.parametrize("name", RELEASES)
def test_what_the_owner_says_is_on_the_card_and_in_the_ledger(name, tmp_path):
    ledger = ldp.Ledger.open(tmp_path / "budget.db")
    text = RELEASES[name](ledger, tmp_path, **SAID)
    assert SAID.items() <= json.loads(text).items()
    verification = ldp.verify_card(text)
    assert verification.holds
    assert "Intended use: rent index" in verification.card.explain().text()
    again = ldp.Ledger.open(tmp_path / "budget.db")
    assert {charge.declaration.recipient for charge in again.charges} == {"the city"}


def test_what_is_no_line_of_text_is_refused_and_nothing_is_charged():
    ledger = ldp.Ledger()
    for wrong in ("", "two\nlines", 3, "x" * 501):
        with pytest.raises(ldp.errors.ParameterError) as refused:
            ldp.privatize(LABELS, **GIVEN, ledger=ledger, recipient=wrong)
        assert refused.value.option == "recipient"
    assert not ledger.charges


@pytest.mark.parametrize("wrong", ["", " ", "two\nlines", "\x1b[8mhidden", "right to \u202eleft", "x" * 501])
def test_a_forged_card_or_ledger_says_nothing_that_no_owner_could_say(wrong, tmp_path):
    card = json.loads(ldp.privatize(LABELS, **GIVEN, **SAID).to_card())
    for name in SAID:
        lie = forged({**card, name: wrong})
        assert library(lie) == mine(lie)[0] == FALSE
    path = tmp_path / "budget.db"
    write_ledger(path, HEADER, {"charges": [ENTRY], "declaration": {"intended_use": wrong}})
    with pytest.raises(ldp.errors.LedgerError):
        ldp.Ledger.open(path)
