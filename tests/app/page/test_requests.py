"""A request is what is shown and what is carried out: if anything in it changes, nothing is released."""

import re
import shlex
import threading
from unittest import mock

import pytest

import labeldp as ldp
from app.page.page_client import Client, charges
from labeldp.app.page import release_request, unfinished

NUMBER = "987654"


@pytest.fixture
def client(tmp_path):
    rows = "\n".join(f"{n % 60},{n % 7},{n * 13 % 97}.5" for n in range(200))
    (tmp_path / "pay.csv").write_text(f"age,net,income\n{rows}\n")
    return Client(tmp_path).enter()


@pytest.fixture
def table(client):
    return client.site.folder.root / "pay.csv"


def requested(client, label="age", **more):
    unfinished = client.read("pay.csv", label)
    client.describe(unfinished)
    client.budget(unfinished, **more)
    assert unfinished.request is not None
    return unfinished


def with_numbers(table):
    """Return the table with a column that was not there when it was chosen."""
    head, *rows = table.read_text().splitlines()
    return "\n".join([f"{head},ssn", *(f"{row},{NUMBER}" for row in rows)]) + "\n"


def another_file(client, unfinished):
    """Change the file, and choose all the same again."""
    table = client.site.folder.root / "pay.csv"
    table.write_text(table.read_text() + "7,7,7\n")
    assert "The file changed" in client.describe(unfinished).words
    client.name(unfinished, "age")
    unfinished.reading.wait()
    client.describe(unfinished)


CHANGES = {
    "the file": another_file,
    "the label": lambda client, unfinished: client.name(unfinished, "income"),
    "the columns": lambda client, unfinished: client.describe(unfinished, shared=["income"]),
    "the bounds": lambda client, unfinished: client.describe(unfinished, bounds=(0, 120)),
    "rows of a person": lambda client, unfinished: client.describe(unfinished, rows_per_person=5),
    "the order of rows": lambda client, unfinished: client.describe(unfinished, shuffle="yes"),
    "how it is written": lambda client, unfinished: client.written(unfinished, na="gone"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_request_is_void_once_anything_that_it_is_made_of_changes(client, what):
    unfinished = requested(client)
    shown = unfinished.request.id
    CHANGES[what](client, unfinished)
    unfinished.reading.wait()
    assert not client.press(unfinished, request=shown).path.endswith("/release")
    assert unfinished.release is None
    assert charges(client) == ()


def test_a_file_that_changed_stays_unreleased_however_often_the_button_is_pressed(client, table):
    unfinished = requested(client, "income")
    shown = unfinished.request.id
    table.write_text(with_numbers(table))
    for _ in range(3):
        assert client.press(unfinished, request=shown).path.endswith(("/table", "/budget"))
    assert unfinished.release is None
    assert charges(client) == ()
    table.unlink()
    assert "changed" in client.describe(unfinished).words


@pytest.mark.parametrize(("kind", "job"), [("table", "privatize_and_report"), ("model", "fit_file")])
def test_a_file_exchanged_after_the_button_is_not_released(client, table, monkeypatch, kind, job):
    unfinished, real = requested(client, "income", kind=kind), getattr(release_request, job)

    def exchange(*arguments, **named):
        other = table.with_name("other.csv")
        other.write_text(with_numbers(table))
        other.replace(table)
        return real(*arguments, **named)

    monkeypatch.setattr(release_request, job, exchange)
    assert "the file changed" in client.release(unfinished).words
    assert unfinished.release.state == "failed"
    assert charges(client) == ()
    assert not [name for name in ("out.csv", "model") if (table.parent / name).exists()]


def test_a_button_releases_the_request_that_it_was_shown_with_and_no_other(client):
    unfinished = requested(client)
    shown = unfinished.request.id
    client.budget(unfinished, epsilon=5)
    assert "The request was changed" in client.press(unfinished, request=shown).words
    assert charges(client) == ()
    assert "Released" in client.release(unfinished).words
    assert sum(charge.budget.epsilon for charge in charges(client)) == 5


def test_what_an_earlier_reading_finds_is_not_taken_for_the_current_one(client, monkeypatch):
    read, go_on = unfinished.overview, threading.Event()

    def slow(*arguments, label, **named):
        seen = read(*arguments, label=label, **named)
        if label == "age":
            go_on.wait(60)
        return seen

    monkeypatch.setattr(unfinished, "overview", slow)
    begun = client.unfinished(client.post("/open", path="pay.csv"))
    client.name(begun, "age")
    old = begun.reading
    client.name(begun, "income")
    begun.reading.wait()
    go_on.set()
    old.wait()
    assert list(begun.seen.columns) == ["age", "net"]


def test_a_form_that_was_shown_for_another_reading_is_refused(client):
    unfinished = client.read("pay.csv", "age")
    old = {"reading": unfinished.header.id}
    client.name(unfinished, "income")
    unfinished.reading.wait()
    for answer in (client.describe(unfinished, **old), client.step(unfinished, "table", label=0, **old)):
        assert "another reading" in answer.words
    assert (unfinished.label, unfinished.options) == ("income", None)


@pytest.mark.slow
def test_nothing_can_be_chosen_again_while_it_is_released(client):
    unfinished, begun, go_on = requested(client), threading.Event(), threading.Event()
    carry_out = release_request.ReleaseRequest.carry_out

    def slow(self, ledger, progress, *others):
        def after(*how):
            progress(*how)
            if ledger.own_charges:
                begun.set()
                go_on.wait(60)

        return carry_out(self, ledger, after, *others)

    with mock.patch.object(release_request.ReleaseRequest, "carry_out", slow):
        client.press(unfinished)
        assert begun.wait(60)
        running = unfinished.release
        assert client.name(unfinished, "income").path.endswith("/release")
        assert client.describe(unfinished, bounds=(0, 7)).path.endswith("/release")
        words = client.budget(unfinished, epsilon=3).words
        go_on.set()
        running.wait()
    assert "Working" in words
    assert "released before" not in words
    assert unfinished.release is running
    options = unfinished.request.options
    assert (options["label"], options["bounds"], options["epsilon"]) == ("age", (0, 100), 1)


def test_the_request_says_all_that_is_released(tmp_path):
    rows = [f"{n % 60},{n},{n * 2 + 1 if n > 9 else ''}" for n in range(400)]
    (tmp_path / "pay.csv").write_text("\n".join(["age,net,income", *rows]) + "\n")
    client = Client(tmp_path).enter()
    unfinished = client.read("pay.csv", "income")
    client.describe(unfinished, bounds=(0, 60000), shared=["net"], missing="yes", shuffle="yes")
    words = client.budget(unfinished, epsilon=9).words
    for part in (
        "income, from 0 to 60 000 (60 thousand)",
        "columns shared as they are net",
        "columns left out age",
        "390; 10 without a private value are left out, in random order",
        "The column 'net' nearly determines 'income'",
        *ldp.preview(rows=390, bounds=(0, 60000), epsilon=9).cautions(),
    ):
        assert part in words
    done = client.release(unfinished).words
    assert "Released" in done
    assert "determines" not in done


def test_columns_are_known_by_their_number_so_any_name_can_be_private_or_left_out(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [["age", "net\nincome", "gross\nincome"], *([n % 60, n % 7, n % 5] for n in range(60))]:
        book.active.append(row)
    book.save(tmp_path / "pay.xlsx")
    client = Client(tmp_path).enter()
    unfinished = client.read("pay.xlsx", "gross\nincome", drop=["net\nincome"])
    assert (unfinished.label, list(unfinished.seen.columns)) == ("gross\nincome", ["age"])
    sent = [
        re.findall(r'name="(label|shared)" value="(.*?)"', client.get(f"{unfinished.path}/{step}").html, re.S)
        for step in ("table", "column")
    ]
    assert sent[0] == [(field, str(place)) for place in range(3) for field in ("label", "shared")]
    assert sent[1] == [("shared", str(place)) for place in range(2)]


@pytest.mark.slow
def test_a_table_may_have_thousands_of_columns(tmp_path):
    names = [f"c{n}" for n in range(2100)]
    (tmp_path / "wide.csv").write_text("\n".join([",".join(names), *[",".join("1" * 2100)] * 3]) + "\n")
    client = Client(tmp_path).enter()
    assert client.describe(client.read("wide.csv", "c0")).path.endswith("/budget")


def test_a_copied_command_quotes_what_a_shell_or_the_command_would_take_apart(client):
    (client.site.folder.root / "-odd.csv").write_text('a,b,"a,b",--y\n' + "1,2,3,4\n" * 50)
    unfinished = client.read("-odd.csv", "--y", na="x y,gone")
    client.describe(unfinished, shared=["b"], bounds=("-1234567.5", "10"))
    client.budget(unfinished, epsilon="0,5", out="-out.csv")
    words = shlex.split(unfinished.request.command().replace("\\\n", " "))
    assert words[:3] == ["labeldp", "privatize", "./-odd.csv"]
    for part in (
        ["--out", "./-out.csv"],
        ["--label=--y"],
        ["--bounds", "-1234567.5", "10"],
        ["--epsilon", "0.5"],
        ["--drop", 'a,"a,b"'],
        ["--na", "x y", "--na", "gone"],
    ):
        start = words.index(part[0])
        assert words[start : start + len(part)] == part


def test_bounds_are_read_as_the_table_writes_numbers_and_repeated(tmp_path):
    rows = "\n".join(f"{n % 9 + 1}.{n % 900 + 100},5;{n}.000,5" for n in range(1, 99))
    (tmp_path / "lohn.csv").write_text(f"Umsatz;Lohn\n{rows}\n")
    client = Client(tmp_path).enter()
    unfinished = client.read("lohn.csv", "Lohn")
    answer = client.describe(unfinished, bounds=("0,125", "60.000"))
    assert unfinished.options["bounds"] == (0.125, 60000)
    column = client.get(f"{unfinished.path}/column")
    for page in (answer, column, client.budget(unfinished)):
        assert "60 000 (60 thousand)" in page.words
    assert 'value="0,125"' in column.html
