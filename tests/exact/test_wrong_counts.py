"""Wrong counts: a channel that does not satisfy its promise cannot be built."""

from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from exact.channel_cases import CASES, MIXED, shift_rows, worst
from helpers import WORDS
from labeldp.errors import PrivacyProofError
from labeldp.exact import Promise, ShiftChannel

BELL_SHAPED = "shift, bell, 2 steps, margin 2"
TAMPERINGS = [
    ("window", {"extra": (3 << 60) + 1}, "one word more in a window cell"),
    ("window", {"background": (1 << 61) - 1}, "one background word less"),
    ("window", {"window": 1}, "a window that is one cell short"),
    ("window", {"cells": 8}, "no words for the window"),
    ("window", {"background": 0}, "no background"),
    ("window", {"extra": 3.0 * 2**60}, "a float for a count"),
    ("window", {"promise": Promise(Fraction(9, 10))}, "a smaller promise"),
    ("window, spread outside", {"background": (1 << 61) - 1}, "one background word less, spread"),
    ("window, listed", {"cuts": np.array([0.5, 1.0, 2.5, np.inf])}, "a start beyond the last output"),
    ("window, listed", {"cuts": None}, "values without cuts"),
    ("window, listed", {"cuts": np.array([9, 1, 9, 9])}, "integers for cuts"),
    ("window, listed", {"values": np.array([1.0, 2.0])}, "an output without a value"),
    ("window, listed", {"spread_outside": True}, "bins that do not clip"),
    (BELL_SHAPED, {"steps": 4}, "noise for half the sensitivity"),
    (BELL_SHAPED, {"margin": 3}, "outputs out of reach"),
    (BELL_SHAPED, {"margin": -1}, "a negative margin"),
    (BELL_SHAPED, {"reach": 3}, "noise cut short"),
    (BELL_SHAPED, {"reach": 5}, "noise off centre"),
]


@pytest.mark.parametrize(("name", "changes"), [t[:2] for t in TAMPERINGS], ids=[t[2] for t in TAMPERINGS])
def test_a_channel_with_wrong_integers_cannot_be_built(name, changes):
    channel = CASES[name][0]
    assert replace(channel).verify() == channel.proof
    with pytest.raises(PrivacyProofError):
        replace(channel, **changes)


def counted(row):
    """Return the counts of a packed row, in plain integers: what `recount` should say."""
    bits = len(row).bit_length() - 1
    counts, capacity = [0] * len(row), WORDS >> bits
    for column, entry in enumerate(row):
        other, kept = entry % len(row), entry >> bits
        kept = 0 if other == column else kept
        counts[column] += kept
        counts[other] += capacity - kept
    return counts


def breaks(channel, table, rows):
    """Return whether the packed rows of a table, read in plain integers, are worse than ``rows``."""
    real = [counted(row) for row in table.reshape(-1, table.shape[-1]).tolist()]
    outputs = channel.values.size if isinstance(channel, ldp.exact.TableChannel) else 2 * channel.reach + 1
    if any(any(row[outputs:]) for row in real):
        return True
    real = [row[:outputs] for row in real]
    if isinstance(channel, ShiftChannel):
        real = shift_rows(real[0], channel.steps, channel.margin)
    return not all(all(row) for row in real) or worst(real) > worst(rows)


@pytest.mark.parametrize("name", MIXED)
def test_a_word_moved_between_cells_is_refused_whenever_it_raises_the_worst_ratio(name):
    """Every threshold of every packed row, one up and one down."""
    channel, _, _, rows = CASES[name]
    assert channel.proof.worst_ratio == worst(rows)
    refused = 0
    for index, entry in np.ndenumerate(channel.table):
        for moved in (int(entry) + channel.table.shape[-1], int(entry) - channel.table.shape[-1]):
            if 0 <= moved < WORDS:
                table = channel.table.copy()
                table[index] = moved
                is_worse = breaks(channel, table, rows)
                refused += is_worse
                with pytest.raises(PrivacyProofError) if is_worse else nullcontext():
                    replace(channel, table=table)
    assert refused


@pytest.mark.parametrize("columns", [1, 3])
def test_a_packed_row_of_another_length_is_refused(columns):
    channel = CASES["table"][0]
    with pytest.raises(PrivacyProofError):
        replace(channel, table=channel.table[:, :columns].copy())


def test_noise_with_an_even_number_of_counts_has_no_centre_and_is_refused():
    """Its upper tail is empty under one label and not under the other."""
    even = [WORDS // 3, WORDS - WORDS // 3 - (WORDS >> 2) - (WORDS >> 3), WORDS >> 2, WORDS >> 3]
    with pytest.raises(PrivacyProofError):
        ShiftChannel.from_counts(0.0, 1.0, 1, 1, even, Promise(Fraction(20)))
