"""The audit detects what is broken, and nothing else, and says what it could have detected."""

import math

import numpy as np
import pytest
from scipy import stats

import broken
import labeldp as ldp
from evidence.coin_cases import coin
from helpers import FALSE_ALARM, NAMES, mechanisms, most_successes, seeded
from labeldp.evidence import loss_bounds

pytestmark = [pytest.mark.slow, pytest.mark.statistical]

SAMPLES = 100_000
ENDS = (0.0, 1.0)
SEEDS = range(5)

# ---- what must be detected, and a right twin that must not be ---------------------------------------

SIZES = {
    "published staircase": (broken.staircase((-1, 1), 1), broken.staircase((0, 1), 1)),
    "Laplace with 0.8 of its noise": (broken.laplace(0.8, 2), broken.laplace(1.0, 2)),
    "RR-on-Bins that keeps too often": (
        broken.rr_on_bins(1.2 * broken.right_keep(), 3),
        broken.rr_on_bins(broken.right_keep(), 3),
    ),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_randomiser_whose_sizes_leak_is_detected_and_its_right_twin_is_not(name):
    wrong, right = SIZES[name]
    result = ldp.audit(wrong, labels=ENDS, epsilon=1.0, samples=SAMPLES)
    assert result.detected
    assert result.epsilon > 1.05
    assert not ldp.audit(right, labels=ENDS, epsilon=1.0, samples=SAMPLES).detected


BITS = {
    "float64 RPWithPrior": broken.float_rp,
    "diffprivlib's Laplace": broken.diffprivlib_laplace,
}


@pytest.mark.parametrize("name", BITS)
def test_plain_floats_are_detected_by_their_last_bits_and_by_nothing_else(name):
    """Events of several percent under one label that never happen under the other."""
    make, labels = BITS[name], (0.2, 0.21)
    result = ldp.audit(make(4), labels=labels, epsilon=1.0, samples=SAMPLES)
    assert result.detected
    assert result.epsilon > 3
    assert result.worst.lens != "size"
    by_size = ldp.audit(make(5), labels=labels, epsilon=1.0, samples=SAMPLES, lenses=["size"])
    assert not by_size.detected


def test_exact_noise_added_to_the_label_in_floating_point_is_detected():
    mechanism = mechanisms(1.0)["laplace"]
    result = ldp.audit(lambda y: y + mechanism.randomize(np.zeros(y.size)), labels=(0.2, 0.21), epsilon=1.0)
    assert result.epsilon > 5
    assert not ldp.audit(mechanism, labels=(0.2, 0.21), samples=SAMPLES).detected


# ---- what must pass --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_in_every_mechanism_nothing_is_detected(name):
    """All of them together raise a false alarm with probability 7 · 6 · 1e-9 at most."""
    mechanism = mechanisms(1.0)[name]
    sure = 1 - 1e-9
    audits = [ldp.audit(mechanism, samples=16_000, confidence=sure, random_state=seeded(k)) for k in SEEDS]
    assert not any(a.detected for a in audits)
    # An audit that sees nothing detects nothing: it must have been able to detect what is not far above.
    assert audits[0].detectable < 1.5
    assert max(a.epsilon for a in audits) > 0
    odd = (-1e300, 0.0, 5e-324, 1.0, 7.0)
    assert not ldp.audit(mechanism, labels=odd, samples=10_000, confidence=sure, random_state=seeded(7)).detected


def test_the_bound_is_as_often_wrong_as_stated_and_no_more():
    """Noise that ignores its label is private at ε = 0; at confidence 0.9 one audit in ten may say otherwise.

    Of 100, more than `most_successes` would do so once in a million. The twin chooses its events on the samples
    that it tests them on, as an audit must not.
    """
    rng = np.random.default_rng(7)
    wrong = sum(
        ldp.audit(lambda y: rng.random(y.size), labels=ENDS, epsilon=0.0, samples=400, confidence=0.9).detected
        for _ in range(100)
    )
    assert wrong <= most_successes(100, 0.1)
    again = 0
    for _ in range(100):
        one, other = (rng.integers(0, 64, 200) for _ in ENDS)
        a, b = (np.bincount(z, minlength=64) for z in (one, other))
        chosen = a > b
        again += float(loss_bounds.loss_at_least(a[chosen].sum(), b[chosen].sum(), 200, 0.0, 0.1)) > 0
    assert again > most_successes(100, 0.1)


# ---- claims and proofs --------------------------------------------------------------------------------------


def raw_draw(self, labels, *, random_state=None):
    """Keep the label with probability 0.85, whatever the counts are: ε = 1.73."""
    kept = np.random.default_rng(11).random(labels.size) < 0.85
    return np.where(kept, labels > 0.5, labels <= 0.5).astype(float)


def test_a_bound_above_the_proof_is_a_violation_even_below_the_claim():
    """The counts are proven at ε = log 3, and 2 is claimed."""
    other_draw = coin("other-draw", randomize=raw_draw)
    result = ldp.audit(other_draw(epsilon=2.0), samples=SAMPLES)
    assert result.proven < 1.5 < result.epsilon < result.claimed
    assert (result.detected, result.refuted) == (True, "proof")
    assert ldp.audit(other_draw(epsilon=1.1), samples=SAMPLES).refuted == "claim and proof"
    result = ldp.audit(coin("right-draw")(epsilon=2.0), samples=SAMPLES, random_state=seeded(1))
    assert (result.detected, result.refuted) == (False, "")
    assert result.proven < result.detectable < 1.5  # held to its proof


def test_a_proof_is_not_held_against_a_smaller_delta_than_its_own():
    gaussian = mechanisms(1.0)["gaussian"]
    assert ldp.audit(gaussian, samples=1000, delta=0.0, epsilon=50.0, random_state=seeded(1)).proven is None
    assert ldp.audit(gaussian, samples=1000, random_state=seeded(1)).proven == 1.0
    assert ldp.audit(gaussian, samples=1000, delta=0.01, random_state=seeded(1)).proven == 1.0


# ---- the parts ---------------------------------------------------------------------------------------------


def test_delta_is_allowed_for():
    reveal = broken.coin(0.05, 0.0, 2)
    assert ldp.audit(reveal, labels=ENDS, epsilon=1.0, samples=20_000).detected
    assert not ldp.audit(reveal, labels=ENDS, epsilon=1.0, delta=0.06, samples=20_000).detected
    assert ldp.audit(reveal, labels=ENDS, epsilon=1.0, delta=0.02, samples=20_000).detected


def test_outputs_that_are_not_finite_are_outputs_too():
    rng = np.random.default_rng(8)

    def leak(y):
        return np.where(y > 0.5, rng.choice([np.nan, np.inf, -np.inf, 0.0], y.size), rng.random(y.size))

    assert ldp.audit(leak, labels=ENDS, epsilon=1.0, samples=2000).detected


WRONG = {"samples": 10, "confidence": 0.1, "epsilon": -1, "delta": 1.0, "labels": [1.0, 1.0], "lenses": ["colour"]}


@pytest.mark.parametrize("option", WRONG)
def test_an_audit_that_cannot_be_done_names_the_option(option):
    with pytest.raises(ldp.errors.ParameterError) as refused:
        ldp.audit(lambda y: y, **{"labels": ENDS, "samples": 1000, option: WRONG[option]})
    assert refused.value.option == option


@pytest.mark.parametrize("wrong", [lambda y: y[:-1], lambda y: np.stack([y, y]), 3])
def test_what_is_no_function_from_labels_to_outputs_is_refused(wrong):
    with pytest.raises(ldp.errors.ParameterError):
        ldp.audit(wrong, labels=ENDS, samples=1000)


LOSSY = {
    "complex": lambda y: 1.0 + 1j * y,
    "extended": lambda y: y.astype(np.longdouble),
    "text": lambda y: np.where(y > 0.5, "1.0", "1.00"),
    "integers among floats": lambda y: [0.5, *((1 << 60) + int(label) for label in y[1:])],
    "masked": lambda y: np.ma.array(np.zeros(y.size), mask=y > 0.5),
    "ragged": lambda y: [[0.0], *([0.0, 1.0] for _ in y[1:])],
}


@pytest.mark.parametrize("kind", LOSSY)
def test_outputs_that_a_float_cannot_carry_are_refused(kind):
    """Each of these leak the label, and says nothing any more once it is a float."""
    with pytest.raises(ldp.errors.ParameterError, match=r"^outputs"):
        ldp.audit(LOSSY[kind], labels=ENDS, epsilon=1.0, samples=1000)
    with pytest.raises(ldp.errors.ParameterError, match=r"^outputs"):
        ldp.audit_pipeline(LOSSY[kind], neighbours=(np.zeros(3), np.r_[0, 1.0, 0]), epsilon=1.0, samples=100)


# ---- what could have been detected ---------------------------------------------------------------------------


def test_clopper_and_pearson_as_scipy_has_them():
    for hits, trials in ((0, 50), (1, 50), (20, 50), (49, 50), (50, 50)):
        exact = stats.binomtest(hits, trials).proportion_ci(0.98, method="exact")
        assert math.isclose(float(loss_bounds.share_at_least(hits, trials, 0.01)), exact.low, rel_tol=1e-9)
        assert math.isclose(float(loss_bounds.share_at_most(hits, trials, 0.01)), exact.high, rel_tol=1e-9)


@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_what_is_detectable_is_detected_and_half_as_much_rarely(delta):
    """100 audits each of a coin with the best event. Fewer than 58 detections happen once in a million."""
    claim, samples = 1.0, 8000
    least = loss_bounds.detectable_loss(samples // 2, claim, delta, 1e-6 / 2)  # two directions, one lens
    q = 1 / (1 + math.exp(least))

    def detections(epsilon):
        share = math.exp(epsilon) * q + delta
        ask = {"labels": ENDS, "epsilon": claim, "delta": delta, "samples": samples, "lenses": ["size"]}
        return sum(ldp.audit(broken.coin(share, q, seed), **ask).detected for seed in range(100))

    assert claim < least < 1.5
    assert detections(least) >= stats.binom.ppf(FALSE_ALARM, 100, loss_bounds.POWER)
    assert detections((claim + least) / 2) < 50
    assert detections(claim) == 0
