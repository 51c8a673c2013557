"""Reconstruction from outputs: no pickle, file, card, repr, page or screen holds a label or a statistic of labels.

Replay in tests/interference says more of the same outputs; here the numbers themselves are looked for. Numbers in
texts are looked for as people read them, rounded to three places or more. A released number may agree with a
secret one by chance, to all the digits that it shows; the false-alarm rate allows for it.
"""

import pickle
import re
from contextlib import chdir
from io import BytesIO
from pathlib import Path

import joblib
import numpy as np
import pytest
from scipy import stats
from sklearn.tree import DecisionTreeRegressor

import labeldp as ldp
from command_line import run

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-10
"""Of each text, for labels and for statistics."""

ROWS = 150
RNG = np.random.default_rng(1)
X = RNG.normal(size=(ROWS, 2))
Y = np.clip(2.5 + X[:, 0] + 0.4 * RNG.normal(size=ROWS), 0.1, 4.9) + RNG.uniform(0, 1e-3, ROWS)
HOW = {"epsilon": 4.0, "bounds": (0.0, 5.0)}
WHAT = ["--label", "y", "--bounds", "0", "5", "--epsilon", "2"]

OBJECTS = {
    "privatize": lambda: ldp.privatize(Y, **HOW),
    "labels": lambda: ldp.LabelReleaseRegressor(**HOW).fit(X, Y),
    "labels, tree": lambda: ldp.LabelReleaseRegressor(DecisionTreeRegressor(), **HOW).fit(X, Y),
    "model": lambda: ldp.ModelReleaseRegressor(**HOW).fit(X, Y),
    "ols": lambda: ldp.private_ols(X, Y, **HOW),
}
COMMANDS = {
    "privatize": ["privatize", "in.csv", *WHAT, "-o", "out.csv"],
    "fit, model": ["fit", "in.csv", *WHAT, "-o", "model"],
    "fit, labels": ["fit", "in.csv", *WHAT, "-o", "labels", "--release", "labels"],
}


def statistics(y):
    """Return statistics of labels that an output might show."""
    moments = [y.mean(), y.sum(), y.std(), y.std(ddof=1), y.var(), y.var(ddof=1), y @ y, *(X.T @ y)]
    return np.array([*moments, *np.quantile(y, [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])])


SECRETS = {"labels": Y, "statistics": statistics(Y)}


def in_bytes(blob):
    """Return the kinds of secrets of which one is in some bytes, as a number or in all its digits."""
    return [
        kind
        for kind, numbers in SECRETS.items()
        if any(number.tobytes() in blob or repr(float(number)).encode() in blob for number in numbers)
    ]


def in_text(text):
    """Return the kinds of secrets of which a text shows more, rounded, than chance would give."""
    numbers = set(re.findall(r"(?<![\d.])-?\d+\.\d{3,}(?![\d.])", text))
    shown = [(float(number), len(number.split(".")[1])) for number in numbers]
    found = []
    for kind, secrets in SECRETS.items():
        hits = sum(bool((np.round(secrets, places) == number).any()) for number, places in shown)
        # Labels lie within 5: their density does not exceed 3.
        chance = sum(min(1.0, secrets.size * 3 * 10.0**-places) for _, places in shown)
        if hits > stats.poisson.isf(FALSE_ALARM, chance):
            found.append(kind)
    return found


@pytest.fixture(scope="module", params=OBJECTS)
def made(request):
    return OBJECTS[request.param]()


@pytest.fixture(scope="module", params=COMMANDS)
def written(request, tmp_path_factory):
    """All that a command says on its page and on the screen, and the bytes of its files."""
    folder = tmp_path_factory.mktemp("command")
    with chdir(folder):
        table = np.column_stack([X, Y])
        np.savetxt("in.csv", table, delimiter=",", header="a,b,y", comments="", fmt="%.17g")
        words = COMMANDS[request.param]
        done = run(*words)
        run("report", words[words.index("-o") + 1], "-o", "page.html")
        Path("in.csv").unlink()
    page = re.sub(r"<(style|script)\b.*?</\1>|<[^>]*>", "\n", (folder / "page.html").read_text(), flags=re.DOTALL)
    return f"{page}\n{done.output}", [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


def test_no_object_says_or_pickles_a_label_or_a_statistic(made):
    texts = [repr(made), str(made), made.summary(), made.to_card()]
    stream = BytesIO()
    joblib.dump(made, stream)
    assert in_text("\n".join(texts)) == []
    for blob in (*(text.encode() for text in texts), pickle.dumps(made), stream.getvalue()):
        assert in_bytes(blob) == []


def test_no_file_page_or_screen_of_a_command_shows_a_label_or_a_statistic(written):
    text, files = written
    assert len(text) > 500
    assert in_text(text) == []
    assert len(files) >= 3
    assert [in_bytes(file) for file in files] == [[]] * len(files)


def test_an_object_a_page_or_a_file_with_labels_or_statistics_is_found(written):
    text, _ = written
    tree = DecisionTreeRegressor().fit(X, Y)
    assert in_bytes(pickle.dumps(tree)) == ["labels", "statistics"]
    assert "labels" in in_bytes(f"{text} {Y[7]}".encode())
    assert in_bytes(pickle.dumps({"mean": Y.mean()})) == ["statistics"]
    assert in_text(f"{text} labels: {' '.join(f'{label:.4f}' for label in Y[:40])}") == ["labels"]
    assert "statistics" in in_text(f"{text} {' '.join(f'{number:.4f}' for number in SECRETS['statistics'])}")
