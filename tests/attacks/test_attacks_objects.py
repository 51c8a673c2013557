"""Reconstruction from what stays: fitted models, releases, cards, pickles, reprs, logs and error messages."""

import array
import json
import pickle
from io import BytesIO

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor
from typer.testing import CliRunner

import labeldp as ldp
from labeldp.app.cli import app
from labeldp.exact.integers import IntegerNoise
from labeldp.learning.sums import STEPS
from labeldp.release import curator as adaptive
from object_graph import Secrets, secrets_inside, secrets_of

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::labeldp.InsecureRandomnessWarning")]

BOUNDS = (0.0, 5.0)
ROWS = 400
RNG = np.random.default_rng(7)
X = RNG.normal(size=(ROWS, 3))
Y = np.clip(2.5 + X[:, 0] + 0.3 * RNG.normal(size=ROWS), 0.01, 4.99) + RNG.uniform(0, 1e-3, ROWS)
SECRETS = secrets_of(Y, BOUNDS, X)

SEED = 1
"""Of all noise: among its digits there would be a label's once in a few hundred runs."""

MADE = {
    "privatize": lambda: ldp.privatize(Y, epsilon=1.0, bounds=BOUNDS, random_state=SEED),
    "privatize, local": lambda: ldp.privatize(
        Y, epsilon=1.0, bounds=BOUNDS, trust="local", epsilon_prior=0.3, random_state=SEED
    ),
    "prior": lambda: ldp.estimate_prior(Y, epsilon=1.0, bounds=BOUNDS, random_state=SEED),
    "labels": lambda: ldp.LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS, random_state=SEED).fit(X, Y),
    "labels, at a high budget": lambda: ldp.LabelReleaseRegressor(
        epsilon=8.0, bounds=BOUNDS, random_state=SEED
    ).fit(X, Y),
    "labels, nearest neighbour": lambda: ldp.LabelReleaseRegressor(
        KNeighborsRegressor(1), epsilon=4.0, bounds=BOUNDS, random_state=SEED
    ).fit(X, Y),
    "labels, tree": lambda: ldp.LabelReleaseRegressor(
        DecisionTreeRegressor(), epsilon=4.0, bounds=BOUNDS, random_state=SEED
    ).fit(X, Y),
    "model": lambda: ldp.ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS, random_state=SEED).fit(X, Y),
    "model, at a high budget": lambda: ldp.ModelReleaseRegressor(
        epsilon=8.0, bounds=BOUNDS, random_state=SEED
    ).fit(X, Y),
}


@pytest.fixture(scope="module")
def made():
    """One of each, made once."""
    return {name: make() for name, make in MADE.items()}


# ---- what objects hold --------------------------------------------------------------------------------------


def said(thing):
    """Return everything that an object says of itself."""
    words = [repr(thing), str(thing)]
    words += [getattr(thing, name)() for name in ("summary", "to_card") if hasattr(thing, name)]
    words += [repr(getattr(thing, name, "")) for name in ("ledger_", "ledger", "charges_", "mechanism_")]
    return words + (said(thing.release_) if hasattr(thing, "release_") else [])


def digits_of_labels():
    """Return the first seven characters of each label, which texts made for people may not contain."""
    return {f"{label:.5f}" for label in Y} | {f"{Y.mean():.5f}", f"{Y.max():.5f}", f"{Y.min():.5f}"}


@pytest.mark.parametrize("name", MADE)
def test_no_label_and_no_statistic_of_labels_stays_in_an_object_its_pickle_or_what_it_says(name, made):
    words = said(made[name])
    assert secrets_inside([made[name], words], SECRETS) == set()
    if not name.startswith("privatize"):  # its repr shows released labels, which are public: exact ones only
        assert not [digits for digits in digits_of_labels() if digits in "\n".join(words)]
    if name != "prior":
        stream = BytesIO()
        joblib.dump(made[name], stream)
        blobs = [pickle.dumps(made[name]), stream.getvalue()]
        assert not [k for k, label in enumerate(Y) for blob in blobs if label.tobytes() in blob]
        assert secrets_inside(pickle.loads(blobs[0]), SECRETS) == set()


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
        inside = dict(np.load(file)) if file.suffix == ".npz" else None
        assert secrets_inside([file.read_bytes(), inside], SECRETS) == set()
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
        (lambda: json.dumps({"card": {"mean": Y.mean()}}), {"mean"}),
        (lambda: np.array(["a", repr(float(Y[3]))]), {"label 3"}),
        (lambda: b"xyz" + Y[40].tobytes() + b"!", {"label 40"}),
        (lambda: bytearray(b"x" + Y.astype(np.float32).tobytes()), {"float32 row 0"}),
        (lambda: array.array("d", Y[:2]), {"label 0", "label 1"}),
        (lambda: memoryview(pickle.dumps(Y[7])), {"label 7"}),
        (lambda: np.column_stack([X[:, 0], Y]).astype(np.float32), {"float32 row 0"}),
    ],
    ids=[
        *["label", "mean", "slots", "global", "closure", "objects", "neighbours", "tree", "moments", "weights"],
        *[
            "float32",
            "sorted",
            "grid",
            "logarithm",
            "quartile",
            "counts",
            "masses",
            "text",
            "card",
            "array of text",
        ],
        *["bytes", "bytearray", "array.array", "memoryview", "a column"],
    ],
)
def test_the_walk_finds_what_is_hidden(hide, found, made):
    """The twin: it would catch a model that kept a label. Globals of a function are not what it holds."""
    holder = Slot([made["model"], hide()])
    assert found <= secrets_inside(holder, SECRETS)
    assert bool(found) == bool(secrets_inside(holder, SECRETS))


# ---- what is exact before noise comes on top -----------------------------------------------------------------
# Sums are integers of many digits, counts a row of small ones: a value of the first kind, or eight of the second
# in sequence, would not be there by chance.

NOISY = {
    **{name: MADE[name] for name in ("privatize", "prior", "labels", "model", "model, at a high budget")},
    "one stage of sums": lambda: ldp.ModelReleaseRegressor(epsilon=0.05, bounds=BOUNDS, random_state=SEED).fit(
        X, Y
    ),
    "adaptive prior": lambda: ldp.estimate_prior(
        Y, epsilon=1.0, bounds=BOUNDS, method="adaptive", random_state=SEED
    ),
}


@pytest.fixture
def recorded(monkeypatch):
    """All exact sums and counts that noise is added to, as secrets."""
    secrets, release = Secrets(), IntegerNoise.release

    def record(noise, exact, source):
        means = BOUNDS[0] + exact * (BOUNDS[1] - BOUNDS[0]) / (STEPS * ROWS)
        large = np.abs(exact) > 10**6
        for kind, numbers in {"sum": exact[large], "mean": means[large]}.items():
            secrets.values.update({f"{kind} {len(secrets.values)}.{k}": v for k, v in enumerate(numbers)})
        for name, row in {"counts": exact, "masses": exact / exact.sum(), "running": np.cumsum(exact)}.items():
            secrets.add_row(name, row, 8)
        return release(noise, exact, source)

    monkeypatch.setattr(IntegerNoise, "release", record)
    return secrets


@pytest.mark.parametrize("name", NOISY)
def test_no_exact_sum_and_no_exact_count_is_handed_over(name, recorded):
    made = NOISY[name]()
    assert len(recorded.values) + len(recorded.rows[8]) >= 2  # there was something to look for
    assert secrets_inside([made, *said(made)], recorded) == set()
    if "prior" not in name:
        assert secrets_inside(pickle.dumps(made), recorded) == set()


@pytest.mark.parametrize("form", [tuple, np.float64, lambda v: v.tobytes(), lambda v: str(v.tolist())])
def test_a_model_that_kept_its_exact_sums_is_found(form, recorded, monkeypatch):
    watched, kept = IntegerNoise.release, []
    monkeypatch.setattr(
        IntegerNoise, "release", lambda noise, exact, source: kept.append(exact) or watched(noise, exact, source)
    )
    made = NOISY["one stage of sums"]()
    made.first_ = form(kept[0])
    assert secrets_inside(made, recorded)


@pytest.mark.parametrize("name", ["prior", "adaptive prior", "privatize"])
def test_what_is_made_of_exact_counts_is_found(name, recorded, monkeypatch):
    monkeypatch.setattr(adaptive, "expected_masses", lambda nodes, noisy, *_: (nodes, noisy))  # as they are
    watched = IntegerNoise.release
    monkeypatch.setattr(
        IntegerNoise, "release", lambda noise, exact, source: watched(noise, exact, source) * 0 + exact
    )
    assert secrets_inside(NOISY[name](), recorded)
