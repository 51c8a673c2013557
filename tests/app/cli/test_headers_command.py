"""Tables without a header: a sentence that quotes no label, and no charge."""

import pytest

from command_line import files_in, said

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
def test_every_command_refuses_a_table_without_a_header(place, command):
    told = said(*COMMANDS[command], "--ledger", "book.jsonl", code=2)
    assert "looks as if the header is missing" in told
    assert "confirm them with --header" in told
    assert LABEL not in told
    assert files_in(place) == ["in.csv"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_confirmed_header_does_not_make_a_number_the_name_of_a_label(place, command):
    words = [LABEL if word == "price" else word for word in COMMANDS[command]]
    told = said(*words, "--header", code=2)
    assert "the label's name reads as a number" in told
    assert LABEL not in told
    assert files_in(place) == ["in.csv"]
