"""A report is bound to its card: written again, it must be the same, byte for byte."""

import json
import random
import re
import sys
from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from app.report import report_cases as cases
from command_line import run, said
from labeldp.app import report
from labeldp.app.report.report_check import check_report

NUMBER = re.compile(r">([^<>]*[0-9][^<>]*)<")


def verdict(page, card):
    checks = check_report(page.encode(), card, ldp.verify_card(card))
    return {check.name: check.holds for check in checks}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in cases.KINDS if kind not in ("hostile", "seeded")])
def test_a_report_as_it_was_written_holds_with_a_ledger_too(kind):
    card = cases.card(kind)
    assert verdict(report.render_report(card), card) == {"report": True}
    page = report.render_report(card, ledger=cases.ledger())
    assert verdict(page, card) == {"report": True, "ledger": None}


@pytest.mark.slow
def test_any_number_that_is_changed_is_found():
    card = cases.card("release")
    page = report.render_report(card, ledger=cases.ledger())
    texts = [found for found in NUMBER.finditer(page) if found.start() > page.index("<body>")]
    assert len(texts) > 30
    for found in random.Random(1).sample(texts, 6):
        place = found.start(1) + re.search("[0-9]", found[1]).start()
        lie = page[:place] + str((int(page[place]) + 1) % 10) + page[place + 1 :]
        assert verdict(lie, card) == {"report": False}, found[1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("</main>", "<!-- --></main>"),
        ("</style>", "main{display:none}</style>"),
        ("</html>", "</html><img src=data:,>"),
        ("\n", "\r\n"),
    ],
)
def test_a_report_with_anything_that_the_card_does_not_give_does_not_hold(old, new):
    assert verdict(cases.page("release").replace(old, new), cases.card("release")) == {"report": False}


def test_a_report_of_another_version_cannot_be_checked_and_one_of_another_card_does_not_hold():
    card, page = cases.card("release"), cases.page("release")
    for other in (page.replace("labeldp 0", "labeldp 9"), "<p>"):
        (check,) = check_report(other.encode(), card, ldp.verify_card(card))
        assert (check.holds, check.needed) == (None, True)
    assert verdict(page, cases.card("with-delta")) == {"report": False}


def test_a_ledger_with_a_sum_of_many_digits_gives_a_report_that_can_be_verified():
    ledger = ldp.Ledger()
    for prime in (10**97 + 27, 10**98 + 3, 10**99 + 289, 10**101 + 39, 10**102 + 7):
        ledger.charge("labels", epsilon=1 / Fraction(prime))
    assert len(str(ledger.total.exact_epsilon)) > 400
    card = ldp.privatize([1.0, 2.0], epsilon=1.0, bounds=(0, 5), ledger=ledger).to_card()
    assert verdict(report.render_report(card, ledger=ledger), card) == {"report": True, "ledger": None}


def test_a_report_of_a_regression_table_begins_with_the_table_of_its_card():
    rows = np.random.default_rng(0).normal(size=(3000, 2))
    table = ldp.private_ols(rows, 5 + rows[:, 0], epsilon=1.0, bounds=(0, 10), ledger=ldp.Ledger())
    page = report.render_report(table.to_card())
    assert verdict(page, table.to_card()) == {"report": True}
    assert page.index("The regression table") < page.index("What it means")
    content = json.loads(table.to_card())["regression"]
    wild = {**content, "params": [1e308] * 3, "names": ["$x_1$", "\x00<b>", "y" * 99]}
    assert cases.faults(report.render_report(cases.changed(table.to_card(), regression=wild))) == []


@pytest.mark.parametrize("card", ["{}", "[]", "no card", '{"checksum": 3}'])
def test_a_report_beside_what_is_no_card_does_not_hold(card, tmp_path):
    (tmp_path / "card.json").write_text(card)
    (tmp_path / "page.html").write_text(cases.page("release"))
    run("verify", tmp_path / "page.html", tmp_path / "card.json", code=4)


def test_verify_finds_the_card_beside_a_report_or_takes_the_one_that_is_named(tmp_path):
    card, page = tmp_path / "out.csv.card.json", tmp_path / "out.csv.report.html"
    card.write_text(cases.card("release"))
    run("report", card)
    run("verify", tmp_path, code=2)
    for named in (page, card):
        assert "✓ report" in run("verify", named).output
    page.write_text(page.read_text().replace("2.72×", "1.72×"))
    assert "✗ report" in run("verify", card, code=4).output
    run("report", card, "--force")
    short = page.rename(tmp_path / "out.report.html")
    assert "✓ report" in run("verify", short, card).output
    page.write_bytes(b" " * 9_000_000)
    shown = said("verify", card)
    assert "out.csv.report.html: it cannot be read" in shown
    assert "Its report was not compared" in shown
    lone = tmp_path / "folder" / "page.html"
    lone.parent.mkdir()
    lone.write_text(short.read_text().replace("2.72×", "1.72×"))
    run("verify", lone, code=4)
    run("verify", lone, card, code=4)


def test_the_card_of_a_model_is_verified_from_inside_its_folder(tmp_path, monkeypatch):
    (tmp_path / "card.json").write_text(cases.card("release"))
    monkeypatch.chdir(tmp_path)
    assert "The card holds" in said("verify", "card.json")


# ---- one page for an assessment -----------------------------------------------------


@pytest.fixture
def table(tmp_path):
    """A private table, with a card, beside a ledger."""
    (tmp_path / "in.csv").write_text("id,price\n" + "".join(f"{i},{1 + i % 4}\n" for i in range(50)))
    for name, epsilon in (("out", 1), ("two", 0.5)):
        given = ("--label", "price", "--bounds", 0, 5, "--epsilon", epsilon, "--mechanism", "two-point")
        said_of_it = ("--purpose", "rent *index*", "--recipient", name)
        run("privatize", tmp_path / "in.csv", "-o", tmp_path / f"{name}.csv", *given, *said_of_it,
            "--ledger", tmp_path / f"{name}.jsonl")  # fmt: skip
    return tmp_path


def test_a_summary_says_what_an_assessment_asks_for(table):
    run("report", table / "out.csv", "--summary", "--ledger", table / "out.jsonl")
    page = (table / "out.csv.summary.html").read_text()
    assert cases.faults(page) == []
    checksum = json.loads((table / "out.csv.card.json").read_text())["checksum"]
    for words in ("at most e^ε = 2.72×", "released as they are: id", "not stated on the card", checksum):
        assert words in page
    assert "Purpose: rent *index*" in page
    assert "<p>Private column: price</p>" in page
    assert "With all else in the ledger, ε = 1 is spent. The ledger has no limit" in page


def test_a_summary_is_written_again_from_its_card_and_compared(table):
    summary = table / "out.csv.summary.html"
    run("report", table / "out.csv", "--summary", "--ledger", table / "out.jsonl")
    assert "✓ summary" in run("verify", summary).output
    (table / "out.csv").rename(table / "aside")  # a summary follows from the card alone
    assert "✓ summary" in run("verify", summary).output
    summary.write_text(summary.read_text().replace("from 50 records", "from 51 records"))
    assert "does NOT hold: summary" in said("verify", summary, code=4)
    run("verify", table / "out.csv.card.json", code=4)  # its usual name is looked for
    summary.write_text("<p>")
    run("verify", summary, code=5)


def test_the_charges_of_a_card_must_be_in_the_ledger_that_is_named(table):
    assert "✓ ledger" in run("verify", table / "out.csv", "--ledger", table / "out.jsonl").output
    shown = said("verify", table / "out.csv", "--ledger", table / "two.jsonl", code=4)
    assert "does NOT hold: ledger" in shown
    for options in ((), ("--summary",)):
        shown = said("report", table / "out.csv", *options, "--ledger", table / "two.jsonl", code=4)
        assert "it is another ledger, was cut" in shown
    assert not list(table.glob("*.html"))


def test_what_a_summary_shows_of_a_ledger_is_compared_with_it_and_later_charges_are_none_of_its(table):
    summary, book, copy = table / "out.csv.summary.html", table / "out.jsonl", table / "copy.jsonl"
    copy.write_bytes(book.read_bytes())
    run("report", table / "out.csv", "--summary", "--ledger", book)
    ldp.privatize([1.0, 2.0], epsilon=0.5, bounds=(0, 5), ledger=ldp.Ledger.open(book))
    assert "✓ ledger the summary shows" in said("verify", summary, "--ledger", book)
    ldp.privatize([1.0, 2.0], epsilon=0.25, bounds=(0, 5), ledger=ldp.Ledger.open(copy))
    run("report", table / "out.csv", "--summary", "--ledger", copy, "--force")
    assert "✓ summary" in said("verify", summary)
    assert "it shows another limit, or another sum" in said("verify", summary, "--ledger", book, code=4)


def test_random_order_columns_left_out_and_clipping_are_said_as_they_are(tmp_path):
    rows = "".join(f"{i},{i % 7},{min(4000, 1.03**i):.0f}\n" for i in range(300))
    (tmp_path / "in.csv").write_text("id,size,price\n" + rows)
    (tmp_path / "in.csv").chmod(0o600)
    run("privatize", tmp_path / "in.csv", "-o", tmp_path / "out.csv", "--label", "price", "--bounds", 0, 1e6,
        "--epsilon", 5, "--drop", "id", "--shuffle")  # fmt: skip
    run("report", tmp_path / "out.csv")
    run("report", tmp_path / "out.csv", "--summary")
    pages = [tmp_path / f"out.csv.{kind}.html" for kind in ("report", "summary")]
    for shown in (*(page.read_text() for page in pages), said("explain", tmp_path / "out.csv")):
        assert "order of the rows" not in shown
        assert "every feature" not in shown
        assert re.search("Labels below [0-9,.e-]+ or above [0-9,.e]+ were clipped", shown)
    for page in pages:
        assert page.stat().st_mode & 0o777 == 0o600 or sys.platform == "win32"


@pytest.mark.parametrize("options", [(), ("--summary",)])
def test_a_table_that_was_changed_gets_no_report_and_no_summary(table, options):
    (table / "out.csv").write_text((table / "out.csv").read_text() + "51,5\n")
    run("report", table / "out.csv", *options, code=4)
    assert "does NOT hold: file" in said("verify", table / "out.csv", code=4)


def test_a_summary_of_a_model_with_a_score_says_why_one_label_costs_less_than_both(tmp_path):
    X = np.random.default_rng(0).normal(size=(2000, 2))
    model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(0, 5))
    model, score = ldp.fit_and_score(model, X, np.clip(X[:, 0], 0, 5), epsilon=1.0)
    ldp.save_model(model, tmp_path / "model", quality=score)
    text = report.render_report((tmp_path / "model" / "card.json").read_text(), "summary")
    assert "releases a model that predicts the private column from 2,000 records" in text
    assert "with ε = 1, proven" in text
    assert "ε = 2 in all" in text
    assert "none was used for both: one label costs ε = 1" in text
    assert "No column of the table is released." in text
    assert "Bounds of the private value: 0 to 5" in text
    run("report", tmp_path / "model", "--summary")
    assert (tmp_path / "model.summary.html").exists()


def test_ledgers_are_summed_by_purpose_and_recipient(table):
    files = (table / "out.jsonl", table / "two.jsonl")
    shown = said("ledger", *files)
    assert "Spent ε = 1.5 in 2 ledgers" in shown
    assert "rent *index* out 1 0 1" in shown
    assert "rent *index* two 0.5 0 1" in shown
