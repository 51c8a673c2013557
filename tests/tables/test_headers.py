"""Files without a header: the values of their first row, a label among them, never become names."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeldp as ldp
from labeldp.errors import DataError, ParameterError
from labeldp.tables import Dialect
from labeldp.tables.opening import table_header
from labeldp.tables.overview import overview
from tables.file_cases import refused, release

ROWS = 40
LABEL = "3.14159"
MISSING = "looks as if the header is missing"


def rows(name="oak"):
    return [[name, LABEL, "20"], *([f"tree {n}", f"{n % 5}.5", str(n)] for n in range(ROWS))]


def put_text(path, content, separator=","):
    path.write_text("".join(separator.join(row) + "\n" for row in content))


def put_sheet(path, content):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in content:
        book.active.append([row[0], *map(float, row[1:])])
    book.save(path)


PUT = {
    "in.csv": put_text,
    "in.tsv": lambda path, content: put_text(path, content, "\t"),
    "in.xlsx": put_sheet,
}


@pytest.mark.parametrize("label", [LABEL, "price", " 3.14159 "])
@pytest.mark.parametrize("name", PUT)
def test_a_table_without_a_header_is_refused_before_anything_is_shown_or_charged(place, name, label):
    PUT[name](place / name, rows())
    told = str(refused(name, error=DataError, label=label))
    assert MISSING in told
    assert LABEL not in told
    for look in (lambda: ldp.tables.open_table(name), lambda: overview(name, label=label)):
        with pytest.raises(DataError, match=MISSING):
            look()
    header = table_header(name)
    assert (header.names, header.lacks_header) == ((), True)


@pytest.mark.parametrize("label", [LABEL, "3,14159", "\uff13.14159"])
@pytest.mark.parametrize("how", [Dialect(), Dialect(header=True)])
@pytest.mark.parametrize("name", PUT)
def test_a_label_whose_name_reads_as_a_number_is_refused_also_if_the_header_is_confirmed(place, name, how, label):
    PUT[name](place / name, [["oak", LABEL, "20"], *rows()[1:]])
    told = str(refused(name, label=label, dialect=how))
    assert MISSING in told if not how.header else "reads as a value" in told
    assert label not in told


def test_where_most_names_are_words_a_number_is_still_no_name_for_a_label(place):
    (place / "in.csv").write_text(f"oak,brown,{LABEL},tall\nash,grey,2.5,small\n")
    told = str(refused("in.csv", error=ParameterError, label=LABEL))
    assert "reads as a value" in told
    assert LABEL not in told


def test_files_that_store_names_are_no_exception(place):
    pq.write_table(pa.table({"oak": ["ash"] * ROWS, LABEL: np.ones(ROWS), "20": np.arange(ROWS)}), "in.parquet")
    told = str(refused("in.parquet", error=ParameterError, label=LABEL))
    assert "reads as a value" in told
    assert LABEL not in told
    assert refused("in.parquet", dialect=Dialect(skip=1)).option == "skip"


@pytest.mark.parametrize("name", ["in.csv", "in.xlsx"])
def test_years_are_names_once_that_is_confirmed(place, name):
    content = [["price", "2019", "2020", "2021"], *([f"{n % 5}.5", str(n), str(n), "1"] for n in range(ROWS))]
    if name == "in.csv":
        put_text(place / name, content)
    else:
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        book.active.append(["price", 2019, 2020, 2021])
        for row in content[1:]:
            book.active.append(list(map(float, row)))
        book.save(name)
    assert MISSING in str(refused(name, error=DataError))
    release(name, dialect=Dialect(header=True))
    header = table_header("out.csv", dialect=Dialect(header=True))
    assert header.names == ("price", "2019", "2020", "2021")
