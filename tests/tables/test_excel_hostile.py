"""Workbooks that somebody else wrote.

What computes or hides a column is seen however it is written; none hangs, takes gigabytes or ends in a traceback.
"""

import json
import re
import sys
import zipfile
from pathlib import Path

import pytest
from openpyxl import Workbook
from openpyxl.worksheet.table import Table, TableFormula

import labeldp as ldp
from helpers import python
from tables.file_cases import refused, release

ROWS = 6
SHEET = "xl/worksheets/sheet1.xml"
STRINGS = "xl/sharedStrings.xml"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
UNUSUAL = "something that Excel does not write"
NAMES = ["id", "town", "price", "share"]


def put(change=lambda book, sheet: None):
    """Write a workbook whose columns are A to D; the label is C."""
    book = Workbook()
    sheet = book.active
    sheet.append(NAMES)
    for row in range(ROWS):
        sheet.append([row, f"Ö{row % 3}", 1 + row % 4 / 2, row / 8])
    change(book, sheet)
    book.save("in.xlsx")
    _share_strings()


def _share_strings():
    """Put text into a part of its own, as Excel does, and openpyxl does not."""
    strings = []

    def share(cell):
        strings.append(cell[1])
        return b't="s"><v>%d</v>' % (len(strings) - 1)

    with zipfile.ZipFile("in.xlsx") as old, zipfile.ZipFile("plain.xlsx", "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == SHEET:
                data = re.sub(rb't="inlineStr"><is>(.*?)</is>', share, data)
            if name == "xl/_rels/workbook.xml.rels":
                relation = f'<Relationship Id="s" Type="{RELATIONS}/sharedStrings" Target="sharedStrings.xml"/>'
                data = data.replace(b"</Relationships>", relation.encode() + b"</Relationships>")
            if name == "[Content_Types].xml":
                kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
                override = f'<Override PartName="/{STRINGS}" ContentType="{kind}"/>'
                data = data.replace(b"</Types>", override.encode() + b"</Types>")
            new.writestr(name, data)
        items = b"".join(b"<si>" + string + b"</si>" for string in strings)
        new.writestr(STRINGS, f'<sst xmlns="{MAIN}">'.encode() + items + b"</sst>")


def rewrite(changes, more=None, *, packed=zipfile.ZIP_DEFLATED):
    """Copy the workbook with some of its parts changed, and more parts."""
    with zipfile.ZipFile("plain.xlsx") as old, zipfile.ZipFile("in.xlsx", "w", packed) as new:
        for name in old.namelist():
            new.writestr(name, changes.get(name, lambda data: data)(old.read(name)))
        for name, data in (more or {}).items():
            new.writestr(name, data)


def swap(old, new, times=1):
    """Return a change of one piece of a part."""

    def change(data):
        assert old in data
        return data.replace(old, new, times)

    return change


def in_formula(data):
    return swap(b'<c r="D2"', b'<c r="D2"><f>C2/8</f></c><c r="E2"')(data)


def with_prefix(prefix):
    """Return a change of all of a sheet's elements to ones with a prefix."""

    def change(data):
        data = re.sub(rb"<(/?)(?=[a-zA-Z])", rb"<\1" + prefix + b":", in_formula(data))
        return data.replace(b"xmlns=", b"xmlns:" + prefix + b"=")

    return change


# ---- formulas -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        with_prefix(b"x"),
        with_prefix(b"x-y"),
        with_prefix("ö".encode()),
        lambda data: in_formula(data).decode().encode("utf-16"),
        lambda data: in_formula(data).replace(b"<f>", b"<f\n>"),
        swap(b'<c r="D2"', b'<c r="D2"><f t="shared" si="0"/></c><c r="E2"'),
        swap(b'<c r="A2" t="n">', b'<c r="A2" t="n"><f t="dataTable" ref="D2:D3" r1="C2"/>'),
        swap(b'<c r="A2" t="n">', b'<c r="A2" t="n" cm="1"><f t="array" ref="D2:D9"/>'),
    ],
)
def test_a_formula_in_a_public_column_is_found_however_it_is_written(place, change):
    put()
    rewrite({SHEET: change})
    error = refused("in.xlsx", error=ldp.errors.ParameterError, label="price")
    assert error.option == "drop"
    assert '"share"' in str(error)


@pytest.mark.parametrize("part", [SHEET, STRINGS, "xl/workbook.xml"])
def test_entities_that_multiply_or_lead_elsewhere_are_refused(place, part):
    many = b'<!ENTITY e0 "xxxxxxxxxx">' + b"".join(
        b'<!ENTITY e%d "%s">' % (k, b"&e%d;" % (k - 1) * 20) for k in range(1, 9)
    )
    for inside, entity in ((many, b"&e8;"), (b'<!ENTITY x SYSTEM "file:///etc/passwd">', b"&x;")):

        def change(data, inside=inside, entity=entity):
            start = re.search(rb"<\w", data).start()
            root = re.match(rb"<(\w+)[^>]*>", data[start:])
            data = data[:start] + b"<!DOCTYPE " + root[1] + b" [" + inside + b"]>" + data[start:]
            return data.replace(root[0], root[0] + entity)

        put()
        rewrite({part: change})
        assert UNUSUAL in str(refused("in.xlsx", error=ldp.errors.DataError))


def with_table(**options):
    """Return a change that makes the cells a table."""

    def change(book, sheet):
        table = Table(displayName="T", ref=f"A1:D{ROWS + 1}", **options)
        table._initialise_columns()
        for column, name in zip(table.tableColumns, NAMES, strict=True):
            column.name = name
        if not options:  # as load_workbook(data_only=True) and save leave it
            table.tableColumns[3].calculatedColumnFormula = TableFormula(attr_text="T[price]/8")
        sheet.add_table(table)

    return change


def test_a_table_with_a_totals_row_is_refused(place):
    put(with_table(totalsRowCount=1))
    assert "a totals row" in str(refused("plain.xlsx", error=ldp.errors.DataError))


def test_columns_that_a_table_computes_are_columns_with_formulas_though_cells_keep_values_alone(place):
    put(with_table())
    assert 'drop=["share"]' in str(refused("plain.xlsx", error=ldp.errors.ParameterError))
    release("plain.xlsx", drop=["share"])


@pytest.mark.parametrize("earlier", [b"", b'<f t="array" ref="B2:D7">A2:A7</f>'])
def test_a_formula_does_not_hide_an_earlier_range_of_a_column(place, earlier):
    def change(data):
        data = swap(b'<c r="B2" t="s">', b'<c r="B2" t="s">' + earlier)(data)
        data = swap(b'<c r="C2" t="n">', b'<c r="C2" t="n"><f t="array" ref="C2:D2">1</f>')(data)
        return re.sub(rb'<c r="D2".*?</c>', b"", data)  # only the rows below have values

    put(*[] if earlier else [with_table()])
    rewrite({SHEET: change})
    assert 'drop=["share"]' in str(refused("in.xlsx", label="id", drop=["town", "price"]))


def test_a_pivot_table_is_found_among_relations_that_openpyxl_does_not_read(place):
    put()
    relation = f'<Relationship Id="r1" Type="{RELATIONS}/pivotTable" Target="p.xml" Other="x"/>'
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    rewrite(
        {}, {"xl/worksheets/_rels/sheet1.xml.rels": f'<Relationships xmlns="{package}">{relation}</Relationships>'}
    )
    assert "a pivot table" in str(refused("in.xlsx", error=ldp.errors.DataError))


def test_a_formula_in_the_header_leaves_no_column_out(place):
    put()
    rewrite({SHEET: swap(b'<c r="D1" t="s">', b'<c r="D1" t="str"><f>C2</f>')})
    assert "a formula in it" in str(refused("in.xlsx", error=ldp.errors.DataError))


# ---- what Excel does not write --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        swap(b'<c r="D2"', b'<c r="D2"/><c r="D2"'),
        swap(b'<c r="D2"', b'<c r="B2"'),
        swap(b'<c r="D2"', b'<c r="D3"'),
        swap(b"</sheetData>", b'<row r="3"/></sheetData>'),
        swap(b"</sheetData>", b'<row r="2000000000"/></sheetData>'),
        swap(b"</sheetData>", b"</sheetData><x><row><c><v>1</v></c></row></x>"),
        swap(b"<sheetData>", b"<x><row><c><v>1</v></c></row></x><sheetData>"),
        swap(b"<row ", b'<x:row xmlns:x="urn:x"/><row '),
        swap(b'<c r="D2"', b'<f>C2/8</f><c r="D2"'),
        swap(b'<c r="D2"', b'<c r="D2"><y:f xmlns:y="urn:y">C2</y:f></c><c r="E2"'),
        swap(b"<sheetData>", b'<cols><col min="-9" max="2"/></cols><sheetData>'),
        swap(b'<c r="D2" t="n">', b'<c r="D2" t="other">'),
        swap(b'<c r="D2" t="n"><v>', b'<c r="D2" t="n"><v>1_'),
        swap(b'<c r="D2"', b'<c r="D2" t="str"><v>' + b"x" * 32_768 + b'</v></c><c r="E2"'),
    ],
)
def test_what_excel_does_not_write_among_cells_is_refused(place, change):
    put()
    rewrite({SHEET: change})
    assert UNUSUAL in str(refused("in.xlsx", error=ldp.errors.DataError, label="price"))


def test_two_parts_of_one_name_are_refused(place):
    put()
    rewrite({}, {SHEET.upper(): b"<x/>"})
    assert UNUSUAL in str(refused("in.xlsx", error=ldp.errors.DataError))


def test_cells_that_a_shared_formula_fills_may_keep_values_alone(place):
    put()
    rewrite({SHEET: swap(b'<c r="A2" t="n">', b'<c r="A2" t="n"><f t="shared" ref="D2:D7" si="0">C2</f>')})
    assert '"share"' in str(refused("in.xlsx", error=ldp.errors.ParameterError, label="price"))


@pytest.mark.parametrize("digits", [1, 400, 5000])
def test_no_error_depends_on_how_many_digits_a_label_has(place, digits):
    put()
    label = b"9" * digits
    rewrite({SHEET: lambda data: re.sub(rb'(<c r="C2" t="n"><v>)[^<]*', rb"\g<1>" + label, data)})
    release("in.xlsx")


# ---- hidden columns -------------------------------------------------------------------------------------------


def widths(text):
    return lambda data: data.replace(b"<sheetData>", text + b"<sheetData>")


@pytest.mark.parametrize(
    "columns",
    [
        b'<cols><col min="4" max="4" width="0" customWidth="1"/></cols>',
        b'<cols><col min="4" max="16384" width="0.0"/></cols>',
        b'<cols><col min="4" max="4" width="0.14" customWidth="1"/></cols>',
        b'<cols><col min="1" max="3" width="9"/><col min="4" max="4" hidden="true" outlineLevel="1"/></cols>',
    ],
)
def test_columns_without_width_are_hidden(place, columns):
    put()
    rewrite({SHEET: lambda data: widths(columns)(re.sub(b"<sheetFormatPr[^>]*>", b"", data))})
    assert 'drop=["share"]' in str(refused("in.xlsx"))
    release("in.xlsx", drop=["share"])


@pytest.mark.parametrize("code", [";;;", ";;", '"";"";""', '"***"', "[White];[White];;", "0;;0"])
def test_columns_whose_format_shows_nothing_of_a_number_are_hidden(place, code):
    put(lambda book, sheet: setattr(sheet["D3"], "number_format", code))
    assert 'drop=["share"]' in str(refused("plain.xlsx"))


@pytest.mark.parametrize("code", ["General", "0;-0;;@", '[Red]#,##0.0 "m";[Blue]-0', "yyyy-mm-dd", "[h]:mm", "@"])
def test_columns_whose_format_shows_numbers_are_read(place, code):
    put(lambda book, sheet: setattr(sheet["D3"], "number_format", code))
    release("plain.xlsx")


# ---- limits ---------------------------------------------------------------------------------------------------


IN_A_GIGABYTE = """
import json, os, resource, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on: forking with threads
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
import labeldp as ldp
import labeldp.tables.excel_reader, labeldp.tables.opening
for name in sys.argv[1:]:
    if not os.fork():
        try:
            table = ldp.tables.open_table(name, label="price")
            said = sum(batch.num_rows for batch in table.batches())
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        os.write(1, json.dumps(said).encode() + b"\\n")
        os._exit(0)
    os.wait()
"""
"""Opens each workbook in a process that may take 1 GiB, of which imports reserve 0.4, and prints what it says."""


def many(piece, mebibytes, start=b"", end=b""):
    return start + piece * ((mebibytes << 20) // len(piece)) + end


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="no limit of memory")
def test_small_files_with_huge_ranges_or_parts_are_read_or_refused_in_a_gigabyte(place):
    rows = b"".join(b'<row r="%d"><c r="A%d"><v>.1</v></c></row>' % (row, row) for row in range(10, 100_010))
    changes = [
        (SHEET, widths(b'<cols><col min="4" max="9999999999" hidden="1"/></cols>'), UNUSUAL),
        (
            SHEET,
            swap(b'<c r="D2"', b'<c r="D2"><f t="array" ref="A1:XFD1048576"/></c><c r="E2"'),
            "has formulas in the label",
        ),
        (SHEET, lambda data: re.sub(b'ref="A1:D7"', b'ref="A1:XFD1048576"', data), ROWS),
        (STRINGS, swap(b"</sst>", many(b"<si><t>a</t></si>", 100, end=b"</sst>")), "unpacks to more than 100"),
        (STRINGS, swap(b"</sst>", many(b"<si><t>ab</t></si>", 3, end=b"</sst>")), ROWS),
        (SHEET, swap(b"</sheetData>", rows + b"</sheetData>"), ROWS + 100_000),
    ]
    put()
    names = [f"{number}.xlsx" for number in range(len(changes))]
    for name, (part, change, _) in zip(names, changes, strict=True):
        rewrite({part: change})
        Path("in.xlsx").rename(name)
    done = python(IN_A_GIGABYTE, *names, check=True, capture_output=True, text=True)
    for line, (_, _, answer) in zip(done.stdout.splitlines(), changes, strict=True):
        said = json.loads(line)
        assert said == answer if isinstance(answer, int) else answer in said


def test_a_sheet_of_many_columns_and_many_rows_is_refused(set_constants):
    set_constants({"tables.excel.MOST_CELLS": 20})
    put()
    assert "more than 20 cells" in str(refused("plain.xlsx", error=ldp.errors.DataError))


def test_a_size_that_the_archive_understates_is_no_way_around_the_limit(place):
    put()
    rewrite({STRINGS: swap(b"</sst>", many(b"<si><t>a</t></si>", 2, end=b"</sst>"))})
    data = bytearray(Path("in.xlsx").read_bytes())
    entry = data.rindex(STRINGS.encode()) - 46
    data[entry + 24 : entry + 28] = (1000).to_bytes(4, "little")
    Path("in.xlsx").write_bytes(data)
    assert "is damaged" in str(refused("in.xlsx", error=ldp.errors.DataError))


# ---- parts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../../../../etc/passwd", "worksheets/none.xml", "file:///etc/passwd"]
)
def test_a_sheet_outside_the_archive_is_refused(place, target):
    put()
    where = b"/xl/worksheets/sheet1.xml"
    rewrite({"xl/_rels/workbook.xml.rels": swap(where, target.encode())})
    assert refused("in.xlsx", error=ldp.errors.DataError)


def test_a_sheet_of_another_kind_is_none(place):
    put(lambda book, sheet: book.create_chartsheet("chart"))
    assert ldp.tables.open_table("plain.xlsx").schema.names == NAMES
    rewrite({"xl/_rels/workbook.xml.rels": swap(b"relationships/worksheet", b"relationships/chartsheet")})
    assert "has no worksheet" in str(refused("in.xlsx", error=ldp.errors.DataError))
