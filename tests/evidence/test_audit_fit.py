"""An audit of one fit detects what is not private, and hardly ever what is."""

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

import labeldp as ldp
from helpers import FALSE_ALARM, seeded
from labeldp.errors import ParameterError
from labeldp.evidence import canary_labels

pytestmark = pytest.mark.statistical

BOUNDS = (0.0, 5.0)
AUDITS = 2000


def responses(labels, epsilon, rng):
    """Return labels by randomised response: a guess of any of them is right with the most probability for ε."""
    is_kept = rng.random(labels.shape) < 1 / (1 + np.exp(-epsilon))
    return np.where(is_kept, labels, sum(BOUNDS) - labels)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("hidden", [0.0, 0.5])
def test_randomised_response_at_exactly_epsilon_is_above_it_in_one_audit_of_twenty_at_most(epsilon, hidden):
    """Some of the rows may say nothing, at a place between: the best number of guesses is chosen, too."""
    rng = np.random.default_rng(0)
    bounds = []
    for seed in range(AUDITS):
        labels = canary_labels(300, BOUNDS, seeded(seed))
        released = responses(labels, epsilon, rng)
        released[rng.random(labels.size) < hidden] = 2.5
        bounds.append(ldp.audit_fit(released, labels).epsilon)
    assert np.sum(np.array(bounds) > epsilon) <= stats.binom.isf(FALSE_ALARM, AUDITS, 0.05)
    assert epsilon < 1 or np.median(bounds) > 0.5 * epsilon


def test_an_auditor_that_chose_its_guesses_after_the_answers_would_raise_the_alarm():
    """The twin of the test above: the bound for as many guesses as look best, without paying for the choice."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(AUDITS):
        right = np.cumsum(rng.random(300) < 1 / (1 + np.exp(-1.0)))
        counts = np.arange(1, 301)
        shares = stats.beta.ppf(0.05, np.maximum(right, 1), counts - np.maximum(right, 1) + 1)
        alarms += shares.max() > 1 / (1 + np.exp(-1.0))
    assert alarms > stats.binom.isf(FALSE_ALARM, AUDITS, 0.05)


def rows(count, seed=0):
    """Return features, and labels that they partly explain."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 5))
    signal = X[:, 0] + np.sin(X[:, 1]) + 0.5 * X[:, 2] * X[:, 3]
    noise = rng.standard_t(3, count) * (1 + np.abs(X[:, 4]))
    return X, np.clip(2.5 + 0.6 * signal + 0.3 * noise, *BOUNDS)


def private_model(epsilon):
    return ldp.ModelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS, ledger=ldp.Ledger())


def audit_by_canaries(model, seed=0):
    """Return the audit of a model by canaries that it learnt among other rows."""
    X, y = rows(2000, seed)
    rng = np.random.default_rng(seed)
    canaries = np.column_stack([rng.choice(column, 400) for column in X.T])
    coins = canary_labels(400, BOUNDS, seeded(seed))
    model.fit(np.vstack([X, canaries]), np.append(y, coins))
    return ldp.audit_fit(model.predict(canaries), coins, epsilon=1.0)


def audit_by_held_out_rows(model, seed=0):
    """Return the audit of a model by true labels, those that it learnt and others."""
    X, y = rows(2000, seed)
    learnt, held_out = slice(0, 1000), slice(1000, 2000)
    released = model.fit(X[learnt], y[learnt]).predict(X)
    alternatives = released[learnt] + y[held_out] - released[held_out]
    return ldp.audit_fit(released[learnt], y[learnt], alternatives, epsilon=1.0)


WAYS = [audit_by_canaries, audit_by_held_out_rows]


@pytest.mark.parametrize("audit", WAYS)
@pytest.mark.parametrize("model", [KNeighborsRegressor(1), RandomForestRegressor(20, random_state=0)], ids=type)
def test_a_model_that_remembers_labels_is_detected(model, audit):
    found = audit(model)
    assert found.detected
    assert 2 < found.epsilon <= found.largest
    assert "VIOLATION" in found.summary()


@pytest.mark.slow
@pytest.mark.parametrize("audit", WAYS)
def test_an_honest_model_and_a_good_one_without_privacy_that_remembers_nothing_are_not(audit):
    for seed in range(3):
        assert not audit(private_model(1.0), seed).detected
        assert not audit(LinearRegression(), seed).detected


def test_true_labels_are_detected_and_private_ones_are_not():
    _, y = rows(2000)
    mine, others = y[:1000], y[1000:]
    assert ldp.audit_fit(mine, mine, others, epsilon=1.0).epsilon > 5
    for epsilon, is_detected in ((1.0, False), (20.0, True)):
        release = ldp.privatize(y, epsilon=epsilon, bounds=BOUNDS, mechanism="two-point", ledger=ldp.Ledger())
        found = ldp.audit_fit(release.labels[:1000], mine, others, epsilon=1.0)
        assert found.detected == is_detected
    assert "VIOLATION" not in ldp.audit_fit(mine, mine, others).summary()


def test_rows_on_which_nothing_can_be_guessed_are_no_right_guesses():
    """A constant model, labels equal to their alternatives: a tie that counted as right would be a violation."""
    coins = canary_labels(100, BOUNDS, seeded(0))
    constant = ldp.audit_fit(np.full(100, 2.5), coins, epsilon=0.1)
    assert (constant.pairs, constant.right, constant.epsilon, constant.largest) == (0, 0, 0.0, 0.0)
    half = np.where(np.arange(100) < 50, coins, 5.0 - coins)
    assert ldp.audit_fit(coins, coins, half).pairs == 50


def test_a_swap_of_a_label_and_its_alternative_turns_the_guess_round():
    """So nothing but the answer follows from which of the two was learnt."""
    rng = np.random.default_rng(0)
    for released, label, other in rng.uniform(0, 5, (50, 3)):
        one = ldp.audit_fit([released], [label], [other])
        swapped = ldp.audit_fit([released], [other], [label])
        assert one.right + swapped.right == one.guesses == swapped.guesses == 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"labels": [0.0, 1.0, 2.0]},
        {"labels": [0.0, 5.0]},
        {"alternatives": [0.0, 5.0]},
        {"confidence": 0.4},
        {"confidence": 1.0},
        {"epsilon": "none"},
    ],
)
def test_wrong_arguments_are_refused(arguments):
    with pytest.raises(ParameterError):
        ldp.audit_fit(**{"released": [1.0, 2.0, 3.0], "labels": [0.0, 5.0, 0.0], **arguments})
