"""Past releases: they count, are listed, verified and explained."""

import json
import re

import openpyxl
import pytest

import labeldp as ldp
from app.page.page_client import HIDDEN, ready
from forged_cards import forged

CARD = "homes.private.csv.card.json"


def test_a_second_release_of_the_same_values_is_shown_to_cost_again(client):
    client.release(ready(client, limit=3))
    begun = ready(client)
    words = client.show(begun, "release").words
    assert "Values of this column were released before" in words
    assert "ε = 1 becomes ε = 2, and a guess of 50 % can become 88 %" in words
    budget = client.show(begun, "budget").words
    for part in ("costs again", "they can be 88 % certain at most", "ε = 1 that the ledger has spent before"):
        assert part in budget
    shown = client.budget(begun, ledger="another.db", show="budget")  # without scripts
    assert "they can be 73 % certain at most" in shown.words
    assert begun.request is None


def test_the_list_shows_what_was_released_and_which_charge_paid_for_it(client, root):
    client.release(ready(client, limit=3))
    ldp.Ledger.open(root / "book.db").charge("a survey", epsilon=0.5)
    (root / "broken.card.json").write_text("{}")
    (root / "broken.db").write_text("{}")
    words = client.get("/releases").words
    for part in (
        f"{CARD} noisy values of price ε = 1",
        "broken.card.json a certificate that cannot be read",
        "broken.db",
        f"values with noise of 'price' {CARD}",
        "a survey not in this folder",
        "ε = 1.5 is left",
    ):
        assert part in words


def test_a_card_is_verified_with_its_file_and_a_report_is_no_evidence(client, root):
    client.release(ready(client))
    shown = client.get(f"/card?name={CARD}").words
    assert "verified just now: valid" in shown
    assert "is not evidence" in shown
    table = root / "homes.private.csv"
    table.write_text(table.read_text().replace("north", "South"))
    broken = client.get(f"/card?name={CARD}").html
    assert "<h1>Do not rely on this: it is not valid</h1>" in broken
    assert "homes.private.csv was changed" in broken.partition('id="checks"')[0]


@pytest.mark.parametrize(
    "card", ["homes.csv", "../homes.private.csv.card.json", "no-such.card.json", "book.db", ""]
)
def test_only_cards_are_shown_and_only_their_reports(client, root, card):
    client.release(ready(client))
    for path in (f"/card?name={card}", f"/report?card={card}"):
        answer = client.get(path)
        assert answer.status == 400
        assert HIDDEN not in answer.html


def test_the_time_on_a_card_of_somebody_else_commands_nothing(client, root):
    client.release(ready(client))
    content = json.loads((root / CARD).read_text())
    old = content["charges"][0]["when"]
    text = json.dumps(content).replace(json.dumps(old), json.dumps("2026\u202e-01-01\x1b"))
    (root / CARD).write_text(forged(json.loads(text)))
    shown = client.get("/releases").html
    assert "2026" in shown
    assert not {"\u202e", "\x1b"} & set(shown)


def test_next_months_file_is_released_again_with_all_settings_from_the_same_ledger(client, root):
    """In a segment of its own it costs nothing of what is spent, and without one it is refused."""
    settings = {"purpose": "statistics", "limit": 1.5, "intended_use": "rent index", "segment": "2026-10"}
    begun = client.read("homes.csv", "price", drop=["side"])
    client.describe(begun, bounds=(0, 77.5), shuffle="yes", missing="drop")
    assert "A new ledger needs a limit" in client.budget(begun, 1, "rents.db", **{**settings, "limit": ""}).words
    client.budget(begun, 1, "rents.db", **settings)
    client.release(begun)
    (root / "november.csv").write_text((root / "homes.csv").read_text())
    again = client.unfinished(client.post("/again", card=CARD, path="november.csv"))
    again.reading.wait()
    assert (again.label, again.drop) == ("price", ("side",))
    client.describe(again, bounds=again.typed["bounds"], shuffle=again.typed["shuffle"][0], missing="drop")
    client.show(again, "budget")
    fields = {name: again.typed[name][0] for name in ("intended_use", "purpose", "segment")}
    assert fields == {"intended_use": "rent index", "purpose": "statistics", "segment": ""}
    epsilon, ledger = again.typed["epsilon"][0], again.typed["ledger"][0]
    assert (epsilon, ledger) == ("1", "rents.db")
    assert "0.5 of 1.5 is left" in client.budget(again, epsilon, ledger, **fields).words
    shown = client.budget(again, epsilon, ledger, **{**fields, "segment": "2026-11"}).words
    assert "ε = 0 spent for rows of 2026-11, ε = 1.5 left of ε = 1.5" in shown
    client.release(again)
    ledger = ldp.Ledger.open(root / "rents.db")
    assert (ledger.total, [charge.segments.names for charge in ledger.charges]) == (
        ldp.Budget(1),
        [("2026-10",), ("2026-11",)],
    )
    new = "the most that rows of one name cost. Rows of a new name have ε = 1.5 left"
    listed = client.get("/releases").words
    assert new in listed
    assert "rows of" in listed
    assert "1 2026-11 values with noise of 'price'" in listed
    assert new in client.figures(again, ledger="rents.db", kind="table").words


def test_a_column_that_was_left_out_is_left_out_again_of_a_workbook_whose_sheet_is_chosen_later(client, root):
    book = openpyxl.Workbook()
    for line in (root / "homes.csv").read_text().splitlines():
        book.active.append([float(text) if text.isdigit() else text for text in line.split(",")])
    book.create_sheet("notes")
    book.save(root / "november.xlsx")
    begun = client.read("homes.csv", "price", drop=["side"])
    client.describe(begun, missing="drop")
    client.budget(begun, 1, "rents.db", purpose="statistics", limit=2)
    client.release(begun)
    again = client.unfinished(client.post("/again", card=CARD, path="november.xlsx"))
    assert (again.header.names, again.drop) == ((), ())
    again = client.unfinished(client.written(again, sheet="Sheet"))
    again.reading.wait()
    assert (again.label, again.drop) == ("price", ("side",))
    shared = client.unfinished(client.name(again, "price"))  # a tick of the owner holds
    assert shared.drop == ()
    assert client.unfinished(client.written(shared, na="none")).drop == ()


def test_a_regression_and_a_mean_are_released_again_with_their_columns(client, root):
    chosen = {"kind": "regression", "on": "rooms + rooms**2 + C(side)", "family": "poisson", "gaps": "yes"}
    client.release(ready(client, epsilon=9, limit=30, **chosen))
    client.release(ready(client, kind="mean"))
    for card, on in (("homes.regression.html", "rooms + rooms**2 + C(`side`)"), ("homes.mean.html", "")):
        again = client.unfinished(client.post("/again", card=f"{card}.card.json", path="homes.csv"))
        again.reading.wait()
        assert (again.drop, again.typed["on"]) == ((), [on])
        family = "poisson" if on else ""
        assert (again.typed["kind"], again.typed["family"]) == ([card.split(".")[1]], [family])


def test_the_ledger_of_a_column_is_preselected_whatever_its_table_is_called(client, root):
    def suggested():
        begun = client.read("homes.csv", "price")
        client.describe(begun, missing="drop")
        client.show(begun, "budget")
        return begun.typed["ledger"]

    ldp.Ledger.open(root / "unnamed.db").charge("labels", epsilon=1)
    ldp.Ledger.open(root / "rooms.db").charge("labels of 'rooms'", epsilon=1)
    assert suggested() == ["price.ledger.db"]
    ldp.Ledger.open(root / "rents.db").charge("labels of 'price'", epsilon=1)
    assert suggested() == ["rents.db"]


def test_a_column_that_was_private_before_is_not_shared_beside_another_one(client, root):
    first = client.post("/open", path="homes.csv")
    assert "as private columns before" not in first.words
    client.release(ready(client))
    ldp.Ledger.open(root / "sides.db").charge('labels of "side\'s"', epsilon=1)
    ldp.Ledger.open(root / "own.db").charge("sums of 'a', {[]: 1}", epsilon=1)
    answer = client.post("/open", path="homes.csv")
    assert "as private columns before: price. With a tick" in answer.words
    boxes = re.findall(r'name="shared" value="(\d)"[^>]*?( checked)?>', answer.html)
    assert boxes == [("0", " checked"), ("1", " checked"), ("2", "")]
    assert client.unfinished(answer).left_out == {"price", "side's"}
    begun = client.unfinished(client.post(answer.path, label=0, shared=[1], written="yes"))
    assert (begun.label, begun.drop) == ("rooms", ("price",))
    again = client.unfinished(client.post(answer.path, label=2, shared=[0, 1], written="yes"))
    assert (again.label, again.drop) == ("price", ())
