"""``labeldp fit`` and ``predict`` as a user meets them: a model and predictions, or one clear sentence."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import labeldp
from command_line import files_in, homes, run, said, with_options
from helpers import posix_only

FIT = ("--label", "price", "--bounds", 0, 5, "--epsilon", 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table, a model that learnt from it, and what the fit said."""
    path = tmp_path_factory.mktemp("homes")
    pa.parquet.write_table(homes(), path / "homes.parquet")
    (path / "said").write_text(said("fit", path / "homes.parquet", *FIT, "-o", path / "model"))
    return path


# ---- what it does -----------------------------------------------------------------------------------------


def test_fit_says_which_columns_were_left_out(folder):
    assert "id was left out: nearly every row has a value of its own" in (folder / "said").read_text()
    assert labeldp.load_model(folder / "model").encoder.names == ["area", "town", "lift"]
    assert not (folder / "model" / "release.npz").exists()


def test_predictions_are_good_and_the_other_columns_as_they_were(folder, tmp_path):
    fresh = homes(seed=1)
    pa.parquet.write_table(fresh, tmp_path / "new.parquet")
    given = ("predict", folder / "model", tmp_path / "new.parquet", "-o", tmp_path / "out.parquet")
    words = said(*given, "--keep", "id")
    out = pa.parquet.read_table(tmp_path / "out.parquet")
    truth, predicted = fresh["price"].to_numpy(), out["prediction"].to_numpy()
    assert np.mean((truth - predicted) ** 2) < 0.6 * truth.var()
    assert out.drop_columns(["prediction"]).equals(fresh.drop_columns(["price"]))
    assert re.search("400 rows.* area: .* missing.* table: 'id', 'area', 'town', 'lift'.* labels: 'price'.", words)


def test_columns_that_a_model_does_not_use_are_copied_only_if_they_are_named_and_the_label_never(folder, tmp_path):
    rows = [f"York,true,{k},1.5,x,a{k}" for k in range(20)]
    (tmp_path / "new.csv").write_text("\n".join(["town,lift,area,Price,prediction,id", *rows]))
    given = ("predict", folder / "model", tmp_path / "new.csv", "-o")
    words = said(*given, tmp_path / "out.csv")
    assert "Copied from the table: 'town', 'lift', 'area'." in words
    assert "true labels: 'Price', 'id', 'prediction'." in words
    words = said(*given, tmp_path / "all.csv", "--keep", "id")
    assert "not private" in words
    heads = [(tmp_path / name).read_text().partition("\n")[0] for name in ("out.csv", "all.csv")]
    assert heads == ["town,lift,area,prediction", "town,lift,area,id,prediction"]
    for name in ("Price", "price", "PRICE"):
        words = said(*given, tmp_path / "labels.csv", "--keep", name, code=2)
        assert f"{name!r} is the label of the model: true labels are never copied" in words
    assert not (tmp_path / "labels.csv").exists()


def test_a_model_whose_label_is_called_like_a_feature_is_refused_before_the_charge(tmp_path):
    table = homes(60).append_column("PRICE", pa.array(np.arange(60.0)))
    pa.parquet.write_table(table, tmp_path / "twice.parquet")
    paid = ("--ledger", tmp_path / "budget.db", "--limit", 9)
    words = said("fit", tmp_path / "twice.parquet", *FIT, "-o", tmp_path / "model", *paid, code=2)
    assert "'PRICE'" in words
    assert files_in(tmp_path) == ["twice.parquet"]
    run("fit", tmp_path / "twice.parquet", *FIT, "-o", tmp_path / "model", *paid, "--drop", "PRICE")


@posix_only
def test_a_table_with_predictions_has_no_more_rights_than_its_source(folder, tmp_path):
    pa.parquet.write_table(homes(20), tmp_path / "new.parquet")
    (tmp_path / "new.parquet").chmod(0o600)
    run("predict", folder / "model", tmp_path / "new.parquet", "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == 0o600


def test_an_option_that_is_there_twice_is_refused_as_only_the_last_would_count(folder, tmp_path):
    options = ("--drop", "id", "--drop", "town")
    assert "--drop is given twice" in said(
        "fit", folder / "homes.parquet", *FIT, "-o", tmp_path / "a", *options, code=2
    )
    assert not (tmp_path / "a").exists()


def test_a_model_learns_on_in_its_place_and_a_new_one_needs_a_place(folder, tmp_path):
    assert "--out is missing" in said("fit", folder / "homes.parquet", *FIT, code=2)
    shutil.copytree(folder / "model", tmp_path / "model")
    run("fit", folder / "homes.parquet", *FIT, "--update", tmp_path / "model")
    assert labeldp.load_model(tmp_path / "model").card.terms.rows == 800
    shown = run("verify", tmp_path / "model", "--json").stdout
    assert '"fit 2: agreement"' in shown  # without a comma, as names are in a list


def test_predictions_stay_with_their_rows_over_many_batches(folder, tmp_path):
    rows = homes(6000).drop_columns(["price", "id"])
    long = rows.append_column("text", pa.array([f"{row:02000d}" for row in range(6000)]))
    pa.csv.write_csv(long, tmp_path / "new.csv")  # of 12 MB: several blocks
    run("predict", folder / "model", tmp_path / "new.csv", "-o", tmp_path / "out.parquet")
    out = pa.parquet.read_table(tmp_path / "out.parquet")
    expected = labeldp.load_model(folder / "model").predict(rows)
    assert out["prediction"].to_numpy() == pytest.approx(expected, rel=1e-5)


# ---- the budget -------------------------------------------------------------------------------------------


def test_the_ledger_is_charged_once_for_exactly_epsilon_and_refuses_what_passes_its_limit(folder, tmp_path):
    book = tmp_path / "budget.db"
    paid = ("--ledger", book, "--limit", 3)
    assert "ε = 1 left" in said("fit", folder / "homes.parquet", *FIT, "-o", tmp_path / "model", *paid)
    assert labeldp.Ledger.open(book).total.epsilon == 2.0
    charges = labeldp.load_model(tmp_path / "model").card.terms.charges
    assert [c.description for c in charges] == [c.description for c in labeldp.Ledger.open(book).charges]
    before = book.read_bytes()
    words = said("fit", folder / "homes.parquet", *FIT, "-o", tmp_path / "again", *paid, code=3)
    assert "Nothing was spent" in words
    assert book.read_bytes() == before
    unpaid = ("--ledger", tmp_path / "new.db", "--limit", 3, "--score", 3.5)
    run("fit", folder / "homes.parquet", *FIT, "-o", tmp_path / "again", *unpaid, code=3)
    assert files_in(tmp_path) == ["budget.db", "model"]  # not even a new ledger


@pytest.mark.parametrize(("score", "total"), [(1.5, 2.0), (3.5, 3.5)])
def test_a_score_is_paid_for_and_said_on_the_screen_the_card_and_the_report(folder, tmp_path, score, total):
    book, page = tmp_path / "budget.db", tmp_path / "report.html"
    paid = ("--ledger", book, "--limit", 4, "--score", score)
    words = said("fit", folder / "homes.parquet", *FIT, "-o", tmp_path / "model", *paid)
    card = labeldp.load_model(tmp_path / "model").card
    assert (card.content["rows"], card.terms.cost.epsilon) == (360, total)
    assert set(card.content["quality"]["figures"]) == {"mse", "rmse", "mae"}
    assert labeldp.Ledger.open(book).total.epsilon == total
    run("report", tmp_path / "model", "-o", page, "--ledger", book)
    for text in (words, card.content["note"], page.read_text(), said("explain", tmp_path / "model")):
        assert f"ε = {total:g} in all" in text
    assert not [price for price in homes()["price"].to_pylist() if repr(price) in page.read_text()]


# ---- bad input --------------------------------------------------------------------------------------------


def with_prices(column):
    return homes(60).set_column(4, "price", column)


BAD = {
    "text in the label": (with_prices(pa.array(["3.25 pounds"] * 60)), [], "price|label"),
    "NaN in the label": (with_prices(pa.array([float("nan")] + [3.25] * 59)), [], "--missing drop"),
    "no label at all": (with_prices(pa.nulls(60, pa.float64())), ["--missing", "drop"], "label"),
    "only useless features": (homes(60).select(["id", "price"]), [], "no column is left"),
    "a score of nothing but noise": (homes(150), ["--score", 0.5], "would say nothing.*ε = 0.762 or more"),
    "too little epsilon to split": (homes(60), ["--release", "labels", "--epsilon", 0.001], "too small"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_gets_one_sentence_and_nothing_is_written_or_charged(what, tmp_path):
    table, options, sentence = BAD[what]
    pa.parquet.write_table(table, tmp_path / "homes.parquet")
    options = ["--ledger", tmp_path / "budget.db", *options]
    words = with_options((*FIT, "-o", tmp_path / "model"), *options)
    words = said("fit", tmp_path / "homes.parquet", *words, code=2)
    assert re.search(sentence, words)
    assert "3.25" not in words  # no label in a message
    assert files_in(tmp_path) == ["homes.parquet"]  # a new ledger comes with its first charge


@pytest.mark.slow
def test_one_place_for_two_purposes_is_refused_and_nothing_is_lost(folder, tmp_path):
    table, model, book = tmp_path / "homes.parquet", tmp_path / "model", tmp_path / "budget.db"
    table.write_bytes((folder / "homes.parquet").read_bytes())
    run("fit", table, *FIT, "-o", model, "--ledger", book)
    new = tmp_path / "new"
    shared = [
        ("fit", table, *FIT, "-o", table),
        ("fit", table, *FIT, "-o", new, "--ledger", new),
        ("fit", table, *FIT, "-o", model, "--ledger", model / "budget.db"),
        ("predict", model, table, "-o", table),
        ("predict", model, table, "-o", model / "model.npz"),
        ("report", model, "-o", model / "card.json"),
        ("report", model, "-o", book, "--ledger", book),
    ]
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for words in shared:
        assert re.search("lie in one place", said(*words, "--force", code=2)), words
    assert "--force" in said("fit", table, *FIT, "-o", model, "--ledger", book, code=2)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_predict_refuses_what_does_not_fit_and_writes_nothing(folder, tmp_path):
    fresh, damaged = homes(20), tmp_path / "damaged"
    damaged.mkdir()
    for each in (folder / "model").iterdir():
        (damaged / each.name).write_bytes(each.read_bytes()[:-1])
    for table, options, model, code in (
        (fresh.drop_columns(["town"]), (), folder / "model", 2),
        (fresh.set_column(1, "area", pa.array(["big"] * 20)), (), folder / "model", 2),
        (fresh, ("--column", "town"), folder / "model", 2),
        (fresh, (), tmp_path / "nowhere", 2),
        (fresh, (), damaged, 4),
    ):
        pa.parquet.write_table(table, tmp_path / "new.parquet")
        run("predict", model, tmp_path / "new.parquet", "-o", tmp_path / "out.csv", *options, code=code)
        assert files_in(tmp_path) == ["damaged", "new.parquet"]


# ---- trouble ----------------------------------------------------------------------------------------------


def started(*words, before="", **more):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", f"{before}from labeldp.app.cli import app; app()", *map(str, words)]
    return subprocess.Popen(command, env=env, stderr=subprocess.PIPE, **more)  # noqa: S603


ENDLESS = """
import time
from labeldp.learning import models
models.write_model = lambda *_, **__: time.sleep(600)
"""
"""However late the signal is: it does not end before."""


@pytest.mark.slow
@posix_only
def test_a_fit_that_is_stopped_leaves_no_model_and_the_ledger_tells_the_truth(tmp_path):
    pa.parquet.write_table(homes(8000), tmp_path / "homes.parquet")
    book = tmp_path / "budget.db"
    given = (*FIT, "-o", tmp_path / "model", "--release", "labels", "--ledger", book)
    process = started("fit", tmp_path / "homes.parquet", *given, before=ENDLESS)
    while not (book.exists() and labeldp.Ledger.open(book).charges) and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    errors = process.communicate(timeout=300)[1].decode()
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert labeldp.Ledger.open(book).total.epsilon == 2.0  # it was paid for, and may have been used
    assert files_in(tmp_path) == ["budget.db", "homes.parquet"]


@posix_only
@pytest.mark.parametrize("charged", [False, True])
def test_on_a_full_disk_a_fit_leaves_no_model_and_the_ledger_tells_the_truth(
    folder, tmp_path, monkeypatch, charged
):
    """It is refused before the charge, unless the space goes after it was checked."""
    import resource

    out, book = tmp_path / "out", tmp_path / "budget.db"
    out.mkdir()
    if charged:
        monkeypatch.setattr("labeldp.app.model_fit.refuse_size", lambda *_: None)
    with ExitStack() as later:
        room = resource.getrlimit(resource.RLIMIT_FSIZE)
        later.callback(resource.setrlimit, resource.RLIMIT_FSIZE, room)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, room[1]))  # as on a full disk, for any user
        words = said("fit", folder / "homes.parquet", *FIT, "-o", out / "model", "--ledger", book, code=1)
    assert not files_in(out)
    assert ("too large" if charged else "No space left") in words
    assert ("ε = 2 was charged before that, and stays spent" in words) is charged
    assert book.exists() is charged
    assert not charged or labeldp.Ledger.open(book).total.epsilon == 2.0  # paid and not released is safe
