"""Reconstruction from reports: no page, and nothing that a command says, has the digits of a label or statistic.

Numbers are looked for as people read them, rounded to three places or more. Noise keeps what is released away from
the statistic that it stands for. A number may still agree with one by chance, to all the digits that it shows; how
often at most, at the false-alarm rate, is computed from those digits.
"""

import re
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from command_line import run

pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")

ROWS = 150
FALSE_ALARM = 1e-10
"""Of each test, for either kind of finding."""


RNG = np.random.default_rng(1)
X = RNG.normal(size=(ROWS, 2))
Y = np.clip(2.5 + X[:, 0] + 0.4 * RNG.normal(size=ROWS), 0.01, 4.99)
WHAT = ["--label", "y", "--bounds", "0", "5"]
COMMANDS = {
    "privatize": ["privatize", "in.csv", *WHAT, "--epsilon", "1", "-o", "out.csv"],
    "fit, model": ["fit", "in.csv", *WHAT, "--epsilon", "1", "-o", "model"],
    "fit, labels": ["fit", "in.csv", *WHAT, "--epsilon", "2", "-o", "labels", "--release", "labels"],
}


def words_of(page):
    """Return the words of a page: its style and scripts are none, nor are the numbers in its drawings' tags."""
    return re.sub(r"<(style|script)\b.*?</\1>|<[^>]*>", "\n", page, flags=re.DOTALL)


def written(text):
    """Return {(number, places)} with three places or more that a text shows."""
    return {(float(n), len(n.split(".")[1])) for n in re.findall(r"(?<![\d.])-?\d+\.\d{3,}(?![\d.])", text)}


def statistics(y):
    """Return what a page might show of labels, besides the labels."""
    quantiles = np.quantile(y, [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
    return np.array(
        [y.mean(), y.std(), y.std(ddof=1), y.var(), y.var(ddof=1), y.min(), y.max(), y.sum(), *quantiles]
    )


def agrees(shown, numbers):
    """Return whether more numbers of a page are one of these, rounded, than chance would give."""
    hits, chance = 0, 0.0
    for value, places in shown:
        hits += bool((np.round(numbers, places) == value).any())
        chance += min(1.0, numbers.size * 3 * 10.0**-places)  # labels lie within 5: a density of 3 is not exceeded
    return hits > stats.poisson.isf(FALSE_ALARM, chance)


def seen(text):
    """Return of what a text shows more than chance would: labels, statistics of them, or neither."""
    secrets = {"labels": Y, "statistics": statistics(Y)}
    return [name for name, numbers in secrets.items() if agrees(written(text), numbers)]


@pytest.fixture(scope="module", params=COMMANDS)
def told(request, tmp_path_factory):
    """All that a command says, on its page and on the screen."""
    with chdir(tmp_path_factory.mktemp("report")):
        table = np.column_stack([X, Y])
        np.savetxt("in.csv", table, delimiter=",", header="a,b,y", comments="", fmt="%.17g")
        words = COMMANDS[request.param]
        done = run(*words)
        run("report", words[words.index("-o") + 1], "-o", "page.html")
        return words_of(Path("page.html").read_text()) + "\n" + done.output


def test_a_report_and_the_screen_show_no_label_and_no_statistic(told):
    assert len(told) > 500
    assert seen(told) == []


def test_a_report_that_showed_rounded_labels_or_statistics_would_be_found(told):
    some = " ".join(f"{label:.4f}" for label in Y[:40])
    assert seen(f"{told} labels: {some}") == ["labels"]
    summary = " ".join(f"{number:.4f}" for number in statistics(Y))
    assert "statistics" in seen(f"{told} {summary}")
