"""Where a model is written, and what is charged for it, while others write and charge."""

import json
from pathlib import Path

import pytest

from labeldp import Budget, BudgetError, CardError, Ledger, ParameterError
from labeldp.files.models import load_model
from labeldp.jobs import model_fit


@pytest.fixture(autouse=True)
def table(place):
    Path("in.csv").write_text("a,price\n" + "".join(f"{i % 7},{i % 5}.5\n" for i in range(400)))


def fit(ledger, **options):
    fixed = {"label": "price", "bounds": (0, 5), "epsilon": 1, "score": 1.0}
    return model_fit.fit_file("in.csv", "model", ledger=ledger, **{**fixed, **options})


def before_the_score(monkeypatch, act):
    """Do something once the model has its name, and before its card has the score."""
    judge = model_fit._judge

    def late(*given):
        monkeypatch.setattr(model_fit, "_judge", judge)
        act()
        return judge(*given)

    monkeypatch.setattr(model_fit, "_judge", late)


def test_a_models_name_is_kept_until_its_card_has_its_score(monkeypatch):
    other = Ledger()

    def second():
        with pytest.raises(ParameterError, match="another release is being written to"):
            fit(other, force=True)

    before_the_score(monkeypatch, second)
    done = fit(Ledger())
    assert not done.problems
    assert other.charges == ()
    assert "quality" in json.loads(done.card)
    assert Path("model/card.json").read_text() == done.card
    load_model("model")


def test_a_score_is_not_written_on_the_card_of_another_model(monkeypatch):
    before_the_score(monkeypatch, lambda: Path("model/card.json").write_text("another's"))
    done = fit(Ledger())
    assert [type(error) for error in done.problems.values()] == [CardError]
    assert "quality" not in json.loads(done.card)
    assert Path("model/card.json").read_text() == "another's"


def test_a_model_is_not_paid_for_if_nothing_is_left_for_its_score():
    book = Ledger.open("budget.jsonl", limit=Budget(2))

    def charge(columns):
        Ledger.open("budget.jsonl").charge("another's", epsilon=0.5)

    with pytest.raises(BudgetError):
        fit(book, left_out=charge)
    assert book.total == Budget(0.5)
