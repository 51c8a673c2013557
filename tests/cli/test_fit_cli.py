"""``labeldp fit`` and ``predict`` as a user meets them: a model and predictions, or one clear sentence."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import labeldp
from labeldp import Ledger, RowRelease
from labeldp.cli import app
from labeldp.cli.fit import quality
from labeldp.files.models import load_model


def homes(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    area, town = rng.normal(size=rows), rng.choice(["York", "Bath", "Ely"], rows)
    price = 2.5 + np.tanh(area) + 0.7 * (town == "York") + rng.normal(size=rows) * 0.1
    return pa.table(
        {
            "id": [f"home {k}" for k in range(rows)],
            "area": pa.array(area, mask=rng.random(rows) < 0.05),
            "town": town,
            "lift": rng.random(rows) < 0.5,
            "price": price,
        }
    )


WRITE = {
    "csv": pa.csv.write_csv,
    "tsv": lambda t, p: pa.csv.write_csv(t, p, pa.csv.WriteOptions(delimiter="\t")),
    "parquet": pa.parquet.write_table,
    "feather": lambda t, p: pa.feather.write_feather(t, str(p)),
}
READ = {
    "csv": pa.csv.read_csv,
    "tsv": lambda p: pa.csv.read_csv(p, parse_options=pa.csv.ParseOptions(delimiter="\t")),
    "parquet": pa.parquet.read_table,
    "feather": lambda p: pa.feather.read_table(str(p)),
}


def ask(*words, code=0):
    """Run a command, and return what it said."""
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    assert done.exit_code == code, (done.output, done.exception)
    assert "Traceback" not in done.output
    return done.output


FIT = ("--label", "price", "--bounds", 0, 5, "--epsilon", 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table, and a model that learnt from it."""
    path = tmp_path_factory.mktemp("homes")
    pa.parquet.write_table(homes(), path / "homes.parquet")
    ask("fit", path / "homes.parquet", *FIT, "-o", path / "model")
    return path


# ---- what it does -----------------------------------------------------------------------------------------


def test_fit_then_predict_learns_from_numbers_text_and_gaps(folder, tmp_path):
    fresh = homes(seed=1)
    pa.parquet.write_table(fresh, tmp_path / "new.parquet")
    said = ask("predict", folder / "model", tmp_path / "new.parquet", "-o", tmp_path / "out.parquet")
    out = pa.parquet.read_table(tmp_path / "out.parquet")
    truth, predicted = out["price"].to_numpy(), out["prediction"].to_numpy()
    assert np.mean((truth - predicted) ** 2) < 0.6 * truth.var()
    assert out.drop_columns(["prediction"]).equals(fresh)  # other columns, and their types, are as they were
    assert "400 rows" in said
    assert "area: " in said
    assert "missing" in said
    assert "not private" in said  # the table had the true prices, which were copied


@pytest.mark.parametrize("kind", WRITE)
def test_every_kind_of_file_may_come_in_and_go_out(kind, folder, tmp_path):
    fresh = homes(50, seed=2).drop_columns(["price"])
    WRITE[kind](fresh, tmp_path / f"new.{kind}")
    out = tmp_path / f"out.{kind}"
    ask("predict", folder / "model", tmp_path / f"new.{kind}", "-o", out, "--column", "guess")
    expected = load_model(folder / "model").predict(fresh)
    assert READ[kind](out)["guess"].to_numpy() == pytest.approx(expected, rel=1e-5)


def test_fit_says_what_it_cost_how_good_it_should_be_and_what_was_left_out(tmp_path):
    pa.parquet.write_table(homes(), tmp_path / "homes.parquet")
    said = ask("fit", tmp_path / "homes.parquet", *FIT, "-o", tmp_path / "model")
    for words in (
        "A model learned from",
        "ε = 2 in all",
        "id was left out: nearly every row has a value of its own",
        "How good it is was not measured: --score",  # sums do not tell, and a guess would be taken for a measure
        "labeldp predict",
        "No ledger was kept",
    ):
        assert words in said
    assert load_model(tmp_path / "model").encoder.names == ["area", "town", "lift"]


@pytest.mark.filterwarnings("ignore::labeldp.InsecureRandomnessWarning")
def test_what_is_said_of_a_models_error_for_free_is_not_too_good():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    y = np.clip(2.5 + np.tanh(X[:, 0]) + rng.laplace(size=5000) * 0.5, 0, 5)  # tails that clipping hides
    shared = {"epsilon": 3.0, "bounds": (0, 5)}
    estimates = []
    for seed in range(5):
        model = labeldp.LabelReleaseRegressor(mechanism="rp", **shared, random_state=seed).fit(X[:300], y[:300])
        first, rest = quality(model, X[:300])
        error = np.mean((model.predict(X[300:]) - y[300:]) ** 2)
        estimates.append(float(re.search(r"mean squared error ([0-9.]+) ±", rest)[1]) / error)
        assert error < float(re.search(r"±([0-9.]+) or less", first)[1]) ** 2 < 3 * error
    assert min(estimates) < 1  # the estimate alone is too good as often as not
    model = labeldp.ModelReleaseRegressor(**shared, random_state=0).fit(X[:300], y[:300])
    assert not re.search("±|typical", quality(model, X[:300])[0])  # its own idea of its error is an assumption


def test_a_report_explains_the_model_and_is_not_overwritten(folder, tmp_path):
    page, book = tmp_path / "report.html", tmp_path / "budget.jsonl"
    wanted = ("--report", page, "--ledger", book, "--limit", 5)
    said = ask("fit", folder / "homes.parquet", *FIT, "-o", tmp_path / "model", *wanted)
    assert "The report is in" in said
    html = page.read_text()
    for words in ("How good the model should be", "The public columns", "nearly every row", "7.39"):  # e²
        assert words in html
    assert not [price for price in homes()["price"].to_pylist() if repr(price) in html]
    said = ask("fit", folder / "homes.parquet", *FIT, "-o", tmp_path / "other", *wanted, code=2)
    assert "exists already" in said
    assert Ledger.open(book).total.epsilon == 2.0
    assert not (tmp_path / "other").exists()


def test_private_labels_are_in_the_folder_if_they_are_released_and_only_then(folder, tmp_path):
    pa.parquet.write_table(homes(150), tmp_path / "few.parquet")
    said = ask("fit", tmp_path / "few.parquet", *FIT, "-o", tmp_path / "model", "--release", "labels")
    assert "private labels are in" in said
    assert re.search(r"at no further cost: a typical error of ±[0-9.]+ or less|was not measured", said)
    kept = RowRelease.load(tmp_path / "model" / "release.npz")
    assert kept.secure
    assert kept.labels.size == 150
    assert not np.isin(homes()["price"].to_numpy(), kept.labels).any()
    assert not (folder / "model" / "release.npz").exists()


def test_columns_may_be_chosen_dropped_or_taken_as_names(folder, tmp_path):
    ask("fit", folder / "homes.parquet", *FIT, "-o", tmp_path / "a", "--features", "town,area")
    assert load_model(tmp_path / "a").encoder.names == ["town", "area"]
    ask("fit", folder / "homes.parquet", *FIT, "-o", tmp_path / "b", "--drop", "id, lift", "--categories", "town")
    assert load_model(tmp_path / "b").encoder.names == ["area", "town"]


def test_rows_without_a_label_are_left_out_only_if_that_is_asked_for(tmp_path):
    table = homes(80)
    gaps = pa.array([None if k % 8 == 3 else float(v) for k, v in enumerate(table["price"].to_numpy())])
    pa.parquet.write_table(table.set_column(4, "price", gaps), tmp_path / "homes.parquet")
    said = ask("fit", tmp_path / "homes.parquet", *FIT, "-o", tmp_path / "model", code=2)
    assert "--missing drop" in said
    said = ask("fit", tmp_path / "homes.parquet", *FIT, "-o", tmp_path / "model", "--missing", "drop")
    assert "10 rows without a label were left out" in said
    assert load_model(tmp_path / "model").card.content["rows"] == 70


def test_text_files_keep_every_digit_and_zeros_that_lead(folder, tmp_path):
    rows = [f"{k % 3:03d},{k}.500,{['York', 'Bath', ''][k % 3]},{k / 7:.9f}" for k in range(90)]
    (tmp_path / "codes.csv").write_text("\n".join(["code,area,town,price", *rows]) + "\n")
    coded = ("--bounds", 0, 15, "--categories", "code")
    ask("fit", tmp_path / "codes.csv", *FIT, *coded, "-o", tmp_path / "model")
    encoder = load_model(tmp_path / "model").encoder
    assert encoder.texts == ["code", "town"]
    assert set(encoder.columns[0].values) == {"000", "001", "002"}
    assert set(encoder.columns[2].values) == {"York", "Bath"}  # a gap is no town
    said = ask("predict", tmp_path / "model", tmp_path / "codes.csv", "-o", tmp_path / "out.csv")
    assert "new since the fit" not in said
    out = (tmp_path / "out.csv").read_text().replace('"', "").splitlines()
    assert out[0] == "code,area,town,price,prediction"
    assert [line.rsplit(",", 1)[0] for line in out[1:]] == rows


def test_predictions_stay_with_their_rows_over_many_batches_and_files(folder, tmp_path):
    parts = [homes(3000, seed=k).drop_columns(["price", "id"]) for k in range(2)]
    (tmp_path / "new").mkdir()
    for k, part in enumerate(parts):
        long = part.append_column("text", pa.array([f"{row:02000d}" for row in range(3000)]))
        pa.csv.write_csv(long, tmp_path / "new" / f"part-{k}.csv")  # of 6 MB: several blocks
    ask("predict", folder / "model", tmp_path / "new" / "*.csv", "-o", tmp_path / "out.parquet")
    out = pa.parquet.read_table(tmp_path / "out.parquet")
    assert out["prediction"].to_numpy() == pytest.approx(
        load_model(folder / "model").predict(pa.concat_tables(parts)), rel=1e-5
    )


# ---- the budget -------------------------------------------------------------------------------------------


def test_the_ledger_is_charged_once_for_exactly_epsilon_and_refuses_what_passes_its_limit(folder, tmp_path):
    book = tmp_path / "budget.jsonl"
    paid = ("--ledger", book, "--limit", 3)
    said = ask("fit", folder / "homes.parquet", *FIT, "-o", tmp_path / "model", *paid)
    assert "ε = 1 left" in said
    assert Ledger.open(book).total.epsilon == 2.0
    card = load_model(tmp_path / "model").card
    assert [c.what for c in card.terms.charges] == [c.what for c in Ledger.open(book).charges]
    before = book.read_bytes()
    said = ask("fit", folder / "homes.parquet", *FIT, "-o", tmp_path / "again", *paid, code=3)
    assert "nothing was spent or released" in said
    assert book.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["budget.jsonl", "model"]


def test_a_score_is_measured_on_rows_that_were_held_out_and_paid_for(folder, tmp_path):
    book, source = tmp_path / "budget.jsonl", folder / "homes.parquet"
    paid = ("--ledger", book, "--limit", 4, "--score", 1.5)
    said = ask("fit", source, *FIT, "-o", tmp_path / "model", *paid)
    assert "Measured on rows held out, for ε = 1.5 more: mean squared error" in said
    assert "costs ε = 1.5 on top of the model: ε = 3.5 in all" in said
    assert "from 40 rows" in said
    assert load_model(tmp_path / "model").card.content["rows"] == 360
    assert load_model(tmp_path / "model").card.terms.cost.epsilon == 2.0
    assert [charge.what for charge in Ledger.open(book).charges][-1] == "score"
    assert Ledger.open(book).total.epsilon == 3.5


def test_a_score_that_cannot_be_paid_is_refused_before_the_model_is(folder, tmp_path):
    book, source = tmp_path / "budget.jsonl", folder / "homes.parquet"
    ask("fit", source, *FIT, "-o", tmp_path / "m", "--ledger", book, "--limit", 3, "--score", 1.5, code=3)
    assert not list(tmp_path.iterdir())  # not even a new ledger


def test_a_report_says_all_that_the_ledger_does_and_what_a_score_on_other_rows_means(folder, tmp_path):
    book, page = tmp_path / "budget.jsonl", tmp_path / "report.html"
    paid = ("--ledger", book, "--limit", 4, "--score", 1.5, "--report", page)
    ask("fit", folder / "homes.parquet", *FIT, "-o", tmp_path / "model", *paid)
    html = page.read_text()
    assert "This cost ε = 3.5 in all." in html
    assert "left is ε = 0.5" in html
    assert "<td>score</td><td>1.5</td>" in html
    assert "spent on other releases" not in html
    assert "does not hold all charges" not in html
    assert "exposed to the larger of the two" in html
    note = load_model(tmp_path / "model").card.content["note"]
    assert "ε = 3.5 in all" in note
    later = tmp_path / "later.html"
    ask("report", tmp_path / "model", "-o", later)
    assert "ε = 3.5 in all" in later.read_text()


def test_a_score_with_delta_and_several_rows_a_person_is_refused_only_if_it_cannot_be_paid(tmp_path):
    rng = np.random.default_rng(0)  # so many columns, so few rows and so large a δ that Gaussian noise is chosen
    wide = {f"x{k}": rng.normal(size=120) for k in range(40)}
    pa.parquet.write_table(pa.table({**wide, "price": rng.uniform(0, 5, 120)}), tmp_path / "wide.parquet")

    def asked(name, most, code=0):
        given = ("--label", "price", "--bounds", 0, 5, "--epsilon", 1, "--delta", 0.1, "--score", 1)
        limits = ("--rows-per-person", 2, "--limit", 4, "--limit-delta", most, "--ledger", tmp_path / f"{name}.b")
        return ask("fit", tmp_path / "wide.parquet", *given, *limits, "-o", tmp_path / name, code=code)

    # The model is charged in two parts, 2 · e^ε · δ each with its own ε and δ: 0.33 in all. For ε and the score
    # together it would be 2 · e² · 0.1 = 1.5, for the model in one part 0.54.
    asked("paid", 0.34)
    spent = Ledger.open(tmp_path / "paid.b").total
    assert spent.epsilon == 4.0
    assert 0.3 < spent.delta < 0.34
    assert "nothing was spent" in asked("less", 0.3, code=3)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["paid", "paid.b", "wide.parquet"]


# ---- bad input --------------------------------------------------------------------------------------------


def changed(name, column):
    table = homes(60)
    return table.set_column(table.schema.get_field_index(name), name, column)


BAD = {
    "a misspelt label": (homes(60), ["--label", "prise"], "price"),
    "a misspelt feature": (homes(60), ["--features", "are"], "area"),
    "a misspelt column to drop": (homes(60), ["--drop", "twon"], "town"),
    "the label as a feature": (homes(60), ["--features", "area,price"], "is the label"),
    "text in the label": (changed("price", pa.array(["3.25 pounds"] * 60)), [], "price|label"),
    "booleans in the label": (changed("price", pa.array([True, False] * 30)), [], "price|label"),
    "NaN in the label": (changed("price", pa.array([float("nan")] + [3.25] * 59)), [], "--missing drop"),
    "no label at all": (changed("price", pa.nulls(60, pa.float64())), ["--missing", "drop"], "label"),
    "no rows": (homes(60).slice(0, 0), [], "no rows"),
    "no features": (homes(60).select(["price"]), [], "no column is left"),
    "only useless features": (homes(60).select(["id", "price"]), [], "no column is left"),
    "bounds the wrong way round": (homes(60), ["--bounds", 5, 0], "lo < hi"),
    "bounds that are no numbers": (homes(60), ["--bounds", "nan", 5], "NaN"),
    "no budget": (homes(60), ["--epsilon", 0], "must be positive"),
    "infinite budget": (homes(60), ["--epsilon", "inf"], "no privacy at all"),
    "a limit without a ledger": (homes(60), ["--limit", 3, "--no-ledger"], "--ledger"),
    "delta for labels": (homes(60), ["--release", "labels", "--delta", 1e-6], "--delta"),
    "a score of nothing": (homes(60), ["--score", 0], "must be positive"),
    "a score on a handful of rows": (homes(60), ["--score", 1], "too few"),
    "a folder that is nowhere": (homes(60), ["-o", "/no/where/model"], "create it first"),
    "delta of one": (homes(60), ["--delta", 1], "delta"),
    "too little epsilon to split": (homes(60), ["--release", "labels", "--epsilon", 0.001], "too small"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_gets_one_sentence_and_nothing_is_written_or_charged(what, tmp_path):
    table, options, words = BAD[what]
    pa.parquet.write_table(table, tmp_path / "homes.parquet")
    book = [] if "--no-ledger" in options else ["--ledger", tmp_path / "budget.jsonl"]
    options = [option for option in options if option != "--no-ledger"]
    said = ask("fit", tmp_path / "homes.parquet", *FIT, "-o", tmp_path / "model", *book, *options, code=2)
    assert re.search(words, said)
    assert "3.25" not in said  # no label in a message
    left = {each.name for each in tmp_path.iterdir()}
    assert left == {"homes.parquet"}  # a new ledger comes with its first charge


def test_what_is_said_before_the_noise_does_not_depend_on_labels(tmp_path):
    said = []
    for prices in (np.linspace(0, 5, 60), np.full(60, 3.25), np.full(60, 1e9)):
        pa.parquet.write_table(changed("price", pa.array(prices)), tmp_path / "homes.parquet")
        words = ask("fit", tmp_path / "homes.parquet", *FIT, "-o", tmp_path / "model", "--force")
        said.append(words.split("label differential privacy")[0])  # what follows was paid for
    assert "left out" in said[0]
    assert said[0] == said[1] == said[2]


def test_a_model_is_not_overwritten_and_nothing_is_charged_for_trying(folder, tmp_path):
    before = (folder / "model" / "card.json").read_bytes()
    book = tmp_path / "budget.jsonl"
    said = ask("fit", folder / "homes.parquet", *FIT, "-o", folder / "model", "--ledger", book, code=2)
    assert "--force" in said
    assert not book.exists()
    assert (folder / "model" / "card.json").read_bytes() == before


def test_one_place_for_two_purposes_is_refused_and_nothing_is_lost(folder, tmp_path):
    table, model, book = tmp_path / "homes.parquet", tmp_path / "model", tmp_path / "budget.jsonl"
    table.write_bytes((folder / "homes.parquet").read_bytes())
    ask("fit", table, *FIT, "-o", model, "--ledger", book)
    page = tmp_path / "page.html"
    ask("report", model, "-o", page, "--ledger", book)
    shared = [
        ("fit", table, *FIT, "-o", tmp_path / "new", "--ledger", book, "--report", book),
        ("fit", table, *FIT, "-o", tmp_path / "new", "--report", table),
        ("fit", table, *FIT, "-o", table),
        ("fit", table, *FIT, "-o", tmp_path / "new", "--ledger", table),
        ("fit", table, *FIT, "-o", tmp_path / "new", "--ledger", tmp_path / "new"),
        ("fit", table, *FIT, "-o", model, "--ledger", model / "budget.jsonl"),
        ("fit", table, *FIT, "-o", model, "--report", model / "page.html"),
        ("predict", model, table, "-o", table),
        ("predict", model, table, "-o", model / "model.npz"),
        ("compare", table, *FIT[:5], "--public", "--report", table),
        ("compare", table, *FIT[:5], "--public", "--plot", tmp_path / "a.svg", "--report", tmp_path / "a.svg"),
        ("report", model, "-o", model / "card.json"),
        ("report", model, "-o", book, "--ledger", book),
    ]
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for words in shared:
        said = ask(*words, "--force", code=2)
        assert "the same file" in said or "lies in the folder" in said, words
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_what_came_into_a_models_folder_while_it_was_fitted_is_not_removed(folder, tmp_path, monkeypatch):
    ask("fit", folder / "homes.parquet", *FIT, "-o", tmp_path / "model")
    fit = labeldp.ModelReleaseRegressor.fit

    def slow(*words):
        (tmp_path / "model" / "budget.jsonl").write_text("a ledger, say")
        return fit(*words)

    monkeypatch.setattr(labeldp.ModelReleaseRegressor, "fit", slow)
    said = ask("fit", folder / "homes.parquet", *FIT, "-o", tmp_path / "model", "--force", code=2)
    assert "other files in it" in said
    assert (tmp_path / "model" / "budget.jsonl").read_text() == "a ledger, say"
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


def test_predict_refuses_what_does_not_fit_and_writes_nothing(folder, tmp_path):
    def refused(table, *options, model=folder / "model", code=2):
        pa.parquet.write_table(table, tmp_path / "new.parquet")
        said = ask("predict", model, tmp_path / "new.parquet", "-o", tmp_path / "out.csv", *options, code=code)
        assert [each.name for each in tmp_path.iterdir()] == ["new.parquet"]
        return said

    fresh = homes(20)
    assert "'area' is near" not in refused(fresh.drop_columns(["town"]))
    assert "'twon' is near" in refused(fresh.rename_columns(["id", "area", "twon", "lift", "price"]))
    assert "held numbers" in refused(fresh.set_column(1, "area", pa.array(["big"] * 20)))
    assert "--column" in refused(fresh, "--column", "price")
    assert "no model here" in refused(fresh, model=tmp_path / "nowhere")
    damaged = folder / "damaged"
    damaged.mkdir()
    for each in (folder / "model").iterdir():
        (damaged / each.name).write_bytes(each.read_bytes()[:-1])
    refused(fresh, model=damaged, code=4)


def test_predict_does_not_overwrite_a_table_without_force(folder, tmp_path):
    (tmp_path / "out.csv").write_text("mine")
    ask("predict", folder / "model", folder / "homes.parquet", "-o", tmp_path / "out.csv", code=2)
    assert (tmp_path / "out.csv").read_text() == "mine"
    ask("predict", folder / "model", folder / "homes.parquet", "-o", tmp_path / "out.csv", "--force")
    assert READ["csv"](tmp_path / "out.csv").num_rows == 400


# ---- real processes ---------------------------------------------------------------------------------------

COMMAND = [sys.executable, "-c", "from labeldp.cli import app; app()"]


def started(*words, **more):
    source = os.path.dirname(os.path.dirname(labeldp.__file__))
    env = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([*COMMAND, *map(str, words)], env=env, stderr=subprocess.PIPE, **more)  # noqa: S603


def test_without_pyarrow_a_fit_names_the_extra_and_help_still_works(tmp_path):
    block = "import sys; sys.modules['pyarrow'] = None; sys.modules['matplotlib'] = None; "
    for words, code in ((["--help"], 0), (["fit", "homes.csv", *map(str, FIT), "-o", "model"], 1)):
        asked = subprocess.run(  # noqa: S603
            [sys.executable, "-c", block + COMMAND[-1], *words],
            env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(labeldp.__file__))},
            cwd=tmp_path,
            capture_output=True,
            check=False,
            text=True,
        )
        assert asked.returncode == code, asked.stderr
    assert "labeldp[files]" in asked.stderr
    assert "Traceback" not in asked.stderr
    assert not list(tmp_path.iterdir())


def test_a_table_may_come_through_a_pipe_and_leave_through_one(folder):
    fresh = homes(30, seed=5).drop_columns(["price"])
    text = pa.BufferOutputStream()
    pa.csv.write_csv(fresh, text)
    asked = started("predict", folder / "model", "-", "-o", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, told = asked.communicate(text.getvalue().to_pybytes(), timeout=120)
    assert asked.returncode == 0, told
    predicted = pa.csv.read_csv(pa.BufferReader(out))["prediction"].to_numpy()
    assert predicted == pytest.approx(load_model(folder / "model").predict(fresh), rel=1e-5)


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_fit_that_is_stopped_leaves_no_model_and_the_ledger_tells_the_truth(kind, tmp_path):
    pa.parquet.write_table(homes(8000), tmp_path / "homes.parquet")
    book = tmp_path / "budget.jsonl"
    asked = started(
        "fit", tmp_path / "homes.parquet", *FIT, "-o", tmp_path / "model", "--release", "labels", "--ledger", book
    )
    deadline = time.monotonic() + 120
    while not (book.exists() and Ledger.open(book).charges) and time.monotonic() < deadline:
        time.sleep(0.02)
    asked.send_signal(kind)
    told = asked.communicate(timeout=120)[1].decode()
    assert asked.returncode == 130, told
    assert "Traceback" not in told
    assert Ledger.open(book).total.epsilon == 2.0  # it was paid for, and may have been used
    assert sorted(each.name for each in tmp_path.iterdir()) == ["budget.jsonl", "homes.parquet"]


def test_on_a_full_disk_a_fit_leaves_no_model_and_the_ledger_tells_the_truth(folder, tmp_path):
    out, book = tmp_path / "out", tmp_path / "budget.jsonl"
    out.mkdir()
    with ExitStack() as later:
        room = resource.getrlimit(resource.RLIMIT_FSIZE)
        later.callback(resource.setrlimit, resource.RLIMIT_FSIZE, room)
        resource.setrlimit(
            resource.RLIMIT_FSIZE, (16_384, room[1])
        )  # as on a full disk, but any user may ask for it
        said = ask("fit", folder / "homes.parquet", *FIT, "-o", out / "model", "--ledger", book, code=1)
    assert not list(out.iterdir())
    assert "too large" in said
    assert "ε = 2 was charged before that, and stays spent" in said
    assert Ledger.open(book).total.epsilon == 2.0  # paid and not released is safe
