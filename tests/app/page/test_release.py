"""A release: what is shown is what is carried out, it is paid for once, and what changes meanwhile stops it."""

import json

import pytest

import labeldp as ldp
from app.page.page_client import HIDDEN, charges, held, ready


def spent(client):
    return sum(charge.budget.epsilon for charge in charges(client))


# ---- the whole of it ------------------------------------------------------------------------------------------


def test_a_table_is_released_with_its_card_and_report_and_all_that_was_chosen(client, root):
    begun = client.read("homes.csv", "price", drop=["side"], na="unknown, gone", decimal=".")
    client.describe(begun, missing="drop", shuffle="yes", rows_per_person=2)
    client.budget(begun, epsilon="0,5", limit=3)
    answer = client.release(begun)
    for part in (
        "Released",
        "homes.private.csv.card.json",
        "Do not share the folder itself",
    ):
        assert part in answer.words
    assert {path.name for path in root.glob("homes.private*")} == {
        "homes.private.csv",
        "homes.private.csv.card.json",
    }
    assert spent(client) == 1  # for two rows of a person
    assert ldp.Ledger.open(root / "book.db", create=False).limit == ldp.Budget(3)
    card = json.loads((root / "homes.private.csv.card.json").read_text())
    assert card["file"]["columns"] == ["rooms", "price"]
    assert card["file"]["rows"] == 301
    written = (root / "homes.private.csv").read_text().splitlines()
    rooms = [line.partition(",")[0] for line in (root / "homes.csv").read_text().splitlines()[1:-1]]
    assert sorted(line.partition(",")[0] for line in written[1:]) == sorted(rooms)
    assert [line.partition(",")[0] for line in written[1:]] != rooms
    report = client.get("/report?card=homes.private.csv.card.json")
    assert "The proof" in report.html
    assert "The limit is ε = 3; left is ε = 2." in report.words
    assert "sandbox" in report.header("content-security-policy")
    assert "script-src" not in report.header("content-security-policy")


@pytest.mark.parametrize(
    ("choice", "asked", "told"),
    [
        (
            {"purpose": "training"},
            "training models that learn a mean",
            ("which learnt from rooms, side", "Train any model that learns a mean", "How wrong the model is"),
        ),
        (
            {"purpose": "training", "model": "yes"},
            "Each value is drawn by itself",
            ("One noisy value carries noise", "Train any model that learns a mean"),
        ),
        (
            {"purpose": "statistics"},
            "means and totals of any group, with valid errors",
            ("Compute means and totals of any group", "and their mean,"),
        ),
    ],
)
def test_the_owner_says_what_the_column_is_for_and_is_told_what_to_do_with_it(client, root, choice, asked, told):
    begun = ready(client, **choice)
    assert asked in client.show(begun, "release").words
    done = client.release(begun)
    for part in told:
        assert part in done.words
    assert "cannot be shown" not in done.words
    card = json.loads((root / "homes.private.csv.card.json").read_text())
    assert card["purpose"] == choice["purpose"]
    assert ("features" in card) == (choice == {"purpose": "training"})


def test_without_a_column_to_learn_from_the_page_asks_for_that_choice_before_the_charge(client):
    begun = client.read("homes.csv", "price", drop=["rooms", "side"])
    client.describe(begun, missing="drop")
    client.budget(begun)
    assert "Each value is drawn by itself" in client.show(begun, "release").words


def test_a_table_that_is_too_large_for_a_model_is_refused_before_the_charge(client, set_constants):
    set_constants({"tables.memory.free_memory": lambda: 1 << 20})
    answer = client.release(ready(client))
    assert "too large for a model" in answer.words
    assert "Draw each value by itself" in answer.words  # the tick that helps
    assert "Nothing was charged" in answer.words
    assert spent(client) == 0
    assert "Released" in client.release(ready(client, model="yes")).words


def test_a_model_is_released_with_a_score_and_says_what_it_leaves_out(client, root):
    first, *rows = (root / "homes.csv").read_text().splitlines()
    named = [f"{first},owner", *(f"{row},name {place}" for place, row in enumerate(rows))]
    (root / "homes.csv").write_text("\n".join(named) + "\n")
    begun = ready(client, kind="model", epsilon=2, score=4, label_transform="sqrt")
    request = client.show(begun, "release").words
    for part in (
        "271; 30 others held out, for the score",
        "scale that it learns on square root",
        "A score of 30 rows for ε = 4 would show errors",
        "ε = 4 : each row is either learnt from, for ε = 2, or held out for the score, for ε = 4",
    ):
        assert part in request
    assert "whose row it is" not in request  # no row is shared
    done = client.release(begun).words
    for part in (
        "Measured on rows held out",
        "The model predicts price from rooms, side.",
        "owner was left out",
        "labeldp predict homes.model new_table.csv --out predictions.csv",
    ):
        assert part in done
    assert spent(client) == 4
    assert {path.name for path in (root / "homes.model").iterdir()} == {
        *("card.json", "columns.json", "measurements.npz", "model.npz")
    }


def test_a_regression_table_is_released_from_ticked_columns_or_a_formula_and_shown(client, root):
    (root / "homes.csv").write_text((root / "homes.csv").read_text().replace("3,,", "3,south,"))
    begun = ready(client, kind="regression", epsilon=9, regressor=[0, 1], intended_use="rent index")
    assert "Not ticked because values are missing" not in client.show(begun, "budget").words
    request = client.show(begun, "release").words
    for part in ("a regression table, homes.regression.html", "rooms + side", "rent index"):
        assert part in request
    done = client.release(begun)
    for part in ("Released", "side[south]", "std err"):
        assert part in done.words
    assert spent(client) == 9
    card = json.loads((root / "homes.regression.html.card.json").read_text())
    assert card["regression"]["names"] == ["Intercept", "rooms", "side[south]"]
    assert "verified just now: valid" in client.get("/card?name=homes.regression.html.card.json").words
    assert "side[south]" in client.get("/report?card=homes.regression.html.card.json").words
    assert "a regression table of price" in client.get("/releases").words
    assert "side = south instead of its reference" in done.words
    assert "Categories are compared with: side = north." in done.words
    client.budget(begun, kind="regression", on="rooms + rooms**2")
    assert begun.request.options["on"] == "rooms + rooms**2"


def test_a_formula_cannot_use_a_column_that_is_left_out(client):
    begun = client.read("homes.csv", "price", drop=["side"])
    client.describe(begun, missing="drop")
    words = client.budget(begun, kind="regression", on="rooms + C(side)").words
    assert begun.request is None
    assert client.problems == ["on"]
    assert "left out: side" in words
    client.budget(begun, kind="regression", on="rooms")
    assert begun.request.options["on"] == "rooms"


def test_the_mean_alone_is_released_though_columns_have_gaps_and_a_regression_asks_about_them(client):
    begun = ready(client, kind="regression", regressor=[0, 1])
    assert begun.request is None
    assert client.problems == ["on"]
    client.budget(begun, kind="regression", regressor=[0, 1], gaps="yes")
    assert begun.request.options["missing"] == "drop"
    words = client.release(ready(client, kind="mean", epsilon=2, missing="drop")).words
    assert "The mean: " in words
    assert "the mean" in client.get("/releases").words
    assert "verified just now: valid" in client.get("/card?name=homes.mean.html.card.json").words


@pytest.mark.parametrize("kind", ["table", "mean", "model", "regression"])
def test_no_file_that_can_be_shared_has_a_label(client, root, kind):
    client.release(ready(client, kind=kind, epsilon=9, regressor=[0]))
    shared = [path for path in root.rglob("*") if path.is_file() and path.name != "homes.csv"]
    assert len(shared) > 2
    assert not any(HIDDEN.encode() in path.read_bytes() for path in shared)


def test_the_request_says_all_that_is_released(client):
    begun = client.read("homes.csv", "price", drop=["side"])
    client.describe(begun, bounds=(0, 60000), missing="drop", shuffle="yes")
    words = client.budget(begun, epsilon=9).words
    for part in (
        "homes.csv, 302 rows",
        "price, from 0 to 60,000",
        "columns shared as they are rooms",
        "columns left out side",
        "301; 1 without a private value left out, in random order",
        *ldp.preview(rows=301, bounds=(0, 60000), epsilon=9).cautions(),
    ):
        assert part in words


@pytest.mark.parametrize(
    ("field", "text"),
    [
        *[("epsilon", text) for text in ("", "1000", "0 5")],
        ("ledger", "homes.csv"),
        ("limit", "much"),
        ("score", "0.01"),
        ("label_transform", "log"),
        ("on", ""),
        ("intended_use", "two\nlines"),
    ],
)
def test_what_is_wrong_with_the_budget_is_shown_beside_its_field(client, field, text):
    kinds = {"score": "model", "label_transform": "model", "on": "regression"}
    begun = ready(client, kind=kinds.get(field, "table"), **{field: text})
    assert begun.request is None
    assert client.problems == [field]
    client.show(begun, "column")
    assert client.problems == []  # it is about another page


# ---- it is paid for once --------------------------------------------------------------------------------------


def test_a_button_that_is_pressed_twice_spends_once(client, root):
    begun = ready(client)
    with held("Counting"):
        assert "Working" in client.press(begun).words
        running = begun.release
        assert "Working" in client.press(begun).words
    running.wait()
    (root / "homes.private.csv").unlink()
    client.release(begun)
    assert begun.release is running
    assert spent(client) == 1


def test_a_limit_that_is_spent_is_noticed_before_the_button_and_at_it(client, root):
    client.release(ready(client, limit=1.5))
    begun = ready(client)
    assert begun.request is None
    assert client.problems == ["epsilon"]
    shown = client.show(begun, "budget").words
    assert "88 at most after it" in shown  # with what was released before
    client.budget(begun, epsilon=0.5)
    ldp.Ledger.open(root / "book.db").charge("elsewhere", epsilon=0.4)
    answer = client.release(begun)
    assert "Nothing was charged" in answer.words
    assert not (root / "homes.private-2.csv").exists()


@pytest.mark.parametrize(("at", "is_paid"), [("Counting", 0), ("Releasing", 1)])
def test_work_can_be_stopped_before_the_charge_and_not_after(client, root, at, is_paid):
    begun = ready(client)
    with held(at, then=lambda work: work.stop()) as reached:
        client.press(begun)
        assert reached.wait(60)
        data = json.loads(client.get(f"/work/{begun.release.id}").body)
    begun.release.wait()
    assert set(data) == {"state", "step", "percent", "can_stop"}
    assert (data["state"], data["can_stop"]) == ("running", not is_paid)
    assert ("Stopped. Nothing was charged" in client.show(begun, "release").words) == (not is_paid)
    assert spent(client) == is_paid
    assert (root / "homes.private.csv").exists() == bool(is_paid)


# ---- what is shown is what is carried out ---------------------------------------------------------------------


def another_file(client, begun):
    table = client.site.folder.root / "homes.csv"
    table.write_text(table.read_text() + "7,north,7\n")


CHANGES = {
    "the file": another_file,
    "the bounds": lambda client, begun: client.describe(begun, bounds=(0, 120), missing="drop"),
    "the order of rows": lambda client, begun: client.describe(begun, shuffle="yes", missing="drop"),
    "the budget": lambda client, begun: client.budget(begun, epsilon=5),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_request_is_void_once_anything_that_it_is_made_of_changes(client, what):
    begun = ready(client)
    shown = begun.request.id
    CHANGES[what](client, begun)
    for _ in range(2):
        client.press(begun, request=shown)
    assert begun.release is None
    assert charges(client) == ()


def test_a_form_in_an_older_tab_goes_on_with_the_table_that_it_was_shown_for(client):
    one = client.read("homes.csv", "price")
    two = client.unfinished(client.name(one, "rooms", drop=["price"]))
    two.reading.wait()
    client.describe(one, missing="drop")
    client.describe(two, bounds=(0, 9))
    client.budget(one)
    client.budget(two, epsilon=2)
    names = ("label", "bounds", "epsilon", "drop")
    chosen = [[each.request.options[name] for name in names] for each in (one, two)]
    assert chosen == [["price", (0, 100), 1, ()], ["rooms", (0, 9), 2, ("price",)]]


def test_a_file_exchanged_after_the_button_is_not_released(client, root):
    begun = ready(client)
    with held("Counting") as reached:
        client.press(begun)
        assert reached.wait(60)
        (root / "other.csv").write_text((root / "homes.csv").read_text().replace("north", "987654"))
        (root / "other.csv").replace(root / "homes.csv")
    begun.release.wait()
    assert begun.release.state == "failed"
    assert "The file changed" in client.show(begun, "release").words
    assert charges(client) == ()
    assert not (root / "homes.private.csv").exists()


def test_nothing_can_be_chosen_again_while_it_is_released(client):
    begun = ready(client)
    with held("Releasing") as reached:
        client.press(begun)
        assert reached.wait(60)
        running = begun.release
        answers = [
            client.name(begun, "rooms"),
            client.describe(begun, bounds=(0, 7)),
            client.budget(begun, epsilon=3),
        ]
    running.wait()
    assert all("Working" in answer.words and "released before" not in answer.words for answer in answers)
    assert begun.release is running
    assert (begun.request.options["bounds"], spent(client)) == ((0, 100), 1)


FIGURES = {
    "statistics": ({"kind": "table", "purpose": "statistics"}, "mean of 100", "model quality"),
    "training": ({"kind": "table", "purpose": "training"}, "model quality", "mean of 100"),
    "mean": ({"kind": "mean"}, "95 % interval of the mean", "coefficient"),
    "model": ({"kind": "model"}, "error a score shows", "mean of 100"),
    "regression": ({"kind": "regression"}, "coefficient per SD", "model quality"),
}


@pytest.mark.parametrize("choice", FIGURES)
def test_only_the_figures_of_what_is_released_are_shown(client, choice):
    begun = client.read("homes.csv", "price")
    client.describe(begun, missing="drop")
    client.show(begun, "budget")
    fields, shown, left_out = FIGURES[choice]
    words = client.figures(begun, epsilon=1, ledger="book.db", **fields).words
    assert shown in words
    assert left_out not in words


def test_the_error_that_one_can_accept_gives_an_epsilon_or_says_why_not(client):
    begun = client.read("homes.csv", "price")
    client.describe(begun, missing="drop")
    client.show(begun, "budget")
    fields = {"kind": "table", "purpose": "statistics", "ledger": "book.db", "target": "mean"}
    epsilon = ldp.preview(rows=301, bounds=(0, 100), target_error=5.0).budgets[0].epsilon
    assert f"This error takes ε = {epsilon:g}" in client.figures(begun, target_error="5", **fields).words
    assert "is not reached" in client.figures(begun, target_error="0,0001", **fields).words
    trained = client.figures(begun, target_error="25", **fields | {"purpose": "training"}).words
    epsilon = ldp.preview(rows=301, bounds=(0, 100), target_error=25.0, target="score").budgets[0].epsilon
    assert f"This error takes ε = {epsilon:g}" in trained
    assert "error a score shows" in trained
