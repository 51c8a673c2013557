"""The table and its label: what is read, shown and said of them before anything is spent."""

import re

import pytest

from labeldp.files import open_table
from page_client import HIDDEN


def test_before_the_label_is_named_no_row_is_shown(client):
    answer = client.post("/open", path="homes.csv")
    assert "rooms" in answer.words
    assert "north" not in answer.words


def test_what_was_read_is_shown_without_a_label(client):
    draft = client.read("homes.csv", "price")
    words = client.get(f"/draft/{draft.id}/table").words
    assert "302 rows" in words
    assert "1 rows without a label" in words
    assert "text, 1 missing" in words
    assert "north" in words
    assert "10.5" not in words
    assert HIDDEN not in words


WRONG = {
    "the other way round": ({"bounds": (100, 0)}, "must lie below"),
    "the same": ({"bounds": (5, 5)}, "must lie below"),
    "none": ({"bounds": ("", "")}, "is missing"),
    "two meanings": ({"bounds": ("0", "60.000")}, "can be 60 or 60 000 (60 thousand): write 60 or 60000"),
    "a space": ({"bounds": ("0", "10 0")}, "must be a finite number"),
    "words": ({"bounds": ("low", "high")}, "must be a finite number"),
    "not finite": ({"bounds": ("0", "inf")}, "finite"),
    "half a row": ({"rows_per_person": "1.5"}, "integer"),
    "endless rows": ({"rows_per_person": "1e999"}, "finite"),
    "no rows": ({"rows_per_person": "nan"}, "finite"),
    "rows without a label": ({"missing": ""}, "have no label"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_the_label_is_said_beside_its_field(client, what):
    fields, sentence = WRONG[what]
    draft = client.read("homes.csv", "price")
    answer = client.choose(draft, **{"missing": "yes", **fields})
    assert sentence in answer.words
    assert answer.path.endswith("/label")
    assert 'aria-invalid="true"' in answer.html


def test_columns_that_stay_still_do_after_the_table_was_read_the_wrong_way_in_between(client):
    draft = client.read("homes.csv", "price", drop=["side"])
    client.written(draft, separator=";")
    assert (draft.header.names, draft.seen) == (("rooms,side,price",), None)
    client.written(draft, separator=",")
    shown = client.get(f"/draft/{draft.id}/table").html
    ticks = dict(re.findall(r'aria-label="(\w+) leaves"( checked)?', shown))
    assert ticks == {"rooms": " checked", "side": "", "price": " checked"}


def test_columns_that_may_name_people_are_pointed_out_before_they_leave(client, monkeypatch):
    rows = [f"{n % 5},{n / 8},{n + 1000 if n else ''},name {n},{n % 9}" for n in range(40)]
    (client.site.folder.root / "people.csv").write_text("\n".join(["rooms,area,no,who,price", *rows]) + "\n")
    draft = client.read("people.csv", "price")
    assert "In no, who no two rows have the same value" in client.get(f"/draft/{draft.id}/label").words
    client.choose(draft, leaves=["rooms", "area", "no"])
    assert "In no no two rows" in client.get(f"/draft/{draft.id}/label").words
    monkeypatch.setattr("labeldp.page.steps.MOST", 30)
    assert "In no no two of the first 30 rows" in client.get(f"/draft/{draft.id}/label").words
    client.choose(draft, leaves=["rooms", "area"])
    assert "no two rows" not in client.get(f"/draft/{draft.id}/label").words


def test_reading_can_be_stopped_by_its_button(client, monkeypatch):
    def endless(*_, progress, **__):
        while True:
            progress("Reading", 0, None)

    monkeypatch.setattr("labeldp.page.drafts.overview", endless)
    draft = client.draft(client.post("/open", path="homes.csv"))
    running = client.name(draft, "price")
    assert "Stop; nothing was charged" in running.words
    assert client.site.drafts.is_busy
    client.post(f"/draft/{draft.id}/stop", what="reading")
    draft.reading.wait()
    assert "Stopped. Nothing was charged." in client.get(f"/draft/{draft.id}/table").words
    assert not client.site.drafts.is_busy


def test_excel_asks_for_its_sheet_and_a_csv_for_its_separator(client):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "notes"
    sheet = book.create_sheet("pay")
    for row in [["a title"], [], ["rooms", "price"], *([n, n % 5 + 0.5] for n in range(60))]:
        sheet.append(row)
    book.save(client.site.folder.root / "book.xlsx")
    answer = client.post("/open", path="book.xlsx")
    assert "The workbook has several" in answer.words
    draft = client.draft(answer)
    assert "price" in client.written(draft, sheet="pay").words
    client.name(draft, "price")
    draft.reading.wait()
    assert draft.seen.rows == 60
    client.choose(draft, bounds=(0, 5))
    client.order(draft, out="out.xlsx")
    assert "It is done" in client.release(draft).words
    assert open_table(client.site.folder.root / "out.xlsx").schema.names == ["rooms", "price"]


def test_columns_that_stay_are_remembered_through_forms_sent_while_the_table_was_read_wrongly(client):
    draft = client.read("homes.csv", "price", drop=["side"])
    client.written(draft, separator=";")
    client.name(draft, "rooms,side,price")
    client.written(draft, separator=",")
    assert draft.drop == ("side",)
    client.name(draft, "price")
    assert draft.drop == ()


def put_without_header(client):
    rows = ["oak,31415,20", *(f"tree {n},{10 + n % 50}.5,{n}" for n in range(60))]
    (client.site.folder.root / "bare.csv").write_text("\n".join(rows) + "\n")
    return client.draft(client.post("/open", path="bare.csv"))


def test_a_table_without_a_header_shows_no_column_until_its_columns_are_named(client):
    draft = put_without_header(client)
    page = client.get(f"/draft/{draft.id}/table")
    assert "The header seems to be missing" in page.words
    assert HIDDEN not in page.html
    assert 'name="names"' in page.html
    assert 'name="header"' in page.html
    assert "price" in client.written(draft, names="item,price,size").words
    client.name(draft, "price")
    draft.reading.wait()
    assert draft.seen.rows == 61
    assert HIDDEN not in client.get(f"/draft/{draft.id}/table").html
    client.choose(draft)
    budget = client.get(f"/draft/{draft.id}/budget")
    assert "bare.price.ledger.jsonl" in budget.html
    assert "--names item,price,size" in " ".join(budget.words.split())
    client.order(draft)
    assert "bare.csv" in client.release(draft).words
    files = [path.read_bytes() for path in client.site.folder.root.iterdir() if path.name != "bare.csv"]
    assert not any(HIDDEN.encode() in content for content in files if b"rooms" not in content)


def test_a_header_of_numbers_is_shown_once_it_is_confirmed_and_a_label_still_needs_a_name(client):
    draft = put_without_header(client)
    client.written(draft, header="yes")
    assert draft.header.names == ("oak", "31415", "20")
    answer = client.name(draft, "31415")
    assert "reads as a number" in answer.words
    assert draft.label is None
    assert draft.reading is None


def test_a_column_with_line_breaks_is_named_on_the_page(client):
    rows = [f'"a\nb",{n % 50}.5,{n}' for n in range(60)]
    (client.site.folder.root / "lines.csv").write_text("\n".join(["item,price,size", *rows]) + "\n")
    draft = client.read("lines.csv", "price")
    page = client.get(f"/draft/{draft.id}/table")
    assert "“Column with line breaks”" in page.words
    client.written(draft, multiline="item")
    draft.reading.wait()
    assert draft.seen.rows == 60


def test_a_first_row_that_may_be_no_header_shows_no_number_until_it_is_confirmed(client):
    for name, rows in {"half.csv": "York,oak,31415,20", "some.tsv": "York\toak\tab\t31,415 zł"}.items():
        (client.site.folder.root / name).write_text("\n".join([rows] * 60) + "\n")
        answer = client.post("/open", path=name)
        draft = client.draft(answer)
        assert "York" in answer.words
        assert "column 4" in answer.words
        answers = [answer, client.name(draft, draft.header.names[3]), client.written(draft, na="none")]
        assert not any(HIDDEN in each.html or "31,415" in each.html for each in answers)
        assert draft.label is None
    years = client.site.folder.root / "years.csv"
    years.write_text("item,price,2019\n" + "oak,4.5,3\n" * 60)
    draft = client.draft(client.post("/open", path="years.csv"))
    assert "2019" in client.written(draft, header="yes").words


def test_no_message_shows_where_the_folder_is(client):
    root = client.site.folder.root
    (root / "sub").mkdir()
    (root / "sub" / "text.csv").write_text("oak,4.5,3\n" * 60)
    opened = client.draft(client.post("/open", path="sub/text.csv"))
    dropped = client.draft(client.upload("text.csv", b"item,price,size\n" + b"oak,4.5,3\n" * 60))
    for draft, name in ((opened, "sub/text.csv has other than 2 values"), (dropped, "text.csv has other than 2")):
        page = client.written(draft, names="a,b")
        assert name in page.words
        assert str(root) not in page.html
        assert ".labeldp-page-" not in page.html
    other = client.read("homes.csv", "price")
    client.choose(other, missing="yes")
    (root / "out.csv").touch()
    page = client.order(other)
    assert "out.csv exists already" in page.words
    assert str(root) not in page.html
