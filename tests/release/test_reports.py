"""Reports are measurements: values that respondents randomised, estimates that follow, and nothing else."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import labeldp as ldp
from accounts.test_verify_card import VALID, library, mine
from helpers import EVERY, make
from labeldp.accounts.card import Card
from labeldp.errors import LabelError, ParameterError
from labeldp.learning import RowRelease
from labeldp.learning.survey_rounds import plan_round

BOUNDS = (0.0, 100.0)
ROWS = 6000
X = np.random.default_rng(3).normal(size=(ROWS, 3))
Y = np.clip(40 + 15 * X[:, 0], *BOUNDS)
CARDS = {
    "auto": ldp.Unbiased.for_bounds(BOUNDS, 2.0),
    "two-point": ldp.TwoPoint(bounds=BOUNDS, epsilon=2.0),
    "rp": ldp.RPWithPrior(interval=BOUNDS, zeta=15.0, epsilon=2.0),
    "laplace": ldp.Laplace(bounds=BOUNDS, epsilon=2.0),
    "staircase": ldp.Staircase(bounds=BOUNDS, epsilon=2.0),
}


def reports(*names, y=Y):
    """Return reports of these rows by several cards, a part of the rows by each."""
    parts = [
        ldp.Reports(CARDS[name].randomize(labels), CARDS[name])
        for name, labels in zip(names, np.array_split(y, len(names)), strict=True)
    ]
    return sum(parts[1:], parts[0])


def fitted(given, x=X, **options):
    return ldp.LabelReleaseRegressor(epsilon=2.0, bounds=BOUNDS, **options).fit_reports(x, given)


# ---- what reports show ------------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("names", [(name,) for name in CARDS] + [("rp", "laplace", "two-point")], ids=str)
def test_the_mean_has_its_error(names):
    """Five standard errors: a false alarm in 1.7 million runs."""
    mean = reports(*names).mean()
    assert abs(mean.value - Y.mean()) < 5 * mean.standard_error
    assert mean.standard_error < 2.0
    assert mean.interval == pytest.approx(
        (mean.value - 1.96 * mean.standard_error, mean.value + 1.96 * mean.standard_error)
    )


def test_figures_of_answers_that_were_clipped_more_narrowly_are_refused():
    narrow, wide = ldp.TwoPoint(bounds=(20, 60), epsilon=2.0), CARDS["auto"]
    both = ldp.Reports(narrow.randomize(Y[:500]), narrow) + ldp.Reports(wide.randomize(Y[500:]), wide)
    for figure in (both.mean, lambda: both.means(by=Y), lambda: both.mean_squared_error(Y)):
        with pytest.raises(ParameterError, match="widest"):
            figure()
    assert both.widest().mechanisms == (wide,)
    assert both.widest().values.tobytes() == both.values[500:].tobytes()
    assert both.histogram().bounds == BOUNDS
    low, high = (ldp.TwoPoint(bounds=bounds, epsilon=2.0) for bounds in ((0, 60), (20, 100)))
    with pytest.raises(ParameterError, match="no card has the widest"):
        (ldp.Reports(low.randomize(Y), low) + ldp.Reports(high.randomize(Y), high)).widest()


@pytest.mark.statistical
def test_means_of_groups_are_those_of_all_cards_together():
    group = X[:, 0] > 0
    means = reports("rp", "auto").means(by=group)
    for name, figure in means.items():
        assert abs(figure.value - Y[group == name].mean()) < 5 * figure.standard_error
    with pytest.raises(ParameterError, match="6,000 rows, got 2"):
        reports("rp").means(by=[1, 2])


@pytest.mark.parametrize(
    "gap", [["a", None], [1.0, float("nan")], np.array(["2026", "NaT"], dtype="M8[D]"), [1, "a", 2.5]], ids=str
)
def test_groups_with_gaps_or_of_several_types_are_refused(gap):
    by = np.resize(np.array(gap) if isinstance(gap, np.ndarray) else np.array(gap, dtype=object), ROWS)
    release = ldp.privatize(Y, epsilon=2.0, bounds=BOUNDS, purpose="statistics")
    for means in (reports("rp").means, release.means):
        with pytest.raises(ParameterError, match="names of one type, without missing ones"):
            means(by=by)


def test_groups_are_one_for_each_row_of_a_release_also_where_a_rule_leaves_rows_out():
    people = np.repeat(np.arange(ROWS // 2), 2)
    release = ldp.privatize(
        Y, epsilon=2.0, bounds=BOUNDS, purpose="statistics", person=people, most_rows_per_person=1
    )
    assert np.isnan(release.labels).sum() == ROWS // 2
    assert set(release.means(by=people < 100)) == {True, False}
    with pytest.raises(ParameterError, match="6,000 rows, got 3,000"):
        release.means(by=people[::2])


@pytest.mark.statistical
@pytest.mark.parametrize("names", [("rp",), ("auto",), ("laplace",), ("rp", "auto")], ids=str)
def test_the_histogram_finds_two_peaks_far_apart(names):
    """The standard error of a bin's share is about a hundredth here: a fifth is twenty of them."""
    rng = np.random.default_rng(1)
    y = np.where(rng.random(20_000) < 0.5, rng.normal(20, 4, 20_000), rng.normal(80, 4, 20_000))
    histogram = reports(*names, y=y).histogram(bins=10)
    truth = np.histogram(y, 10, BOUNDS)[0] / y.size
    assert np.abs(np.cumsum(histogram.masses - truth)).max() < 0.2
    assert histogram.origin is None
    assert histogram.bounds == BOUNDS


def test_two_values_show_no_histogram():
    with pytest.raises(ParameterError, match="have 2 different values"):
        reports("two-point").histogram()


@pytest.mark.statistical
def test_the_error_of_predictions_is_unbiased():
    given = reports("auto", "laplace")
    error = given.mean_squared_error(Y + 10)
    assert abs(error.value - 100) < 5 * error.standard_error


@pytest.mark.statistical
@pytest.mark.parametrize(
    "mechanism",
    [ldp.Unbiased.for_bounds(BOUNDS, 1.0), ldp.RPWithPrior(interval=BOUNDS, zeta=35.0, epsilon=1.0)],
    ids=["auto", "rp"],
)
def test_the_error_of_predictions_of_answers_at_the_bounds_is_unbiased(mechanism):
    """The noise of a card's own table is no square function of the answer: that shows in answers at the ends."""
    answers = np.where(np.arange(200_000) % 5 == 0, 100.0, 0.0)
    error = ldp.Reports(mechanism.randomize(answers), mechanism).mean_squared_error(np.full(200_000, 20.0))
    assert abs(error.value - 1600) < 4 * error.standard_error
    assert error.standard_error < 40


def test_two_values_show_no_error_of_predictions():
    with pytest.raises(ParameterError, match="the 2 different values of these reports do not show squares"):
        reports("two-point").mean_squared_error(Y)


def test_a_card_for_a_prior_may_show_means_and_no_error_of_predictions():
    card = ldp.Unbiased.design(ldp.Histogram(np.linspace(*BOUNDS, 9), 0.4 ** np.arange(8)), epsilon=1.0)
    given = ldp.Reports(card.randomize(Y), card)
    assert given.mean().standard_error < 10
    with pytest.raises(ParameterError, match="values of these reports do not show squares of answers"):
        given.mean_squared_error(Y)


def test_a_mechanism_without_unbiased_labels_shows_a_histogram_and_no_mean():
    mechanism = ldp.RROnBins(edges=[0, 20, 60, 100], outputs=[10, 40, 80], epsilon=2.0)
    given = ldp.Reports(mechanism.randomize(Y), mechanism)
    assert given.histogram(bins=4).masses.sum() == pytest.approx(1)
    with pytest.raises(ldp.LabelDPError):
        given.mean()
    with pytest.raises(ParameterError, match="no model can learn"):
        ldp.LabelReleaseRegressor(epsilon=2.0, bounds=BOUNDS).fit_reports(X, given)


# ---- nonsense ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CARDS)
@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1e9, 33.377777777, 1e300], ids=repr)
def test_a_value_that_the_card_cannot_draw_is_refused_by_its_row(name, wrong):
    values = CARDS[name].randomize(Y[:9])
    ldp.Reports(values, CARDS[name])
    values[[3, 7]] = wrong
    with pytest.raises(LabelError, match="in row 4, 8 with") as refusal:
        ldp.Reports(values, CARDS[name])
    assert "33.3" not in str(refusal.value), "true answers may stand there"


@pytest.mark.parametrize("name", CARDS)
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6], ids=str)
def test_values_that_lost_digits_are_refused_with_the_reason(name, unit):
    bounds = (0, 100 * unit)
    mechanism = {
        "rp": lambda: ldp.RPWithPrior(interval=bounds, zeta=15.0 * unit, epsilon=2.0),
        "auto": lambda: ldp.Unbiased.for_bounds(bounds, 2.0),
    }.get(name, lambda: type(CARDS[name])(bounds=bounds, epsilon=2.0))()
    values = mechanism.randomize(Y * unit)
    decimals = -round(np.log10(unit))
    for rounded in (values.astype(np.float32), values.round(decimals), values.round(decimals + 6)):
        with pytest.raises(LabelError, match=r"rounded or stored as float32, it seems\. Take them"):
            ldp.Reports(rounded, mechanism)
    values[7] = 1e5 * unit
    with pytest.raises(LabelError, match="in row 8 with its card: leave such rows out, and check that no form"):
        ldp.Reports(values, mechanism)


@pytest.mark.parametrize("values", [[0.0], [5e-324], [1e308, 1.5], [float("inf")] * 2], ids=str)
def test_odd_values_are_refused(values):
    with pytest.raises(LabelError, match="no answer gives"):
        ldp.Reports(values, CARDS["two-point"])


def test_values_of_another_card_are_refused():
    with pytest.raises(LabelError, match="row 1, 2, 3, 4, 5 and 5,995 more"):
        ldp.Reports(CARDS["auto"].randomize(Y), CARDS["two-point"])


@pytest.mark.parametrize("values", [[], ["52,000"], [[1.0, 2.0]], [None], "abc"], ids=repr)
def test_what_is_no_column_of_numbers_is_refused(values):
    with pytest.raises(LabelError):
        ldp.Reports(values, CARDS["rp"])


@pytest.mark.parametrize(
    "mechanism", ["laplace", None, [CARDS["rp"]], [1] * 9], ids=lambda one: type(one).__name__
)
def test_what_is_no_mechanism_is_refused(mechanism):
    with pytest.raises(ParameterError):
        ldp.Reports(CARDS["rp"].randomize(Y[:9]), mechanism)


def test_a_card_with_a_delta_is_refused():
    mechanism = ldp.Gaussian(bounds=BOUNDS, epsilon=1.0, delta=1e-6)
    with pytest.raises(ParameterError, match="δ"):
        ldp.Reports(mechanism.randomize(Y), mechanism)


def test_reports_know_what_they_cost_by_the_dearest_card():
    cheap = ldp.TwoPoint(bounds=BOUNDS, epsilon=0.5)
    both = reports("rp") + ldp.Reports(cheap.randomize(Y[:10]), cheap)
    assert both.epsilon == 2.0
    assert both.terms.cost == ldp.Budget(epsilon=2.0)
    three = ldp.Reports(cheap.randomize(Y[:10]), cheap, rows_per_person=3)
    assert three.terms.cost == ldp.Budget(epsilon=1.5)
    with pytest.raises(ParameterError, match="rows_per_person"):
        both + three


def test_every_pure_mechanism_can_report():
    for name in set(EVERY) - {"gaussian"}:
        mechanism = make(name, 2.0, (-3.7, 11.1))
        given = ldp.Reports(mechanism.randomize(np.linspace(-5, 12, 50)), mechanism)
        assert len(given) == 50, name


# ---- models -----------------------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("names", [("auto",), ("two-point", "rp", "laplace")], ids=str)
def test_a_model_of_reports_learns(names):
    model = fitted(reports(*names))
    assert np.corrcoef(model.predict(X), Y)[0, 1] > 0.95
    assert model.ledger_ is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epsilon": 1.0}, r"the reports have epsilon=2\.0"),
        ({"bounds": (0, 50)}, "the reports have bounds"),
        ({"rows_per_person": 2}, "the reports have rows_per_person=1"),
        ({"mechanism": "laplace"}, "mechanism"),
        ({"rounds": 3}, "rounds"),
        ({"label_transform": "sqrt"}, "label_transform"),
        ({"ledger": ldp.Ledger()}, "ledger"),
    ],
    ids=str,
)
def test_what_is_not_of_the_reports_is_refused(options, said):
    model = ldp.LabelReleaseRegressor(**{"epsilon": 2.0, "bounds": BOUNDS, **options})
    with pytest.raises(ParameterError, match=said):
        model.fit_reports(X, reports("auto"))
    assert not hasattr(model, "terms_")


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(ValueError, match="inconsistent"):
        fitted(reports("auto"), X[:10])
    with pytest.raises(ParameterError, match="takes Reports"):
        fitted(Y)


def test_a_model_of_reports_is_saved_with_a_card_that_everybody_verifies(tmp_path):
    given = reports("auto", "two-point", "rp")
    model = fitted(given)
    ldp.save_model(model, tmp_path / "model", label="income")
    saved = ldp.load_model(tmp_path / "model")
    assert np.array_equal(saved.predict(X), model.predict(X))
    text = (tmp_path / "model" / "card.json").read_text()
    assert library(text) == VALID == mine(text)[0]
    assert mine(text)[1] == "epsilon = 2.0"
    terms = Card.parse(text).terms
    assert (terms.trust, terms.secure, terms.rows) == ("local", True, ROWS)
    assert [one.name for one in terms.mechanisms] == ["unbiased", "two-point", "rp"]
    assert terms.charges == (given.charge,)
    assert "each randomised on the device where it was given" in model.summary()
    assert "in no ledger" in model.summary()
    release = RowRelease.load(tmp_path / "model" / "release.npz")
    assert np.array_equal(release.labels, given.labels)
    assert library(release.to_card()) == VALID == mine(release.to_card())[0]


# ---- rounds -----------------------------------------------------------------------------------------------------


def in_rounds(ends=(0, 2000, ROWS)):
    """Return reports in rounds, with intervals around what earlier ones predict, and the model of all."""
    model, given = None, None
    for start, stop in pairwise(ends):
        plan = plan_round(X[start:stop], bounds=BOUNDS, epsilon=2.0, rows=ROWS, model=model)
        values = plan.mechanism.randomize(plan.positions(Y[start:stop]))
        arrived = ldp.Reports(values, plan.mechanism, intervals=plan.intervals)
        given = arrived if given is None else given + arrived
        model = fitted(given, X[:stop])
    return given, model


def test_reports_in_rounds_have_narrower_intervals_and_a_card_that_everybody_verifies(tmp_path):
    given, model = in_rounds()
    widths = given.intervals.widths
    assert widths[2000:].mean() < widths[:2000].mean() / 2
    assert np.corrcoef(model.predict(X), Y)[0, 1] > 0.97
    ldp.save_model(model, tmp_path / "model")
    text = (tmp_path / "model" / "card.json").read_text()
    assert library(text) == VALID == mine(text)[0]
    assert Card.parse(text).terms.cost == ldp.Budget(epsilon=2.0)
    release = RowRelease.load(tmp_path / "model" / "release.npz")
    assert np.array_equal(release.low, given.intervals.low)
    assert library(release.to_card()) == VALID == mine(release.to_card())[0]


def test_intervals_follow_from_public_columns_and_earlier_reports_alone():
    _, model = in_rounds((0, 2000))
    one, other = (plan_round(X[2000:], bounds=BOUNDS, epsilon=2.0, rows=ROWS, model=model) for _ in range(2))
    assert one.mechanism == other.mechanism
    assert np.array_equal(one.intervals.low, other.intervals.low)
    assert (one.intervals.low >= 0).all()
    assert (one.intervals.high <= 100).all()


def test_reports_in_intervals_are_for_models():
    given, _ = in_rounds((0, 2000))
    for figure in (
        given.mean,
        given.histogram,
        lambda: given.means(np.ones(2000)),
        lambda: given.mean_squared_error(Y[:2000]),
    ):
        with pytest.raises(ParameterError, match="clipped to an interval"):
            figure()
    with pytest.raises(ParameterError, match="cannot be joined"):
        given + reports("auto")
    with pytest.raises(ParameterError, match="positions from 0 to 1"):
        ldp.Reports(CARDS["rp"].randomize(Y[:2000]), CARDS["rp"], intervals=given.intervals)
    with pytest.raises(ParameterError, match="not as many intervals"):
        ldp.Reports(given.values[:9], given.mechanisms[0], intervals=given.intervals)
    for wrong in ({"low": given.intervals.high}, {"high": given.intervals.high + 100}, {"bounds": (0.0, 10.0)}):
        with pytest.raises(ParameterError, match="not within the bounds"):
            ldp.Reports(given.values, given.mechanisms[0], intervals=replace(given.intervals, **wrong))


def test_another_learner_may_take_the_reports():
    from sklearn.linear_model import Ridge

    model = fitted(reports("auto"), estimator=Ridge())
    assert np.corrcoef(model.predict(X), Y)[0, 1] > 0.95


@pytest.mark.statistical
def test_a_model_of_reports_can_be_scored_on_labels():
    model = fitted(reports("auto", y=Y[:5000]), X[:5000])
    score = ldp.private_score(model, X[5000:], Y[5000:], epsilon=1.0, bounds=BOUNDS)
    assert 0 < score.mse < 15**2
