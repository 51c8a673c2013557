"""Where a model is written, and what is charged for it, while others write and charge."""

import json
from pathlib import Path

import pytest

import labeldp as ldp
from labeldp.app.model_predictions import predict_file


@pytest.fixture(autouse=True)
def table(place):
    Path("in.csv").write_text("a,price\n" + "".join(f"{i % 7},{i % 5}.5\n" for i in range(400)))


def fit(ledger, **options):
    fixed = {"label": "price", "bounds": (0, 5), "epsilon": 1, "score": 1.0}
    return ldp.fit_file("in.csv", "model", ledger=ledger, **{**fixed, **options})


class Racing(ldp.Ledger):
    """Lets another fit try to write to the same place whenever it is charged."""

    races = 0

    def charge_all(self, charges):
        other = ldp.Ledger()
        with pytest.raises(ldp.errors.ParameterError, match="another release is being written to"):
            fit(other, force=True)
        assert other.charges == ()
        self.races += 1
        return super().charge_all(charges)


def test_a_models_name_is_kept_until_it_is_written_with_its_score():
    done = fit(book := Racing())
    assert book.races == len(book.charges) == 2
    assert done.score_error is None
    assert json.loads(done.card)["split"]["test_rows"] == json.loads(done.card)["quality"]["rows"] == 40
    assert Path("model/card.json").read_text() == done.card
    ldp.load_model("model")


class Full(ldp.Ledger):
    """Finds no space for a second charge."""

    def charge_all(self, charges):
        if self.charges:
            raise OSError(28, "No space left on device")
        return super().charge_all(charges)


def test_a_model_that_was_paid_for_is_written_if_its_score_fails():
    done = fit(book := Full())
    assert isinstance(done.score_error, OSError)
    assert "quality" not in json.loads(done.card)
    assert book.total == ldp.Budget(1)
    ldp.load_model("model")


def test_a_model_is_not_paid_for_if_nothing_is_left_for_its_score():
    book = ldp.Ledger.open("budget.jsonl", limit=ldp.Budget(2))

    def charge(what, done, total):
        if what == "Fitting":
            ldp.Ledger.open("budget.jsonl").charge("another's", epsilon=0.5)

    with pytest.raises(ldp.BudgetError):
        fit(book, progress=charge)
    assert book.total == ldp.Budget(0.5)


def test_a_column_for_predictions_that_is_not_unicode_is_refused(tmp_path):
    with pytest.raises(ldp.errors.ParameterError, match="column is not valid Unicode"):
        predict_file(tmp_path / "model", tmp_path / "in.csv", tmp_path / "out.csv", column="pr\udcff")
