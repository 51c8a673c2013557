"""``labeldp design`` and ``collect``: a card for a form, and a model or a table of the reports that it sent."""

import json

import numpy as np
import pytest

import labeldp as ldp
from command_line import files_in, run, said
from labeldp.app.histogram_files import read_histogram
from labeldp.errors import ParameterError
from labeldp.evidence.designs import design_card, forecast
from labeldp.exact.word_sources import simulation_words

BOUNDS = ("--bounds", 0, 100)
ROWS = 4000


def design(path, *options):
    """Write a card by the command, and return its mechanism and its checksum."""
    words = said("design", *BOUNDS, "--epsilon", 2, "-o", path, *options)
    text = path.read_text()
    assert json.loads(text)["checksum"] in words
    return ldp.load_mechanism(text), json.loads(text)["checksum"]


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """A folder with two cards, and the reports of a survey whose card was changed half way."""
    folder = tmp_path_factory.mktemp("survey")
    rng = np.random.default_rng(0)
    age, region = rng.integers(18, 70, ROWS), rng.choice(["north", "south"], ROWS)
    answers = np.clip(20 + 0.5 * age + 10 * (region == "north") + rng.normal(0, 5, ROWS), 0, 100)
    (first, one), (second, two) = (
        design(folder / "a.card.json"),
        design(folder / "b.card.json", "--mechanism", "rp"),
    )
    values = np.where(np.arange(ROWS) < ROWS // 2, first.randomize(answers), second.randomize(answers))
    cards = [one] * (ROWS // 2) + [two.removeprefix("sha256:")] * (ROWS // 2)
    lines = [f"{a},{r},{v!r},{c}" for a, r, v, c in zip(age, region, values.tolist(), cards, strict=True)]
    (folder / "both.csv").write_text("\n".join(["age,region,salary,card", *lines]) + "\n")
    (folder / "one.csv").write_text("\n".join(["age,region,salary,card", *lines[: ROWS // 2]]) + "\n")
    (folder / "alone.csv").write_text("\n".join(["salary", *map(repr, values.tolist()[: ROWS // 2])]) + "\n")
    gap = [*lines[:1000], "30,north,,", *lines[1000:1500], "30,north,,"]
    (folder / "gap.csv").write_text("\n".join(["age,region,salary,card", *gap]) + "\n")
    (folder / "mean").write_text(repr(float(answers.mean())))
    return folder


CARDS = ("--card", "a.card.json", "--card", "b.card.json")


@pytest.fixture
def here(survey, tmp_path, monkeypatch):
    """A folder of its own with the survey's files, as the current one."""
    for path in survey.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.statistical
def test_reports_of_two_cards_become_one_model_that_verifies(here):
    words = said("collect", "both.csv", "--label", "salary", *CARDS, "-o", "model", "--histogram", "bins.csv")
    mean = float((here / "mean").read_text())
    low, high = (float(end) for end in words.split("95 % interval ")[1].split(", for")[0].split(" to "))
    assert low - (high - low) < mean < high + (high - low)  # six standard errors
    assert "4,000 reports, ε = 2 for each respondent." in words
    assert files_in(here / "model") == [
        "card.json",
        "card.report.html",
        "columns.json",
        "model.npz",
        "release.npz",
    ]
    page = (here / "model" / "card.report.html").read_text(encoding="utf-8")
    assert "The mean answer is" in page
    assert "randomised themselves, in no ledger" in page
    assert "Valid." in said("verify", "model")
    model = ldp.load_model("model")
    assert model.feature_names_in_ == ["age", "region"]
    assert model.card.terms.trust == "local"
    assert read_histogram("bins.csv").bounds == (0, 100)
    said("design", *BOUNDS, "--epsilon", 2, "--prior", "bins.csv", "-o", "next.card.json")
    assert "origin" not in json.loads((here / "next.card.json").read_text())


def test_reports_of_one_card_become_a_table_of_unbiased_labels_that_verifies(here):
    said("collect", "one.csv", "--label", "salary", "--card", "a.card.json", "-o", "out.csv")
    assert "Valid." in said("verify", "out.csv")
    card = json.loads((here / "out.csv.card.json").read_text())
    assert (card["purpose"], card["trust"], card["file"]["columns"]) == (
        "statistics",
        "local",
        ["age", "region", "salary"],
    )
    assert (here / "out.csv.report.html").exists()
    said("collect", "alone.csv", "--label", "salary", "--card", "a.card.json", "-o", "alone.parquet")
    assert "Valid." in said("verify", "alone.parquet")


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        ("both.csv", ("--card", "a.card.json", "-o", "m"), "row 2001, 2002, 2003, 2004, 2005 and 1,995 more"),
        ("both.csv", ("--card", "a.card.json", "-o", "m"), "name another column with --card-column"),
        ("both.csv", (*CARDS, "-o", "t.csv"), "labels of one card"),
        ("alone.csv", (*CARDS, "-o", "m"), "no column 'card'"),
        ("alone.csv", ("--card", "a.card.json", "-o", "m"), "no public column"),
        ("alone.csv", ("--card", "b.card.json", "-o", "t.csv"), "no answer gives the value in row 1, 2, 3"),
        ("alone.csv", ("--card", "a.card.json", "-o", "alone.csv"), "lie in one place"),
        ("gap.csv", ("--card", "a.card.json", "-o", "m"), "missing or not finite, first in row 1,001: fill them"),
        ("alone.csv", ("-o", "m"), "--card"),
    ],
)
def test_nonsense_is_refused_and_nothing_is_written(here, table, options, words):
    before = files_in(here)
    assert words in " ".join(run("collect", table, "--label", "salary", *options, code=2).output.split())
    assert files_in(here) == before


def test_a_forged_card_is_refused(here):
    text = (here / "a.card.json").read_text()
    (here / "a.card.json").write_text(text.replace('"epsilon":2.0', '"epsilon":1.0'))
    run("collect", "one.csv", "--label", "salary", "--card", "a.card.json", "-o", "m", code=4)
    assert not (here / "m").exists()


def test_true_answers_in_a_row_are_refused_and_not_repeated(here):
    lines = (here / "one.csv").read_text().splitlines()
    lines[3] = ",".join([*lines[3].split(",")[:2], "47.77", lines[3].split(",")[3]])
    (here / "one.csv").write_text("\n".join(lines) + "\n")
    output = run("collect", "one.csv", "--label", "salary", "--card", "a.card.json", "-o", "m", code=2).output
    assert "row 3 " in output
    assert "47.77" not in output


HEADER = "low,high,share\n"
NO_BINS = ["0,1,x", "0,1", "0,1,inf", "0,1,1\n2,3,1", "1,0,1", "0,1,-1", "0,1,\xff"]


@pytest.mark.parametrize(
    "text", ["", HEADER, "a,b,c\n1,2,3\n", *(HEADER + bins + "\n" for bins in NO_BINS)], ids=range(10)
)
def test_a_prior_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(ParameterError):
        read_histogram(tmp_path / "p.csv")
    run("design", *BOUNDS, "--epsilon", 1, "--prior", tmp_path / "p.csv", "-o", tmp_path / "x.card.json", code=2)
    assert files_in(tmp_path) == ["p.csv"]


def test_a_design_is_unbiased_for_all_of_the_bounds_and_costs_what_it_says():
    prior = ldp.Histogram([0, 10, 20, 500], [3, 5, 2])
    for name in ("auto", "rp", "two-point", "unbiased", "laplace", "staircase"):
        mechanism = design_card(bounds=(0, 100), epsilon=0.5, prior=prior, mechanism=name)
        assert mechanism.domain == (0, 100)
        assert (mechanism.epsilon, mechanism.origin) == (0.5, None)
        mechanism.debias([0.0])
    with pytest.raises(ParameterError):
        design_card(bounds=(0, 100), epsilon=0.5, mechanism="rr-on-bins")


def test_a_card_for_a_model_clips_rare_answers_by_a_prior_and_says_so(here):
    (here / "prior.csv").write_text(HEADER + "0,10,.1\n10,50,.8\n50,60,.05\n60,100,.05\n")
    options = (*BOUNDS, "--epsilon", 1, "--for-model", 20_000, "-o", "model.card.json")
    assert "needs a prior" in run("design", *options, code=2).output
    words = said("design", *options, "--prior", "prior.csv")
    mechanism = ldp.load_mechanism((here / "model.card.json").read_text())
    low, high = mechanism.domain
    assert 0 < low < 20
    assert 40 < high < 70
    assert (mechanism.epsilon, mechanism.origin) == (1.0, None)
    assert f"answers below {low:.4g} as {low:.4g}, and above {high:.4g} as {high:.4g}" in words
    assert "not possible" in words


def test_the_mean_of_two_cards_is_of_those_that_clip_least(here):
    (here / "prior.csv").write_text(HEADER + "0,20,.1\n20,60,.85\n60,100,.05\n")
    options = ("--for-model", ROWS, "--prior", "prior.csv", "-o", "model.card.json")
    said("design", *BOUNDS, "--epsilon", 2, *options)
    text = (here / "model.card.json").read_text()
    values = ldp.load_mechanism(text).randomize(np.full(ROWS, 100.0))
    lines = [f"30,north,{value!r},{json.loads(text)['checksum']}" for value in values.tolist()]
    reports = (here / "one.csv").read_text() + "\n".join(lines) + "\n"
    (here / "two.csv").write_text(reports)
    cards = ("--card", "a.card.json", "--card", "model.card.json")
    words = said("collect", "two.csv", "--label", "salary", *cards, "-o", "model")
    alone = said("collect", "one.csv", "--label", "salary", "--card", "a.card.json", "-o", "first")
    assert f"of the {ROWS // 2:,} respondents whose card clips least is" in words
    assert words.split(" is ")[1].split(":")[0] == alone.split(" is ")[1].split(":")[0]


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["auto", "two-point"])
def test_a_forecast_of_the_mean_is_the_error_of_surveys(name):
    """Of 400 surveys the standard deviation is known within 3.5 %: 20 % are five of these and more."""
    mechanism = design_card(bounds=(0, 100), epsilon=1.0, mechanism=name)
    rng = np.random.default_rng(0)
    means = [
        ldp.Reports(mechanism.randomize(100 * rng.beta(2, 5, 1000)), mechanism).mean().value for _ in range(400)
    ]
    stated = forecast(mechanism, sizes=[1000])[0]
    assert 1.96 * np.std(means) == pytest.approx(stated.mean, rel=0.2)
    assert (stated.histogram is None) == (name == "two-point")


@pytest.mark.slow
@pytest.mark.parametrize("peaks", [[1.0], [1.0, 0.0, 0.0, 1.0]], ids=["even", "two peaks"])
def test_a_forecast_of_shares_is_the_error_of_surveys(peaks):
    """The seeds are fixed: square errors vary by more than their mean, and 40 surveys show it within 40 %."""
    prior = ldp.Histogram.from_counts(peaks, (0, 100))
    mechanism = design_card(bounds=(0, 100), epsilon=0.5, mechanism="rp")
    shares = np.diff(prior.cumulative(np.linspace(0, 100, 11)))
    rng, words, squares = np.random.default_rng(1), simulation_words(1), []
    for _ in range(40):
        answers = np.interp(rng.random(3000), prior.cumulative(prior.nodes), prior.nodes)
        reports = ldp.Reports(mechanism.randomize_checked(answers, words), mechanism)
        squares.append(np.mean((reports.histogram(bins=10).masses - shares) ** 2))
    stated = forecast(mechanism, prior, sizes=[3000])[0].histogram
    assert stated == pytest.approx(np.sqrt(np.mean(squares)), rel=0.4)
