"""Headers, names and quotes: what is refused, said and written follows from public columns, however labels look.

Labels have separators in their text here, as numbers with commas between thousands do.
"""

import pytest

import labeldp as ldp
from interference.harness import Way, assert_nothing_leaks, assert_same
from interference.test_commands import assert_codes, typed
from interference.test_page import Visitor

ROWS = 60
PLAIN = [f"{100 + 37 * row % 900}" for row in range(ROWS)]
MARKED = [f'"{(1000 + 7919 * row % 977) * 1000:,}.5"' for row in range(ROWS)]
"""Two columns of labels, of no order that the page would hint at: short ones, and long ones with commas."""

WHAT = ["--label", "price", "--bounds", "0", "1e9", "--thousands", ","]
COMMANDS = {
    "privatize": ["privatize", "in.csv", "-o", "out.csv", *WHAT, "--epsilon", "1", "--ledger", "book.db"],
    "fit": ["fit", "in.csv", "-o", "model", *WHAT, "--epsilon", "1", "--ledger", "book.db"],
}


def table(labels, header="item,price,size"):
    return [*([header] if header else []), *(f"item {row},{label},{row / 4}" for row, label in enumerate(labels))]


def way(commands, lines):
    """Return the way out of some commands on a file of lines, which follow from labels."""

    def prepare(folder, labels):
        (folder / "in.csv").write_text("\n".join(lines(labels)) + "\n")

    return Way(lambda _: [typed(*command) for command in commands], prepare)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("options", [[], ["--header"], ["--separator", ";"]])
def test_a_table_without_a_header_is_refused_in_the_same_words_whatever_its_first_label(
    command, options, tmp_path
):
    out = way([[*COMMANDS[command], *options]], lambda labels: table(labels, header=None))
    assert assert_codes([2], out, PLAIN, MARKED, tmp_path).files == {}


@pytest.mark.parametrize(("options", "code"), [(["--drop", "item"], 0), ([], 2)])
def test_values_with_line_breaks(options, code, tmp_path):
    def lines(labels):
        return ["item,price,size", *(f'"a\nb, c",{label},{row}' for row, label in enumerate(labels))]

    assert_codes([code], way([[*COMMANDS["privatize"], *options]], lines), PLAIN, MARKED, tmp_path)


LOST = {
    "before the label": lambda first, second: [f'"Shelf, oak,{first},20', f'Cable 21",{second},22'],
    "behind the label": lambda first, second: [f'Shelf,{first},"20', f'Cable,{second},22"'],
    "for good": lambda first, second: [f'"Shelf, oak,{first},20', f"Cable,{second},22"],
    "and found in the same line": lambda first, second: [f'"Shelf,{first},"20, 30, 40"', f"Cable,{second},22"],
}


def with_lost_quotes(kind):
    """Return lines of which two have lost quotes."""

    def lines(labels):
        rows = table(labels)
        return [*rows[:20], *LOST[kind](labels[20], labels[21]), *rows[22:]]

    return lines


@pytest.mark.parametrize("kind", LOST)
def test_lost_quotes_are_refused_in_the_same_words_and_from_the_same_line(kind, tmp_path):
    """By a command, which writes nothing, and by a function, whose traceback is compared."""

    def act(_):
        assert typed(*COMMANDS["privatize"]) == 2
        dialect = ldp.tables.Dialect(thousands=",")
        return ldp.privatize_file("in.csv", "out.csv", label="price", bounds=(0, 1e9), epsilon=1, dialect=dialect)

    first = assert_same(Way(act, way([], with_lost_quotes(kind)).prepare), PLAIN, MARKED, tmp_path)
    assert b"in row 20" in b" ".join(first.stderr.split())
    assert (first.error[0], first.files) == ("DataError", {})


def titled(labels):
    """Return a table below titles; its labels may have the mark that the titles have."""
    rows = (f"item {row};{label[1:-1] if row % 2 else label};{row}" for row, label in enumerate(labels))
    return ["Prices, 2025", "North, May", "item;price;size", *rows]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (lambda labels: table(labels, header=None), b"The header seems to be missing"),
        (titled, b"2 lines above"),
    ],
)
def test_the_page_finds_a_header_or_none_whatever_the_labels(lines, said, tmp_path):
    def act(_):
        visitor = Visitor()
        client = visitor.client
        opened = client.post("/open", path="in.csv")
        written = client.written(client.unfinished(opened), thousands=",")
        visitor.answers |= {"opened": opened.body, "written": written.body}
        return visitor.answers

    first = assert_nothing_leaks(Way(act, way([], lines).prepare), PLAIN, MARKED, tmp_path)
    assert said in first.result["opened"]
