"""Reconstruction from what stays: fitted models, releases, cards, pickles, reprs, logs and error messages."""

import array
import json
import logging
import pickle
import warnings
from io import BytesIO

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor
from typer.testing import CliRunner

import labeldp as ldp
from labeldp.cli import app
from object_graph import secrets_inside, secrets_of

pytestmark = pytest.mark.slow

BOUNDS = (0.0, 5.0)
ROWS = 400
RNG = np.random.default_rng(7)
X = RNG.normal(size=(ROWS, 3))
Y = np.clip(2.5 + X[:, 0] + 0.3 * RNG.normal(size=ROWS), 0.01, 4.99) + RNG.uniform(0, 1e-3, ROWS)
SECRETS = secrets_of(Y, BOUNDS, X)

MADE = {
    "privatize": lambda: ldp.privatize(Y, epsilon=1.0, bounds=BOUNDS),
    "privatize, local": lambda: ldp.privatize(Y, epsilon=1.0, bounds=BOUNDS, trust="local"),
    "prior": lambda: ldp.estimate_prior(Y, epsilon=1.0, bounds=BOUNDS),
    "labels": lambda: ldp.LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(X, Y),
    "labels, at a high budget": lambda: ldp.LabelReleaseRegressor(epsilon=8.0, bounds=BOUNDS).fit(X, Y),
    "labels, nearest neighbour": lambda: ldp.LabelReleaseRegressor(
        KNeighborsRegressor(1), epsilon=4.0, bounds=BOUNDS
    ).fit(X, Y),
    "labels, tree": lambda: ldp.LabelReleaseRegressor(DecisionTreeRegressor(), epsilon=4.0, bounds=BOUNDS).fit(
        X, Y
    ),
    "model": lambda: ldp.ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(X, Y),
    "model, gaussian": lambda: ldp.ModelReleaseRegressor(epsilon=0.5, delta=1e-5, bounds=BOUNDS).fit(X, Y),
}


@pytest.fixture(scope="module")
def made():
    """One of each, made once."""
    return {name: make() for name, make in MADE.items()}


# ---- what objects hold --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MADE)
def test_no_label_and_no_statistic_of_labels_stays_inside(name, made):
    assert secrets_inside(made[name], SECRETS) == set()


@pytest.mark.parametrize("name", [name for name in MADE if name != "prior"])
def test_no_label_travels_in_a_pickle(name, made):
    stream = BytesIO()
    joblib.dump(made[name], stream)
    for blob in (pickle.dumps(made[name]), stream.getvalue()):
        assert not [k for k, label in enumerate(Y) if label.tobytes() in blob]
    assert secrets_inside(pickle.loads(pickle.dumps(made[name])), SECRETS) == set()


@pytest.mark.parametrize("what", ["model", "labels"])
def test_no_label_is_in_the_files_of_a_saved_model(what, tmp_path):
    pytest.importorskip("pyarrow")
    table = tmp_path / "table.csv"
    np.savetxt(table, np.column_stack([X, Y])[:100], delimiter=",", header="a,b,c,y", comments="", fmt="%.17g")
    command = ["fit", str(table), "--label", "y", "--bounds", "0", "5", "--epsilon", "2", "--release", what]
    done = CliRunner().invoke(
        app, [*command, "-o", str(tmp_path / "saved"), "--report", str(tmp_path / "page.html")]
    )
    assert done.exit_code == 0, done.output
    files = [file for file in tmp_path.rglob("*") if file.is_file() and file != table]
    assert len(files) >= 4
    for file in files:
        blob = file.read_bytes()
        assert not [
            k for k, label in enumerate(Y) if label.tobytes() in blob or repr(float(label)).encode() in blob
        ]
        if file.suffix == ".npz":
            with np.load(file) as arrays:
                assert secrets_inside(dict(arrays), SECRETS) == set()
        if file.suffix in (".json", ".html"):
            assert secrets_inside(blob, SECRETS) == set()
    assert not [digits for digits in digits_of_labels() if digits in done.output]


class Slot:
    """An object of the kind that hides things well."""

    __slots__ = ("inside",)

    def __init__(self, inside):
        self.inside = inside


def uses_a_global():
    return Y.sum()


def keeps(labels):
    return lambda factor: factor * labels.sum()


@pytest.mark.parametrize(
    ("hide", "found"),
    [
        (lambda: Y[17], {"label 17"}),
        (lambda: {"a": [(Y.mean(),)]}, {"mean"}),
        (lambda: Slot(Slot(np.array([1.0, Y.max()]))), {f"label {Y.argmax()}"}),
        (lambda: uses_a_global, set()),
        (lambda: keeps(Y[:3].copy()), {"label 0", "label 1", "label 2"}),
        (lambda: np.array([{"deep": Y[5]}], dtype=object), {"label 5"}),
        (lambda: KNeighborsRegressor(1).fit(X[:9], Y[:9]), {f"label {k}" for k in range(9)}),
        (lambda: DecisionTreeRegressor().fit(X[:9], Y[:9]), {f"label {k}" for k in range(9)}),
        (lambda: X.T @ Y, {"moment 0", "moment 1", "moment 2"}),
        (lambda: LinearRegression().fit(X, Y), {"weight 0", "weight 1", "weight 2", "weight 3"}),
        (lambda: Y.astype(np.float32)[100:140], {"float32 row 0"}),
        (lambda: np.sort(Y).astype(np.float32).tolist(), {"float32 row 2"}),
        (lambda: {"x": np.rint(Y / 5 * 65536).astype(np.int32)}, {"grid"}),
        (lambda: Slot(np.log(Y[30])), {"logarithm of label 30"}),
        (lambda: float(np.quantile(Y, 0.25)), {"lower quartile"}),
        (lambda: np.histogram(Y, bins=40, range=BOUNDS)[0], {"histogram of 40"}),
        (lambda: [*(np.histogram(Y, bins=20, range=BOUNDS)[0] / ROWS)], {"masses of 20"}),
        (lambda: f"the mean is {Y.mean()}", {"mean"}),
        (lambda: np.array(["a", repr(float(Y[3]))]), {"label 3"}),
        (lambda: b"xyz" + Y[40].tobytes() + b"!", {"label 40"}),
        (lambda: bytearray(b"x" + Y.astype(np.float32).tobytes()), {"float32 row 0"}),
        (lambda: array.array("d", Y[:2]), {"label 0", "label 1"}),
        (lambda: memoryview(pickle.dumps(Y[7])), {"label 7"}),
        (lambda: np.column_stack([X[:, 0], Y]).astype(np.float32), {"float32 row 0"}),
    ],
    ids=[
        *["label", "mean", "slots", "global", "closure", "objects", "neighbours", "tree", "moments", "weights"],
        *["float32", "sorted", "grid", "logarithm", "quartile", "counts", "masses", "text", "array of text"],
        *["bytes", "bytearray", "array.array", "memoryview", "a column"],
    ],
)
def test_the_walk_finds_what_is_hidden(hide, found, made):
    """The twin: it would catch a model that kept a label. Globals of a function are not what it holds."""
    holder = Slot([made["model"], hide()])
    assert found <= secrets_inside(holder, SECRETS)
    assert bool(found) == bool(secrets_inside(holder, SECRETS))


# ---- what objects say ---------------------------------------------------------------------------------------


def said(thing):
    """Return everything that an object says of itself."""
    words = [repr(thing), str(thing)]
    words += [getattr(thing, name)() for name in ("summary", "to_card") if hasattr(thing, name)]
    words += [
        repr(getattr(thing, name, "")) for name in ("ledger_", "ledger", "charges", "charges_", "mechanism_")
    ]
    if hasattr(thing, "release_"):
        words += said(thing.release_)
    return words


def digits_of_labels():
    """Return the first seven characters of each label, which texts made for people may not contain."""
    return {f"{label:.5f}" for label in Y} | {f"{Y.mean():.5f}", f"{Y.max():.5f}", f"{Y.min():.5f}"}


@pytest.mark.parametrize("name", MADE)
def test_reprs_summaries_and_cards_contain_no_label(name, made):
    words = "\n".join(said(made[name]))
    for text in said(made[name]):
        if text.startswith("{"):
            assert secrets_inside(json.loads(text), SECRETS) == set()
    if name.startswith("privatize"):  # its repr shows released labels, which are public: look for exact ones only
        assert not [label for label in Y if repr(float(label)) in words]
    else:
        assert not [digits for digits in digits_of_labels() if digits in words]


def test_a_card_with_the_true_mean_in_it_would_be_found(made):
    content = json.loads(made["model"].to_card())
    content["mean"] = float(Y.mean())
    assert secrets_inside(content, SECRETS) == {"mean"}


@pytest.mark.parametrize("name", ["privatize", "labels", "model"])
def test_logs_warnings_and_progress_contain_no_label(name, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if name == "privatize":
            again = Y.copy()
            for _ in range(2):  # the second time warns
                ldp.privatize(again, epsilon=1.0, bounds=BOUNDS)
        else:
            make = {"labels": ldp.LabelReleaseRegressor, "model": ldp.ModelReleaseRegressor}[name]
            make(epsilon=1.0, bounds=BOUNDS, verbose=True).fit(X, Y)
    out, err = capfd.readouterr()
    words = "\n".join([caplog.text, out, err, *(str(w.message) for w in told)])
    assert words.strip()  # something was said, so that there is something to look at
    assert not [digits for digits in digits_of_labels() if digits in words]


# ---- what errors say ----------------------------------------------------------------------------------------

SECRET = 3.1415926535
CALLS = {
    "randomize": lambda y: ldp.TwoPoint(bounds=BOUNDS, epsilon=1.0).randomize(y),
    "mean": lambda y: ldp.TwoPoint(bounds=BOUNDS, epsilon=1.0).mean(y),
    "privatize": lambda y: ldp.privatize(y, epsilon=1.0, bounds=BOUNDS),
    "privatize, over budget": lambda y: ldp.privatize(
        y, epsilon=1.0, bounds=BOUNDS, ledger=ldp.Ledger(limit=ldp.Budget(0.5))
    ),
    "estimate_prior": lambda y: ldp.estimate_prior(y, epsilon=1.0, bounds=BOUNDS),
    "labels": lambda y: ldp.LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(X[:4], y),
    "model": lambda y: ldp.ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(X[:4], y),
}
BAD = {
    "NaN": lambda s: [s, 1.0, np.nan, 2.0],
    "infinite": lambda s: np.array([s, 1.0, -np.inf, 2.0]),
    "missing": lambda s: [s, 1.0, None, 2.0],
    "text": lambda s: [str(s), "x", "y", "z"],
    "three dimensions": lambda s: np.full((2, 2, 2), s),
    "ragged": lambda s: [[s], [s, s]],
    "none": lambda s: [],
    "an object": lambda s: np.array([s, object(), 1.0, 2.0], dtype=object),
    "well": lambda s: [s, 1.0, 3.0, 2.0],
}


def complaint(call, labels):
    """Return all that an error says, its causes and notes included; nothing if there was none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(labels)
    except Exception as error:
        words, link = [], error
        while link is not None:
            words += [type(link).__name__, str(link), repr(link.args), *getattr(link, "__notes__", [])]
            link = link.__cause__ or link.__context__
        return "\n".join(words)
    return ""


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("call", CALLS)
def test_an_error_says_the_same_whatever_the_labels_are(call, bad):
    """So it can contain none. One label in the middle, one at an end, one far outside."""
    told = {complaint(CALLS[call], BAD[bad](label)) for label in (SECRET, 0.0, 1e300)}
    assert len(told) == 1
    assert "3.14" not in told.pop()


def test_an_error_that_quotes_a_label_would_be_found():
    def quoting(y):
        raise ValueError(f"bad label {y[0]}")

    assert len({complaint(quoting, BAD["NaN"](label)) for label in (SECRET, 0.0)}) == 2
