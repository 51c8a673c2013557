"""`LabelAccess` spends what was charged, once; counts in cells answer as the labels do."""

from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded
from labeldp.accounts.budget import new_charge
from labeldp.errors import PrivacyProofError
from labeldp.release.label_access import LabelAccess
from labeldp.release.queries import BinCounts, Cells

LABELS = np.array([0.1, 0.3, 0.3, 0.9])
QUARTERS = BinCounts.equal(Cells((0.0, 1.0), 4), 4, "counts of quarters")


def test_epsilon_that_is_given_to_labels_is_left_for_nothing_else():
    access = LabelAccess(LABELS, seeded(0))
    charge = new_charge("labels", ldp.Budget(1), purpose="sums")
    access.charge(ldp.Ledger(), [charge], epsilon=Fraction(3, 4), for_labels=Fraction(1, 4))
    access.give_to_labels()
    assert (access.for_labels, access.remaining) == (1, 0)
    with pytest.raises(PrivacyProofError):
        access.measure(QUARTERS, Fraction(1, 1000))


def test_a_query_about_cells_answers_of_labels_as_of_their_counts():
    np.testing.assert_array_equal(np.ravel(QUARTERS.answer(LABELS)), [1, 2, 0, 1])
