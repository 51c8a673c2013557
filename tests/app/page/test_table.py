"""The table and its private column: what is read and shown of them before anything is spent."""

import re

import pytest

from app.page.page_client import HIDDEN


def test_before_the_label_is_named_no_row_is_shown(client):
    answer = client.post("/open", path="homes.csv")
    assert "rooms" in answer.words
    assert "north" not in answer.words


def test_what_was_read_is_shown_without_a_label(client):
    unfinished = client.read("homes.csv", "price")
    words = client.get(f"{unfinished.path}/table").words
    assert "302 rows" in words
    assert "1 rows without a private value" in words
    assert "text, 1 missing" in words
    assert "north" in words
    assert "10.5" not in words
    assert HIDDEN not in words


WRONG = {
    "the other way round": ({"bounds": (100, 0)}, "low"),
    "the same": ({"bounds": (5, 5)}, "low"),
    "none": ({"bounds": ("", "")}, "low"),
    "two meanings": ({"bounds": ("0", "60.000")}, "high"),
    "a space": ({"bounds": ("0", "10 0")}, "high"),
    "not finite": ({"bounds": ("0", "inf")}, "high"),
    "half a row": ({"rows_per_person": "1.5"}, "rows_per_person"),
    "endless rows": ({"rows_per_person": "1e999"}, "rows_per_person"),
    "rows without a label": ({"missing": ""}, "missing"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_the_private_column_is_shown_beside_its_field(client, what):
    fields, field = WRONG[what]
    unfinished = client.read("homes.csv", "price")
    answer = client.describe(unfinished, **{"missing": "yes", **fields})
    assert answer.path.endswith("/column")
    assert next(iter(unfinished.problems)) == field
    assert unfinished.options is None
    assert f'id="{field}-problem"' in answer.html
    assert 'aria-invalid="true"' in answer.html


def test_columns_that_are_left_out_still_are_after_the_table_was_read_the_wrong_way_in_between(client):
    unfinished = client.read("homes.csv", "price", drop=["side"])
    client.written(unfinished, separator=";")
    assert (unfinished.names, unfinished.seen) == (("rooms,side,price",), None)
    client.written(unfinished, separator=",")
    shown = client.get(f"{unfinished.path}/table").html
    ticks = dict(re.findall(r'aria-label="(\w+) is shared"( checked)?', shown))
    assert ticks == {"rooms": " checked", "side": "", "price": " checked"}


def test_columns_that_may_name_people_are_pointed_out_before_they_are_shared(client, monkeypatch):
    rows = [f"{n % 5},{n / 8},{n + 1000 if n else ''},name {n},{n % 9}" for n in range(40)]
    (client.site.folder.root / "people.csv").write_text("\n".join(["rooms,area,no,who,price", *rows]) + "\n")
    unfinished = client.read("people.csv", "price")
    assert "In no, who no two rows have the same value" in client.get(f"{unfinished.path}/column").words
    client.describe(unfinished, shared=["rooms", "area", "no"])
    assert "In no no two rows" in client.get(f"{unfinished.path}/column").words
    monkeypatch.setattr("labeldp.app.page.column_step.MOST", 30)
    assert "In no no two of the first 30 rows" in client.get(f"{unfinished.path}/column").words
    client.describe(unfinished, shared=["rooms", "area"])
    assert "no two rows" not in client.get(f"{unfinished.path}/column").words


def test_reading_can_be_stopped_by_its_button(client, monkeypatch):
    def endless(*_, progress, **__):
        while True:
            progress("Reading", 0, None)

    monkeypatch.setattr("labeldp.app.page.unfinished.overview", endless)
    unfinished = client.unfinished(client.post("/open", path="homes.csv"))
    running = client.name(unfinished, "price")
    assert "Stop; nothing was charged" in running.words
    assert client.site.is_busy
    client.post(f"/work/{unfinished.reading.id}/stop")
    unfinished.reading.wait()
    assert "Stopped. Nothing was charged." in client.get(f"{unfinished.path}/table").words
    assert not client.site.is_busy


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
    unfinished = client.unfinished(answer)
    form = next(part for part in answer.html.split("<form")[1:] if 'name="sheet"' in part)
    assert "required" not in form  # no private column need be chosen first
    assert "price" in client.written(unfinished, sheet="pay").words
    client.name(unfinished, "price")
    unfinished.reading.wait()
    assert unfinished.seen.rows == 60
    client.describe(unfinished, bounds=(0, 5))
    client.budget(unfinished, out="out.xlsx")
    assert "Released" in client.release(unfinished).words
    assert [cell.value for cell in openpyxl.load_workbook(client.site.folder.root / "out.xlsx").active[1]] == [
        "rooms",
        "price",
    ]


def test_columns_that_are_left_out_are_remembered_through_forms_sent_while_the_table_was_read_wrongly(client):
    unfinished = client.read("homes.csv", "price", drop=["side"])
    client.written(unfinished, separator=";")
    client.name(unfinished, "rooms,side,price")
    client.written(unfinished, separator=",")
    assert unfinished.drop == ("side",)
    client.name(unfinished, "price")
    assert unfinished.drop == ()


def put_without_header(client):
    rows = ["oak,31415,20", *(f"tree {n},{10 + n % 50}.5,{n}" for n in range(60))]
    (client.site.folder.root / "bare.csv").write_text("\n".join(rows) + "\n")
    return client.unfinished(client.post("/open", path="bare.csv"))


def test_a_table_without_a_header_shows_no_column_until_its_columns_are_named(client):
    unfinished = put_without_header(client)
    page = client.get(f"{unfinished.path}/table")
    assert "The header seems to be missing" in page.words
    assert HIDDEN not in page.html
    assert 'name="names"' in page.html
    assert 'name="header"' in page.html
    assert "price" in client.written(unfinished, names="item,price,size").words
    client.name(unfinished, "price")
    unfinished.reading.wait()
    assert unfinished.seen.rows == 61
    assert HIDDEN not in client.get(f"{unfinished.path}/table").html
    client.describe(unfinished)
    assert "bare.price.ledger.jsonl" in client.get(f"{unfinished.path}/budget").html
    assert "--names item,price,size" in client.budget(unfinished).words
    assert "bare.csv" in client.release(unfinished).words
    files = [path.read_bytes() for path in client.site.folder.root.iterdir() if path.name != "bare.csv"]
    assert not any(HIDDEN.encode() in content for content in files if b"rooms" not in content)


def test_a_header_of_numbers_is_shown_once_it_is_confirmed_and_a_label_still_needs_a_name(client):
    unfinished = put_without_header(client)
    client.written(unfinished, header="yes")
    assert unfinished.names == ("oak", "31415", "20")
    answer = client.name(unfinished, "31415")
    assert "reads as a number" in answer.words
    assert unfinished.label is None
    assert unfinished.reading is None


def test_a_column_with_line_breaks_is_named_on_the_page(client):
    rows = [f'"a\nb",{n % 50}.5,{n}' for n in range(60)]
    (client.site.folder.root / "lines.csv").write_text("\n".join(["item,price,size", *rows]) + "\n")
    unfinished = client.read("lines.csv", "price")
    page = client.get(f"{unfinished.path}/table")
    assert "“Column with line breaks”" in page.words
    client.written(unfinished, multiline="item")
    unfinished.reading.wait()
    assert unfinished.seen.rows == 60


def test_a_first_row_that_may_be_no_header_shows_no_number_until_it_is_confirmed(client):
    for name, rows in {"half.csv": "York,oak,31415,20", "some.tsv": "York\toak\tab\t31,415 zł"}.items():
        (client.site.folder.root / name).write_text("\n".join([rows] * 60) + "\n")
        answer = client.post("/open", path=name)
        unfinished = client.unfinished(answer)
        assert "York" in answer.words
        assert "column 4" in answer.words
        answers = [answer, client.name(unfinished, unfinished.names[3]), client.written(unfinished, na="none")]
        assert not any(HIDDEN in each.html or "31,415" in each.html for each in answers)
        assert unfinished.label is None
    years = client.site.folder.root / "years.csv"
    years.write_text("item,price,2019\n" + "oak,4.5,3\n" * 60)
    unfinished = client.unfinished(client.post("/open", path="years.csv"))
    assert "2019" in client.written(unfinished, header="yes").words


def test_no_message_shows_where_the_folder_is(client):
    root = client.site.folder.root
    (root / "sub").mkdir()
    (root / "sub" / "text.csv").write_text("oak,4.5,3\n" * 60)
    opened = client.unfinished(client.post("/open", path="sub/text.csv"))
    dropped = client.unfinished(client.upload("text.csv", b"item,price,size\n" + b"oak,4.5,3\n" * 60))
    for unfinished, name in (
        (opened, "sub/text.csv has other than 2 values"),
        (dropped, "text.csv has other than 2"),
    ):
        page = client.written(unfinished, names="a,b")
        assert name in page.words
        assert str(root) not in page.html
        assert ".labeldp-page-" not in page.html
    other = client.read("homes.csv", "price")
    client.describe(other, missing="yes")
    (root / "out.csv").touch()
    page = client.budget(other)
    assert "out.csv exists already" in page.words
    assert str(root) not in page.html
