"""Tables without a header, records that span lines and odd options of commands: a sentence, and no charge."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import files_in, invoke, run, said
from fuzzing import tries

LABEL = "3.14159"
ROWS = [f"oak,{LABEL},20", *(f"tree {n % 9},{n % 5}.5,{n % 7}" for n in range(200))]
WHAT = ["--label", "price", "--bounds", 0, 5]
COMMANDS = {
    "privatize": ["privatize", "in.csv", "-o", "out.csv", *WHAT, "--epsilon", 1, "--mechanism", "two-point"],
    "fit": ["fit", "in.csv", "-o", "model", *WHAT, "--epsilon", 1],
}


@pytest.fixture(autouse=True)
def place(place):
    (place / "in.csv").write_text("\n".join(ROWS) + "\n")
    return place


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_a_table_without_a_header_and_takes_names_for_it(place, command):
    told = said(*COMMANDS[command], "--ledger", "book.jsonl", code=2)
    assert "looks as if the header is missing" in told
    assert "name the columns, as in --names a,b,c" in told
    assert "confirm them with --header" in told
    assert LABEL not in told
    assert files_in(place) == ["in.csv"]
    run(*COMMANDS[command], "--names", "item,price,size")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_confirmed_header_does_not_make_a_number_the_name_of_a_label(place, command):
    words = [LABEL if word == "price" else word for word in COMMANDS[command]]
    told = said(*words, "--header", code=2)
    assert "the label's name reads as a number" in told
    assert LABEL not in told
    assert files_in(place) == ["in.csv"]


def test_predictions_are_made_for_a_table_whose_columns_are_named(place):
    run(*COMMANDS["fit"], "--names", "item,price,size")
    told = said("predict", "model", "in.csv", "-o", "out.csv", code=2)
    assert "looks as if the header is missing" in told
    run("predict", "model", "in.csv", "-o", "out.csv", "--names", "item,price,size")
    header, first, *_ = (place / "out.csv").read_text().splitlines()
    assert header == "item,size,prediction"
    assert first.startswith("oak,20,")


TEXT = st.text(max_size=6) | st.sampled_from(
    ["\udcff", "\0", "\n", "é", "tab", "price", "1", '"', "a,b,c", "utf-16"]
)
ENCODINGS = st.sampled_from(
    ["utf-7", "idna", "punycode", "utf-16", "utf-32", "cp1252", "hz", "big5", "undefined", "zip"]
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "--separator": TEXT,
        "--decimal": TEXT,
        "--thousands": TEXT,
        "--encoding": ENCODINGS | TEXT,
        "--na": TEXT,
        "--names": TEXT,
        "--drop": TEXT,
        "--sheet": TEXT,
        "--label": TEXT,
    },
)


@pytest.mark.slow
@tries(60)
@given(options=OPTIONS, header=st.booleans(), content=st.sampled_from(["in.csv", "named.csv"]))
def test_no_text_in_an_option_ends_in_a_traceback(place, options, header, content):
    (place / "named.csv").write_text("\n".join(["item,price,size", *ROWS[:20]]) + "\n")
    words = [content if word == "in.csv" else word for word in COMMANDS["privatize"]]
    words += [word for pair in options.items() for word in pair] + ["--header"] * header + ["--force"]
    done = invoke(*words)
    assert done.exit_code in (0, 2), (words, done.output, done.exception)
