"""Errors, warnings, logs and what is printed: the same whatever the labels are, but for which are missing."""

import decimal
import logging
import warnings

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import labeldp as ldp
from interference import changes
from interference.harness import Way, assert_same, run
from interference.outputs import described_error

BOUNDS = changes.BOUNDS
ONE = changes.numbers(changes.plain(40))
OTHER = changes.numbers(changes.changed(changes.plain(40), range(40), changes.SPELLINGS))


class _Raises:
    """A label that complains with its own value."""

    def __init__(self, number):
        self._number = number

    def __float__(self):
        raise ValueError(f"I am {self._number}")


def with_one(value):
    """Return a function that puts a value into row 7, and into row 0 a number that differs with the labels."""

    def make(labels, first):
        number = 3.25 if first else -1e6
        found = value(first, number)
        labels = labels.astype(float if isinstance(found, float) else object)
        labels[0], labels[7] = number, found
        return labels

    return make


DATES = np.datetime64("2020-01-01") + np.arange(40)
BAD = {
    "NaN": with_one(lambda *_: np.nan),
    "infinite": with_one(lambda *_: np.inf),
    "text": with_one(lambda first, _: "secret" if first else "much longer secret"),
    "None": with_one(lambda *_: None),
    "Decimal NaN": with_one(lambda *_: decimal.Decimal("NaN")),
    "boolean": with_one(lambda first, _: first),
    "complex": with_one(lambda _, number: complex(number, 1)),
    "object that raises": with_one(lambda _, number: _Raises(number)),
    "all text": lambda labels, _: np.array([str(value) for value in labels]),
    "all dates": lambda _, first: DATES[::-1] if first else DATES,
    "masked": lambda labels, _: np.ma.masked_array(labels, mask=np.arange(40) == 7),
    "long double": lambda labels, _: labels.astype(np.longdouble),
    "cube": lambda labels, _: labels.reshape(2, 4, 5),
    "nested": lambda labels, _: [labels.tolist(), labels[:7].tolist()],
}
"""Labels of which some, always the same, cannot be used; what stands there differs with the labels."""


def tried(act):
    """Return a way out that tries, and keeps every error for itself."""

    def every(labels):
        told = []
        for call in act:
            try:
                told.append(call(labels))
            except Exception as problem:
                told.append(described_error(problem))
        return told

    return Way(every)


X = np.random.default_rng(0).normal(size=(40, 2))
OPTIONS = {"epsilon": 1.0, "bounds": BOUNDS}


def ways_to_take_labels(**options):
    """Return all that labels can be given to, by name."""
    options, rough = {**OPTIONS, **options}, Ridge().fit(X, np.zeros(40))
    return {
        "release": lambda y: ldp.privatize(y, **options, mechanism="rp"),
        "release, local": lambda y: ldp.privatize(y, **options, trust="local", epsilon_prior=0.3),
        "prior": lambda y: ldp.estimate_prior(y, **options),
        "prior, local": lambda y: ldp.estimate_prior(y, **options, trust="local"),
        "mechanism": ldp.TwoPoint(**options).randomize,
        "stream": lambda y: ldp.release.LabelStream(lambda: [y], ldp.release.Request(**options)).release(y),
        "labels": lambda y: ldp.LabelReleaseRegressor(Ridge(), **options, mechanism="two-point").fit(X, y),
        "sums": lambda y: ldp.ModelReleaseRegressor(**options).fit(X, y),
        "score": lambda y: ldp.private_score(rough, X, y, **options),
    }


@pytest.mark.parametrize("kind", BAD)
def test_what_is_said_of_labels_that_cannot_be_used(kind, tmp_path):
    way = tried(ways_to_take_labels().values())
    assert_same(way, BAD[kind](ONE, True), BAD[kind](OTHER, False), tmp_path)


def test_labels_that_cannot_be_used_are_refused_everywhere(tmp_path):
    """Otherwise the test above would compare releases, which it does not mean to."""
    left, tape = run(tried(ways_to_take_labels().values()), BAD["text"](ONE, True), tmp_path)
    assert tape.calls == []
    assert str(left.result).count("LabelError") >= 9
    assert "secret" not in str(left)


TINY = [5e-324, 1e-310, -1e-310, -0.0, 1e-200, 1.5e308, -1.5e308]


@pytest.mark.parametrize("way", ways_to_take_labels())
def test_arithmetic_on_labels_raises_no_flag_that_numpy_warns_of(way, tmp_path):
    """Whoever calls may have asked NumPy to warn of underflow: a tiny label, beside bounds at 0, would leak."""

    def act(labels):
        with np.errstate(all="warn"):
            return ways_to_take_labels(bounds=(0.0, 5.0))[way](labels)

    one, other = np.full(40, 2.5), np.full(40, 2.5)
    other[: len(TINY)] = TINY
    assert_same(Way(act), one, other, tmp_path)


ARGUMENTS = [
    *({"epsilon": epsilon} for epsilon in (0.0, 0.001, 20.0)),
    {"bounds": (2.0, 1.0)},
    {"mechanism": "no such"},
    {"mechanism": "gaussian"},
    {"random_state": 3},
    {"epsilon_prior": 2.0},
    {"prior": ldp.Histogram([100.0, 101.0], [1.0])},
]


@pytest.mark.parametrize("options", ARGUMENTS, ids=str)
def test_what_is_said_of_arguments(options, tmp_path):
    assert_same(Way(lambda labels: ldp.privatize(labels, **{**OPTIONS, **options})), ONE, OTHER, tmp_path)


def labels_in_place_of_something_else():
    other = X[:, 0]
    private = ldp.ModelReleaseRegressor(**OPTIONS, random_state=1).fit(X, other)
    calls = [
        lambda y: ldp.ModelReleaseRegressor(**OPTIONS).fit(y, X),
        private.predict,
        lambda y: ldp.LabelReleaseRegressor(y, **OPTIONS).fit(X, other),
        lambda y: ldp.preview(rows=y, bounds=BOUNDS),
        lambda y: ldp.private_score(y, X, other, **OPTIONS),
    ]
    options = ("mechanism", "trust", "rows_per_person")
    calls += [lambda y, o=option: ldp.privatize(other, **OPTIONS, **{o: list(y)}) for option in options]
    return tried(calls)


def test_labels_in_the_place_of_another_argument_are_refused_and_not_quoted(tmp_path):
    with pytest.warns(ldp.InsecureRandomnessWarning):
        way = labels_in_place_of_something_else()
    first = assert_same(way, ONE, OTHER, tmp_path)
    assert str(first.result).count("ParameterError") >= 8


def test_what_is_said_when_the_budget_is_spent(tmp_path):
    def act(labels):
        ledger = ldp.Ledger.open("ledger.db", limit=ldp.Budget(1.5))
        for _ in range(2):
            ldp.privatize(labels, **OPTIONS, mechanism="two-point", ledger=ledger)

    first = assert_same(Way(act), ONE, OTHER, tmp_path)
    assert first.error[0] == "BudgetError"


def test_the_warning_that_labels_were_released_before(tmp_path):
    def act(labels):
        for _ in range(2):
            ldp.privatize(labels, **OPTIONS, mechanism="two-point")

    first = assert_same(Way(act), ONE.copy(), OTHER.copy(), tmp_path)
    assert [category for category, *_ in first.warnings] == ["RepeatedReleaseWarning"]


def test_an_estimator_that_fails_is_given_no_label_to_complain_with(tmp_path):
    class Complains(Ridge):
        def fit(self, X, y, sample_weight=None):
            logging.getLogger("own").warning("learning from %s", y[:3])
            warnings.warn(f"the first label is {y[0]}", stacklevel=2)
            print(y[1])
            if X.shape[0] == 40 and np.unique(y).size > 1 and y[0] != 2 * BOUNDS[0] - BOUNDS[1]:
                raise ValueError(f"the labels are {y}")
            return super().fit(X, y)

    def act(labels):
        return ldp.LabelReleaseRegressor(Complains(), **OPTIONS, mechanism="two-point").fit(X, labels)

    first = assert_same(Way(act), ONE, OTHER, tmp_path)
    assert first.error[0] == "ValueError"
    assert all((first.logs, first.warnings, first.stdout))
