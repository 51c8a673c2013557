"""Reconstruction from outputs: no pickle, file, card, repr, page or screen holds a label or a statistic of labels.

Replay in tests/interference says more of the same outputs; here the numbers themselves are looked for. Numbers in
texts are looked for as people read them, rounded to three places or more. A released number may agree with a
secret one by chance, to all the digits that it shows; the false-alarm rate allows for it.
"""

import pickle
import re
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.tree import DecisionTreeRegressor

import labeldp as ldp
from command_line import run

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-10
"""Of each text."""

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


STATISTICS = statistics(Y)


def in_bytes(blob):
    """Return the secrets that are in some bytes, as a number or in all their digits."""
    return [
        secret for secret in (*Y, *STATISTICS) if secret.tobytes() in blob or repr(float(secret)).encode() in blob
    ]


def in_text(text, secrets):
    """Return whether a text shows more of some secrets, rounded, than chance would give."""
    hits = chance = 0
    for number in set(re.findall(r"(?<![\d.])-?\d+\.\d{3,}(?![\d.])", text)):
        places = len(number.split(".")[1])
        hits += bool((np.round(secrets, places) == float(number)).any())
        # Labels lie within 5: their density does not exceed 3.
        chance += min(1.0, secrets.size * 3 * 10.0**-places)
    return hits > stats.poisson.isf(FALSE_ALARM, chance)


@pytest.fixture(scope="module", params=OBJECTS)
def made(request):
    return OBJECTS[request.param]()


@pytest.fixture(scope="module", params=COMMANDS)
def written(request, tmp_path_factory):
    """The page and the screen of a command, and the bytes of its files."""
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
    assert not in_text("\n".join(texts), Y)
    assert not in_text("\n".join(texts), STATISTICS)
    for blob in (*(text.encode() for text in texts), pickle.dumps(made)):
        assert in_bytes(blob) == []


def test_no_file_page_or_screen_of_a_command_shows_a_label_or_a_statistic(written):
    text, files = written
    assert len(text) > 500
    assert not in_text(text, Y)
    assert not in_text(text, STATISTICS)
    assert len(files) >= 3
    assert [in_bytes(file) for file in files] == [[]] * len(files)


def test_an_object_a_page_or_a_file_with_labels_or_statistics_is_found(written):
    text, _ = written
    assert in_bytes(pickle.dumps(DecisionTreeRegressor().fit(X, Y)))
    assert in_bytes(f"{text} {Y[7]}".encode()) == [Y[7]]
    assert in_bytes(pickle.dumps({"mean": Y.mean()})) == [Y.mean()]
    assert in_text(f"{text} labels: {' '.join(f'{label:.4f}' for label in Y[:40])}", Y)
    assert in_text(f"{text} {' '.join(f'{number:.4f}' for number in STATISTICS)}", STATISTICS)
