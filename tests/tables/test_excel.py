"""Excel: the values of one sheet are read, and nothing else of the workbook; no workbook is written."""

import datetime
import re
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from openpyxl import Workbook
from openpyxl.comments import Comment
from openpyxl.worksheet.formula import ArrayFormula, DataTableFormula
from openpyxl.worksheet.table import Table, TableFormula

import labeldp as ldp
from labeldp.errors import DataError, LabelError, ParameterError
from labeldp.tables import Dialect, excel
from tables.file_cases import refused, release

ROWS = 40
DAY = datetime.datetime(2024, 2, 29)


def put(name="in.xlsx", *, change=lambda book, sheet: None, title=False):
    """Write a workbook, changed before it is saved; its columns are A to F, and the label is C."""
    book = Workbook()
    sheet = book.active
    if title:
        sheet.append(["Homes of 2024"])
        sheet.append([])
    sheet.append(["id", "town", "price", "day", "share", "yes"])
    for row in range(ROWS):
        sheet.append([row, f"Ö{row % 3}", 1 + row % 4 / 2, DAY + datetime.timedelta(row), row / 8, row % 2 == 0])
    change(book, sheet)
    book.save(name)


def values(name, **options):
    return pa.Table.from_batches(list(ldp.tables.open_table(name, **options).batches()))


KINDS = [pa.int64(), pa.string(), pa.float64(), pa.date32(), pa.float64(), pa.bool_()]


def test_values_come_from_a_sheet_with_their_types_and_are_written_as_parquet(place):
    put(title=True)
    titles = Dialect(skip=2)
    release("in.xlsx", "out.parquet", dialect=titles)
    before, after = values("in.xlsx", dialect=titles), values("out.parquet")
    assert before.schema.types == after.schema.types == KINDS
    assert after.drop_columns("price").equals(before.drop_columns("price"))
    assert not after["price"].equals(before["price"])


@pytest.mark.parametrize("out", ["out.xlsm", "out"])
def test_no_workbook_is_written(place, out):
    put()
    error = refused("in.xlsx", out, error=ParameterError, format=None if "." in out else "xlsx")
    assert ".csv" in str(error)


def secrets(book, sheet):
    sheet["A2"].comment = Comment("a secret note", "someone")
    sheet["H50"] = "a secret below"
    sheet.sheet_properties.tabColor = "FF0000"
    book.create_sheet("secret sheet")["A1"] = "a secret value"
    book.properties.creator = "a secret name"


def test_nothing_else_of_the_workbook_leaves(place):
    put(change=secrets)
    for sheet in (None, "x"):
        assert refused("in.xlsx", dialect=Dialect(sheet=sheet)).option == "sheet"
    release("in.xlsx", dialect=Dialect(sheet="Sheet"))
    assert b"secret" not in (place / "out.csv").read_bytes() + (place / "out.csv.card.json").read_bytes()


def formulas(book, sheet):
    sheet["E2"] = "=C2/8"


def array_formula(book, sheet):
    sheet["D3"] = ArrayFormula("D3:E5", "=C3:C5*2")


@pytest.mark.parametrize("change", [formulas, array_formula])
def test_public_columns_with_formulas_are_refused_unless_dropped(place, change):
    put(change=change)
    error = refused("in.xlsx", error=ParameterError)
    assert error.option == "drop"
    assert '"share"' in str(error)
    release("in.xlsx", drop=["share", "day"])
    assert values("out.csv").schema.names == ["id", "town", "price", "yes"]


def store(values):
    """Store values of formulas, by cell, as Excel does when it saves a workbook."""
    Path("in.xlsx").rename("unsaved.xlsx")
    with zipfile.ZipFile("unsaved.xlsx") as old, zipfile.ZipFile("in.xlsx", "w") as new:
        for name in old.namelist():
            data = old.read(name).decode()
            for cell, value in values.items() if name.endswith("sheet1.xml") else ():
                data, times = re.subn(rf'(<c r="{cell}".*?</f>)<v ?/?>(</v>)?', rf"\1<v>{value}</v>", data)
                assert times == 1
            new.writestr(name, data)


def test_a_label_formula_has_the_value_that_excel_stored(place):
    put(change=lambda book, sheet: sheet.__setitem__("C2", "=H2*$J$1+SUM(H2:I2)"))
    assert "open the file in Excel" in str(refused("in.xlsx", error=LabelError))
    store({"C2": 4.25})
    assert values("in.xlsx", label="price")["price"].to_pylist()[:2] == [4.25, 1.5]
    release("in.xlsx")


@pytest.mark.parametrize("number", ["1e999", "-1E+400", "9" * 400])
def test_a_label_that_is_a_number_beyond_floats_is_neither_refused_nor_left_out(place, number):
    put(change=lambda book, sheet: sheet.__setitem__("C2", "=H2"))
    store({"C2": number})
    assert release("in.xlsx", missing="drop").terms.rows == ROWS


TOTALS = ["=SUM(C2:C41)", "=SUBTOTAL(109,Table1[price])", "=C41+1", "=SUM(H:H)", "=SUM(other!C2:C41)"]
TOTALS += [
    "=SUM(prices)",
    '=INDIRECT("C41")',
    "=OFFSET(D42,-1,-1)",
    "=other!A1",
    "='a sheet'!A1",
    "=SUM(Preise_ö)",
]


@pytest.mark.parametrize("formula", TOTALS)
def test_a_label_formula_that_uses_other_rows_is_refused_because_it_repeats_labels(place, formula):
    put(change=lambda book, sheet: sheet.append([ROWS, "Ö1", formula, DAY, 1, True]))
    store({f"C{ROWS + 2}": 77})
    error = refused("in.xlsx", error=LabelError)
    assert error.option == "skip_last"
    assert release("in.xlsx", dialect=Dialect(skip_last=1)).terms.rows == ROWS


@pytest.mark.parametrize(
    ("formula", "helper"),
    [
        ("=H3*2", ("H3", "=C2+1")),
        ("=H3*2", ("H3", "=G3")),
        ("=H2*2", ("H2", "=SUM(C2:C41)")),
        ("=SUM(G3:H3)", ("G3", "=H2")),
        ("=T[[#This Row],[share]]", ("E3", "=C2")),
    ],
)
def test_a_label_formula_that_uses_other_rows_through_other_cells_is_refused(place, formula, helper):
    def change(book, sheet):
        sheet["C3"], sheet["G3"], sheet["H2"] = formula, "=H2", "=SUM(H3:H4)"
        sheet[helper[0]] = helper[1]

    put(change=change)
    store({"C3": 3.5})
    error = refused("in.xlsx", error=LabelError, drop=["share"])
    assert error.option == "skip_last"


@pytest.mark.parametrize(
    "formula", ['=IF(H2>1E3,"a",H2)*$J$1', "=ROUND(-H2%,2)", "=G2+SUM(G2:I2)", "=T[[#This Row],[id]]*2"]
)
def test_a_label_formula_may_use_its_row_and_constants(place, formula):
    put(change=lambda book, sheet: [sheet.__setitem__(*pair) for pair in (("C2", formula), ("G2", "=H2*2"))])
    store({"C2": 3.5})
    assert values("in.xlsx", label="price")["price"].to_pylist()[:2] == [3.5, 1.5]


def test_cells_with_errors_are_refused_unless_their_column_is_left_out(place):
    put(change=lambda book, sheet: sheet.__setitem__("E3", "#DIV/0!"))
    assert refused("in.xlsx", error=DataError).option == "drop"
    release("in.xlsx", drop=["share"])
    put("label.xlsx", change=lambda book, sheet: sheet.__setitem__("C3", "#N/A"))
    assert "#N/A" in str(refused("label.xlsx", "o.csv", error=LabelError, missing="drop"))


def as_table(book, sheet, **options):
    table = Table(displayName="T", ref=f"A1:F{ROWS + 1}", **options)
    table._initialise_columns()
    for column, cell in zip(table.tableColumns, sheet[1], strict=True):
        column.name = cell.value
    sheet.add_table(table)
    return table


def computed(book, sheet):
    as_table(book, sheet).tableColumns[4].calculatedColumnFormula = TableFormula(attr_text="T[price]/8")


def data_table(book, sheet):
    sheet["A2"] = DataTableFormula(ref="E2:E3", r1="C2")


@pytest.mark.parametrize("change", [computed, data_table])
def test_columns_that_are_computed_are_columns_with_formulas_though_cells_keep_values_alone(place, change):
    put(change=change)
    assert '"share"' in str(refused("in.xlsx", error=ParameterError, label="price"))
    release("in.xlsx", drop=["share", "id"])


def with_pivot(load):
    def changed(source, *, stored):
        book = load(source, stored=stored)
        book.worksheets[0]._pivots = ["a pivot table"]
        return book

    return changed


def test_a_table_with_a_totals_row_and_a_sheet_with_a_pivot_table_are_refused(place, monkeypatch):
    put(change=lambda book, sheet: as_table(book, sheet, totalsRowCount=1))
    assert "a totals row" in str(refused("in.xlsx", error=DataError))
    put()
    monkeypatch.setattr("labeldp.tables.excel._load", with_pivot(excel._load))
    assert "a pivot table" in str(refused("in.xlsx", error=DataError))


def test_a_formula_in_the_header_leaves_no_column_out(place):
    put(change=lambda book, sheet: sheet.__setitem__("F1", "=C2"))
    assert "a formula in it" in str(refused("in.xlsx", error=DataError))


HIDDEN = {
    "hidden": lambda book, sheet: setattr(sheet.column_dimensions["E"], "hidden", True),
    "in a folded group": lambda book, sheet: sheet.column_dimensions.group("D", "E", hidden=True),
}


@pytest.mark.parametrize("change", HIDDEN.values(), ids=HIDDEN)
def test_hidden_columns_are_refused(place, change):
    put(change=change)
    assert '"share"' in str(refused("in.xlsx", error=ParameterError))
    release("in.xlsx", drop=["share", "day"])


def test_a_workbook_that_is_damaged_or_takes_all_memory_is_refused_in_one_sentence(place, monkeypatch):
    Path("in.xlsx").write_bytes(b"PK no workbook")
    assert "is damaged" in str(refused("in.xlsx", error=DataError))
    put()

    def exhaust(*_, **__):
        raise MemoryError

    monkeypatch.setattr("openpyxl.load_workbook", exhaust)
    assert "as CSV" in str(refused("in.xlsx", error=DataError))


def test_without_a_header_no_message_shows_or_follows_from_the_labels_in_the_first_row(place):
    told = set()
    for label in (3141, 7, "7"):
        book = Workbook()
        book.active.append([0, 7, "Ulm", label])
        book.save("in.xlsx")
        told.add(str(refused("in.xlsx", error=DataError)))
    (message,) = told
    assert "looks as if the header is missing" in message


def test_labels_as_text_are_read_like_text_and_others_refused_by_their_row(place):
    def cells(book, sheet):
        sheet["C2"], sheet["C3"], sheet["C4"] = "2,5", "n/a", "unknown"

    put(change=cells)
    assert "is not a number in row 1." in str(refused("in.xlsx", error=LabelError))
    how = {"dialect": Dialect(decimal=",", na=["unknown"]), "missing": "drop"}
    assert release("in.xlsx", **how).terms.rows == ROWS - 2
    put(change=lambda book, sheet: sheet.__setitem__("C7", True))
    assert release("in.xlsx", "other.csv").terms.rows == ROWS  # true is 1


def test_without_openpyxl_the_extra_is_named(uninstall):
    put()
    uninstall("openpyxl")
    assert "labeldp[excel]" in str(refused("in.xlsx", error=ldp.errors.MissingExtraError))


@pytest.mark.parametrize("code", ["yyyy-mm-dd", "[h]:mm"])
def test_a_label_that_is_formatted_as_a_date_is_refused_whatever_its_value(place, code, capsys):
    """Whether a number can be a date follows from its value; whether its format is that of a date does not."""
    told = set()
    for value in (0, 7, 45_000, -1, 31415926, 1e300):

        def change(book, sheet, value=value):
            sheet["C4"], sheet["C4"].number_format = value, code

        put(change=change)
        told.add(str(refused("in.xlsx", error=LabelError, missing="drop")))
    (message,) = told
    assert "is formatted as a date" in message
    assert capsys.readouterr().err == ""


def test_the_row_of_the_header_is_found_on_the_sheet_that_is_named(place):
    put(title=True, change=lambda book, sheet: book.create_sheet("Notes"))
    with pytest.raises(ParameterError) as refusal:
        values("in.xlsx", label="price", dialect=Dialect(sheet="Sheet"))
    assert ldp.errors.Setting("skip", 2) in refusal.value.message.pieces
