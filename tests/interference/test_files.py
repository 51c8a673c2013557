"""Files: whatever the format, nothing but released labels differs; not layout, types, order, sizes or messages."""

import dataclasses
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labeldp as ldp
from fuzzing import LONG, tries
from interference import changes, tables
from interference.harness import Way, assert_nothing_leaks, assert_same, compared, overspending
from interference.tables import FORMATS, LABEL, Input
from labeldp.app import file_labels
from labeldp.tables import Dialect

ROWS = 150
CHANGES = changes.changes(ROWS, every=50)
CUTS = (20, 70, 71), (19, 70, 70, 90, 140)
"""Where the row groups, batches or files of the two inputs begin: who wrote them may have counted bytes."""


def privatized(source, out, *, everything=False, **options):
    """Call `privatize_file`, print its progress, and return all that comes back; hints only if all is wanted."""
    done = ldp.privatize_file(
        source,
        out,
        bounds=changes.BOUNDS,
        **{
            "label": LABEL,
            "epsilon": 1.0,
            "mechanism": "two-point",
            "ledger": ldp.Ledger.prepare("ledger.db"),
            "progress": lambda *what: print("progress", *what, file=sys.stderr),
            **options,
        },
    )
    fields = [each.name for each in dataclasses.fields(done) if everything or each.name != "hints"]
    return {name: getattr(done, name) for name in fields}, repr(done), done.summary()


def way(form, to, **options):
    def act(_):
        return privatized(f"table.{form}", to, **options)

    return Way(act, lambda folder, given: tables.write(folder, given, form))


def inputs(change="all rows", **options):
    """Return two tables that differ in labels, and in where they are cut."""
    return [Input(labels, cuts, **options) for labels, cuts in zip(CHANGES[change], CUTS, strict=True)]


WRITTEN = [form for form in FORMATS if form != "csv.gz"]
FEW = [name for name in CHANGES if LONG or name.startswith(("all", "sorted", "constant", "last"))]
OPTIONS = {
    "with a model": ("csv", "parquet", {"mechanism": "auto", "save_model": "model"}),
    "with a model, shuffled": ("parquet", "csv", {"mechanism": "auto", "shuffle": True}),
    "the mean": ("csv", "csv", {"mechanism": "auto", "drop": [*tables.public(1)]}),
    "without a model": ("csv", "parquet", {"mechanism": "auto", "model": False}),
    "local": ("parquet", "csv", {"mechanism": "rp", "trust": "local", "epsilon_prior": 0.3}),
    "as released": ("csv", "parquet", {"purpose": "values", "mechanism": "rr-on-bins"}),
    "shuffled": ("parquet", "csv", {"shuffle": True}),
    "people": ("csv", "parquet", {"person": "kind", "most_rows_per_person": 20, "drop": ["kind"]}),
    "people, with a model": (
        "parquet",
        "csv",
        {"mechanism": "auto", "person": "kind", "most_rows_per_person": 20},
    ),
    "replaced": ("csv", "parquet", {"force": True}),
    "a decimal comma": ("german.csv", "csv", {"dialect": Dialect(encoding="cp1252")}),
    "a decimal comma, tsv": ("german.csv", "tsv", {"dialect": Dialect(encoding="cp1252")}),
    "a decimal comma, utf-16": ("excel.csv", "parquet", {"dialect": Dialect()}),
}
CASES = [
    *((form, to, "all rows", {}) for form in FORMATS for to in WRITTEN),
    *((form, to, "all rows", {}) for form, to in (("xlsx", "parquet"), ("xlsx", "csv"))),
    *(("csv", "parquet", change, {}) for change in CHANGES),
    *(("parquet", "csv", change, {}) for change in FEW),
    *((form, to, "all rows", {"columns": {}}) for form, to in (("csv", "csv"), ("parquet", "csv"))),
    *(("parquet", "parquet", "all rows", {"kind": kind}) for kind in tables.KINDS),
]


@pytest.mark.parametrize(("form", "to", "change", "table"), CASES)
def test_each_format_change_of_labels_and_type(form, to, change, table, tmp_path):
    """Also of tables that have no columns but labels."""
    first = assert_nothing_leaks(way(form, f"out.{to}"), *inputs(change, **table), tmp_path)
    assert set(first.files) == {f"out.{to}", f"out.{to}.card.json", "ledger.db"}


@pytest.mark.parametrize("name", OPTIONS)
def test_each_option(name, tmp_path):
    form, to, options = OPTIONS[name]
    first = assert_nothing_leaks(way(form, f"out.{to}", **options), *inputs(), tmp_path)
    assert form != "german.csv" or "," in first.files[f"out.{to}"][1].decode("utf-8-sig")


def write_two_labels(folder, given):
    """Write a table whose second label has the labels of the first in another order."""
    tables.write(folder, given, "csv")
    frame = pd.read_csv(folder / "table.csv", dtype=str, keep_default_na=False)
    frame["second"] = frame[LABEL].to_numpy()[::-1]
    frame.to_csv(folder / "table.csv", index=False)


@pytest.mark.parametrize(
    "options", [{"mechanism": "auto"}, {"mechanism": "auto", "model": False}, {"shuffle": True}]
)
def test_several_labels_of_a_row(options, tmp_path):
    def act(_):
        return privatized("table.csv", "out.csv", label=["second", LABEL], shares=[2, 1], **options)

    assert_nothing_leaks(Way(act, write_two_labels), *inputs(), tmp_path)


def leak_a_high_label(private, labels):
    """Round labels from a model by whether a true one is high."""
    first, private._done = private._done, private._done + labels.size
    return np.round(private.release.labels[first : private._done], 3 if labels.max() > 6.95 else 4)


def leak_the_number_of_high_labels(private, labels):
    raise ldp.errors.DataError(f"{int((labels > 6.95).sum())} labels are high")


LEAKS = [(leak_a_high_label, "files"), (leak_the_number_of_high_labels, "error")]


@pytest.mark.parametrize(("leak", "where"), LEAKS)
def test_a_step_after_the_model_that_looks_at_labels_is_found(leak, where, tmp_path, monkeypatch):
    monkeypatch.setattr(file_labels.FittedLabels, "next_rows", leak)
    out = way("csv", "out.csv", mechanism="auto")
    assert where in compared(out, *inputs("all rows"), tmp_path)[1]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_line_breaks_in_a_public_column(form, tmp_path):
    columns = tables.public(ROWS)
    columns["word"] = [f"{word}\nand more" for word in columns["word"]]
    drop = ["word"] if form == "csv" else []
    first = assert_nothing_leaks(way(form, "out.csv", drop=drop), *inputs(columns=columns), tmp_path)
    assert (b"plain\nand more" in first.files["out.csv"][1]) == (form == "parquet")


def test_titles_and_a_total_of_the_labels(tmp_path):
    """The total that is left out follows from labels, and so does its length."""

    def prepare(folder, given):
        tables.write(folder, given, "csv")
        total = sum(map(float, given.labels))
        whole = f"A title\nanother, with a comma\n{(folder / 'table.csv').read_text()}Total,,{total!r}\n\n"
        (folder / "table.csv").write_text(whole)

    def out(**how):
        return Way(lambda _: privatized("table.csv", "out.csv", dialect=Dialect(**how)), prepare)

    assert_nothing_leaks(out(skip=2, skip_last=1), *inputs(), tmp_path)
    for how in ({"skip": 2}, {}):  # refused in the same words
        assert assert_same(out(**how), *inputs(), tmp_path).error is not None


@pytest.mark.parametrize("town", ["York", ""])
def test_a_column_that_is_left_out_may_be_blank_by_its_label_in_the_last_row(town, tmp_path):
    """It does not decide whether that row is taken for a total; the public columns do."""
    pair = [
        Input(given.labels, columns={"town": ["Bath"] * (ROWS - 1) + [town], "tax": ["1"] * (ROWS - 1) + [tax]})
        for given, tax in zip(inputs(), ["", "2"], strict=True)
    ]
    first = assert_same(way("csv", "out.csv", drop=["tax"]), *pair, tmp_path)
    assert (first.error is None) == bool(town)


ODD = ['"2.5"', '"-0.0"', '"1e300"', "-1e309", f"2.5{'0' * 1000}", f"0.{'0' * 300}1", f"2.{'3' * 4000}"]


def test_labels_in_quotes_and_long_ones(tmp_path):
    one = changes.plain(ROWS)
    other = changes.changed(one, range(len(ODD)), ODD)
    assert_nothing_leaks(way("csv", "out.csv"), Input(one), Input(other), tmp_path)


@pytest.mark.parametrize(
    ("form", "to", "shuffle"),
    [("csv", "csv", False), ("tsv", "parquet", True), ("parquet", "parquet", True), ("parquet", "csv", False)],
)
def test_rows_without_labels_are_left_out(form, to, shuffle, tmp_path):
    """Which rows have none is public, and the same in both inputs."""
    gone = {0, 19, 20, 70, ROWS - 1}
    pair = [
        Input(["" if row in gone else text for row, text in enumerate(given.labels)], given.cuts)
        for given in inputs()
    ]
    assert_nothing_leaks(way(form, f"out.{to}", missing="drop", shuffle=shuffle), *pair, tmp_path)


def test_hints_are_not_returned(tmp_path):
    """They follow from true labels: without a terminal, and a person at it, there are none."""
    assert_nothing_leaks(way("csv", "out.csv", everything=True), *inputs("sorted"), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["with a model", "without a model", "local", "replaced"])
def test_channels_and_noise_spend_no_more_than_is_charged(name, tmp_path):
    out = way("csv", "out.csv", **OPTIONS[name][2])
    by_labels = Way(out.act, lambda folder, labels: out.prepare(folder, Input(labels)))
    assert not overspending(by_labels, *CHANGES["all rows"], tmp_path)


# ---- what goes wrong -------------------------------------------------------------------------------------------

BAD = {
    "text": ("x", "a longer secret"),
    "missing": ("", ""),
    "infinite": ("inf", "inf"),
    "decimal comma": ('"1,5"', '"-1234,5"'),
    "two values": ("1,2", "1.25,2.5"),
    "a quote that never ends": ('"1', '"12.34567'),
    "no text": ("\udc80", "\udc80\udc81"),
}


@pytest.mark.parametrize("missing", ["error", "drop"])
@pytest.mark.parametrize("bad", BAD)
def test_what_is_said_of_labels_that_are_no_numbers(bad, missing, tmp_path):
    form = {"two values": "csv.gz", "missing": "parquet"}.get(bad, "csv")
    pair = [
        Input(changes.changed(given.labels, [33, ROWS - 1], [text]), given.cuts)
        for given, text in zip(inputs(), BAD[bad], strict=True)
    ]
    first = assert_same(way(form, "out.csv", missing=missing), *pair, tmp_path)
    assert (first.error is None) == (missing == "drop" and bad in ("missing", "infinite"))


GROUPED = "1 000", "+5 €", "$ 1e3", "-.5"
"""Spellings for which numbers are not read as they stand."""


@pytest.mark.parametrize("word", ["nan(1)", "-nan(x)", "NAN", "+Infinity", "0x1p3", "1_0"])
def test_marks_in_one_label_decide_nothing_about_the_others(word, tmp_path):
    """There is one grammar: what is no number beside a plain label is none beside a label with marks."""
    one = changes.changed(changes.plain(ROWS), [33], [word])
    for spelling in GROUPED:
        other = changes.changed(one, [ROWS - 1], [spelling])
        first = assert_same(way("csv", "out.csv", missing="drop"), Input(one), Input(other), tmp_path)
        assert (first.error is None) == (word in ("NAN", "+Infinity"))


def calls(work):
    """Return the calls of Python functions of the library and of Arrow that some work makes, in their order."""
    names = []

    def note(frame, event, _):
        if event == "call" and ("labeldp" in frame.f_code.co_filename or "pyarrow" in frame.f_code.co_filename):
            names.append(frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return names


def cast_if_plain(labels):
    """Take a quick way that most labels can go, as labels were once read."""
    try:
        return pa.array(labels).cast(pa.float64())
    except pa.ArrowInvalid:
        return pc.replace_substring_regex(pa.array(labels), "[^0-9.e+-]", "").cast(pa.float64())


def test_labels_with_marks_are_read_by_the_same_calls(tmp_path):
    """Work that follows from how a label is written would show in the time it takes."""
    one = changes.plain(ROWS)
    others = [changes.changed(one, [77], [spelling]) for spelling in (*GROUPED, "NA", "inf", "1e999")]

    def read(labels):
        tables.write(tmp_path, Input(labels), "csv")
        table = ldp.tables.open_table(tmp_path / "table.csv", label=LABEL)
        return calls(lambda: list(table.batches()))

    read(one)  # what is imported or cached once
    assert all(read(labels) == read(one) for labels in others)
    assert len({len(calls(lambda labels=labels: cast_if_plain(labels))) for labels in (one, others[0])}) == 2


# ---- whatever the table ----------------------------------------------------------------------------------------

CELLS = ["", "0", "007", "1.50", "-3", "x", "a,b", 'q"', "2020-01-01", "true", "1e5", "NaN", " ", "1.234"]
cells = st.sampled_from([*CELLS, "€2", "ü;", "?"])


@st.composite
def pairs_of_tables(draw):
    one, other = draw(changes.pairs(most=25))
    rows = len(one)
    names = draw(st.lists(st.sampled_from(["a", "b c", "ü"]), max_size=3, unique=True))
    columns = {name: draw(st.lists(cells, min_size=rows, max_size=rows)) for name in names}
    cut = st.sets(st.integers(1, rows - 1), max_size=3).map(sorted).map(tuple) if rows > 1 else st.just(())
    place = draw(st.integers(0, len(names)))
    return [Input(labels, draw(cut), columns=columns, place=place) for labels in (one, other)]


@given(pair=pairs_of_tables(), form=st.sampled_from(FORMATS), to=st.sampled_from(WRITTEN), shuffle=st.booleans())
@tries(10)
def test_whatever_the_table(pair, form, to, shuffle, tmp_path_factory):
    out = way(form, f"out.{to}", shuffle=shuffle, dialect=Dialect(skip_last=0))
    assert_nothing_leaks(out, *pair, tmp_path_factory.mktemp("any"))
