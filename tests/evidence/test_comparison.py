"""`compare_table`: exact errors of labels, and models judged on other rows."""

import math

import numpy as np
import pytest

import labeldp as ldp
from labeldp.evidence import comparison as compared


@pytest.mark.parametrize("name", ["laplace", "rp", "rr-on-bins"])
def test_the_error_of_a_label_is_what_a_release_really_has(name):
    # 20,000 labels: the mean square of Laplace noise varies by 1.6 %, so 10 % is 6 standard errors, 2e-9.
    labels = np.random.default_rng(0).beta(2, 4, 20_000) * 5
    stated, is_unbiased = compared.label_error(name, labels, (0, 5), 1.0)
    how = {"mechanism": name, "purpose": "values" if name == "rr-on-bins" else "training"}
    with pytest.warns(ldp.InsecureRandomnessWarning):
        release = ldp.privatize(labels, epsilon=1.0, bounds=(0, 5), **how, random_state=0)
    private = release.labels
    assert math.sqrt(np.mean((private - labels) ** 2)) == pytest.approx(stated.value, rel=0.1)
    assert is_unbiased == (name != "rr-on-bins")


@pytest.mark.slow
def test_models_are_judged_on_rows_that_they_did_not_see():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(400, 4)), rng.uniform(0, 5, 400)  # nothing to learn: only memory could help
    result = compared.compare_table(X, labels, (0.0, 5.0), budgets=[20.0], mechanisms=["laplace"])
    spread = math.sqrt(25 / 12)
    assert (result.trained, result.judged) == (300, 100)
    # The root mean square of 100 even residuals varies by 4.5 %: 0.75 of it is 5.5 standard errors away, 4e-8.
    assert min(error.value for error in result.figures["model"].values()) > 0.75 * spread
    assert len(result.notes()) == 2


def test_without_privacy_the_better_of_a_linear_model_and_trees_is_shown():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 3))
    for labels, best in ((2 + X @ [1.0, 0.5, 0.2], "Pipeline"), (np.sign(X[:, 0] * X[:, 1]), "HistGradient")):
        rows = compared.JudgedRows.split(X, labels)
        assert type(rows.best_model()).__name__.startswith(best)


def test_a_handful_of_rows_is_refused():
    with pytest.raises(ldp.errors.DataError, match="too few"):
        compared.compare_table(np.zeros((10, 1)), np.zeros(10), (0.0, 5.0), budgets=[1.0], mechanisms=["laplace"])
