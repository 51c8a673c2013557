"""Fitted state changes all at once: whatever stops a fit leaves the old model, the new one or none."""

import copy
import json
import os
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

import labeldp as ldp
from labeldp.learning import base, label_regressor, model_regressor

pytestmark = pytest.mark.filterwarnings("ignore::labeldp.errors.InsecureRandomnessWarning")

RNG = np.random.default_rng(6)
OLD = {"X": RNG.normal(size=(12, 2)), "y": RNG.uniform(0, 5, 12)}
NEW = {"X": RNG.normal(size=(20, 3)), "y": RNG.uniform(100, 200, 20)}
TRACED = {module.__file__ for module in (base, label_regressor, model_regressor)}
CASES = {
    "labels": (ldp.LabelReleaseRegressor, {"rounds": 1}),
    "labels, own learner": (ldp.LabelReleaseRegressor, {"rounds": 1, "estimator": Ridge()}),
    "sums": (ldp.ModelReleaseRegressor, {}),
    "model from labels": (ldp.ModelReleaseRegressor, {"epsilon": 20.0}),
}


def state(model):
    """Return all that a model says of itself and does, but for the clock."""
    try:
        card = json.loads(model.to_card())
    except NotFittedError:
        assert [name for name in vars(model) if name.endswith("_")] == []
        return "not fitted"
    for charge in card["charges"]:
        del charge["when"]
    del card["checksum"]
    release = getattr(model, "release_", None)
    try:
        predicted = model.predict(np.ones((1, model.n_features_in_))).tobytes()
    except NotFittedError:
        predicted = None
    labels = None if release is None else (release.labels.tobytes(), release.cost, release.label_summary)
    return json.dumps(card), model.summary(), model.n_features_in_, labels, predicted, str(model.mechanism_)


def new(case):
    regressor, how = CASES[case]
    return regressor(**{"epsilon": 1.0, "bounds": (0.0, 5.0), "random_state": 1} | how)


def fit_again(model):
    return model.set_params(bounds=(100.0, 200.0), random_state=2).fit(**NEW)


def is_interrupted_after(count, fit, event, names=None):
    """Run a fit, press Ctrl-C at its so many-th line or opcode in the regressors; return whether it got there."""
    left, wanted = count, event

    def local(frame, event, argument):
        nonlocal left
        if event == wanted:
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return local

    def each(frame, event, argument):
        if frame.f_code.co_filename not in TRACED or (names and frame.f_code.co_name not in names):
            return None
        frame.f_trace_opcodes = wanted == "opcode"
        return local

    before = sys.gettrace()
    sys.settrace(each)
    try:
        fit()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


INTERRUPTED = [
    ("labels", True, "opcode", ("_replace_state",)),
    ("labels, own learner", True, "line", None),
    ("sums", False, "line", None),
]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "refit", "event", "names"), INTERRUPTED)
def test_an_interrupt_anywhere_leaves_the_old_model_the_new_one_or_none(case, refit, event, names):
    start = new(case).fit(**OLD) if refit else new(case)
    first, last = state(start), state(fit_again(new(case)))
    release_alone = (*last[:4], None, last[5])
    is_interrupted_after(-1, lambda: fit_again(copy.copy(start)), event, names)  # from Python 3.12 on, opcodes
    stride = 1 if names or os.environ.get("LABELDP_LONG") else 3
    states, steps, more = set(), 0, True  # of a function are traced from the second trace of it on
    while more:
        steps += stride
        model = copy.copy(start)
        more = is_interrupted_after(steps, lambda model=model: fit_again(model), event, names)
        states.add(state(model))
    assert steps > (30 if names is None else 3)
    assert {first, last} <= states <= {first, last, release_alone}


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_labels_that_were_paid_for_are_kept_without_the_old_model_if_learning_from_them_stops(error, monkeypatch):
    def stop(*arguments, **named):
        raise error

    model = new("labels").fit(**OLD)
    monkeypatch.setattr(base, "ensemble_of", stop)
    with pytest.raises(error) as caught:
        fit_again(model)
    assert "release_.labels" in caught.value.__notes__[0]
    assert model.release_.labels.size == model.terms_.rows == len(NEW["y"])
    assert model.release_.charges == model.charges_
    with pytest.raises(NotFittedError, match="no model"):
        model.predict(NEW["X"])


@pytest.mark.parametrize("case", CASES)
def test_a_fit_that_is_refused_leaves_what_was_fitted(case):
    model = new(case).fit(**OLD)
    before = state(model)
    with pytest.raises(ldp.errors.LabelError):
        model.fit(NEW["X"], np.full(20, np.nan))
    with pytest.raises(ldp.errors.ParameterError, match="weights"):
        model.fit(**NEW, sample_weight=np.ones(20))
    with pytest.raises(ldp.BudgetError):
        model.set_params(ledger=ldp.Ledger(limit=ldp.Budget(0.1)), bounds=(-9.0, 9.0)).fit(**NEW)
    assert state(model) == before
    assert model.n_features_in_ == 2


@pytest.mark.parametrize("case", CASES)
def test_what_was_charged_before_a_fit_stopped_counts_in_the_next(case, monkeypatch):
    """A mechanism function of the user's, say, sees the private prior before it fails."""
    model = new(case)
    with monkeypatch.context() as patch:
        patch.setattr(base, "release_sums", broken)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="broken"):
                model.fit(**OLD)
    assert state(model) == "not fitted"
    assert model.fit(**OLD).ledger_.total == ldp.Budget(3 * model.epsilon)
    assert sum(charge.budget.epsilon for charge in model.charges_) == model.epsilon


def broken(*arguments, **named):
    raise RuntimeError("broken")
