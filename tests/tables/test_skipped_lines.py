"""Titles above the header and totals below the table are not read, and nothing is guessed about them."""

import pytest
from openpyxl import Workbook

import labeldp as ldp
from command_line import invoke
from labeldp.errors import DataError
from labeldp.tables import Dialect
from labeldp.tables.overview import count_titles
from tables.file_cases import refused, release

ROWS = [(f"town {row}", row / 4, 1 + row % 4) for row in range(30)]
HEADER = ("town", "area", "price")
TITLES = [("Homes, sold in 2024",), ("as of May",)]
TOTAL = ("Total", None, sum(row[2] for row in ROWS))


def put_text(path, rows, separator=";"):
    lines = [separator.join("" if cell is None else str(cell) for cell in row) for row in rows]
    path.write_text("\n".join(lines) + "\n\n", encoding="utf-8")


def put_sheet(path, rows):
    book = Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)


PUT = {"in.csv": put_text, "in.tsv": lambda path, rows: put_text(path, rows, "\t"), "in.xlsx": put_sheet}
POINT = Dialect(decimal=".")
WHOLE = Dialect(skip=2, skip_last=1, decimal=".")


@pytest.mark.parametrize("name", PUT)
def test_titles_and_totals_are_left_out_and_the_table_between_is_released(place, name):
    PUT[name](place / name, [*TITLES, HEADER, *ROWS, TOTAL])
    assert release(name, dialect=WHOLE).terms.rows == len(ROWS)
    written = (place / "out.csv").read_text()
    assert written.startswith("town")
    assert "Total" not in written
    assert "Homes" not in written


@pytest.mark.parametrize(
    "total",
    [
        TOTAL,
        ("Summe:", None, 7.5),
        ("", None, 7.5),
        ("gesamt 2024", 3, 7.5),
        ("Median", 3, 7.5),
        ("Ø", 3, 7.5),
        ("총계", 3, 7.5),
    ],
)
@pytest.mark.parametrize("name", PUT)
def test_a_last_row_that_looks_like_a_total_is_refused_unless_it_is_said_to_be_none(place, name, total):
    PUT[name](place / name, [HEADER, *ROWS, total])
    assert refused(name, error=DataError).option == "skip_last"
    assert release(name, dialect=Dialect(skip_last=0)).terms.rows == len(ROWS) + 1


@pytest.mark.parametrize("name", PUT)
def test_a_total_above_a_footnote_that_is_left_out_is_one_too(place, name):
    PUT[name](place / name, [HEADER, *ROWS, TOTAL, ("Source: the office",)])
    error = refused(name, dialect=Dialect(skip_last=1), error=DataError)
    assert error.option == "skip_last"
    assert "skip_last=2" in str(error)
    assert release(name, dialect=Dialect(skip_last=2)).terms.rows == len(ROWS)


@pytest.mark.parametrize("drop", [["town"], ["area"], ["town", "area"]], ids="+".join)
@pytest.mark.parametrize("name", PUT)
def test_a_total_is_one_whichever_columns_are_left_out(place, name, drop):
    for total in (("Total", 17, 7.5), (None, None, 7.5), ("NA", " ", 7.5)):
        PUT[name](place / name, [HEADER, *ROWS, total])
        assert refused(name, drop=drop, dialect=POINT).option == "skip_last"
    PUT[name](place / name, [HEADER, *ROWS])
    assert release(name, drop=drop, dialect=POINT).terms.rows == len(ROWS)


@pytest.mark.parametrize("level", ["average", "media", "high"])
def test_a_column_that_is_left_out_because_it_is_made_of_the_label_does_not_show_it(place, level):
    put_text(place / "in.csv", [("area", "level", "price"), *((area, "low", price) for _, area, price in ROWS)])
    with (place / "in.csv").open("a") as file:
        file.write(f"3;{level};2\n")
    assert release("in.csv", drop=["level"], dialect=POINT, missing="drop").terms.rows == len(ROWS) + 1


@pytest.mark.parametrize("name", PUT)
def test_one_blank_value_beside_a_label_is_a_blank_row(place, name):
    rows = [(town, price) for town, _, price in ROWS]
    PUT[name](place / name, [("town", "price"), *rows, (None, 7.5)])
    assert refused(name, dialect=POINT).option == "skip_last"
    PUT[name](place / name, [("town", "price"), rows[0], (None, 7.5), *rows])  # above others it is a missing value
    assert release(name, dialect=POINT).terms.rows == len(rows) + 2


@pytest.mark.parametrize("name", PUT)
def test_blank_rows_below_are_no_totals_and_hide_none(place, name):
    blank = [("", None, None), (" ", None, None)]
    PUT[name](place / name, [HEADER, *ROWS, *blank])
    assert release(name, missing="drop").terms.rows == len(ROWS)
    PUT[name](place / name, [HEADER, *ROWS, TOTAL, *blank])
    assert refused(name, "other.csv", missing="drop", error=DataError).option == "skip_last"


@pytest.mark.parametrize("columns", [{}, {"features": ["area"]}, {"drop": ["town"]}], ids=str)
def test_a_model_is_not_fitted_to_a_total_either(place, columns):
    for total in (TOTAL, ("Total", 17, 7.5)):
        put_text(place / "in.csv", [HEADER, *ROWS, total])
        with pytest.raises(DataError) as caught:
            ldp.fit_file(
                "in.csv", "model", label="price", bounds=(0, 5), epsilon=1, ledger=ldp.Ledger(), **columns
            )
        assert caught.value.option == "skip_last"


@pytest.mark.parametrize("titles", [TITLES, [("Homes", "in 2024"), ("as of May",)]])
@pytest.mark.parametrize("name", PUT)
def test_how_many_lines_stand_above_the_header_is_suggested(place, name, titles):
    PUT[name](place / name, [*titles, HEADER, *ROWS])
    error = refused(name, error=ldp.errors.ParameterError)
    assert error.option == "skip"
    assert "skip=2" in str(error)
    assert count_titles(name, Dialect()) == 2


def test_titles_of_a_sheet_are_the_same_whatever_the_labels(place):
    told = set()
    for label in (1, 31415, -2.5, "7"):
        for top in ([*TITLES, HEADER], [*TITLES]):
            put_sheet(place / "in.xlsx", [*top, *(("oak", "tall", label) for _ in ROWS)])
            told.add((len(top), count_titles("in.xlsx", Dialect())))
    assert told == {(3, 2), (2, 0)}


def test_titles_of_a_sheet_are_found_where_the_first_rows_end_in_a_missing_value(place):
    gaps = [("oak", 2.5), (), ("ash", 3.5, None), *ROWS]
    put_sheet(place / "in.xlsx", [*TITLES, HEADER, *gaps])
    assert count_titles("in.xlsx", Dialect()) == 2


def test_no_title_is_found_where_a_value_or_half_a_header_may_be_one(place):
    put_sheet(place / "in.xlsx", [("Homes", "in 2024"), *ROWS])  # no header
    (place / "in.csv").write_text('"town\nof birth",price\nYork,2.5\n')
    assert [count_titles(name, Dialect()) for name in ("in.xlsx", "in.csv")] == [0, 0]
    (place / "in.csv").write_text("oak,3.5\nash,2.5\n")  # no header, and a label that is named like a value
    assert refused("in.csv", label="2.5").option != "skip"


def test_formulas_in_a_total_that_is_left_out_are_no_formulas_of_a_column(place):
    put_sheet(place / "in.xlsx", [["=1+1"], HEADER, *ROWS, ("Total", None, "=SUM(C3:C32)")])
    assert refused("in.xlsx", dialect=Dialect(skip=1)).option == "skip_last"
    assert release("in.xlsx", dialect=Dialect(skip=1, skip_last=1)).terms.rows == len(ROWS)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("town;price\nUlm;{}\nBonn;2\nCelle;3\nEssen;4\n", ("1.55", "1.555")),
        ("Homes\nAnn;{};red\nBob;NA;blue\nCid;2;red\nDan;4;red\n", ("3", "1,5")),
    ],
    ids=["decimal mark", "no header"],
)
@pytest.mark.parametrize("command", ["privatize", "fit"])
def test_what_is_wrong_with_a_table_does_not_follow_from_labels(place, command, text, labels):
    told = []
    for label in labels:
        (place / "in.csv").write_text(text.format(label))
        asked = ("in.csv", "-o", "out.csv" if command == "privatize" else "model", "--label", "price")
        done = invoke(command, *asked, "--bounds", "0", "5", "--epsilon", "1")
        assert done.exit_code != 0
        told.append(done.stderr)
    assert told[0] == told[1]
