"""The steps of a release, form by form: they do what the command line does, and spend once."""

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

import labeldp as ldp
from app.page.page_client import Client, charges, ready
from labeldp._atomic import reserve_name
from labeldp.app.cli import app
from labeldp.app.page import site, unfinished
from labeldp.app.page.release_request import ReleaseRequest


def spent(client):
    return sum(charge.budget.epsilon for charge in charges(client))


def test_a_table_is_released_with_its_card_and_report(client):
    answer = client.release(ready(client, limit=3, report="yes"))
    assert "Released" in answer.words
    root = client.site.folder.root
    assert {"out.csv", "out.csv.card.json", "out.csv.report.html", "book.jsonl"} <= {
        p.name for p in root.iterdir()
    }
    assert spent(client) == 1
    assert client.file("out.csv.card.json", "table").body == (root / "out.csv").read_bytes()
    report = client.file("out.csv.card.json", "report", open="yes")
    assert "<svg" in report.html
    assert "sandbox" in report.header("content-security-policy")
    assert "script-src" not in report.header("content-security-policy")


def test_a_model_is_fitted_and_predicts_in_a_form(client):
    table = client.site.folder.root / "homes.csv"
    first, *rows = table.read_text().splitlines()
    named = [f"{first},owner", *(f"{row},name {place}" for place, row in enumerate(rows))]
    table.write_text("\n".join(named) + "\n")
    unfinished = ready(client, kind="model", epsilon=2, score=4)
    assert "ε = 6" in client.get(f"{unfinished.path}/release").words
    asked = client.release(unfinished).words
    assert "owner was left out: nearly every row has a value of its own. Nothing was charged yet." in asked
    assert charges(client) == ()
    done = client.release(unfinished, as_it_is="yes").words
    for part in (
        "try it",
        "Measured on rows held out",
        "The model predicts price from rooms, side.",
        "owner was left",
    ):
        assert part in done
    assert spent(client) == 6
    assert "price is about" in client.post("/model", name="model", c0="3", c1="north").words
    assert "side: 1 value was new since the fit" in client.post("/model", name="model", c1="east").words
    assert "'rooms' must be a number" in client.post("/model", name="model", c0="many").words
    saved = ZipFile(BytesIO(client.file("model/card.json", "model").body))
    assert {"model/card.json", "model/columns.json", "model/model.npz"} == set(saved.namelist())
    for name in ("homes.csv", ".."):
        assert client.get(f"/model?name={name}").status == 400


def test_a_button_that_is_pressed_twice_spends_once(client):
    unfinished, begun, go_on, carry_out = ready(client), [], threading.Event(), ReleaseRequest.carry_out

    def slow(self, *arguments):
        begun.append(self)
        go_on.wait(60)
        return carry_out(self, *arguments)

    with mock.patch.object(ReleaseRequest, "carry_out", slow):
        for _ in range(2):
            assert "Working" in client.press(unfinished).words
        go_on.set()
        unfinished.release.wait()
        (client.site.folder.root / "out.csv").unlink()
        client.release(unfinished)
    assert len(begun) == 1
    assert spent(client) == 1


def test_a_limit_that_the_ledger_does_not_have_is_refused_not_forgotten(client):
    client.release(ready(client))
    unfinished = ready(client, out="again.csv", epsilon=5, limit=2)
    assert list(unfinished.problems) == ["ledger"]
    client.release(unfinished)
    assert spent(client) == 1


def test_a_limit_that_is_spent_is_noticed_before_the_button_and_at_it(client):
    client.release(ready(client, limit=1.5))
    unfinished = ready(client, out="again.csv")
    assert unfinished.request is None
    assert "only ε = 0.5 is left" in client.get(f"{unfinished.path}/budget").words
    client.budget(unfinished, epsilon=0.5, out="again.csv")
    ldp.Ledger.open(client.site.folder.root / "book.jsonl").charge("elsewhere", epsilon=0.4)
    answer = client.release(unfinished)
    assert "only ε = 0.1 is left" in answer.words
    assert "Nothing was charged" in answer.words
    assert not (client.site.folder.root / "again.csv").exists()


@pytest.mark.parametrize(
    ("field", "text"),
    [
        *[("epsilon", text) for text in ("0", "", "1000", "0 5", "1;curl")],
        *[("out", "homes.csv"), ("ledger", "homes.csv"), ("limit", "much"), ("folder", "../model")],
        ("score", "-1"),
    ],
)
def test_what_is_wrong_with_the_budget_is_shown_beside_its_field(client, field, text):
    unfinished = ready(client, **{field: text}, **({"kind": "model"} if field in ("score", "folder") else {}))
    assert unfinished.request is None
    assert list(unfinished.problems) == [field]
    html = client.get(f"{unfinished.path}/budget").html
    assert f'<a href="#{field}">' in html
    assert f'id="{field}-problem"' in html


def test_unfinished_and_private_tables_are_listed_at_the_start(client):
    client.release(ready(client))
    begun = client.read("homes.csv", "price", drop=["side"])
    words = client.get("/").words
    assert "Not finished homes.csv price continue" in words
    assert "Private tables that were released from here: 1" in words
    again = client.unfinished(client.post("/open", path="homes.csv"))
    assert (again.private, again.drop, again.label, again.seen) == ("price", ("side",), None, None)
    assert begun.private == "price"
    (client.site.folder.root / "homes.csv").write_text("rooms,side\n1,north\n")
    changed = client.unfinished(client.post("/open", path="homes.csv"))
    assert (changed.private, changed.drop) == ("price", ("side",))


def test_two_tabs_are_two_unfinished_releases(client):
    one, two = client.read("homes.csv", "price"), client.read("homes.csv", "rooms")
    client.describe(one, bounds=(0, 100), missing="yes")
    client.describe(two, bounds=(0, 9))
    client.budget(one, out="one.csv")
    client.budget(two, out="two.csv", epsilon=2)
    chosen = [tuple(each.request.options[name] for name in ("label", "bounds", "epsilon")) for each in (one, two)]
    assert chosen == [("price", (0, 100), 1), ("rooms", (0, 9), 2)]


@pytest.mark.parametrize(
    ("kind", "taken"), [("table", "out.csv"), ("table", "out.csv.report.html"), ("model", "model")]
)
def test_a_name_that_another_release_is_writing_to_is_refused_before_the_charge(client, kind, taken):
    """In another tab, or by the command line: both reserve their names in the folder."""
    unfinished = ready(client, kind=kind, report="yes")
    with reserve_name(client.site.folder.root / taken):
        words = client.release(unfinished).words
    assert "another release is being written to" in words
    assert "Nothing was charged" in words
    assert charges(client) == ()
    assert "Released" in client.release(unfinished).words


@pytest.mark.parametrize("kind", ["table", "model"])
def test_a_report_that_cannot_be_written_does_not_hide_what_was_released(client, kind, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("labeldp.app.reports.write_report", full)
    done = client.release(ready(client, kind=kind, report="yes")).words
    assert f"The private {kind}" in done
    assert ("“ε more for a score” = “" in done) == (kind == "model")
    assert "The report could not be written: No space left on device" in done
    assert "The report" not in done.replace("The report could not", "")


@pytest.mark.parametrize("when", ["before", "after"])
def test_work_can_be_stopped_before_the_charge_and_not_after(client, when):
    unfinished, carry_out = ready(client), ReleaseRequest.carry_out

    def stopping(self, ledger, progress, *others):
        def stop_at(what, done, total):
            if what == "Releasing" or when == "before":
                progress.__self__.stop()
            progress(what, done, total)

        return carry_out(self, ledger, stop_at, *others)

    with mock.patch.object(ReleaseRequest, "carry_out", stopping):
        words = client.release(unfinished).words
    assert ("Stopped. Nothing was charged" in words) == (when == "before")
    assert spent(client) == (when == "after")
    assert (client.site.folder.root / "out.csv").exists() == (when == "after")


def test_reading_for_a_model_has_a_measure_and_can_be_stopped_in_the_middle(client, monkeypatch):
    rows = pa.table({"rooms": range(100), "price": range(100)})
    pq.write_table(rows, client.site.folder.root / "homes.parquet")
    unfinished = client.read("homes.parquet", "price")
    client.describe(unfinished)
    client.budget(unfinished, kind="model")
    monkeypatch.setattr("labeldp.tables.tables.rows_per_batch", lambda schema: 10)
    work_class = type(unfinished.reading)
    progress, seen = work_class.progress, []

    def note(self, *how):
        seen.append(how)
        if how[1] == 30:
            self.stop()
        progress(self, *how)

    monkeypatch.setattr(work_class, "progress", note)
    assert "Stopped. Nothing was charged" in client.release(unfinished).words
    assert seen == [("Reading", 0, None), *(("Reading", done, 100) for done in (10, 20, 30))]
    assert unfinished.release.percent == 30
    assert charges(client) == ()


def end_before_rendering(monkeypatch, work, go_on):
    """Let work end after a page's handler has read its state, and before the page is rendered."""
    render = site.Jinja2Templates.TemplateResponse

    def late(*arguments, **named):
        go_on.set()
        work().wait()
        return render(*arguments, **named)

    monkeypatch.setattr(site, "SOON", 0)
    monkeypatch.setattr(site.Jinja2Templates, "TemplateResponse", late)


def test_reading_that_ends_while_the_page_is_rendered_is_shown_as_it_was(client, monkeypatch):
    """Half of each would load itself again just when its link is clicked."""
    read, go_on = unfinished.overview, threading.Event()
    monkeypatch.setattr(unfinished, "overview", lambda *a, **k: (go_on.wait(60), read(*a, **k))[1])
    begun = client.unfinished(client.post("/open", path="homes.csv"))
    end_before_rendering(monkeypatch, lambda: begun.reading, go_on)
    running = client.name(begun, "price")
    assert "data-progress" in running.html
    assert "Continue with" not in running.words
    done = client.get(f"{begun.path}/table")
    assert "data-progress" not in done.html
    assert "Continue with price" in done.words


def test_nobody_is_asked_to_release_in_spite_of_hints_that_are_not_shown(client, monkeypatch):
    begun, go_on = ready(client), threading.Event()

    def asking(self, ledger, progress, ask, reading):
        go_on.wait(60)
        ask(["a column that it leaves out"])

    monkeypatch.setattr(ReleaseRequest, "carry_out", asking)
    client.budget(begun, kind="model")
    end_before_rendering(monkeypatch, lambda: begun.release, go_on)
    assert "as it is for" not in client.press(begun).words
    asked = client.get(f"{begun.path}/release").words
    assert "a column that it leaves out" in asked
    assert "Release it as it is for ε = 1" in asked


def test_hints_are_for_this_page_only(tmp_path):
    rows = "\n".join(f"{n},{n * 2 + 1}.5" for n in np.random.default_rng(0).permutation(400))
    (tmp_path / "pay.csv").write_text(f"net,gross\n{rows}\n")
    client = Client(tmp_path).enter()
    unfinished = client.read("pay.csv", "gross")
    shown = client.get(f"{unfinished.path}/column")
    assert "The column 'net' nearly determines 'gross'" in shown.words
    assert "its tick" in shown.words
    assert shown.header("cache-control") == "no-store"
    unfinished.reading.result = (unfinished.seen, [])  # as if it had not been seen there: then it is asked about
    client.describe(unfinished, bounds=(0, 1000))
    client.budget(unfinished)
    assert "nearly determines" in client.release(unfinished).words
    assert charges(client) == ()
    assert "Released" in client.release(unfinished, as_it_is="yes").words
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"determines" not in written


@pytest.mark.parametrize("kind", ["table", "model"])
def test_the_command_line_that_is_shown_does_the_same(client, kind, monkeypatch):
    unfinished = client.read("homes.csv", "price", na="unknown, gone", decimal=".")
    client.describe(unfinished, shared=["rooms"], missing="yes", shuffle="yes", rows_per_person=2)
    client.budget(unfinished, kind=kind, epsilon=0.7, limit=3, report="yes", score=0.5)
    calls = []

    def noted(*arguments, **named):
        calls.append([[str(each) for each in arguments], named])
        raise KeyboardInterrupt

    for name in (
        "tables.file_release.privatize_file",
        "app.page.release_request.fit_file",
        "app.cli.fit.fit_file",
    ):
        monkeypatch.setattr(f"labeldp.{name}", noted)
    client.release(unfinished)
    monkeypatch.chdir(client.site.folder.root)
    words = shlex.split(unfinished.request.command().replace("\\\n", " "))
    with pytest.raises(SystemExit):
        app(words[1:])
    page, shell = ({**named, "ledger": named["ledger"].limit} for _, named in calls)
    assert all(one.endswith(other) for one, other in zip(calls[0][0], calls[1][0], strict=True))
    for name in ("label", "bounds", "epsilon", "ledger", "missing", "rows_per_person", "dialect"):
        assert page[name] == shell[name]
    assert list(page["drop"]) == list(shell["drop"]) == ["side"]
    assert page["ledger"] == ldp.Budget(3.0)
    own = {"model": "score", "table": "shuffle"}[kind]
    assert page[own] == shell[own] == {"model": 0.5, "table": True}[kind]


def test_progress_is_sent_to_scripts_without_a_label(client):
    unfinished = ready(client)
    client.release(unfinished)
    data = json.loads(client.get(f"/work/{unfinished.release.id}").body)
    assert data["state"] == "done"
    assert set(data) == {"state", "what", "done", "percent", "can_stop"}
    assert client.get("/work/unknown").status == client.post("/work/unknown/stop").status == 404
