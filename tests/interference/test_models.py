"""Models, their cards and files, and what is said of how good they are."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from sklearn.linear_model import Ridge

import labeldp as ldp
from fuzzing import LONG, tries
from interference import changes
from interference.harness import Way, assert_nothing_leaks, assert_same, compared, overspending
from interference.outputs import described_error
from interference.replay import replaced
from labeldp.inference import clip_window, distribution, goodness_of_fit, moments
from labeldp.learning import epsilon_split, label_queries, label_release, private_scores
from labeldp.learning import sum_model as sum_model_of_fit
from labeldp.learning.survey_rounds import plan_round
from labeldp.release.label_access import LabelAccess

BOUNDS = changes.BOUNDS
ROWS = 240
CHANGES = changes.changes(ROWS, every=100)


SOME = ("first row -0.0", "first row 5e-324", "last", "boundaries", "constant", "all rows, both at the ends")


def features(rows):
    return np.random.default_rng(rows).normal(size=(rows, 3))


def pair(name):
    return [changes.numbers(labels) for labels in CHANGES[name]]


def fitted(model, labels):
    """Fit a model, and give away all that it has, whether that worked or not."""
    X = features(labels.size)
    try:
        model.fit(X, labels)
    except Exception as problem:  # what a failed fit leaves behind leaves as well
        return model, described_error(problem), getattr(model, "release_", None)
    left = [model, model.predict(X[:50]), model.to_card(), model.summary(), repr(model), pickle.dumps(model)]
    left += [model._repr_html_(), model._repr_mimebundle_()]
    release = getattr(model, "release_", None)
    if release is not None:
        release.save("release.npz")
        left += [release, release.summary(), repr(release), release._repr_html_(), pickle.dumps(release)]
    if getattr(model, "estimator", None) is None:
        ldp.save_model(model, "model", label="y")
        left.append(ldp.load_model("model").predict(X[:50]))
    return left


def label_model(**options):
    return ldp.LabelReleaseRegressor(bounds=BOUNDS, ledger=ldp.Ledger.open("ledger.db"), **options)


def sum_model(**options):
    return ldp.ModelReleaseRegressor(bounds=BOUNDS, ledger=ldp.Ledger.open("ledger.db"), **options)


MODELS = {
    "labels": lambda: label_model(epsilon=1.0, verbose=True),
    "labels, much ε": lambda: label_model(epsilon=10.0),
    "labels, one round, nobody trusted": lambda: label_model(epsilon=1.0, rounds=1, trust="local"),
    "labels, four rounds": lambda: label_model(epsilon=1.0, rounds=4, mechanism="two-point"),
    "labels, own learner": lambda: label_model(epsilon=1.0, estimator=Ridge()),
    "labels, own learner, square roots": lambda: label_model(
        epsilon=1.0, estimator=Ridge(), label_transform="sqrt"
    ),
    "sums": lambda: sum_model(epsilon=1.0, verbose=True),
    "sums, square roots": lambda: sum_model(epsilon=1.0, label_transform="sqrt"),
    "sums, one stage": lambda: sum_model(epsilon=0.1),
    "labels behind a model": lambda: sum_model(epsilon=8.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("change", ["all rows", "first row 1e300"] if LONG else ["all rows"])
def test_everything_of_a_fitted_model(model, change, tmp_path):
    assert_nothing_leaks(Way(lambda labels: fitted(MODELS[model](), labels)), *pair(change), tmp_path)


def updated(labels):
    """Return all that a model gives away that learnt on from these labels, after others."""
    model = sum_model(epsilon=8.0).fit(features(ROWS)[::-1], np.linspace(*BOUNDS, ROWS), segment="first")
    ldp.save_model(model, "first", label="y")
    model = ldp.load_model("first").regressor(epsilon=8.0, ledger=model.ledger)
    people = {"person": np.arange(labels.size) % 90, "most_rows_per_person": 2}
    model.update(features(labels.size), labels, segment="second", **people)
    ldp.save_model(model, "model", label="y", keep_rows=True)
    return [model.predict(features(50)), model.to_card(), model.summary(), pickle.dumps(model)]


@pytest.mark.parametrize("change", SOME if LONG else ("boundaries", "all rows, both at the ends"))
def test_everything_of_a_model_that_learnt_on(change, tmp_path):
    assert_nothing_leaks(Way(updated), *pair(change), tmp_path)


def shared(labels, columns, **options):
    """Return all that a release with features gives away, of one label or several."""
    X, ledger = features(len(labels)), ldp.Ledger.open("ledger.db")
    Y = np.column_stack([labels, labels[::-1]])[:, :columns]
    release = ldp.privatize(Y, X=X, epsilon=3.0, bounds=BOUNDS, ledger=ledger, verbose=True, **options)
    left = [release, release.labels, release.summary(), release.to_card(), repr(release), release._repr_html_()]
    for column in release.columns.values():
        left += [column.error, column.model.predict(X), column.summary(), column.to_card(), repr(column.error)]
    return [*left, pickle.dumps(release)]


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("change", SOME if LONG else ("boundaries", "all rows, both at the ends"))
def test_everything_of_labels_that_know_the_features(change, columns, tmp_path):
    one, other = (np.tile(labels, 2) for labels in pair(change))  # enough for an error
    assert_nothing_leaks(Way(lambda labels: shared(labels, columns)), one, other, tmp_path)


def test_everything_of_labels_of_people_in_segments_that_know_the_features(tmp_path):
    def act(labels):
        number = np.arange(labels.size)
        rows = {"id": number, "person": number % 150, "segment": np.where(number % 150 < 70, "north", "south")}
        return shared(labels, 2, most_rows_per_person=2, **rows)

    one, other = (np.tile(labels, 2) for labels in pair("all rows, both at the ends"))
    assert_nothing_leaks(Way(act), one, other, tmp_path)


def several(labels):
    """Return all that a release of two labels without features gives away: unbiased ones, or a private mean."""
    ledger, left = ldp.Ledger.open("ledger.db"), []
    Y = pd.DataFrame({"pay": labels, "rent": labels[::-1]})
    for purpose, epsilon in (("statistics", 2.0), ("training", 0.5)):
        release = ldp.privatize(Y, epsilon=epsilon, bounds=BOUNDS, purpose=purpose, shares=[2, 1], ledger=ledger)
        left += [release, release.summary(), release.to_card(), pickle.dumps(release)]
    return left


@pytest.mark.parametrize("change", SOME)
def test_everything_of_several_labels_without_features(change, tmp_path):
    assert_nothing_leaks(Way(several), *pair(change), tmp_path)


def test_a_weight_that_follows_from_true_residuals_would_be_found(tmp_path):
    def act(labels):
        def leaky(model, error):
            return float(np.var(labels - model.predict(features(len(labels)))))

        with replaced((label_release, "residual_variance", leaky)):
            return shared(labels, 1)

    assert compared(Way(act), *(np.tile(labels, 2) for labels in pair("boundaries")), tmp_path)[1]


def reported(labels):
    """Return all that follows from reports of labels, which each respondent randomised."""
    mechanism = ldp.Unbiased.for_bounds(BOUNDS, 2.0)
    reports = ldp.Reports(mechanism.randomize(labels), mechanism)
    model = ldp.LabelReleaseRegressor(epsilon=2.0, bounds=BOUNDS).fit_reports(features(labels.size), reports)
    ldp.save_model(model, "model", label="y")
    left = [reports, reports.values, reports.labels, reports.mean(), reports.histogram().masses, model.release_]
    return [*left, model.predict(features(50)), model.summary(), model.to_card(), pickle.dumps(model)]


def surveyed(labels):
    """Return all that two rounds of a survey give away, the second around predictions of the first."""
    X, survey, sent = features(labels.size), {"bounds": BOUNDS, "epsilon": 4.0, "rows": labels.size}, []
    halves, model = (slice(0, 120), slice(120, None)), None
    for rows in halves:
        plan = plan_round(X[rows], **survey, model=model)
        drawn = plan.mechanism.randomize(plan.positions(labels[rows]))
        sent.append(ldp.Reports(drawn, plan.mechanism, intervals=plan.intervals))
        model = ldp.LabelReleaseRegressor(epsilon=4.0, bounds=BOUNDS)
        model.fit_reports(X[: rows.stop], sent[0] if len(sent) == 1 else sent[0] + sent[1])
    return [plan, *sent, model, model.predict(X[:50]), model.summary(), model.to_card(), pickle.dumps(model)]


@pytest.mark.parametrize("change", SOME)
def test_everything_of_rounds_of_a_survey(change, tmp_path):
    assert_nothing_leaks(Way(surveyed), *pair(change), tmp_path)


@pytest.mark.parametrize("change", SOME)
def test_everything_of_reports(change, tmp_path):
    assert_nothing_leaks(Way(reported), *pair(change), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["labels, much ε", "sums", "labels behind a model"])
def test_everything_of_a_model_that_measured_all_it_can(model, tmp_path):
    """With more rows a range is looked for, and distances are counted: here few are enough."""
    asked, measure = [], LabelAccess.measure

    def spy(access, query, epsilon):
        asked.append(query.description)
        return measure(access, query, epsilon)

    few = [(epsilon_split, f"FEWEST_FOR_{name}", 0.0) for name in ("RANGE", "GROUPS", "SPREAD")]
    loose = [(label_queries, name, -1e9) for name in ("MOST_LABELS", "NEARLY_ALL")]  # bounds count as loose
    with replaced(*few, *loose, (LabelAccess, "measure", spy)):
        assert_nothing_leaks(Way(lambda labels: fitted(MODELS[model](), labels)), *pair("all rows"), tmp_path)
    assert {"largest count of a window", "counts of windows", "counts of distances"} <= set(asked)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["labels, much ε", "sums"])
def test_everything_of_a_model_that_found_a_rare_label_far_from_the_others(model, tmp_path):
    """What is counted of them decides where residuals and labels are clipped from then on."""
    shares, find = [], sum_model_of_fit.SpreadCounts.outliers

    def spy(*given):
        shares.append(find(*given).sum())
        return find(*given)

    rare = np.where(np.random.default_rng(7).random(3_000) < 0.12, *BOUNDS[::-1])
    others = np.random.default_rng(8).uniform(*BOUNDS, rare.size)
    fit = Way(lambda labels: fitted(MODELS[model](), labels))
    with replaced((sum_model_of_fit.SpreadCounts, "outliers", spy)):
        assert_nothing_leaks(fit, rare, others, tmp_path)
        assert max(shares) > 0.05
    for row in (0, int(np.argmax(rare))):
        changed = rare.copy()
        changed[row] = sum(BOUNDS) - rare[row]
        assert not overspending(fit, rare, changed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["labels, much ε", "labels behind a model"])
def test_everything_of_a_model_whose_labels_get_the_rest_of_epsilon(model, tmp_path):
    """With more rows sums stop where they explain little: here they always do, after the first stage."""
    left = []

    def act(labels):
        fit = MODELS[model]()
        result = fitted(fit, labels)
        left.append(fit.request().plan(labels.size).for_sums - sum(one.epsilon for one in fit.terms_.statistics))
        return result

    few = [(epsilon_split, f"FEWEST_FOR_{name}", 0.0) for name in ("RANGE", "GROUPS", "SPREAD", "LENGTHS")]
    stop = [(epsilon_split, "MOSTLY_LABELS", 0.0), (epsilon_split, "ENOUGH_EXPLAINED", (2.0, 2.0))]
    with replaced(*few, *stop):
        assert_nothing_leaks(Way(act), *pair("all rows"), tmp_path)
    assert min(left) > 0


def regressed(labels, **options):
    """Return all that a regression table gives away."""
    X = pd.DataFrame(features(labels.size), columns=list("abc"))
    ledger = ldp.Ledger.open("ledger.db")
    table = ldp.private_ols(X, labels, bounds=BOUNDS, ledger=ledger, **options)
    table.save("table.json")
    left = [table.params, table.bse, table.pvalues, table.conf_int(0.1), table.cov_params(), table.predict(X[:20])]
    left = [np.asarray(one).tolist() for one in left]
    return [*left, table.summary(), table.to_latex(), table.to_card(), repr(table), pickle.dumps(table)]


@pytest.mark.parametrize("options", [{}, {"epsilon": 20.0}], ids=str)
@pytest.mark.parametrize("change", SOME[2:])
def test_everything_of_a_regression_table(change, options, tmp_path):
    way = Way(lambda labels: regressed(labels, **{"epsilon": 2.0, **options}))
    assert_nothing_leaks(way, *pair(change), tmp_path)
    assert not overspending(way, *pair(change), tmp_path)


def estimated(labels, family):
    """Return all that several tables of one release give away, or the sentence that there is no solution."""
    X = pd.DataFrame(features(labels.size), columns=list("abc"))
    ledger = ldp.Ledger.open("ledger.db")
    rows = {"person": np.arange(labels.size) % 90, "most_rows_per_person": 2}
    how = {"bounds": (0, 1), "family": family, "ledger": ledger, "weights": 1.0 + np.arange(labels.size) % 3}
    moments = ldp.private_moments(X, labels, epsilon=3.0, **how, **rows)
    outputs = [repr(moments), pickle.dumps(moments)]
    for model in (moments.logit, moments.poisson, moments.ols):
        for on in ("a", None):
            try:
                table = model(on)
            except ldp.errors.NoSolutionError as error:
                outputs.append(str(error))
            else:
                outputs += [table.summary(), table.to_card(), table.to_latex(), pickle.dumps(table)]
    return outputs


@pytest.mark.parametrize("family", ["logit", "poisson"])
@pytest.mark.parametrize("change", SOME[2:])
def test_everything_of_several_tables_of_one_release(change, family, tmp_path):
    way = Way(lambda labels: estimated(labels, family))
    assert_nothing_leaks(way, *pair(change), tmp_path)
    assert not overspending(way, *pair(change), tmp_path)


def test_everything_of_a_regression_table_that_measured_all_it_can(tmp_path):
    """With more rows there is a rough fit, and lack of fit is tested: here few are enough."""
    tested = []

    def act(labels):
        left = regressed(labels, epsilon=2.0)
        tested.append('"pvalue":' in left[8])
        return left

    with replaced(
        (clip_window, "_MAX_ROUGH_ERROR", 1e9),
        (moments, "_RESET_POWER", 0.0),
        (distribution, "_MAX_VARIANCE_ERROR", 1e9),  # R² is stated, whatever its noise
        (goodness_of_fit, "_MAX_R_SQUARED_ERROR", 1e9),
    ):
        assert_nothing_leaks(Way(act), *pair("all rows"), tmp_path)
    assert all(tested)


def both_models(labels):
    X, left = features(labels.size), []
    for model in (label_model(epsilon=2.0, rounds=2, estimator=Ridge()), sum_model(epsilon=2.0)):
        model.fit(X, labels)
        left += [model, model.predict(X[:5]), model.to_card()]
    return left


def of_data_frames(labels):
    """Models of public columns of several kinds."""
    rows, left = np.arange(labels.size), []
    towns, sold = np.array(["York", None, "Bath"], dtype=object), np.datetime64("2020-01-01") + rows % 90
    table = pd.DataFrame({"size": features(rows.size)[:, 0], "town": towns[rows % 3], "sold": sold})
    for number, model in enumerate((label_model(epsilon=2.0, rounds=1), sum_model(epsilon=0.5))):
        model.fit(table, pd.Series(labels, name="price", index=table.index))
        ldp.save_model(model, f"model {number}", label="price")
        left += [model, model.predict(table[:5]), ldp.load_model(f"model {number}").predict(table)]
    return left


PUBLIC = Ridge().fit(features(50), features(50)[:, 0])


def scored(labels):
    ledger = ldp.Ledger.open("ledger.db")
    how = {"epsilon": 3.0, "bounds": BOUNDS, "ledger": ledger, "rows_per_person": 3}
    X, by = features(labels.size), np.where(np.arange(labels.size) % 3, "many", "few")
    risks = [
        ldp.private_score(PUBLIC, X, labels, **how),
        ldp.private_score(PUBLIC, X, labels, r2=True, **how),
        *private_scores(PUBLIC, X, labels, by=by, **how).values(),
    ]
    return [ledger, *((risk, risk.summary(), repr(risk), risk.as_data()) for risk in risks)]


def with_intervals(labels):
    ledger = ldp.Ledger.open("ledger.db")
    left, how = [ledger], {"bounds": BOUNDS, "ledger": ledger, "rows_per_person": 2}
    for epsilon in (0.01, 0.3, 4.0):  # too little, enough to search for, enough to find
        made = ldp.private_intervals(PUBLIC, features(labels.size), labels, epsilon=epsilon, **how)
        left += [made, made.summary(), repr(made), pickle.dumps(made), made.predict_interval(features(9))]
    by = np.where(np.arange(labels.size) % 3, "many", "few")
    made = ldp.private_intervals(PUBLIC, features(labels.size), labels, epsilon=4.0, by=by, coverage=0.8, **how)
    return [*left, made, made.summary(), repr(made), made.predict_interval(features(9), by=by[:9])]


def fitted_and_scored(labels):
    left = []
    for number, make in enumerate((sum_model, label_model)):
        model, risk = ldp.fit_and_score(make(epsilon=2.0), features(labels.size), labels, epsilon=9.0)
        ldp.save_model(model, f"model {number}", quality=risk)
        left += [model, risk, risk.summary(), risk.split, model.predict(features(9))]
    return left


ACTS = {
    both_models: CHANGES if LONG else SOME,
    of_data_frames: ["all rows"],
    scored: ["all rows", "last"],
    with_intervals: ["all rows", "first row 1e300", "last"],
    fitted_and_scored: ["all rows", "last"],
}


@pytest.mark.parametrize(("act", "change"), [(act, change) for act, some in ACTS.items() for change in some])
def test_all_that_is_made_of_labels(act, change, tmp_path):
    assert_nothing_leaks(Way(act), *pair(change), tmp_path)


@pytest.mark.slow
@given(inputs=changes.pairs())
@tries(3)
def test_models_whatever_the_labels(inputs, tmp_path_factory):
    one, other = map(changes.numbers, inputs)
    folder = tmp_path_factory.mktemp("any")
    for make in (lambda: label_model(epsilon=2.0, rounds=2), lambda: sum_model(epsilon=2.0)):
        way = Way(lambda labels, make=make: fitted(make(), labels))
        assert_same(way, one, other, folder)  # a table of one row is refused


@pytest.mark.parametrize("rounds", [7])
def test_rounds_of_odd_sizes_leave_no_memory_that_was_not_written(rounds, tmp_path):
    """Memory that was asked for and not written has another byte in each of the two runs."""
    model = Way(lambda labels: fitted(label_model(epsilon=1.0, rounds=rounds), labels))
    assert_nothing_leaks(model, *pair("all rows"), tmp_path)


# ---- without replay -----------------------------------------------------------------------------------------


class Constant:
    """A model that says the same for all."""

    def predict(self, X):
        return np.full(len(X), 2.0)


SPENDING = {
    "labels": lambda X, y: label_model(epsilon=1.0).fit(X, y),
    "sums": lambda X, y: sum_model(epsilon=2.0).fit(X, y),
    "sums, one stage": lambda X, y: sum_model(epsilon=0.1).fit(X, y),
    "labels behind a model": lambda X, y: sum_model(epsilon=8.0).fit(X, y),
    "sums and labels of further rows": lambda X, y: sum_model(epsilon=8.0).fit(X, np.full(ROWS, 2.0)).update(X, y),
    "score": lambda X, y: ldp.private_score(Constant(), X, y, epsilon=0.5, bounds=BOUNDS),
    "intervals": lambda X, y: ldp.private_intervals(Constant(), X, y, epsilon=2.0, bounds=BOUNDS),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", ["first row 1e300", "all rows, both at the ends"])
@pytest.mark.parametrize("spend", SPENDING)
def test_channels_and_noise_spend_no_more_than_is_charged(spend, change, tmp_path):
    """With all rows at one end or the other, sums over groups move as far as they may."""
    results = []
    way = Way(lambda labels: results.append(SPENDING[spend](features(labels.size), labels)))
    assert not overspending(way, *pair(change), tmp_path)
    assert len(results) == 2


def test_a_range_and_a_spread_spend_no_more_than_is_charged(tmp_path):
    """They are measured from so many rows on. From end to end, each label moves its counts as far as it may."""
    one, other = (np.full(2000, end) for end in BOUNDS)
    way = Way(lambda labels: label_model(epsilon=8.0, estimator=Ridge(), rounds=1).fit(features(2000), labels))
    assert not overspending(way, one, other, tmp_path)
