"""Records that span lines: a lost quote never takes a label into a public value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import labeldp as ldp
from fuzzing import tries
from labeldp.errors import ParameterError
from labeldp.tables import Dialect, open_table
from tables.file_cases import refused, release

SPANS = "spans lines"
LOST = {
    "a name with a comma": ['"Shelf, oak,51234,20', 'Cable 21",64226,22'],
    "two names with commas": ['"Shelf, oak,51234,20', 'Table, ash",40000,30'],
    "a plain name": ['"Shelf,51234,20', 'Cable",64226,22'],
    "over several records": ['"Shelf,51234,20', "Table,40000,30", 'Cable",64226,22'],
    "in the last column": ['Shelf,51234,"20', 'Cable,64226,"22'],
    "a list of numbers in quotes behind it": ['"Shelf, oak,51234,"20, 30, 40"'],
    "in the last column, and never closed": ['Shelf,51234,"20', "Cable,64226,22"],
    "in the last column, and closed where another opens": ['Shelf,51234,"20', 'Cable,64226,"22"'],
    "in the last column, and closed at an end": ['Shelf,51234,"20', 'Cable,64226,22"'],
    "a label in quotes": ['"Shelf,"51,234",20', 'Cable","64,226",22'],
    "a label in quotes behind it": ['"Shelf, oak,51234,20', 'Cable 21","64,226",22'],
}


def put(place, lines, header="item,price,size"):
    (place / "in.csv").write_text("\n".join([header, *lines]) + "\n")


@pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
@pytest.mark.parametrize("kind", LOST)
def test_a_lost_quote_is_refused_by_its_record(place, kind, out):
    put(place, ["Bed,100,5", *LOST[kind], "Sofa,200,6"])
    told = str(refused("in.csv", out, error=ldp.errors.DataError, dialect=Dialect(thousands=",")))
    assert f"{SPANS}, or text after a closing quote, in row 2" in told
    assert "51" not in told


TEXTS = st.from_regex("[ab1][ab1,; ]{0,5}", fullmatch=True)
FIELDS = st.tuples(TEXTS, st.integers(10_000, 99_999), TEXTS)


def spoilt(rows, names, lost, thousands):
    """Return lines in which the closing quote of one value is lost, and one of the next record closes it."""
    for number, (item, label, size) in enumerate(rows):
        cells = {"item": item, "price": f"{label:,}" if thousands else str(label), "size": size}
        cells = {name: f'"{cell}"' if "," in cell else cell for name, cell in cells.items()}
        if number == 0:
            cells[lost] = '"' + cells[lost].strip('"')
        if number == 1:
            cells[lost] = cells[lost].strip('"') + '"'
        yield ",".join(cells[name] for name in names)


@pytest.mark.slow
@tries(150)
@given(
    rows=st.lists(FIELDS, min_size=2, max_size=4),
    names=st.permutations(["item", "price", "size"]),
    lost=st.sampled_from(["item", "size"]),
    thousands=st.booleans(),
)
def test_whichever_closing_quote_is_lost_no_label_is_in_a_public_value(place, rows, names, lost, thousands):
    put(place, spoilt(rows, names, lost, thousands), ",".join(names))
    dialect = Dialect(thousands="," if thousands else None)
    try:
        batches = list(open_table("in.csv", label="price", dialect=dialect).batches(["item", "size"]))
    except ldp.LabelDPError:
        return
    public = [value for batch in batches for column in batch.columns for value in map(str, column.to_pylist())]
    assert not any(str(label)[-3:] in value for value in public for _, label, _ in rows)


@pytest.mark.parametrize("label", ["2", '"2,000"', '"1,000,000,000,000"'])
def test_line_breaks_are_read_only_in_a_column_that_is_left_out(place, label):
    put(place, ['1,"two', f'lines, with a comma",{label},n', "2,x,3.5,n"], "id,note,price,tag")
    assert refused("in.csv", dialect=Dialect(thousands=",")).option == "drop"
    assert release("in.csv", drop=["note"], dialect=Dialect(thousands=",")).terms.rows == 2
    assert "lines" not in (place / "out.csv").read_text()


def test_the_label_never_has_line_breaks(place):
    put(place, ['a,"2.5', '",1'])
    assert SPANS in str(refused("in.csv"))


def test_tables_without_anything_private_may_have_any_line_breaks(place):
    put(place, ['"a', 'b",2.5,1'])
    assert next(open_table("in.csv").batches(["item"])).column(0).to_pylist() == ["a\nb"]


# ---- options that cannot be ---------------------------------------------------------------------------------

BAD_ENCODINGS = ["utf-7", "idna", "punycode", "hz", "iso2022_jp", "unicode_escape", "undefined", "cp037", "rot13"]
ODD = {
    "separator": ["é", "\u2028", "ab", ";;", "a", "1", '"', "\n", "\0", "\x80", ":", " ", "\x01"],
    "decimal": ["'"],
    "thousands": ["x"],
    "encoding": [*BAD_ENCODINGS, "\0", "\udcff"],
    "na": [["\udcff"], ["a\nb"]],
    "skip": [-1, 1.5],
    "skip_last": [-1],
}


@pytest.mark.parametrize(("option", "value"), [(option, value) for option in ODD for value in ODD[option]])
def test_odd_options_are_refused_by_name(option, value):
    with pytest.raises(ParameterError) as caught:
        Dialect(**{option: value})
    assert caught.value.option == option
    with pytest.raises(ParameterError, match="must differ"):
        Dialect(decimal=",", thousands=",")
