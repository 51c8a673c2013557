"""An order is what is shown and what is run: whatever it was made of, nothing else is released."""

import re
import shlex
import threading
from unittest import mock

import pytest

from labeldp.cli.options import split_names
from labeldp.ledger import Ledger
from labeldp.page import drafts, orders
from labeldp.planning import preview
from page_client import Client

NUMBER = "987654"


@pytest.fixture
def client(tmp_path):
    rows = "\n".join(f"{n % 60},{n % 7},{n * 13 % 97}.5" for n in range(200))
    (tmp_path / "pay.csv").write_text(f"age,net,income\n{rows}\n")
    return Client(tmp_path).enter()


def ordered(client, label="age", **more):
    draft = client.read("pay.csv", label)
    client.choose(draft)
    client.order(draft, **more)
    assert draft.order is not None
    return draft


def spent(client):
    path = client.site.folder.root / "book.jsonl"
    return Ledger.open(path, create="never").total.epsilon if path.exists() else 0


def another_file(client, draft):
    """Change the file, and say all the same again."""
    table = client.site.folder.root / "pay.csv"
    table.write_text(table.read_text() + "7,7,7\n")
    assert "The file changed" in client.choose(draft).words
    client.name(draft, "age")
    draft.reading.wait()
    client.choose(draft)


CHANGES = {
    "the file": another_file,
    "the label": lambda client, draft: (
        client.name(draft, "income"),
        draft.reading.wait(),
        client.choose(draft, leaves=["age"]),
    ),
    "the columns": lambda client, draft: client.choose(draft, leaves=["income"]),
    "the bounds": lambda client, draft: client.choose(draft, bounds=(0, 120)),
    "rows of a person": lambda client, draft: client.choose(draft, rows_per_person=5),
    "the order of rows": lambda client, draft: client.choose(draft, shuffle="yes"),
    "how it is written": lambda client, draft: (client.written(draft, na="gone"), draft.reading.wait()),
}


@pytest.mark.parametrize("what", CHANGES)
def test_an_order_is_void_once_anything_that_it_was_made_of_differs(client, what):
    draft = ordered(client)
    shown = draft.order.id
    CHANGES[what](client, draft)
    assert client.post(f"/draft/{draft.id}/release", order=shown).path.endswith("/budget")
    assert draft.release is None
    assert spent(client) == 0


def test_a_file_that_changed_stays_unreleased_however_often_the_button_is_pressed(client):
    draft = ordered(client, "income")
    shown, table = draft.order.id, client.site.folder.root / "pay.csv"
    head, *rows = table.read_text().splitlines()
    table.write_text("\n".join([f"{head},ssn", *(f"{row},{NUMBER}" for row in rows)]) + "\n")
    for _ in range(3):
        assert client.post(f"/draft/{draft.id}/release", order=shown).path.endswith("/table")
    assert draft.release is None
    assert spent(client) == 0


@pytest.mark.parametrize(("leaves", "job"), [("table", "privatize_and_report"), ("model", "fit_file")])
def test_a_file_exchanged_after_the_button_is_not_released(client, monkeypatch, leaves, job):
    draft = ordered(client, "income", leaves=leaves)
    table, real = client.site.folder.root / "pay.csv", getattr(orders, job)

    def exchange(*arguments, **named):
        other = table.with_name("other.csv")
        head, *rows = table.read_text().splitlines()
        other.write_text("\n".join([f"{head},ssn", *(f"{row},{NUMBER}" for row in rows)]) + "\n")
        other.replace(table)
        return real(*arguments, **named)

    monkeypatch.setattr(orders, job, exchange)
    assert "the file changed" in client.release(draft).words
    assert draft.release.state == "failed"
    assert spent(client) == 0
    assert not (table.parent / "out.csv").exists()
    assert not (table.parent / "model").exists()


def test_a_button_releases_the_order_that_it_was_shown_with_and_no_other(client):
    draft = ordered(client)
    shown = draft.order.id
    client.order(draft, epsilon=5)
    assert "The order was changed" in client.post(f"/draft/{draft.id}/release", order=shown).words
    assert spent(client) == 0
    assert "It is done" in client.release(draft).words
    assert spent(client) == 5


def test_what_an_earlier_reading_finds_is_not_taken_for_the_current_one(client, monkeypatch):
    read, go_on = drafts.overview, threading.Event()

    def slow(*arguments, label, **named):
        seen = read(*arguments, label=label, **named)
        if label == "age":
            go_on.wait(60)
        return seen

    monkeypatch.setattr(drafts, "overview", slow)
    draft = client.draft(client.post("/open", path="pay.csv"))
    client.name(draft, "age")
    old = draft.reading
    client.name(draft, "income")
    draft.reading.wait()
    go_on.set()
    old.wait()
    assert list(draft.seen.columns) == ["age", "net"]


def test_what_is_said_of_another_reading_of_the_table_is_not_taken(client):
    draft = client.read("pay.csv", "age")
    old = {"read": draft.read.id}
    client.name(draft, "income")
    draft.reading.wait()
    answer = client.post(f"/draft/{draft.id}/label", low=0, high=120, rows_per_person=1, leaves=[1, 2], **old)
    assert "said of another reading" in answer.words
    assert draft.bounds is None
    assert "said of another reading" in client.post(f"/draft/{draft.id}/table", label=0, **old).words
    assert draft.label == "income"


def test_nothing_that_was_said_can_be_changed_while_it_is_released(client):
    draft, begun, go_on, carry_out = ordered(client), threading.Event(), threading.Event(), orders.Order.carry_out

    def slow(self, ledger, progress, *others):
        def after(*how):
            progress(*how)
            if ledger.own_charges:
                begun.set()
                go_on.wait(60)

        return carry_out(self, ledger, after, *others)

    with mock.patch.object(orders.Order, "carry_out", slow):
        client.post(f"/draft/{draft.id}/release", order=draft.order.id)
        assert begun.wait(60)
        running = draft.release
        assert client.name(draft, "income").path.endswith("/release")
        assert client.choose(draft, bounds=(0, 7)).path.endswith("/release")
        words = client.order(draft, epsilon=3).words
        go_on.set()
        running.wait()
    assert "Working" in words
    assert "released before" not in words
    assert draft.release is running
    assert (draft.order.choice.label, draft.order.choice.bounds, spent(client)) == ("age", (0, 100), 1)


def test_the_order_says_all_that_leaves(tmp_path):
    rows = [f"{n % 60},{n},{n * 2 + 1 if n > 9 else ''}" for n in range(400)]
    (tmp_path / "pay.csv").write_text("\n".join(["age,net,income", *rows]) + "\n")
    client = Client(tmp_path).enter()
    draft = client.read("pay.csv", "income")
    client.choose(draft, bounds=(0, 60000), leaves=["net"], missing="yes", shuffle="yes")
    words = client.order(draft, epsilon=9).words
    for part in (
        "income, from 0 to 60 000 (60 thousand)",
        "columns that leave as they are net",
        "columns that stay here age",
        "390; 10 without a label stay here, in random order",
        "The column 'net' nearly determines 'income'",
        *preview(rows=390, bounds=(0, 60000), epsilon=9).cautions(),
    ):
        assert part in words
    done = client.release(draft).words
    assert "It is done" in done
    assert "determines" not in done


def test_columns_are_known_by_their_place_so_any_name_can_be_private_or_stay(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [["age", "net\nincome", "gross\nincome"], *([n % 60, n % 7, n % 5] for n in range(60))]:
        book.active.append(row)
    book.save(tmp_path / "pay.xlsx")
    client = Client(tmp_path).enter()
    draft = client.read("pay.xlsx", "gross\nincome", drop=["net\nincome"])
    assert (draft.label, list(draft.seen.columns)) == ("gross\nincome", ["age"])
    sent = [
        re.findall(r'name="(label|leaves)" value="(.*?)"', client.get(f"/draft/{draft.id}/{step}").html, re.S)
        for step in ("table", "label")
    ]
    assert sent[0] == [(field, str(place)) for place in range(3) for field in ("label", "leaves")]
    assert sent[1] == [("leaves", str(place)) for place in range(2)]


def test_a_table_may_have_thousands_of_columns(tmp_path):
    names = [f"c{n}" for n in range(2100)]
    (tmp_path / "wide.csv").write_text("\n".join([",".join(names), *[",".join("1" * 2100)] * 3]) + "\n")
    client = Client(tmp_path).enter()
    draft = client.read("wide.csv", "c0")
    assert client.choose(draft).path.endswith("/budget")


def test_a_copied_command_quotes_what_a_shell_or_the_command_would_take_apart(client):
    root = client.site.folder.root
    (root / "-odd.csv").write_text('a,b,"a,b",{epsilon},--y\n' + "1,2,3,4,5\n" * 50)
    draft = client.read("-odd.csv", "--y")
    client.choose(draft, leaves=["b", "{epsilon}"])
    shown = client.order(draft, epsilon="1;curl").words
    assert "EPSILON" in shown
    assert "--epsilon 1;curl" not in client.get(f"/draft/{draft.id}/budget?epsilon=1;curl").words
    client.order(draft, epsilon="0,5", out="-out.csv")
    words = shlex.split(draft.order.command("{epsilon}").replace("\\\n", " "))
    assert words[2:5] == ["./-odd.csv", "-o", "./-out.csv"]
    assert "--label=--y" in words
    assert split_names(words[words.index("--drop") + 1]) == ["a", "a,b"]
    assert draft.order.epsilon == 0.5


def test_bounds_are_read_as_the_table_writes_numbers_and_said_again(tmp_path):
    rows = "\n".join(f"{n % 9 + 1}.{n % 900 + 100},5;{n}.000,5" for n in range(1, 99))
    (tmp_path / "lohn.csv").write_text(f"Umsatz;Lohn\n{rows}\n")
    client = Client(tmp_path).enter()
    draft = client.read("lohn.csv", "Lohn")
    answer = client.choose(draft, bounds=("0,125", "60.000"))
    assert draft.bounds == (0.125, 60000)
    for page in (answer, client.get(f"/draft/{draft.id}/label"), client.order(draft)):
        assert "60 000 (60 thousand)" in page.words
    assert 'value="0,125"' in client.get(f"/draft/{draft.id}/label").html


def test_another_sheet_is_chosen_without_naming_a_private_column(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["only", "notes"])
    book.create_sheet("pay").append(["rooms", "price"])
    book.save(tmp_path / "book.xlsx")
    client = Client(tmp_path).enter()
    draft = client.draft(client.post("/open", path="book.xlsx"))
    client.written(draft, sheet="Sheet")
    html = client.get(f"/draft/{draft.id}/table").html
    form = next(part for part in html.split("<form")[1:] if 'name="sheet"' in part)
    assert "required" not in form
    assert "price" in client.written(draft, sheet="pay").words
