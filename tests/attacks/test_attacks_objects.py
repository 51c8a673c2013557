"""Reconstruction from what stays: fitted models, releases, cards, pickles, reprs, logs and error messages."""

import array
import json
import pickle
from io import BytesIO
from unittest import mock

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

import labeldp as ldp
from command_line import run
from labeldp.learning.label_queries import STEPS
from labeldp.release import curator
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

HOW = {"epsilon": 1.0, "bounds": BOUNDS, "random_state": SEED}


def labels(*learner, epsilon=1.0):
    return lambda: ldp.LabelReleaseRegressor(*learner, **{**HOW, "epsilon": epsilon}).fit(X, Y)


def model(epsilon=1.0):
    return lambda: ldp.ModelReleaseRegressor(**{**HOW, "epsilon": epsilon}).fit(X, Y)


MADE = {
    "privatize": lambda: ldp.privatize(Y, **HOW),
    "privatize, local": lambda: ldp.privatize(Y, **HOW, trust="local", epsilon_prior=0.3),
    "prior": lambda: ldp.estimate_prior(Y, **HOW),
    "labels": labels(),
    "labels, at a high budget": labels(epsilon=8.0),
    "labels, nearest neighbour": labels(KNeighborsRegressor(1), epsilon=4.0),
    "labels, tree": labels(DecisionTreeRegressor(), epsilon=4.0),
    "model": model(),
    "model, at a high budget": model(8.0),
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
    done = run(*command, "-o", tmp_path / "saved")
    run("report", tmp_path / "saved")
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


HIDDEN = {
    "label": (lambda: Y[17], {"label 17"}),
    "mean": (lambda: {"a": [(Y.mean(),)]}, {"mean"}),
    "slots": (lambda: Slot(Slot(np.array([1.0, Y.max()]))), {f"label {Y.argmax()}"}),
    "global": (lambda: uses_a_global, set()),
    "closure": (lambda: keeps(Y[:3].copy()), {"label 0", "label 1", "label 2"}),
    "objects": (lambda: np.array([{"deep": Y[5]}], dtype=object), {"label 5"}),
    "neighbours": (lambda: KNeighborsRegressor(1).fit(X[:9], Y[:9]), {f"label {k}" for k in range(9)}),
    "tree": (lambda: DecisionTreeRegressor().fit(X[:9], Y[:9]), {f"label {k}" for k in range(9)}),
    "moments": (lambda: X.T @ Y, {"moment 0", "moment 1", "moment 2"}),
    "weights": (lambda: LinearRegression().fit(X, Y), {"weight 0", "weight 1", "weight 2", "weight 3"}),
    "float32": (lambda: Y.astype(np.float32)[100:140], {"float32 row 0"}),
    "sorted": (lambda: np.sort(Y).astype(np.float32).tolist(), {"float32 row 2"}),
    "grid": (lambda: {"x": np.rint(Y / 5 * 65536).astype(np.int32)}, {"grid"}),
    "logarithm": (lambda: Slot(np.log(Y[30])), {"logarithm of label 30"}),
    "quartile": (lambda: float(np.quantile(Y, 0.25)), {"lower quartile"}),
    "counts": (lambda: np.histogram(Y, bins=40, range=BOUNDS)[0], {"histogram of 40"}),
    "masses": (lambda: [*(np.histogram(Y, bins=20, range=BOUNDS)[0] / ROWS)], {"masses of 20"}),
    "text": (lambda: f"the mean is {Y.mean()}", {"mean"}),
    "card": (lambda: json.dumps({"card": {"mean": Y.mean()}}), {"mean"}),
    "array of text": (lambda: np.array(["a", repr(float(Y[3]))]), {"label 3"}),
    "bytes": (lambda: b"xyz" + Y[40].tobytes() + b"!", {"label 40"}),
    "bytearray": (lambda: bytearray(b"x" + Y.astype(np.float32).tobytes()), {"float32 row 0"}),
    "array.array": (lambda: array.array("d", Y[:2]), {"label 0", "label 1"}),
    "memoryview": (lambda: memoryview(pickle.dumps(Y[7])), {"label 7"}),
    "a column": (lambda: np.column_stack([X[:, 0], Y]).astype(np.float32), {"float32 row 0"}),
}


@pytest.mark.parametrize(("hide", "found"), HIDDEN.values(), ids=HIDDEN)
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
    "one stage of sums": model(0.05),
    "prior of a release": lambda: ldp.privatize(Y, **{**HOW, "epsilon_prior": 0.5 * HOW["epsilon"]}).prior,
}


def noise_by(function):
    """Let a function of exact integers, and of what noise makes of them, decide what is released."""
    release = ldp.exact.DiscreteLaplace.release

    def released(noise, integers, source):
        return function(integers, release(noise, integers, source))

    return mock.patch.object(ldp.exact.DiscreteLaplace, "release", released)


@pytest.fixture
def recorded():
    """All exact sums and counts that noise is added to, as secrets."""
    secrets = Secrets()

    def record(integers, noisy):
        means = BOUNDS[0] + integers * (BOUNDS[1] - BOUNDS[0]) / (STEPS * ROWS)
        large = np.abs(integers) > 10**6
        for kind, numbers in {"sum": integers[large], "mean": means[large]}.items():
            secrets.values.update({f"{kind} {len(secrets.values)}.{k}": v for k, v in enumerate(numbers)})
        rows = {"counts": integers, "masses": integers / integers.sum(), "running": np.cumsum(integers)}
        for name, row in rows.items():
            secrets.add_row(name, row, 8)
        return noisy

    with noise_by(record):
        yield secrets


@pytest.mark.parametrize("name", NOISY)
def test_no_exact_sum_and_no_exact_count_is_handed_over(name, recorded):
    made = NOISY[name]()
    assert len(recorded.values) + len(recorded.rows[8]) >= 2  # there was something to look for
    assert secrets_inside([made, *said(made)], recorded) == set()
    if "prior" not in name:
        assert secrets_inside(pickle.dumps(made), recorded) == set()


@pytest.mark.parametrize("form", [tuple, np.float64, lambda v: v.tobytes(), lambda v: str(v.tolist())])
def test_a_model_that_kept_its_exact_sums_is_found(form, recorded):
    kept = []
    with noise_by(lambda integers, noisy: kept.append(integers) or noisy):
        made = NOISY["one stage of sums"]()
    made.first_ = form(kept[0])
    assert secrets_inside(made, recorded)


@pytest.mark.parametrize("name", ["prior", "prior of a release", "privatize"])
def test_what_is_made_of_exact_counts_is_found(name, recorded, monkeypatch):
    monkeypatch.setattr(curator, "expected_masses", lambda nodes, noisy, *_: (nodes, noisy))  # as they are
    with noise_by(lambda integers, noisy: noisy * 0 + integers):
        assert secrets_inside(NOISY[name](), recorded)
