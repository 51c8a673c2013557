"""Broken twins: mechanisms with one mistake each. The proof refuses them, or a test here catches them.

Single words that are moved within a channel are in tests/exact, noise that is too small in tests/mechanisms.
"""

from dataclasses import replace
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

import broken
import labeldp as ldp
from helpers import NAMES, WORDS, mechanisms, respond, seeded
from labeldp.exact import sampling
from labeldp.mechanisms import laplace

EPSILON = 1.0
SAMPLES = 200_000
OUTSIDE = (-1e300, -3.0, -1e-9, 1 + 1e-9, 2.0, 1e300)


def release(mechanism, label, seed, size=SAMPLES):
    return mechanism.randomize(np.full(size, label), random_state=seeded(seed))


# ---- noise × 0.9 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_counts_for_a_larger_epsilon_do_not_pass_for_a_smaller_one(name):
    """Noise × 0.9 is the noise of ε/0.9 = 1.111…: promises of 1 and of 1.11 are refused."""
    loud = mechanisms(EPSILON / 0.9)[name].channel
    for promised in (Fraction(1), Fraction(111, 100)):
        with pytest.raises(ldp.errors.PrivacyProofError, match="must not be used"):
            replace(loud, promise=replace(loud.promise, epsilon=promised))


# ---- window, sensitivity, counts ----------------------------------------------------------------------


def rows_by(function):
    """Let a function decide, for a while, which row of a channel a label gets."""
    return mock.patch.multiple(sampling.Domain, nearest=function, rounded=function)


def stay_inside(channel, labels):
    """Whether first, last and threshold words lead into the range of outputs, whatever the label."""
    limit = channel.cells * channel.background
    words = np.array([0, limit - 1, limit, WORDS - 1], dtype=np.uint64)
    first, last = respond(channel, 0.5, words[:2])  # of all cells: the background has them all
    z = np.array([respond(channel, label, words) for label in labels])
    return bool((z >= first).all() and (z <= last).all())


def test_a_window_that_starts_one_cell_too_far_is_caught():
    channel = mechanisms(EPSILON)["rp"].channel
    labels = (*OUTSIDE, 0.0, 0.3, 1.0)
    assert stay_inside(channel, labels)
    nearest = sampling.Domain.nearest
    with rows_by(lambda *arguments: nearest(*arguments) + 1):
        assert not stay_inside(channel, labels)


@pytest.mark.parametrize("name", ["laplace", "staircase", "gaussian"])
def test_noise_for_half_the_sensitivity_or_for_a_step_less_is_refused(name):
    """The noise of labels in half the range, for labels in all of it: as many steps again."""
    channel = mechanisms(EPSILON)[name].channel
    for more in (channel.steps, 1):
        if more == 1 and name == "gaussian":
            continue  # its δ has room for one step of so many
        with pytest.raises(ldp.errors.PrivacyProofError, match="must not be used"):
            replace(channel, steps=channel.steps + more, margin=max(0, channel.margin - more))


# ---- unclipped labels ---------------------------------------------------------------------------------


def treats_outside_as_ends(mechanism):
    """Whether labels outside the bounds give, word for word, what the nearer bound gives."""
    ends = {end: release(mechanism, end, 5, 5000) for end in (0.0, 1.0)}
    return all(np.array_equal(release(mechanism, label, 5, 5000), ends[float(label > 0.5)]) for label in OUTSIDE)


def unclipped(self, labels, *rest):
    """Return rows without the clip; far labels are cut to where integers can still hold them."""
    place = (np.clip(labels, -1e3, 1e3) - self.low) / self.step
    return np.floor(place + 0.5).astype(np.int64)


@pytest.mark.parametrize("name", NAMES)
def test_labels_outside_get_the_row_of_the_nearer_bound_and_without_a_clip_they_are_caught(name):
    mechanism = mechanisms(EPSILON)[name]
    assert treats_outside_as_ends(mechanism)
    if name in ("two-point", "rr-on-bins", "unbiased"):
        return  # their rows are looked up in a table, which has no others
    with rows_by(unclipped):
        assert not treats_outside_as_ends(mechanism)


# ---- the published staircase --------------------------------------------------------------------------
# X = S[(1−B)(G+γU) + B(G+γ+(1−γ)U)]Δ wants B in {0, 1}. The published code draws B from {−1, 1}; with
# B = −1 the bracket is G − γ + (3γ − 1)U, and nothing is left near zero.


def staircase_channel(bits, steps=16, ranges=4):
    """Return the channel whose counts are the histogram of float staircase noise, for the two values of B."""
    noise = broken.staircase(bits, seed=1, grid=False)(np.zeros(SAMPLES))
    reach = steps * ranges
    cells = np.clip(np.rint(noise * steps), -reach, reach).astype(np.int64) + reach
    weights = np.bincount(cells, minlength=2 * reach + 1)
    counts = laplace.counts_from_weights(((weights + weights[::-1]) * (1 << 40)).tolist())
    return ldp.exact.ShiftChannel.from_counts(
        0.0, 1.0, steps, reach - steps, counts, ldp.exact.Promise(Fraction(20))
    )


def test_the_published_staircase_has_a_hole_and_is_private_at_no_epsilon():
    with pytest.raises(ldp.errors.PrivacyProofError, match="possible under one label and not under another"):
        staircase_channel((-1, 1))


def test_the_staircase_with_the_right_bits_has_no_hole():
    """The twin. Counts from a histogram are noisy, so ε is only roughly right: between 1 and 2."""
    assert 1.0 < staircase_channel((0, 1)).verify().epsilon < 2.0
