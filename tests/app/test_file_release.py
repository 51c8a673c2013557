"""`privatize_file` with a model: labels that know the public columns which are written, and no others."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

import labeldp as ldp
from accounts.test_verify_card import VALID, mine
from labeldp.accounts import Card
from labeldp.accounts.terms import card_of_labels
from labeldp.app import file_labels
from labeldp.app.card_check import verify_files
from labeldp.errors import Message, WeakModelWarning
from labeldp.learning.label_regressor import LabelReleaseRegressor
from labeldp.tables.paths import sha256

ROWS = 1500
ABOUT = {"label": "price", "bounds": (0.0, 10.0), "epsilon": 1.0}
rng = np.random.default_rng(3)
AREA, TOWN, CODE = rng.normal(size=ROWS), rng.choice(["Bath", "York"], ROWS), rng.integers(0, 100, ROWS)
PRICE = np.clip(4 + 1.5 * AREA + (TOWN == "Bath") + 0.3 * rng.normal(size=ROWS), 0, 10)
NAMES = [f"flat {row}" for row in range(ROWS)]


@pytest.fixture
def source(place):
    """A table with a column that is all but the label, one of no use, and numbers that need quotes nowhere."""
    frame = pd.DataFrame(
        {"name": NAMES, "area": AREA, "town": TOWN, "code": CODE, "price": PRICE, "tax": PRICE / 5}
    )
    frame.to_csv("in.csv", index=False)
    frame.to_parquet("in.parquet")
    return "in.csv"


def release(source, out="out.csv", **options):
    return ldp.privatize_file(source, out, **{**ABOUT, "drop": ["tax"], **options})


def read(path):
    """Read a table as a recipient does."""
    if path.endswith("parquet"):
        return pd.read_parquet(path).astype({"area": float})
    return pd.read_csv(path, sep="\t" if path.endswith("tsv") else ",")


def public(frame):
    return pd.get_dummies(frame[["area", "town", "code"]], dtype=float)


def error_of(frame):
    """Return the error on true labels of trees that a recipient trains on half of a released table."""
    half = ROWS // 2
    trees = HistGradientBoostingRegressor(random_state=0).fit(public(frame)[:half], frame["price"][:half])
    return float(np.mean((trees.predict(public(frame)[half:]) - PRICE[half:]) ** 2))


def refused(source, error=ldp.LabelDPError, **options):
    """Return the error of a release that charges nothing and writes nothing."""
    ledger, before = ldp.Ledger(), sorted(Path().iterdir())
    with pytest.raises(error) as caught:
        release(source, ledger=ledger, **options)
    assert ledger.charges == ()
    assert sorted(Path().iterdir()) == before
    return caught.value


@pytest.mark.filterwarnings("ignore:The labels of")
@pytest.mark.parametrize(
    ("form", "to", "options"),
    [
        ("csv", "csv", {"model": False}),
        ("csv", "parquet", {"model": False, "shuffle": True}),
        ("parquet", "parquet", {"shuffle": True}),
        ("csv", "tsv", {}),
    ],
)
def test_rows_of_people_without_budget_keep_their_place_with_an_empty_label(place, form, to, options):
    """Ids are read and not written, and the card counts the labels that are there."""
    people = [f"0{number}" for number in rng.integers(0, 900, ROWS)]
    frame = pd.DataFrame({"row": NAMES, "person": people, "area": AREA, "price": PRICE})
    frame.to_csv("in.csv", index=False)
    frame.to_parquet("in.parquet")
    ledger = ldp.Ledger.open("people.db", limit=ldp.Budget(2.0), unit="person")
    ids = {"id": "row", "person": "person", "drop": ["row", "person"], "segment": "s", "most_rows_per_person": 2}
    spent = dict.fromkeys(people, 0)
    for number in range(3):
        out = f"out{number}.{to}"
        if number == 2:
            with pytest.raises(ldp.BudgetError):
                release(f"in.{form}", out, ledger=ledger, **ids, **options)
            break
        done = release(f"in.{form}", out, ledger=ledger, **ids, **options)
        written = read(out).sort_values("area")
        assert list(written) == ["area", "price"]
        assert len(written) == ROWS
        assert verify_files(done.card, file=out, ledger=ledger).holds
        for person, label in zip(frame.sort_values("area")["person"], written["price"], strict=True):
            spent[person] += not np.isnan(label)
    assert max(spent.values()) == 2, "people with one row are in two releases, all others in one"
    counted = {person: ledger.total_of_person(person).epsilon for person in list(spent)[:50]}
    assert counted == {person: spent[person] for person in counted}


def test_a_column_that_says_who_has_a_row_is_neither_its_id_nor_the_label(source):
    for ids in (
        {"person": "price"},
        {"id": "price", "segment": "s"},
        {"id": "name", "person": "name", "segment": "s"},
    ):
        assert refused(source, **ids).option in ids or "id of rows" in str(refused(source, **ids))


def test_ids_of_text_files_are_text_for_every_command(place):
    """So 007 and 7 are two ids, and no guess at the type of a column changes whose account is charged."""
    frame = pd.DataFrame({"person": np.arange(ROWS), "area": AREA, "price": PRICE})
    frame.to_csv("in.csv", index=False)
    ledger = ldp.Ledger.open("people.db", limit=ldp.Budget(3.0), unit="person")
    for to in ("csv", "parquet"):
        release("in.csv", f"out.{to}", ledger=ledger, person="person", drop=["person"], model=False)
    ldp.fit_file("in.csv", "model", **ABOUT, ledger=ledger, person="person")
    assert {ledger.total_of_person(str(number)).epsilon for number in range(0, ROWS, 300)} == {3}
    frame.assign(person=frame["person"].astype(float)).to_csv("floats.csv", index=False)
    with pytest.raises(ldp.errors.ParameterError, match="person"):
        release("floats.csv", "floats-out.csv", ledger=ledger, person="person", drop=["person"], model=False)


@pytest.mark.parametrize(("form", "to"), [("csv", "csv"), ("csv", "parquet"), ("parquet", "tsv")])
def test_a_recipient_trains_trees_as_the_card_says(source, form, to):
    """The stated error is of the model; trees on the column may be half as wrong again, or a third less."""
    done = release(f"in.{form}", f"out.{to}", ledger=(ledger := ldp.Ledger()))
    assert ledger.charges == done.terms.charges
    assert ledger.total == ldp.Budget(1.0)
    frame = read(f"out.{to}")
    assert frame["name"].tolist() == NAMES
    np.testing.assert_allclose(frame["area"], AREA)
    content = json.loads(done.card)
    assert content["features"] == ["area", "town", "code"]
    assert content["purpose"] == "training"
    stated = content["quality"]["figures"]["mse"]
    assert content["residual_variance"] == stated["value"] == done.release.error.mse
    error = error_of(frame)
    low, high = stated["value"] - 2 * stated["standard_error"], done.release.error.figures["mse"].limit
    assert 0.6 * low < error < 1.5 * high
    assert error < 0.2 * np.var(PRICE)
    (step,) = content["rounding"]
    np.testing.assert_array_equal(frame["price"], np.round(done.release.labels, -round(np.log10(step))))
    assert 1e-3 < step / np.sqrt(stated["value"]) <= 0.01


def test_without_a_model_the_same_trees_are_far_worse(source):
    """The twin of the test above."""
    done = release(source, model=False)
    assert "features" not in json.loads(done.card)
    assert done.release is None
    assert error_of(pd.read_csv("out.csv")) > 0.3 * np.var(PRICE)


def test_a_column_that_is_left_out_has_no_part_in_labels(source):
    """The column gives the label away: labels that knew it would equal their truth."""
    errors = {}
    for drop in ([], ["tax"]):
        release(source, drop=drop, epsilon=2.0)
        errors[bool(drop)] = np.mean((pd.read_csv("out.csv")["price"] - PRICE) ** 2)
        Path("out.csv").unlink()
        Path("out.csv.card.json").unlink()
    assert errors[False] < 0.01
    assert errors[True] > 0.03


def test_shuffled_rows_keep_their_labels(source):
    """Their order is not that of the model, so nobody can compare the two."""
    done = release(source, shuffle=True, save_model="model")
    frame = pd.read_csv("out.csv")
    assert frame["name"].tolist() != NAMES
    place = {name: row for row, name in enumerate(NAMES)}
    true = PRICE[[place[name] for name in frame["name"]]]
    assert np.corrcoef(frame["price"], true)[0, 1] > 0.9
    assert checked(done.card, "out.csv") is None


def test_rows_without_a_label_are_left_out(source):
    frame = pd.read_csv(source)
    frame.loc[::7, "price"] = np.nan
    frame.to_csv(source, index=False)
    steps: list[str] = []
    done = release(source, missing="drop", progress=lambda step, *_: steps.append(step))
    kept = np.arange(ROWS) % 7 != 0
    assert done.terms.rows == kept.sum()
    result = pd.read_csv("out.csv")
    assert result["name"].tolist() == [name for name, keep in zip(NAMES, kept, strict=True) if keep]
    assert np.corrcoef(result["price"], PRICE[kept])[0, 1] > 0.9
    shown = list(dict.fromkeys(steps))
    assert (shown[:2], shown[-1]) == (["Opening", "Counting"], "Releasing")
    assert {"Fitting a model: sums", "Fitting a model: labels"} <= set(shown)


ALONE = [
    {"model": False},
    {"mechanism": "laplace"},
    {"mechanism": ldp.Laplace(bounds=(0, 10), epsilon=1.0)},
    {"zeta": 1.0},
    {"epsilon_prior": 0.1},
    {"prior": ldp.Histogram((0, 10), [1.0])},
    {"trust": "local"},
    {"purpose": "statistics"},
    {"purpose": "values"},
]


@pytest.mark.parametrize("options", ALONE, ids=lambda options: next(iter(options)))
def test_options_of_one_mechanism_mean_that_alone(source, options, recwarn):
    done = release(source, **options)
    assert "features" not in json.loads(done.card)
    assert len(done.terms.mechanisms) == 1
    assert not [warning for warning in recwarn if issubclass(warning.category, WeakModelWarning)]


# ---- several labels of a row ----------------------------------------------------------------------------------

BOTH = {"label": ["price", "rent"], "bounds": [(0.0, 10.0), (0.0, 5.0)]}
RENT = np.clip(2 + AREA - (TOWN == "Bath"), 0, 5)


@pytest.fixture
def two_labels(source):
    frame = pd.read_csv(source)
    frame.insert(0, "rent", RENT)
    frame.to_csv(source, index=False)
    frame.to_parquet("in.parquet")
    return source


@pytest.mark.parametrize(("form", "to"), [("csv", "csv"), ("parquet", "parquet")])
@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"model": False}, {"purpose": "statistics"}], ids=str)
def test_several_labels_share_epsilon_and_have_one_card(two_labels, form, to, options):
    """No label is a feature of another, and both programs that verify cards agree."""
    ledger = ldp.Ledger(limit=ldp.Budget(2.0))
    done = release(f"in.{form}", f"out.{to}", **BOTH, epsilon=2.0, shares=[3, 1], ledger=ledger, **options)
    assert ledger.total == done.terms.cost == ldp.Budget(2.0)
    assert verify_files(done.card, file=f"out.{to}", ledger=ledger).holds
    assert mine(done.card)[0] == VALID
    content = json.loads(done.card)
    assert [label["label"] for label in content["labels"]] == BOTH["label"]
    assert [label["cost"]["epsilon"] for label in content["labels"]] == [1.5, 0.5]
    frame, has_model = read(f"out.{to}"), not options.keys() & {"model", "purpose"}
    for label, true in zip(content["labels"], (PRICE, RENT), strict=True):
        assert label.get("features") == (["area", "town", "code"] if has_model else None)
        private = frame.set_index("name")[label["label"]].loc[NAMES].to_numpy()
        assert not has_model or np.corrcoef(private, true)[0, 1] > 0.8
        assert len(np.unique(private)) > 1
    if has_model:
        assert list(done.release.columns) == BOTH["label"]


@pytest.mark.parametrize("shares", [[1, 1], [3, 1]])
def test_the_cost_of_several_labels_is_stated_once_for_all_and_once_for_each(two_labels, shares):
    done = release("in.csv", "out.csv", **BOTH, epsilon=2.0, shares=shares, purpose="statistics")
    costs = [2 * share / sum(shares) for share in shares]
    assert Card.parse(done.card).explain().sections["What it cost"] == (
        "ε = 2 for all labels of a row:",
        f"price: {costs[0]:g} for labels of 'price'",
        f"rent: {costs[1]:g} for labels of 'rent'",
    )


def test_a_card_of_several_labels_is_compared_with_its_file(two_labels):
    """The twin: a label that the mechanism cannot have given, and a column that is not in the file."""
    done = release(two_labels, **BOTH, epsilon=2.0, mechanism="two-point")
    content = json.loads(done.card)
    contents = {label["label"]: label for label in content["labels"]}
    table = pd.read_csv("out.csv")
    table.loc[7, "rent"] += 0.5
    table.to_csv("out.csv", index=False)
    file = {**content["file"], "sha256": sha256("out.csv")}
    parts = {
        name: (column.terms, {key: contents[name][key] for key in ("purpose", "rounding")})
        for name, column in Card.parse(done.card).labels.items()
    }
    checks = verify_files(card_of_labels(parts, file=file), file="out.csv").checks
    assert [check.holds for check in checks if check.name == "noisy labels"] == [True, False]
    lacking = {**file, "columns": [name for name in file["columns"] if name != "rent"]}
    assert not verify_files(card_of_labels(parts, file=lacking), file="out.csv").holds


def test_a_row_that_lacks_one_of_its_labels_is_left_out(two_labels):
    frame = pd.read_csv(two_labels)
    frame.loc[::7, "price"] = np.nan
    frame.loc[::5, "rent"] = np.nan
    frame.to_csv(two_labels, index=False)
    assert "missing" in str(refused(two_labels, **BOTH))
    done = release(two_labels, **BOTH, missing="drop", model=False)
    kept = [name for row, name in enumerate(NAMES) if row % 7 and row % 5]
    assert pd.read_csv("out.csv")["name"].tolist() == kept
    assert done.terms.rows == len(kept)


WRONG = [
    {"label": ["price", "price"]},
    {"label": []},
    {"label": ["price", "rents"]},
    {"label": ["price", "name"]},
    {"label": ["price", "rent"], "drop": ["rent"]},
    {"label": ["price", "rent"], "bounds": [(0, 10)] * 3},
    {"label": ["price", "rent"], "shares": [1]},
    {"label": ["price", "rent"], "shares": [1, 0]},
    {"label": ["price", "rent"], "save_model": "model"},
    {"label": ["price", "rent"], "person": "rent"},
]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_what_is_wrong_with_several_labels_is_said_before_the_charge(two_labels, options):
    refused(two_labels, **options)


def test_a_budget_for_one_of_two_labels_pays_for_none(two_labels):
    ledger = ldp.Ledger(limit=ldp.Budget(0.75))
    with pytest.raises(ldp.BudgetError):
        release(two_labels, **BOTH, model=False, ledger=ledger)
    assert ledger.charges == ()
    assert not list(Path().glob("out*"))


# ---- no model, said before the charge --------------------------------------------------------------------------


class StopError(Exception):
    """The owner does not want labels without a model."""


def stop(sentence):
    assert isinstance(sentence, Message)
    raise StopError(sentence)


LARGE = "tables.memory.free_memory"
WITHOUT = {
    "no column is of use": ({"drop": ["tax", "area", "town", "code"]}, "nearly every row has a value of its own"),
    "there is no other column": ({"drop": ["tax", "area", "town", "code", "name"]}, "no public column"),
    "the memory is too small": ({}, "too large for a model"),
}


@pytest.mark.parametrize("case", WITHOUT)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_that_there_is_no_model_is_said_before_the_charge(source, case, form, set_constants):
    options, words = WITHOUT[case]
    if "memory" in case:
        set_constants({LARGE: lambda: 1 << 20})
    assert words in str(refused(f"in.{form}", StopError, notice=stop, **options))
    with pytest.warns(WeakModelWarning, match=words):
        done = release(f"in.{form}", **options)
    assert "features" not in json.loads(done.card)
    assert done.terms.rows == ROWS
    assert verify_files(done.card, file="out.csv").holds


def test_few_rows_and_no_column_get_the_mean_of_all(source):
    with pytest.warns(WeakModelWarning, match="every released label is the private mean"):
        done = release(source, drop=["tax", "area", "town", "code", "name"], epsilon=0.1)
    frame = pd.read_csv("out.csv")
    assert frame["price"].nunique() == 1
    assert abs(frame["price"][0] - PRICE.mean()) < 2  # noise of 10 / (ε · rows) and more
    assert json.loads(done.card)["features"] == []
    assert verify_files(done.card, file="out.csv").holds


def test_that_a_model_will_be_a_constant_is_said_before_the_charge(source):
    ledger = ldp.Ledger()
    with pytest.raises(StopError, match="private mean"):
        release(source, epsilon=0.01, notice=stop, ledger=ledger)
    assert not ledger.charges


# ---- what goes wrong -----------------------------------------------------------------------------------------


def test_a_fit_that_fails_leaves_its_charge_and_no_file(source, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(LabelReleaseRegressor, "_learn", fail)
    ledger, before = ldp.Ledger(), sorted(Path().iterdir())
    with pytest.raises(MemoryError):
        release(source, ledger=ledger)
    assert ledger.total == ldp.Budget(1.0)
    assert sorted(Path().iterdir()) == before


def test_a_limit_that_is_too_small_is_said_before_the_fit(source):
    ledger, before = ldp.Ledger(limit=ldp.Budget(0.5)), sorted(Path().iterdir())
    with pytest.raises(ldp.BudgetError):
        release(source, ledger=ledger)
    assert ledger.charges == ()
    assert sorted(Path().iterdir()) == before


def test_labels_of_a_table_that_changed_are_not_written():
    release = ldp.privatize(PRICE, X=AREA[:, None], epsilon=1.0, bounds=(0, 10))
    labels = file_labels.FittedLabels(release.columns["label"])
    assert labels.next_rows(PRICE[:-1]).size == ROWS - 1
    with pytest.raises(ldp.errors.DataError, match="fewer labels"):
        labels.finish()
    with pytest.raises(ldp.errors.DataError, match="more labels"):
        labels.next_rows(PRICE[:2])


# ---- labels that are computed again --------------------------------------------------------------------------


def checked(card, path, model="model"):
    """Return whether labels are those of a model, by the check of that name."""
    checks = {check.name: check.holds for check in verify_files(card, file=path, model_folder=model).checks}
    return checks["labels"]


@pytest.mark.parametrize("to", ["csv", "parquet"])
def test_whoever_has_the_model_computes_the_labels_again(source, to):
    """The twins: a table with another label, whose card was made to fit it, and the model of another release."""
    path, frame = Path(f"out.{to}"), pd.read_csv(source)
    frame.insert(1, "key", [f"{row:05}" for row in range(ROWS)])  # a number to the model, and text in Parquet
    frame.to_csv(source, index=False)
    done = release(source, path, save_model="model")
    checks = {check.name: check.holds for check in verify_files(done.card, file=path).checks}
    assert [checks[name] for name in ("file", "rows", "columns", "labels")] == [True, True, True, None]
    assert checked(done.card, path) is True
    assert ldp.load_model("model").predict(read(str(path)).astype({"key": int})).shape == (ROWS,)
    other = release(source, f"other.{to}")
    assert checked(other.card, f"other.{to}") is False
    stranger = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(0, 10)).fit(AREA[:, None], PRICE)
    ldp.save_model(stranger, "stranger", label="price")
    assert checked(done.card, path, "stranger") is False  # without private labels, and not of this release
    content = json.loads(done.card)
    table = everything(path)
    prices = table["price"].to_numpy().copy()
    prices[17] += 10 * content["rounding"][0]
    with ldp.tables.TableWriter(path, table.schema, force=True) as writer:
        changed = table.set_column(table.column_names.index("price"), "price", pa.array(prices))
        writer.write(changed.to_batches()[0])
        content["file"]["sha256"] = writer.finish()
    names = ("purpose", "features", "residual_variance", "quality", "rounding", "file")
    entries = {name: content[name] for name in names}
    assert checked(done.terms.to_card(**entries), path) is False
    entries["features"] = [*content["features"], "tax"]  # which is not in the file
    assert not verify_files(done.terms.to_card(**entries), file=path).holds


def everything(path):
    table = ldp.tables.open_table(path, as_written=path.suffix == ".csv", label="price")
    return pa.Table.from_batches(list(table.batches()), table.schema).combine_chunks()


NO_MODEL = [{"model": False}, {"purpose": "statistics"}, {"drop": ["area", "town", "code"]}]


@pytest.mark.parametrize("options", NO_MODEL, ids=str)
def test_a_model_that_there_cannot_be_is_not_saved(source, options):
    options = {**options, "drop": ["tax", *options.get("drop", [])]}
    assert refused(source, save_model="model", **options).option == "save_model"


def test_the_model_stays_when_its_table_cannot_be_written(source, monkeypatch):
    """Labels that were paid for can be computed from it."""

    def full(*_):
        raise OSError(28, "No space left")

    monkeypatch.setattr("labeldp.tables.writer.TableWriter.finish", full)
    with pytest.raises(OSError, match="No space left"):
        release(source, save_model="model", ledger=(ledger := ldp.Ledger()))
    assert ledger.total == ldp.Budget(1.0)
    assert ldp.load_model("model").card.terms.charges == ledger.charges
    assert not list(Path().glob("out*"))


@pytest.mark.filterwarnings("ignore::labeldp.errors.InsecureRandomnessWarning")
def test_rows_of_a_query_are_released_as_those_of_a_file(source):
    """Wherever the query cut its batches."""
    table, outputs = pa.Table.from_pandas(pd.read_parquet("in.parquet")), []
    for number, rows in enumerate((7, ROWS)):
        reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=rows))
        release(reader, f"{number}.csv", random_state=5)
        outputs.append(Path(f"{number}.csv").read_bytes())
    release("in.parquet", "file.csv", random_state=5)
    assert outputs == [Path("file.csv").read_bytes()] * 2
    refused(pa.RecordBatchReader.from_batches(table.schema, []), ldp.errors.DataError)
    refused(table.select(["price", "area"]).rename_columns(["price", "price"]), ldp.errors.DataError)
