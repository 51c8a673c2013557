"""The table and its private column: what is read and shown of them before anything is spent."""

import re

import numpy as np
import openpyxl

from app.page.page_client import HIDDEN, Client


def test_no_row_is_shown_before_the_label_is_named_and_no_label_after_it(client):
    answer = client.post("/open", path="homes.csv")
    assert "rooms" in answer.words
    assert "north" not in answer.words
    words = client.show(client.read("homes.csv", "price"), "table").words
    for part in ("302 rows", "1 row without a private value", "text, 1 missing", "north"):
        assert part in words
    assert "10.5" not in words
    assert HIDDEN not in words


def test_columns_that_may_name_people_are_pointed_out_before_they_are_shared(client):
    rows = [f"{n % 5},{n % 5 / 8},{n + 1000 if n else ''},name {n},{n % 9}" for n in range(40)]
    (client.site.folder.root / "people.csv").write_text("\n".join(["rooms,area,no,who,price", *rows]) + "\n")
    begun = client.read("people.csv", "price")
    again = client.unfinished(client.name(begun, "price", drop=["no", "who"]))
    again.reading.wait()
    for each, is_said in ((begun, True), (again, False)):
        client.describe(each)
        pages = [client.show(each, "table"), client.budget(each)]
        assert ["All values of 'no', 'who' differ" in page.words for page in pages] == [is_said] * 2


def test_bounds_of_another_unit_are_told_on_the_page_of_the_request_alone(tmp_path):
    (tmp_path / "pay.csv").write_text("rooms,pay\n" + "\n".join(f"{n % 7},{30_000 + n}" for n in range(400)))
    client = Client(tmp_path).enter()
    for bounds, is_said in (((0, 100), True), ((0, 60_000), False)):
        begun = client.read("pay.csv", "pay")
        client.describe(begun, bounds=bounds)
        assert ("lie outside the bounds" in client.budget(begun).words) == is_said
    done = client.release(begun).words
    assert "Released" in done
    assert "same unit" not in done


def test_a_decimal_mark_of_text_in_excel_can_be_chosen(tmp_path):
    book = openpyxl.Workbook()
    for row in [["rooms", "pay"], *([n % 7, f"{n},5"] for n in range(60))]:
        book.active.append(row)
    book.save(tmp_path / "pay.xlsx")
    client = Client(tmp_path).enter()
    dead_end = client.read("pay.xlsx", "pay")
    assert '<button name="decimal" value=",">' in client.show(dead_end, "table").body.decode()
    begun = client.read("pay.xlsx", "pay", decimal=",")
    assert begun.overview.rows == 60


def test_hints_are_on_the_pages_of_the_table_and_the_request_until_the_column_is_left_out(tmp_path):
    """Its tick counts with the button that continues: no page shows a choice that was not taken."""
    rows = "\n".join(f"{n},{n % 7},{n * 2 + 1}.5" for n in np.random.default_rng(0).permutation(400))
    (tmp_path / "pay.csv").write_text(f"net,rooms,gross\n{rows}\n")
    client, hint = Client(tmp_path).enter(), "The column 'net' nearly determines 'gross'"

    def assert_shown(begun, shown):
        pages = [client.show(begun, "table"), client.describe(begun, bounds=(0, 1000)), client.budget(begun)]
        assert [hint in page.words for page in pages] == [shown, False, shown]
        assert pages[0].header("cache-control") == "no-store"

    begun = client.read("pay.csv", "gross")
    assert_shown(begun, True)
    same = client.name(begun, "gross", **{"continue": "yes"})
    assert same.path == begun.at("column")
    answer = client.name(begun, "gross", drop=["net"], **{"continue": "yes"})
    changed = client.unfinished(answer)
    changed.reading.wait()
    pages = [answer, client.show(changed, "table")]  # it goes on once it is read, for nothing is left to say
    assert [page.path for page in pages if page.path.endswith("/column")] == [changed.at("column")]
    assert_shown(changed, False)
    done = client.release(changed).words
    assert "Released" in done
    assert "determines" not in done
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"determines" not in written


def test_titles_above_the_header_are_left_out_for_the_owner_to_agree_and_totals_below_are_asked_about(client):
    rows = "".join(f"{n % 7};{n}.5;{n % 90}\n".replace(".", ",") for n in range(99))
    text = f"Salaries, 2025\nNord, as of May\n\nrank;hours;pay\n{rows}total;;{HIDDEN}\n"
    (client.site.folder.root / "pay.csv").write_text(text)
    answer = client.post("/open", path="pay.csv")
    begun = client.unfinished(answer)
    assert "Is this the header? 3 lines above it were left out" in answer.words
    assert begun.header.names == ("rank", "hours", "pay")
    failed = client.unfinished(client.name(begun, "pay"))
    failed.reading.wait()
    asked = client.show(failed, "table")
    assert "cannot be read" not in asked.words  # it is a question
    assert 'aria-label="hours is shared" checked>' in asked.html
    assert 'aria-label="pay is shared">' in asked.html  # with a tick, another choice would share true values
    assert "puts every private value into a second row" in asked.words
    shown = shown_fields(asked.html, ">Leave out the last row<")
    read = client.unfinished(client.post(failed.at("table"), **shown))
    read.reading.wait()
    assert read.overview.rows == 99
    client.describe(read, bounds=("0", "60.000"))  # the decimal mark of the table is a comma
    assert read.options["bounds"] == (0, 60000)
    assert "English form: 60,000.5" in client.show(read, "budget").words
    left_out = "left out: 3 title lines above the header, 1 row at the end (a total)"
    assert all(left_out in page.words for page in (client.show(read, "table"), client.budget(read)))
    client.release(read)
    assert (read.request.options["dialect"].skip, read.request.options["dialect"].skip_last) == (3, 1)
    assert not any(HIDDEN.encode() in path.read_bytes() for path in client.site.folder.root.glob("pay.private*"))


def test_a_first_row_that_may_be_no_header_shows_no_number_until_it_is_confirmed(client):
    for name, rows in {"half.csv": "York,oak,31415,20", "some.tsv": "York\toak\tab\t31,415 €"}.items():
        (client.site.folder.root / name).write_text("\n".join([rows] * 60) + "\n")
        answer = client.post("/open", path=name)
        begun = client.unfinished(answer)
        assert "York" in answer.words
        assert "column 4" in answer.words
        label = begun.header.names[3]
        answers = [answer, client.name(begun, label), client.written(begun, na="none")]
        assert not any(HIDDEN in each.html or "31,415" in each.html for each in answers)
        assert begun.label is None
    (client.site.folder.root / "years.csv").write_text("item,price,2019\n" + "oak,4.5,3\n" * 60)
    assert "2019" in client.written(client.open("years.csv"), header="yes").words


def shown_fields(html, button):
    """Return what the form of a button sends with it."""
    start = html[: html.index(button)].rpartition("<form")[2]
    return dict(re.findall('name="([a-z_]+)" value="([^"]*)"', start))


def test_a_folder_without_a_table_offers_a_sample_to_try(tmp_path):
    client = Client(tmp_path).enter()
    assert "Try a sample table" in client.get("/").words
    begun = client.unfinished(client.post("/sample"))
    assert begun.header.names[-1] == "income"
    assert "Try a sample table" not in client.get("/").words
