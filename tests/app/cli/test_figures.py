"""Numbers that people type: read in the marks of the table where they are labels, and never guessed."""

import json
import re

import pytest

import labeldp as ldp
from command_line import invoke, said
from labeldp.app.typed_text import parse_figure
from labeldp.errors import ParameterError

GERMAN = "name;fläche;preis\n" + "".join(f"Ort {i};{i},5;{i + 1}.774,66 €\n" for i in range(60))


def privatize(place, content, *bounds, **options):
    (place / "in.csv").write_text(content, encoding="utf-8")
    asked = {"epsilon": "1", **options}
    words = [word for name, value in asked.items() for word in (f"--{name}", value)]
    given = ["in.csv", "-o", "out.csv", "--label", "preis", "--bounds", *bounds, "--mechanism", "laplace"]
    return invoke("privatize", *given, *words, "--force")


def bounds_on_the_card(place):
    return json.loads((place / "out.csv.card.json").read_text())["bounds"]


@pytest.mark.parametrize("high", ["60.000,00", "60 000", "60000,0 €"])
def test_bounds_may_have_marks_between_thousands_and_currencies(place, high):
    done = privatize(place, GERMAN, "0", high)
    assert done.exit_code == 0, done.output
    assert bounds_on_the_card(place) == [[0.0, 60000.0]]


@pytest.mark.parametrize(
    ("high", "readings"), [("60.000", "60 or 60000"), ("60,000", "60 or 60000"), ("1.125", "1.1250 or 1125")]
)
def test_bounds_that_can_be_read_in_two_ways_are_refused_before_the_charge(place, high, readings):
    done = privatize(place, GERMAN, "0", high, ledger="budget.db")
    assert done.exit_code == 2
    assert f"write {readings}" in " ".join(done.output.split())
    assert not (place / "budget.db").exists()
    privatize(place, GERMAN, "0", readings.partition(" ")[0])
    assert bounds_on_the_card(place) == [[0.0, float(readings.partition(" ")[0])]]


@pytest.mark.parametrize("option", ["epsilon", "limit"])
def test_budgets_never_follow_the_marks_of_a_table(place, option):
    more = {"ledger": "budget.db"} if option == "limit" else {}
    done = privatize(place, GERMAN, "0", "60000", **more, **{option: "1,000"})
    assert done.exit_code == 2
    assert re.search(rf"--{option} .*write 1 or 1000", " ".join(done.output.split()))
    assert not (place / "budget.db").exists()


@pytest.mark.parametrize("rows", ["4.000", "2.5", "many"])
def test_integers_that_are_unclear_or_none_are_refused(rows):
    assert "--rows" in said("preview", "--rows", rows, "--bounds", "0", "5", code=2)


def test_a_point_in_a_budget_is_a_decimal_mark(place):
    assert privatize(place, GERMAN, "0", "60000", epsilon="2.000").exit_code == 0
    card = ldp.accounts.Card.parse((place / "out.csv.card.json").read_text())
    assert card.terms.cost == ldp.Budget(2)


def test_a_sign_changes_nothing_about_the_marks():
    assert parse_figure("-1.000", "bounds", ",") == -1000
    assert parse_figure("-1,000", "bounds", ".") == -1000
    for text, decimal in (("-60,000", ","), ("-60.000", ".")):
        with pytest.raises(ParameterError, match="write -60 or -60000"):
            parse_figure(text, "bounds", decimal)
