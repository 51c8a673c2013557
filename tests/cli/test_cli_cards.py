"""``labeldp explain``, ``verify`` and ``ledger``: true of every kind of card, and hard to fool."""

import hashlib
import json
import math
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import labeldp as ldp
from forged_cards import forged
from labeldp.cards.reading import read_any_card
from labeldp.cli import app
from labeldp.cli.shell import printable

ROWS = 400
BOUNDS = (0.0, 5.0)


def run(*arguments, text=None):
    return CliRunner().invoke(app, [str(a) for a in arguments], input=text, env={"COLUMNS": "80"})


def flat(shown):
    """Return what was shown, in one line."""
    return re.sub(r"\s+", " ", shown.output)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One of each kind of card, and the files that belong to them; {name: path}."""
    folder = tmp_path_factory.mktemp("cards")
    rng = np.random.default_rng(5)
    labels, features = rng.uniform(1, 4, ROWS), rng.random((ROWS, 2))
    release = ldp.privatize(labels, epsilon=1.0, bounds=BOUNDS, mechanism="rp")
    table = folder / "private.csv"
    table.write_text("id,price\n" + "".join(f"{i},{z!r}\n" for i, z in enumerate(release.labels.tolist())))
    about = {"name": table.name, "format": "csv", "rows": ROWS, "column": "price"}
    about["sha256"] = hashlib.sha256(table.read_bytes()).hexdigest()
    by_labels = ldp.LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(features, labels)
    by_labels.release_.save(folder / "rows.npz")
    pairs = np.column_stack([labels, labels])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ldp.InsecureRandomnessWarning)
        seeded = ldp.privatize(labels, epsilon=1.0, bounds=BOUNDS, random_state=1, mechanism="laplace")
    texts = {
        "mechanism": ldp.Laplace(bounds=BOUNDS, epsilon=1.0).to_json(),
        "weak": ldp.Laplace(bounds=BOUNDS, epsilon=8.0).to_json(),
        "biased": ldp.RROnBins(edges=[0, 1, 5], outputs=[0.8, 2.1], epsilon=1.0).to_json(),
        "no privacy": ldp.NoPrivacy().to_json(),
        "release": release.to_card(),
        "file": release.terms.to_card(file=about),
        "two columns": ldp.privatize(
            pairs, epsilon=2.0, bounds=[BOUNDS, BOUNDS], mechanism="gaussian", delta=1e-5, rows_per_person=3
        ).to_card(),
        "local": ldp.privatize(labels, epsilon=4.0, bounds=BOUNDS, trust="local", mechanism="laplace").to_card(),
        "seeded": seeded.to_card(),
        "rows": by_labels.release_.to_card(),
        "labels model": by_labels.to_card(),
        "model": ldp.ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(features, labels).to_card(),
    }
    paths = {}
    for name, text in texts.items():
        paths[name] = folder / f"{name}.card.json"
        paths[name].write_text(text)
    return {**paths, "table": table, "npz": folder / "rows.npz"}


CARDS = (
    *("mechanism", "weak", "biased", "no privacy", "release", "file", "two columns", "local", "seeded"),
    *("rows", "labels model", "model"),
)
NOT_PRIVATE = ("no privacy", "seeded")
each_card = pytest.mark.parametrize("name", CARDS)


# ---- explain ----------------------------------------------------------------------------------------


@each_card
def test_every_card_is_explained_in_80_columns_with_what_it_means_and_cost(made, name):
    shown = run("explain", made[name])
    assert shown.exit_code == 0, shown.output
    assert max(map(len, shown.output.splitlines())) <= 80
    for heading in ("What was done", "What it means", "What left", "What stayed", "What it cost", "Do not"):
        assert f"\n{heading}\n" in shown.output
    assert ("NOT PRIVATE" in shown.output) == (name in NOT_PRIVATE)
    assert ("can raise their odds" in flat(shown)) == (name not in NOT_PRIVATE)


@each_card
def test_the_json_says_the_same_to_scripts(made, name):
    data = json.loads(run("explain", "--json", made[name]).stdout)
    card = read_any_card(made[name].read_text(), allow_no_privacy=True)
    words = card.explain()
    assert (data["kind"], data["title"], data["private"]) == (card.kind, words.title, name not in NOT_PRIVATE)
    assert data["sections"] == {heading: list(lines) for heading, lines in words.sections.items()}
    assert data["warnings"] == list(words.warnings)
    if data["private"]:
        factor = math.exp(words.budget.epsilon)
        assert (data["epsilon"], data["delta"]) == (words.budget.epsilon, words.budget.delta)
        assert data["odds_rise_by_at_most"] == pytest.approx(factor)
        assert data["guess_of_half_becomes_at_most"] == pytest.approx(factor / (factor + 1))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("release", "by at most e^ε = 2.72×."),
        ("release", "they can be 73 % certain at most"),
        ("release", "only the curator"),
        ("release", "One private label carries noise of about ±"),
        ("weak", "WEAK: at ε = 8"),
        ("biased", "biased by design"),
        ("two columns", "all labels of any one person with up to 3 rows"),
        ("two columns", "That covers persons with up to 3 rows (group privacy)."),
        ("two columns", "Column 1: One private label carries noise of about ±"),
        ("file", "Private labels in private.csv"),
        ("local", "nobody saw them"),
        ("rows", "at most; how much each carries"),
        ("model", "as often as you like"),
    ],
)
def test_the_words_fit_the_card(made, name, said):
    assert said in flat(run("explain", made[name]))


def test_a_card_comes_through_a_pipe_too(made):
    assert flat(run("explain", "-", text=made["release"].read_text())) == flat(run("explain", made["release"]))
    assert run("verify", "-", text=made["release"].read_text()).exit_code == 0


def test_noise_in_words_is_the_noise_of_labels(made):
    mechanism = ldp.load_mechanism(made["mechanism"].read_text())
    said = float(re.search(r"noise of about ±([\d.]+)", flat(run("explain", made["mechanism"])))[1].rstrip("."))
    assert said == pytest.approx(mechanism.randomize(np.full(200_000, 2.0)).std(), rel=0.02)  # 12 deviations


# ---- verify -----------------------------------------------------------------------------------------


@each_card
def test_every_private_card_verifies_and_no_other(made, name):
    shown = run("verify", made[name])
    assert shown.exit_code == (4 if name in NOT_PRIVATE else 0), shown.output
    assert max(map(len, shown.output.splitlines())) <= 80
    assert ("✗" in shown.output) == (name in NOT_PRIVATE)
    for beyond in ("no signature", "epsilon charged for it", "private labels and not the true ones"):
        assert beyond in flat(shown)
    data = json.loads(run("verify", "--json", made[name]).stdout)
    assert data["holds"] == (name not in NOT_PRIVATE)


def test_the_exact_worst_ratio_is_shown(made):
    ratio = ldp.load_mechanism(made["mechanism"].read_text()).verify().worst_ratio
    data = json.loads(run("verify", "--json", made["mechanism"]).stdout)
    assert f"{ratio.numerator}/{ratio.denominator}" in {c["name"]: c["detail"] for c in data["checks"]}["proof"]


@each_card
def test_a_damaged_card_is_red_and_not_explained(made, name):
    text = made[name].read_text()
    for bad in (text.replace('"version":2', '"version":1'), text[:-9], text + "x", "\x00" + text):
        told, shown = run("verify", "-", text=bad), run("explain", "-", text=bad)
        assert (told.exit_code, shown.exit_code, "✗" in told.output) == (4, 4, True), bad[:80]
        assert "Traceback" not in told.output + shown.output


@pytest.mark.parametrize(
    ("name", "lie"),
    [
        ("release", {"cost": {"epsilon": 0.1, "delta": 0.0}}),
        ("seeded", {"words": "secure"}),
        ("rows", {"mechanisms": []}),
        ("labels model", {"mechanisms": []}),
        ("model", {"guarantee": None}),
        ("mechanism", {"proof": {"epsilon": 0.5, "delta": 0.0}}),
        ("mechanism", {"channel": "sha256:0"}),
    ],
)
def test_a_forged_card_is_red_and_not_explained(made, name, lie):
    """What else is refused is tested where cards are read."""
    text = forged({**json.loads(made[name].read_text()), **lie})
    shown = run("verify", "-", text=text)
    assert shown.exit_code == 4, shown.output
    assert "The card does NOT hold." in shown.output
    assert run("explain", "-", text=text).exit_code == 4


def test_the_file_beside_the_card_is_checked_and_one_that_was_changed_is_red(made, tmp_path):
    shown = run("verify", made["file"])
    assert f"{ROWS} rows in the file, {ROWS} on the card" in flat(shown)
    card, table = tmp_path / "private.csv.card.json", tmp_path / "private.csv"
    card.write_text(made["file"].read_text())
    alone = run("verify", card)
    assert alone.exit_code == 0
    assert "is not beside the card" in flat(alone)
    assert run("verify", card, made["table"]).exit_code == 0
    data = made["table"].read_bytes()
    for changed in (data[:-1], data.replace(b"\n", b"\n0", 1), b""):
        table.write_bytes(changed)
        for arguments in ((card,), (card, table)):
            shown = run("verify", *arguments)
            assert (shown.exit_code, "✗ file" in shown.output) == (4, True)
    table.write_bytes(data)
    assert "✓ file" in run("verify", table).output  # the card beside it is found


def test_the_very_file_that_was_asked_for_is_compared_not_the_one_its_card_names(made, tmp_path):
    honest = made["table"].read_bytes()
    (tmp_path / "private.csv").write_bytes(honest)
    other = tmp_path / "other.csv"
    other.write_bytes(honest.replace(b"\n", b"\n0", 1))
    content = json.loads(made["file"].read_text())
    without = {key: value for key, value in content.items() if key != "file"}
    for text in (made["file"].read_text(), forged(without)):
        (tmp_path / "other.csv.card.json").write_text(text)
        shown = run("verify", other)
        assert (shown.exit_code, "✗ file" in shown.output) == (4, True), shown.output


def test_a_table_or_folder_without_a_card_is_told_which_card_is_not_there(tmp_path):
    for name, data in (("homes.csv", b"id,price\n1,2\n"), ("homes.parquet", b"PAR1\xff\xfe")):
        (tmp_path / name).write_bytes(data)
        shown = run("verify", tmp_path / name)
        assert shown.exit_code == 4
        assert f"there is no {name}.card.json" in flat(shown)
    (tmp_path / "parts").mkdir()
    shown = run("verify", tmp_path / "parts")
    assert shown.exit_code == 2
    assert "there is no parts.card.json" in flat(shown)


@pytest.mark.parametrize(
    ("more", "about", "mark", "check"),
    [
        ({}, {"rows": 3}, "✗", "rows"),
        ({"rows": ROWS + 1}, {"rows": ROWS + 1}, "✗", "rows"),
        ({}, {"column": "prise"}, "✗", "columns"),
        ({}, {"column": 3}, "✗", "columns"),
        ({}, {"column": None}, "–", "columns"),
        ({}, {"unbiased_column": "price_debiased"}, "✗", "columns"),
        ({}, {"columns": ["id", "price", "age"]}, "✗", "columns"),
        ({}, {"columns": ["price", "id"]}, "✗", "columns"),
        ({}, {"columns": "id"}, "✗", "columns"),
        ({"file": None, "id": "id", "release": "0" * 32, "label": "price"}, {}, "✓", "columns"),
        ({"file": None, "id": "id", "release": "0" * 32, "label": "prise"}, {}, "✗", "columns"),
    ],
)
def test_a_card_whose_rows_or_columns_do_not_fit_the_file_is_red(made, more, about, mark, check):
    """A card of a cluster has the name of its release, and no checksum of files."""
    content = json.loads(made["file"].read_text())
    text = forged({**content, "file": {**content["file"], **about}, **more})
    shown = run("verify", "-", made["table"], text=text)
    assert (shown.exit_code, f"{mark} {check}" in shown.output) == (4 if mark == "✗" else 0, True), shown.output


@pytest.mark.parametrize("name", ["../private.csv", "/etc/passwd", "", "..", 3, None, ["private.csv"], "a/b"])
def test_a_card_cannot_point_outside_its_folder(made, tmp_path, name):
    (tmp_path / "inner").mkdir()
    (tmp_path / "private.csv").write_bytes(made["table"].read_bytes())
    content = json.loads(made["file"].read_text())
    card = tmp_path / "inner" / "card.json"
    card.write_text(forged({**content, "file": {**content["file"], "name": name}}))
    shown = run("verify", card)
    assert (shown.exit_code, "– file" in shown.output) == (0, True), shown.output


@pytest.mark.parametrize("out", ["out.csv", "out.parquet", "out.tsv.gz", "out.arrow", "parts/"])
def test_every_file_that_privatize_writes_verifies_and_is_red_once_changed(tmp_path, out):
    source = tmp_path / "in.csv"
    source.write_text("id,price\n" + "".join(f"{i},{1 + i % 4}\n" for i in range(50)))
    order = ("--label", "price", "--bounds", 0, 5, "--epsilon", 1, "--mechanism", "two-point")
    extra = ("--format", "csv") if out.endswith("/") else ()
    done = run("privatize", source, "-o", f"{tmp_path}/{out}", *order, *extra)
    assert done.exit_code == 0, done.output
    for asked in (f"{out.rstrip('/')}.card.json", out, out.rstrip("/")):
        shown = run("verify", f"{tmp_path}/{asked}")
        assert (shown.exit_code, "✓ file" in shown.output, "✓ rows" in shown.output) == (0, True, True), asked
    target = tmp_path / out
    part = next(target.iterdir()) if target.is_dir() else target
    part.write_bytes(part.read_bytes()[:-1] + b"!")
    shown = run("verify", tmp_path / f"{out.rstrip('/')}.card.json")
    assert (shown.exit_code, "✗ file" in shown.output) == (4, True)


def test_a_saved_model_verifies_and_is_red_once_changed(tmp_path):
    source, folder = tmp_path / "in.csv", tmp_path / "model"
    source.write_text("a,price\n" + "".join(f"{i},{1 + i % 4}\n" for i in range(50)))
    done = run("fit", source, "--label", "price", "--bounds", 0, 5, "--epsilon", 4, "-o", folder)
    assert done.exit_code == 0, done.output
    assert "✓ file" in run("verify", folder).output
    assert "What it means" in run("explain", folder).output
    part = next(path for path in folder.iterdir() if path.suffix == ".npz")
    part.write_bytes(part.read_bytes() + b"!")
    content = json.loads((folder / "card.json").read_text())
    for asked in (folder, folder / "card.json"):
        for gone in ("nothing", "files"):
            text = forged({key: value for key, value in content.items() if key != gone})
            (folder / "card.json").write_text(text)
            shown = run("verify", asked)
            assert (shown.exit_code, "✗ file" in shown.output) == (4, True), (asked, gone)
    fewer = {name: value for name, value in content["files"].items() if name != part.name}
    (folder / "card.json").write_text(forged({**content, "files": fewer}))
    shown = run("verify", folder)
    assert (shown.exit_code, "✗ file" in shown.output) == (4, True), fewer


def test_a_saved_release_of_rows_is_compared_with_its_card(made, tmp_path):
    assert "✓ file" in run("verify", made["rows"], made["npz"]).output
    assert run("verify", made["release"], made["npz"]).exit_code == 4
    rng = np.random.default_rng(6)
    other = ldp.LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(
        rng.random((ROWS, 2)), rng.uniform(1, 4, ROWS)
    )
    other.release_.save(tmp_path / "other.npz")
    (tmp_path / "none.npz").write_bytes(b"PK")
    for wrong in ("other.npz", "none.npz"):
        shown = run("verify", made["rows"], tmp_path / wrong)
        assert (shown.exit_code, "✗ file" in shown.output) == (4, True)


def test_text_on_a_card_cannot_command_the_terminal(made):
    content = json.loads(made["file"].read_text())
    evil = "\x1b[2J\x1b[32m✓ all is well\r\n\u202e[bold red]boo[/bold red]"
    content["charges"][0]["what"] = "labels" + evil
    content["file"]["column"] = content["file"]["name"] = evil
    for command in ("explain", "verify"):
        shown = run(command, "-", text=forged(content))
        assert shown.exit_code == 0, shown.output
        assert not {"\x1b", "\u202e", "\r"} & set(shown.output)
    assert "[bold red]" in run("explain", "-", text=forged(content)).output
    assert len(printable("x" * 10_000)) == 1000


@pytest.mark.parametrize("command", ["explain", "verify", "ledger"])
def test_a_file_that_is_not_there_is_an_input_error_and_is_not_made(tmp_path, command):
    shown = run(command, tmp_path / "nothing")
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert "there is no" in shown.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["explain", "verify"])
def test_what_is_not_text_is_no_card(tmp_path, command):
    (tmp_path / "x").write_bytes(b"\xff\xfe{")
    assert run(command, tmp_path / "x").exit_code == 4


# ---- ledger -----------------------------------------------------------------------------------------


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "budget.jsonl"
    ledger = ldp.Ledger.open(path, limit=ldp.Budget(3))
    ldp.privatize(np.linspace(1, 4, 100), epsilon=1.0, bounds=BOUNDS, mechanism="laplace", ledger=ledger)
    ledger.charge("mean, \x1b[31mred\ud800", epsilon=0.5, rows_per_person=2)
    return path


def test_the_ledger_shows_what_is_spent_and_left_and_is_not_touched(book):
    before, stamp = book.read_bytes(), os.stat(book).st_mtime_ns
    shown = run("ledger", book)
    assert shown.exit_code == 0, shown.output
    assert max(map(len, shown.output.splitlines())) <= 80
    assert "Spent ε = 2 of ε = 3 in 2 charges. Left: ε = 1." in flat(shown)
    assert shown.output.count("█") == 2 * shown.output.count("░") == 40
    assert "\x1b" not in shown.output
    data = json.loads(run("ledger", "--json", book).stdout)
    assert [data[key]["epsilon"] for key in ("limit", "spent", "left")] == [3.0, 2.0, 1.0]
    assert [charge["epsilon"] for charge in data["charges"]] == [1.0, 1.0]
    assert (book.read_bytes(), os.stat(book).st_mtime_ns) == (before, stamp)
    assert list(book.parent.iterdir()) == [book]


def test_a_ledger_with_an_unfinished_record_is_read_and_left_as_it_is(book):
    torn = book.read_bytes()[:-20]
    book.write_bytes(torn)
    assert "in 1 charge." in flat(run("ledger", book))
    assert book.read_bytes() == torn


def test_a_ledger_that_may_not_be_written_is_read(book):
    book.chmod(0o400)
    opened = []

    def spy(path, flags, *rest):
        opened.append(flags)
        return original(path, flags, *rest)

    original = os.open
    with pytest.MonkeyPatch.context() as patch:  # the superuser may write everywhere, so flags are watched
        patch.setattr(os, "open", spy)
        assert run("ledger", book).exit_code == 0
    assert opened
    assert not any(flags & (os.O_RDWR | os.O_WRONLY | os.O_CREAT) for flags in opened)


def test_a_damaged_ledger_is_exit_3_and_never_repaired(book):
    whole = book.read_bytes()
    for place in range(0, whole.index(b"\n", whole.index(b"\n") + 1), 7):
        book.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        damaged = book.read_bytes()
        shown = run("ledger", book)
        assert (shown.exit_code, shown.stdout) == (3, "")
        assert book.read_bytes() == damaged
    for other in (b"", b"\n", b"{}\n", b"labels\n"):
        book.write_bytes(other)
        assert run("ledger", book).exit_code == 3
    assert run("ledger", Path(book).parent).exit_code == 3


def test_ledgers_without_a_limit_with_delta_and_overdrawn(tmp_path):
    free = ldp.Ledger.open(tmp_path / "free")
    assert "There is no limit" in run("ledger", tmp_path / "free").output
    free.charge("the labels themselves", epsilon=float("inf"))
    data = json.loads(run("ledger", "--json", tmp_path / "free").stdout)
    assert (data["limit"], data["left"], data["spent"]["epsilon"]) == (None, None, "infinite")
    small = ldp.Ledger.open(tmp_path / "delta", limit=ldp.Budget(1.0, 1e-5))
    small.charge("labels", epsilon=0.1, delta=1e-5)
    shown = flat(run("ledger", tmp_path / "delta"))
    assert "δ = 1e-05 of ε = 1" in shown
    assert "Left: ε = 0.9." in shown
    small.charge("labels", epsilon=0.9)
    assert "Nothing is left." in flat(run("ledger", tmp_path / "delta"))
