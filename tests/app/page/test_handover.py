"""What leaves the page: one archive of verified files, and predictions, neither of which has a true value."""

import io
import zipfile

import openpyxl
import pytest

import labeldp as ldp
from app.page.page_client import Client, ready

TRUE_DIGITS = ".0625"
"""The end of every true value; released values and predictions have fewer digits."""


@pytest.fixture
def owner(tmp_path):
    """A page over a folder with an Excel table that has titles above its header."""
    book = openpyxl.Workbook()
    rows = ([n % 6, "ab"[n % 2], 13 * n % 60 + 20 + float(TRUE_DIGITS)] for n in range(300))
    for row in [["Rents"], [], ["rooms", "town", "rent"], *rows]:
        book.active.append(row)
    book.save(tmp_path / "rents.xlsx")
    return Client(tmp_path).enter()


def released(client, kind, **fields):
    begun = client.read("rents.xlsx", "rent")
    client.describe(begun)
    client.budget(begun, kind=kind, **fields)
    return client.release(begun)


def archive(client, card):
    answer = client.get(f"/archive?card={card}")
    return dict(_files(answer.body)) if answer.status == 200 else answer.words


def _files(data):
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return [(name, file.read(name)) for name in file.namelist()]


def test_a_table_from_excel_is_handed_over_as_one_file_with_a_sheet_of_the_same_values(owner):
    page = released(owner, "table", purpose="statistics")
    assert "Means by rooms" in page.words
    files = archive(owner, "rents.private.csv.card.json")
    assert [name.removeprefix("rents.private") for name in files] == [
        ".csv.card.json",
        ".csv",
        ".xlsx",
        ".csv.report.html",
        ".csv.summary.html",
    ]
    sheet = openpyxl.load_workbook(io.BytesIO(files["rents.private.xlsx"])).active
    lines = files["rents.private.csv"].decode().split()
    assert [cell.value for cell in sheet[1]] == lines[0].split(",")
    values = [float(line.split(",")[2]) for line in lines[1:]]
    assert [row[2] for row in sheet.iter_rows(2, values_only=True)] == values
    texts = [data.decode() for name, data in files.items() if name.endswith((".csv", ".html"))]
    assert not any(TRUE_DIGITS in text for text in texts)


def test_text_that_begins_as_a_formula_stays_text_in_the_sheet(tmp_path):
    book = openpyxl.Workbook()
    for row in [["note", "rent"], *(["'=1+1", n % 90] for n in range(60))]:
        book.active.append(row)
    for cell in book.active["A"][1:]:
        cell.value, cell.data_type = "=1+1", "s"
    book.save(tmp_path / "rents.xlsx")
    client = Client(tmp_path).enter()
    released(client, "table", purpose="statistics")
    sheet = openpyxl.load_workbook(tmp_path / "rents.private.xlsx").active
    assert {cell.data_type for cell in sheet["A"]} == {"s"}


def test_what_was_changed_is_not_handed_over(client):
    done = ready(client)
    client.release(done)
    table = client.site.folder.root / "homes.private.csv"
    table.write_text(table.read_text().replace("north", "south", 1))
    assert "not handed over" in archive(client, "homes.private.csv.card.json")


def test_a_model_shows_what_it_uses_and_predicts_tables_of_the_folder_without_their_true_values(owner):
    page = released(owner, "model")
    assert "Importance of columns" in page.words
    ledger = ldp.Ledger.open(owner.site.folder.root / "book.db", create=False)
    answer = owner.post("/predict", card="rents.model/card.json", path="rents.xlsx")
    assert "300 rows" in answer.words
    predicted = (owner.site.folder.root / "rents.predictions.csv").read_text()
    assert predicted.startswith("rooms,town,prediction")
    assert TRUE_DIGITS not in predicted + answer.words
    assert len(ldp.Ledger.open(ledger.path, create=False).charges) == len(ledger.charges)
    assert "rents.model/model.npz" in archive(owner, "rents.model/card.json")


def test_a_total_below_a_table_is_not_predicted(owner):
    released(owner, "model")
    (owner.site.folder.root / "new.csv").write_text("rooms,town,rent\n1,a,5\n2,b,6\nTotal,,11\n")
    answer = owner.post("/predict", card="rents.model/card.json", path="new.csv")
    assert "2 rows" in answer.words
    assert "Total" not in (owner.site.folder.root / "new.predictions.csv").read_text()


def test_a_table_is_predicted_in_the_encoding_in_which_the_page_opens_it(owner):
    released(owner, "model")
    text = "Mieten 2026 \u2013 Köln\n\nrooms;town;rent\n1,5;a;5\n2,0;Düren;6\n"
    (owner.site.folder.root / "new.csv").write_bytes(text.encode("cp1252"))
    answer = owner.post("/predict", card="rents.model/card.json", path="new.csv")
    assert "2 rows" in answer.words
    assert "Düren" in (owner.site.folder.root / "new.predictions.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("header", ["age,income", "rooms,income"])
def test_a_table_without_the_columns_of_a_model_is_refused_beside_the_model(owner, header):
    released(owner, "model")
    (owner.site.folder.root / "other.csv").write_text(f"{header}\n30,5\n40,6\n")
    answer = owner.post("/predict", card="rents.model/card.json", path="other.csv")
    assert answer.path.startswith("/card")
    assert "needs the column" in answer.words
    assert not list(owner.site.folder.root.glob("*.predictions*"))
    assert "needs the column" not in owner.get("/card?name=rents.model/card.json").words  # said once


@pytest.mark.parametrize("path", ["../rents.xlsx", "rents.model/card.json", "/etc/passwd"])
def test_predictions_are_for_tables_of_the_folder_only(owner, path):
    released(owner, "model")
    owner.post("/predict", card="rents.model/card.json", path=path)
    assert not list(owner.site.folder.root.glob("*.predictions*"))
