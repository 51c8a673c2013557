"""The way through the page, form by form: it does what the command line does, and spends once."""

import json
import shlex
import threading
from io import BytesIO
from unittest import mock
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labeldp._atomic import reserve_name
from labeldp.cli import app
from labeldp.ledger import Budget, Ledger
from labeldp.page import drafts, orders
from labeldp.page.site import Site
from labeldp.page.work import Work
from page_client import Client, charges, ready


def test_a_table_is_released_with_its_card_and_report(client):
    draft = ready(client, limit=3, report="yes")
    answer = client.release(draft)
    assert "It is done" in answer.words
    root = client.site.folder.root
    assert {"out.csv", "out.csv.card.json", "out.csv.report.html", "book.jsonl"} <= {
        p.name for p in root.iterdir()
    }
    assert sum(charge.budget.epsilon for charge in charges(client)) == 1
    assert client.file("out.csv.card.json", "table").body == (root / "out.csv").read_bytes()
    report = client.file("out.csv.card.json", "report", open="yes")
    assert "sandbox" in report.header("content-security-policy")
    assert "<svg" in report.html
    assert "script-src" not in report.header("content-security-policy")


def test_a_model_is_fitted_and_predicts_in_a_form(client):
    table = client.site.folder.root / "homes.csv"
    first, *rows = table.read_text().splitlines()
    named = [f"{first},owner", *(f"{row},name {place}" for place, row in enumerate(rows))]
    table.write_text("\n".join(named) + "\n")
    draft = ready(client, leaves="model", epsilon=2, score=4)
    assert "ε = 6" in client.get(f"/draft/{draft.id}/release").words
    asked = client.release(draft).words
    assert "owner was left out: nearly every row has a value of its own. Nothing was charged yet." in asked
    assert charges(client) == ()
    done = client.release(draft, as_it_is="yes").words
    assert "try it" in done
    assert "Measured on rows held out" in done
    assert "The model predicts price from rooms, side." in done
    assert "owner was left out: " in done
    assert sum(charge.budget.epsilon for charge in charges(client)) == 6
    assert "rooms" in client.get("/model?name=model").words
    predicted = client.post("/model", name="model", c0="3", c1="north").words
    assert "price is about" in predicted
    assert (
        "side: 1 value was new since the fit, and taken for a rare one."
        in client.post("/model", name="model", c1="east").words
    )
    saved = ZipFile(BytesIO(client.file("model/card.json", "model").body))
    assert {"model/card.json", "model/columns.json", "model/model.npz"} == set(saved.namelist())
    assert "must be a number" in client.post("/model", name="model", c0="many").words
    assert "not a card" in client.get("/model?name=homes.csv").words or client.get("/model?name=..").status == 400


def test_a_button_that_is_pressed_twice_spends_once(client):
    draft, begun, go_on, carry_out = ready(client), [], threading.Event(), orders.Order.carry_out

    def slow(self, *arguments):
        begun.append(self)
        go_on.wait(60)
        return carry_out(self, *arguments)

    with mock.patch.object(orders.Order, "carry_out", slow):
        for _ in range(2):
            working = client.post(f"/draft/{draft.id}/release", order=draft.order.id).words
            assert "Working" in working
        go_on.set()
        draft.release.wait()
        (client.site.folder.root / "out.csv").unlink()
        client.release(draft)
    assert len(begun) == 1
    assert sum(charge.budget.epsilon for charge in charges(client)) == 1


def test_a_limit_that_the_ledger_does_not_have_is_refused_not_forgotten(client):
    client.release(ready(client))
    draft = ready(client, out="again.csv", epsilon=5, limit=2)
    assert "limit" in draft.problems["ledger"]
    assert "limit" in client.get(f"/draft/{draft.id}/budget").words
    client.release(draft)
    assert sum(charge.budget.epsilon for charge in charges(client)) == 1


def test_a_limit_that_is_spent_is_said_before_the_button_and_at_it(client):
    client.release(ready(client, limit=1.5))
    draft = ready(client, out="again.csv")
    assert draft.order is None
    assert "only ε = 0.5 is left" in client.get(f"/draft/{draft.id}/budget").words
    client.order(draft, epsilon=0.5, out="again.csv")
    Ledger.open(client.site.folder.root / "book.jsonl").charge("elsewhere", epsilon=0.4)
    answer = client.release(draft)
    assert "only ε = 0.1 is left" in answer.words
    assert "Nothing was charged" in answer.words
    assert not (client.site.folder.root / "again.csv").exists()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"epsilon": "0"}, "epsilon"),
        ({"epsilon": ""}, "ε is missing"),
        ({"epsilon": "1000"}, "epsilon"),
        ({"epsilon": "0 5"}, "ε must be a finite number"),
        ({"out": "homes.csv"}, "exists already"),
        ({"ledger": "homes.csv"}, "ledger"),
        ({"limit": "much"}, "The limit must be a finite number"),
        ({"leaves": "model", "score": "-1"}, "epsilon"),
    ],
)
def test_what_is_wrong_with_the_budget_is_said_beside_its_field(client, fields, sentence):
    draft = ready(client, **fields)
    assert draft.order is None
    answer = client.get(f"/draft/{draft.id}/budget")
    assert sentence in answer.words
    assert "summary" in answer.html


def test_a_file_that_changes_between_steps_is_noticed_and_nothing_is_charged(client):
    draft = ready(client)
    with (client.site.folder.root / "homes.csv").open("a") as file:
        file.write("1,north,2\n")
    client.post(f"/draft/{draft.id}/release")
    answer = client.get(f"/draft/{draft.id}/table")
    assert "The file changed" in answer.words
    assert charges(client) == ()
    (client.site.folder.root / "homes.csv").unlink()
    assert "changed" in client.choose(draft).words or client.choose(draft).path.endswith("/table")


def test_what_is_not_finished_and_what_is_private_already_are_told_apart_at_the_start(client):
    client.release(ready(client))
    draft = client.read("homes.csv", "price")
    client.choose(draft, missing="yes", shuffle="yes")
    words = client.get("/").words
    assert "Not finished homes.csv price go on" in words
    assert "Private tables that were released from here: 1" in words
    again = client.draft(client.post("/open", path="homes.csv"))
    assert (again.label, again.bounds, again.missing, again.shuffle) == ("price", (0, 100), "drop", True)
    assert again.seen is None
    client.release(draft)
    (client.site.folder.root / "homes.csv").write_text("rooms,side\n1,north\n")
    changed = client.draft(client.post("/open", path="homes.csv"))
    assert (changed.label, changed.bounds, changed.drop) == (None, None, ())


def test_two_tabs_are_two_drafts(client):
    one, two = client.read("homes.csv", "price"), client.read("homes.csv", "rooms")
    client.choose(one, bounds=(0, 100), missing="yes")
    client.choose(two, bounds=(0, 9))
    client.order(one, out="one.csv")
    client.order(two, out="two.csv", epsilon=2)
    assert (one.order.choice.label, one.order.choice.bounds, one.order.epsilon) == ("price", (0, 100), 1)
    assert (two.order.choice.label, two.order.choice.bounds, two.order.epsilon) == ("rooms", (0, 9), 2)


@pytest.mark.parametrize(
    ("leaves", "taken"), [("table", "out.csv"), ("table", "out.csv.report.html"), ("model", "model")]
)
def test_a_name_that_another_release_is_writing_to_is_refused_before_the_charge(client, leaves, taken):
    """In another tab, or by the command line: both keep their names in the folder."""
    draft, root = ready(client, leaves=leaves, report="yes"), client.site.folder.root
    with reserve_name(root / taken):
        words = client.release(draft).words
    assert "another release is being written to" in words
    assert "Nothing was charged" in words
    assert charges(client) == ()
    assert "It is done" in client.release(draft).words


@pytest.mark.parametrize("leaves", ["table", "model"])
def test_a_report_that_cannot_be_written_does_not_hide_what_was_released(client, leaves, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("labeldp.jobs.reports.write_report", full)
    done = client.release(ready(client, leaves=leaves, report="yes")).words
    assert "It is done" in done
    assert "The report could not be written: No space left on device" in done
    assert {"table": "The private table", "model": "The private model"}[leaves] in done
    assert "The report" not in done.replace("The report could not", "")


def test_work_can_be_stopped_before_the_charge_and_not_after(client):
    draft = ready(client)
    carry_out = orders.Order.carry_out

    def stopping(self, ledger, progress, hints, reading):
        progress.__self__.stop()
        return carry_out(self, ledger, progress, hints, reading)

    with mock.patch.object(orders.Order, "carry_out", stopping):
        answer = client.release(draft)
    assert "Stopped. Nothing was charged" in answer.words
    assert charges(client) == ()
    assert not (client.site.folder.root / "out.csv").exists()

    def late(self, ledger, progress, hints, reading):
        def after(what, done, total):
            if what == "Releasing":
                progress.__self__.stop()
            progress(what, done, total)

        return carry_out(self, ledger, after, hints, reading)

    with mock.patch.object(orders.Order, "carry_out", late):
        assert "It is done" in client.release(draft).words


def test_reading_for_a_model_has_a_measure_and_can_be_stopped_in_the_middle(client, monkeypatch):
    rows = pa.table({"rooms": range(100), "price": range(100)})
    pq.write_table(rows, client.site.folder.root / "homes.parquet")
    draft = client.read("homes.parquet", "price")
    client.choose(draft)
    client.order(draft, leaves="model")
    monkeypatch.setattr("labeldp.files.tables.rows_per_batch", lambda schema: 10)
    progress, seen = Work.progress, []

    def note(self, *how):
        seen.append(how)
        if how[1] == 30:
            self.stop()
        progress(self, *how)

    monkeypatch.setattr(Work, "progress", note)
    assert "Stopped. Nothing was charged" in client.release(draft).words
    assert seen == [("Reading", 0, None), *(("Reading", done, 100) for done in (10, 20, 30))]
    assert draft.release.percent == 30
    assert charges(client) == ()


def ended_before_shown(monkeypatch, work, go_on):
    """Let work end after a page's handler has looked at it, and before the page is put together."""
    page = Site.page

    def late(*arguments, **named):
        go_on.set()
        work().wait()
        return page(*arguments, **named)

    monkeypatch.setattr("labeldp.page.site.SOON", 0)
    monkeypatch.setattr(Site, "page", late)


def test_reading_that_ends_while_the_page_is_put_together_is_shown_as_it_was(client, monkeypatch):
    """Half of each would load itself again just when its link is clicked."""
    read, go_on = drafts.overview, threading.Event()
    monkeypatch.setattr(drafts, "overview", lambda *a, **k: (go_on.wait(60), read(*a, **k))[1])
    draft = client.draft(client.post("/open", path="homes.csv"))
    ended_before_shown(monkeypatch, lambda: draft.reading, go_on)
    running = client.name(draft, "price")
    assert "data-progress" in running.html
    assert "Go on with" not in running.words
    done = client.get(f"/draft/{draft.id}/table")
    assert "data-progress" not in done.html
    assert "commas between values" in done.words


def test_nobody_is_asked_to_release_in_spite_of_hints_that_are_not_shown(client, monkeypatch):
    draft, go_on = ready(client), threading.Event()

    def asking(self, ledger, progress, hints, reading):
        go_on.wait(60)
        hints(["a hint"])

    monkeypatch.setattr(orders.Order, "carry_out", asking)
    ended_before_shown(monkeypatch, lambda: draft.release, go_on)
    assert "as it is for" not in client.post(f"/draft/{draft.id}/release", order=draft.order.id).words
    asked = client.get(f"/draft/{draft.id}/release").words
    assert "a hint" in asked
    assert "Release it as it is for ε = 1" in asked


def test_hints_are_for_this_page_alone(tmp_path):
    rows = "\n".join(f"{n},{n * 2 + 1}.5" for n in np.random.default_rng(0).permutation(400))
    (tmp_path / "pay.csv").write_text(f"net,gross\n{rows}\n")
    client = Client(tmp_path).enter()
    draft = client.read("pay.csv", "gross")
    shown = client.get(f"/draft/{draft.id}/label")
    assert "The column 'net' nearly determines 'gross'" in shown.words
    assert "Leave it out below" in shown.words
    assert shown.header("cache-control") == "no-store"
    draft.reading.result = (draft.seen, [])  # as if it had not been seen there: then it is asked about
    client.choose(draft, bounds=(0, 1000))
    client.order(draft)
    asked = client.release(draft)
    assert "nearly determines" in asked.words
    assert charges(client) == ()
    assert "It is done" in client.release(draft, as_it_is="yes").words
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"determines" not in written


@pytest.mark.parametrize("leaves", ["table", "model"])
def test_the_command_line_that_is_shown_does_the_same(client, leaves, monkeypatch):
    draft = client.read("homes.csv", "price", na="unknown, gone", decimal=".")
    client.choose(draft, leaves=["rooms"], missing="yes", shuffle="yes", rows_per_person=2)
    client.order(draft, leaves=leaves, epsilon=0.7, limit=3, report="yes", score=0.5)
    calls = []

    def noted(*arguments, **named):
        calls.append([[str(each) for each in arguments], named])
        raise KeyboardInterrupt

    for name in ("files.privatize_file", "page.orders.fit_file", "cli.fit.fit_file"):
        monkeypatch.setattr(f"labeldp.{name}", noted)
    client.release(draft)
    monkeypatch.chdir(client.site.folder.root)
    words = shlex.split(draft.order.command().replace("\\\n", " "))
    with pytest.raises(SystemExit):
        app(words[1:])
    (page, shell) = ({**named, "ledger": named["ledger"].limit} for _, named in calls)
    assert calls[0][0][0].endswith(calls[1][0][0])
    assert calls[0][0][1].endswith(calls[1][0][1])
    for name in ("label", "bounds", "epsilon", "ledger", "missing", "rows_per_person", "dialect"):
        assert page[name] == shell[name]
    assert list(page["drop"]) == list(shell["drop"]) == ["side"]
    assert page["ledger"] == Budget(3.0)
    if leaves == "model":
        assert page["score"] == shell["score"] == 0.5
    if leaves == "table":
        assert page["shuffle"]
        assert shell["shuffle"]


def test_progress_is_told_to_scripts_without_a_label(client):
    draft = ready(client)
    client.release(draft)
    data = json.loads(client.get(f"/draft/{draft.id}/progress?what=release").body)
    assert data["state"] == "done"
    assert set(data) == {"state", "what", "done", "percent", "can_stop"}


@pytest.mark.parametrize("path", ["/alive", "/bye", "/close"])
def test_a_form_without_the_page_s_key_is_refused_and_not_a_failure(client, path):
    answer = client.request("POST", path, b"page=a")
    assert answer.status == 400
    assert "the form was not sent by this page" in answer.words
