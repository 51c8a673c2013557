"""``labeldp explain``, ``verify`` and ``ledger``: true of every kind of card, and hard to fool."""

import hashlib
import json
import os
import warnings

import numpy as np
import pytest

import labeldp as ldp
from card_cases import FILE
from command_line import flat, run, said
from forged_cards import forged

ROWS = 400
BOUNDS = (0.0, 5.0)


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    """One of each kind of card, and the files that belong to them; {name: path}."""
    folder = tmp_path_factory.mktemp("cards")
    rng = np.random.default_rng(5)
    labels, features = rng.uniform(1, 4, ROWS), rng.random((ROWS, 2))
    release = ldp.privatize(labels, epsilon=1.0, bounds=BOUNDS, mechanism="rp")
    table = folder / "private.csv"
    table.write_text("id,price\n" + "".join(f"{i},{z!r}\n" for i, z in enumerate(release.values.tolist())))
    about = {**FILE, "name": table.name, "rows": ROWS, "column": "price", "columns": ["id", "price"]}
    about["sha256"] = hashlib.sha256(table.read_bytes()).hexdigest()
    by_labels = ldp.LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(features, labels)
    by_labels.release_.save(folder / "rows.npz")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ldp.InsecureRandomnessWarning)
        seeded = ldp.privatize(labels, epsilon=1.0, bounds=BOUNDS, random_state=1, mechanism="laplace")
    texts = {
        "mechanism": ldp.Laplace(bounds=BOUNDS, epsilon=1.0).to_json(),
        "release": release.to_card(),
        "file": release.terms.to_card(file=about, purpose="values"),
        "seeded": seeded.to_card(),
        "rows": by_labels.release_.to_card(),
        "model": ldp.ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(features, labels).to_card(),
    }
    paths = {}
    for name, text in texts.items():
        paths[name] = folder / f"{name}.card.json"
        paths[name].write_text(text)
    return {**paths, "table": table, "npz": folder / "rows.npz"}


def verify_fails(*words, check=None, **options):
    """Run a verification that must fail, by a check if one is named."""
    shown = run("verify", *words, code=4, columns=80, **options).output
    assert f"✗ {check}" in shown if check else "✗" in shown


@pytest.mark.parametrize("name", ["mechanism", "release", "file", "seeded", "rows", "model"])
def test_every_card_is_explained_and_verified_in_80_columns_and_one_from_a_seed_is_not_valid(cards, name):
    private, code = name != "seeded", 4 if name == "seeded" else 0
    explained = run("explain", cards[name], columns=80).output
    shown = run("verify", cards[name], code=code, columns=80).output
    assert max(map(len, (explained + shown).splitlines())) <= 80
    assert ("NOT PRIVATE" in explained, "can raise their odds" in flat(explained)) == (not private, private)
    assert ("✗" in shown) == (not private)
    data = json.loads(run("verify", "--json", cards[name], code=code).stdout)
    assert data["valid"] == private
    if name == "mechanism":
        ratio = ldp.load_mechanism(cards[name].read_text()).verify().worst_ratio
        proof = next(check["detail"] for check in data["checks"] if check["name"] == "proof")
        assert f"{ratio.numerator}/{ratio.denominator}" in proof


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("rows", lambda text: text[:-9]),
        ("model", lambda text: text.replace(",", "\x00", 1)),
        ("release", {"cost": {"epsilon": 0.1}}),
        ("seeded", {"secure": True}),
    ],
)
def test_a_damaged_or_forged_card_is_red_and_not_explained(cards, name, damage, tmp_path):
    """What else is refused is tested where cards are read."""
    text = cards[name].read_text()
    bad = forged({**json.loads(text), **damage}) if isinstance(damage, dict) else damage(text)
    card = tmp_path / "bad.card.json"
    card.write_text(bad)
    verify_fails(card)
    run("explain", card, code=4)


def test_the_file_beside_the_card_is_checked_and_one_that_was_changed_is_red(cards, tmp_path):
    assert f"{ROWS} rows of the file, {ROWS} on the card" in said("verify", cards["file"])
    card, table = tmp_path / "private.csv.card.json", tmp_path / "private.csv"
    card.write_text(cards["file"].read_text())
    assert "is not beside the card" in said("verify", card)
    run("verify", card, "--file", cards["table"])
    data = cards["table"].read_bytes()
    for changed in (data[:-1], data.replace(b"\n", b"\n0", 1), b""):
        table.write_bytes(changed)
        verify_fails(card, check="file")
        verify_fails(card, "--file", table, check="file")
    table.write_bytes(data)
    assert "✓ file" in run("verify", table).output  # the card beside it is found


def test_the_very_file_that_was_asked_for_is_compared_not_the_one_its_card_names(cards, tmp_path):
    (tmp_path / "private.csv").write_bytes(cards["table"].read_bytes())
    (tmp_path / "other.csv").write_bytes(cards["table"].read_bytes().replace(b"\n", b"\n0", 1))
    content = json.loads(cards["file"].read_text())
    without = {key: value for key, value in content.items() if key != "file"}
    for text in (cards["file"].read_text(), forged(without)):
        (tmp_path / "other.csv.card.json").write_text(text)
        verify_fails(tmp_path / "other.csv", check="file")


@pytest.mark.parametrize(
    ("more", "about", "mark", "check"),
    [
        ({}, {"rows": 3}, "✗", "agreement"),
        ({"rows": ROWS + 1}, {"rows": ROWS + 1}, "✗", "rows"),
        ({}, {"column": "prise"}, "✗", "rows"),
        ({}, {"columns": ["price", "id"]}, "✗", "columns"),
        ({"file": ..., "id": "id", "release": "0" * 32, "label": "price"}, {}, "✓", "columns"),
        ({"file": ..., "id": "id", "release": "0" * 32, "label": "prise"}, {}, "✗", "rows"),
    ],
)
def test_a_card_whose_rows_or_columns_do_not_fit_the_file_is_red(cards, more, about, mark, check, tmp_path):
    """A card of a cluster has the name of its release, and no checksum of files."""
    content = json.loads(cards["file"].read_text())
    content = {**content, "file": {**content["file"], **about}, **more}
    card = tmp_path / "forged.card.json"
    card.write_text(forged({key: value for key, value in content.items() if value is not ...}))
    shown = run("verify", card, "--file", cards["table"], code=4 if mark == "✗" else 0)
    assert f"{mark} {check}" in shown.output


def last_line(*words, **options):
    return run("verify", *words, **options).output.strip().splitlines()[-1]


def test_other_columns_are_listed_and_the_last_line_names_all_that_was_shown_and_not_compared(cards, tmp_path):
    assert last_line(cards["file"]) == "Valid."
    shown = said("verify", cards["file"])
    assert "public, and as they are: id" in shown
    assert "whether another column gives the label away" in shown
    card = tmp_path / "private.csv.card.json"
    card.write_text(cards["file"].read_text())
    (tmp_path / "private.csv.report.html").write_text("made up")
    (tmp_path / "private.csv.summary.html").write_text("made up")
    (tmp_path / "private.xlsx").write_text("made up")
    (tmp_path / "private.csv.card.json.sig").write_text("made up")
    assert last_line(card) == "Valid. Not compared: file, report, sheet, signature."
    assert last_line(card.rename(tmp_path / ".card.json")) == "Valid. Not compared: file."


def test_a_report_is_not_evidence(cards, tmp_path):
    card = tmp_path / "private.csv.card.json"
    card.write_text(cards["file"].read_text())
    run("report", card, "-o", tmp_path / "private.csv.report.html")
    for name in ("private.csv.report.html", "other.html"):
        assert "not evidence" in said("verify", tmp_path / name, code=2)


@pytest.mark.parametrize("name", ["../private.csv", "/etc/passwd", "", "..", "a/b"])
def test_a_card_cannot_point_outside_its_folder(cards, tmp_path, name):
    (tmp_path / "inner").mkdir()
    (tmp_path / "private.csv").write_bytes(cards["table"].read_bytes())
    content = json.loads(cards["file"].read_text())
    card = tmp_path / "inner" / "card.json"
    card.write_text(forged({**content, "file": {**content["file"], "name": name}}))
    assert "– file" in run("verify", card).output


def test_a_saved_model_verifies_and_is_red_once_changed(tmp_path):
    source, folder = tmp_path / "in.csv", tmp_path / "model"
    source.write_text("a,price\n" + "".join(f"{i},{1 + i % 4}\n" for i in range(50)))
    run("fit", source, "--label", "price", "--bounds", 0, 5, "--epsilon", 4, "-o", folder)
    assert "✓ file" in run("verify", folder).output
    assert "What it means" in run("explain", folder).output
    run("report", folder, "-o", folder / "card.report.html")
    assert last_line(folder) == "Valid. Not compared: report."
    (folder / "labels.csv").write_text("price")
    assert last_line(folder) == "Valid. Not compared: other files, report."
    assert "labels.csv" in run("verify", folder).output
    (folder / "labels.csv").unlink()
    (folder / "card.summary.html").mkdir()
    assert last_line(folder) == "Valid. Not compared: other files, report."
    (folder / "card.summary.html").rmdir()
    part = next(path for path in folder.iterdir() if path.suffix == ".npz")
    part.write_bytes(part.read_bytes() + b"!")
    content = json.loads((folder / "card.json").read_text())
    fewer = {name: value for name, value in content["files"].items() if name != part.name}
    without = {key: value for key, value in content.items() if key != "files"}
    for card in (content, without, {**content, "files": fewer}):
        (folder / "card.json").write_text(forged(card))
        verify_fails(folder, check="file")
        verify_fails(folder / "card.json", check="file")


def test_a_saved_release_of_rows_is_compared_with_its_card(cards, tmp_path):
    assert "✓ file" in run("verify", cards["rows"], "--file", cards["npz"]).output
    run("verify", cards["release"], "--file", cards["npz"], code=4)
    rng = np.random.default_rng(6)
    model = ldp.LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS)
    model.fit(rng.random((ROWS, 2)), rng.uniform(1, 4, ROWS)).release_.save(tmp_path / "other.npz")
    (tmp_path / "none.npz").write_bytes(b"PK")
    for wrong in ("other.npz", "none.npz"):
        verify_fails(cards["rows"], "--file", tmp_path / wrong, check="file")


def test_a_folder_has_one_table_of_verdicts_and_counts_what_is_valid_alone(tmp_path, monkeypatch):
    folder = tmp_path / "handed over"
    (folder / "model").mkdir(parents=True)
    (folder / "no.card.json").mkdir()  # a folder is no card, whatever its name
    ledger, common = ldp.Ledger(), {"epsilon": 0.5, "bounds": BOUNDS, "mechanism": "laplace"}
    for name, recipient in {"a": "the office", "b": "the office", "c": "a lab"}.items():
        release = ldp.privatize(np.linspace(1, 4, ROWS), **common, ledger=ledger, recipient=recipient)
        (folder / f"{name}.card.json").write_text(release.to_card())
    (folder / "model" / "card.json").write_text((folder / "c.card.json").read_text())  # its charge counts once
    shown = run("verify", folder, columns=200).output
    assert "4 of 4 cards valid: ε = 1.5 for someone whose labels are in all of them" in flat(shown)
    sums = [line.split() for line in shown.splitlines() if line.startswith("not stated")]
    assert sums == [["not", "stated", "a", "lab", "0.5", "1"], ["not", "stated", "the", "office", "1", "2"]]
    monkeypatch.chdir(folder)
    assert "4 of 4 cards valid" in said("verify", ".")
    monkeypatch.chdir(folder / "model")
    assert "Valid." in said("verify", ".")
    (folder / "b.card.json").write_text("{}")
    content = json.loads((folder / "c.card.json").read_text())
    (folder / "c.card.json").write_text(forged({**content, "cost": {"epsilon": 0.1}}))
    shown = flat(run("verify", folder, code=4, columns=200).output)
    assert "2 of 4 cards valid: ε = 1 for" in shown
    assert "NOT valid: agreement" in shown
    data = json.loads(run("verify", folder / "a.card.json", folder / "b.card.json", "--json", code=4).stdout)
    assert [one["valid"] for one in data["cards"]] == [True, False]
    assert (data["valid"], data["epsilon"]) == (False, 0.5)


def test_a_table_of_verdicts_names_what_the_verdict_is_not_of(cards, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.card.json").write_text(cards["file"].read_text())
    assert "valid, not compared: file" in run("verify", tmp_path, columns=200).output
    (tmp_path / "private.csv").write_bytes(cards["table"].read_bytes())
    assert "not compared" not in run("verify", tmp_path, columns=200).output


def test_a_model_that_is_not_there_is_no_verdict(cards, tmp_path):
    assert "there is no file" in said("verify", cards["file"], "--model", tmp_path / "none", code=2)


def test_a_charge_that_is_copied_to_a_card_with_other_noise_counts_again(tmp_path):
    ledger, X, y = ldp.Ledger(), np.linspace(0, 1, ROWS)[:, None], np.linspace(1, 4, ROWS)
    folder, extract = tmp_path / "cards", tmp_path / "extract.json"
    folder.mkdir()
    for name, columns in (("a", X), ("b", X), ("c", np.hstack([X, X**2, X**4]))):
        table = ldp.private_ols(columns, y, epsilon=1.0, bounds=BOUNDS, ledger=ledger)
        (folder / f"{name}.card.json").write_text(table.to_card())
    extract.write_text(ledger.to_extract())
    assert "ε = 3 for someone" in flat(run("verify", folder, "--ledger", extract).output)
    when = json.loads((folder / "a.card.json").read_text())["charges"][0]["when"]
    content = json.loads((folder / "c.card.json").read_text())
    content["charges"][0]["when"] = when
    (folder / "c.card.json").write_text(forged(content))
    assert "ε = 3 for someone" in flat(run("verify", folder).output)
    shown = run("verify", folder, "--ledger", extract, code=4).output
    assert "share a charge" in flat(shown)
    assert json.loads(run("verify", folder, "--ledger", extract, "--json", code=4).stdout)["valid"] is False
    shown = run("ledger", extract, "--cards", folder, code=3).output
    assert "lacks 1 charge, ε = 1, of 3 cards" in flat(shown)


def test_a_report_is_no_card_and_no_file_of_another_card(cards, tmp_path):
    run("report", cards["release"], "-o", tmp_path / "b.html")
    assert "not evidence" in run("verify", cards["release"], tmp_path / "b.html", code=2).output
    assert "for one card" in run("verify", cards["release"], cards["rows"], "--file", cards["npz"], code=2).output


def test_text_on_a_card_cannot_command_the_terminal(cards, tmp_path):
    content = json.loads(cards["file"].read_text())
    evil = "\x1b[2J\x1b[32m✓ all is well\r\n\u202e[bold red]boo[/bold red]"
    content["charges"][0]["description"] = "labels" + evil
    content["file"]["column"] = content["file"]["name"] = evil
    card = tmp_path / "evil.card.json"
    card.write_text(forged(content))
    for command in ("explain", "verify"):
        assert not {"\x1b", "\u202e", "\r"} & set(run(command, card).output)
    assert "[bold red]" in run("explain", card).output


# ---- ledger -----------------------------------------------------------------------------------------


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "budget.db"
    ledger = ldp.Ledger.open(path, limit=ldp.Budget(3))
    ldp.privatize(np.linspace(1, 4, 100), epsilon=1.0, bounds=BOUNDS, mechanism="laplace", ledger=ledger)
    ledger.charge("mean, \x1b[31mred", epsilon=0.5, rows_per_person=2)
    return path


def test_the_ledger_shows_what_is_spent_and_left_and_is_only_read(book):
    before, stamp = book.read_bytes(), os.stat(book).st_mtime_ns
    book.chmod(0o400)
    book.parent.chmod(0o500)  # not even SQLite's journal can be written
    shown = run("ledger", book, columns=80).output
    book.parent.chmod(0o700)
    assert max(map(len, shown.splitlines())) <= 80
    assert "Spent ε = 2 of ε = 3 in 2 charges. Left: ε = 1." in flat(shown)
    assert "\x1b" not in shown
    assert (book.read_bytes(), os.stat(book).st_mtime_ns) == (before, stamp)
    assert list(book.parent.iterdir()) == [book]


def test_a_damaged_ledger_is_exit_3_and_is_not_repaired(book):
    whole = book.read_bytes()
    for damaged in (whole[:5000], b" " + whole, b"labels\n", b'{"charges":[]}\n'):
        book.write_bytes(damaged)
        assert run("ledger", book, code=3).stdout == ""
        assert book.read_bytes() == damaged
    run("ledger", book.parent, code=3)


@pytest.mark.parametrize("person", ["anna", 7])
def test_a_person_withdrawn_at_the_shell_is_in_no_further_release(person, tmp_path):
    path = tmp_path / "people.db"
    ledger = ldp.Ledger.open(path, limit=ldp.Budget(3), unit="person")
    ledger.charge("labels", epsilon=0.5, person=[person])
    assert "Withdrawn" in run("ledger", path, "--withdraw", person).stderr
    with pytest.raises(ldp.BudgetError, match="withdrawn"):
        ledger.charge("labels", epsilon=0.5, person=[person])
    assert "1 withdrawn" in said("ledger", path)
    run("ledger", path, "--withdraw", 7.5, code=3 if person == 7 else 0)


def test_a_card_is_no_damaged_ledger(cards):
    assert "is a card, and no ledger" in run("ledger", cards["release"], code=2).output


def test_an_extract_is_all_that_a_reviewer_reads_of_a_ledger(book, tmp_path):
    release = tmp_path / "release.card.json"
    ledger = ldp.Ledger.open(book)
    release.write_text(ldp.privatize([2.0] * 1000, epsilon=0.5, bounds=BOUNDS, ledger=ledger).to_card())
    extract = tmp_path / "budget.json"
    extract.write_text(run("ledger", book, "--json").stdout)
    assert "the charges of this release are in it" in flat(said("verify", release, "--ledger", extract))
    content = json.loads(release.read_text())
    content["charges"][0]["description"] = "nothing"
    renamed = tmp_path / "renamed.card.json"
    renamed.write_text(forged(content))
    assert "not all in it" in flat(run("verify", renamed, "--ledger", extract, code=4).stdout)
    assert "only its owner opens" in flat(run("verify", release, "--ledger", book, code=3).stderr)
    assert "Spent ε = 2.5 of ε = 3" in flat(said("ledger", extract))
    assert said("ledger", extract) == said("ledger", book)
    for option in ((), ("--cards", tmp_path)):
        assert "count twice" in flat(run("ledger", extract, book, *option, code=2).stderr)
    for paid in (extract, book):
        run("report", release, "--ledger", paid, "--force")
    content = json.loads(extract.read_text())
    extract.write_text(json.dumps({**content, "total": "1"}))
    assert "states a total" in flat(run("verify", release, "--ledger", extract, code=3).stderr)
    content["records"].pop()
    extract.write_text(json.dumps({**content, "total": "2"}))
    assert "not all in it" in flat(run("verify", release, "--ledger", extract, code=4).stdout)


def test_a_copy_that_was_put_back_is_found_by_the_cards(book, tmp_path):
    copy, card = tmp_path / "copy.db", tmp_path / "releases" / "release.card.json"
    run("ledger", book, "--backup", copy)
    card.parent.mkdir()
    ledger = ldp.Ledger.open(book)
    card.write_text(ldp.privatize([2.0] * 1000, epsilon=0.5, bounds=BOUNDS, ledger=ledger).to_card())
    (card.parent / "damaged.card.json").write_text("{}")
    compared = run("ledger", book, "--cards", card.parent)
    assert "has all charges of 1 card" in flat(compared.stdout)
    assert "damaged.card.json was not compared" in flat(compared.stderr)
    assert "lacks 1 of its records" in flat(run("ledger", book, "--restore", copy, code=3).stderr)
    book.write_bytes(b"damaged")
    assert "--cards" in run("ledger", book, "--restore", copy, "--backup", tmp_path / "again.db").stderr
    shown = flat(run("ledger", book, "--cards", card.parent, code=3).stdout)
    assert "lacks 2 charges, ε = 0.5, of 1 card" in shown
    run("ledger", book, copy, "--json", code=2)
    run("ledger", book, "--cards", tmp_path / "no such folder", code=2)
