"""The harness detects each leak that was found, and some that were not, in a small way out of its own."""

import numpy as np
import pytest

from interference import changes
from interference.broken_ways import BROKEN, OVERSPENT, batches_by_bytes
from interference.harness import Way, assert_same, compared, overspending
from interference.replay import stillness

ROWS = 64
ONE = [str(row % 7) for row in range(ROWS)]
OTHER = changes.changed(ONE, [0, 1, 2], ["6.25", "-1e300", "3.141592653589793"])


def way(broken, *, leak):
    return Way(lambda labels: broken(labels, leak=leak))


@pytest.mark.parametrize("broken", BROKEN, ids=lambda way: way.__name__)
def test_a_leak_is_found_where_it_is_and_the_same_way_without_it_passes(broken, tmp_path):
    assert BROKEN[broken] in compared(way(broken, leak=True), ONE, OTHER, tmp_path)[1]
    assert_same(way(broken, leak=False), ONE, OTHER, tmp_path)


def test_one_character_more_is_enough(tmp_path):
    other = changes.changed(ONE, [0], ["10"])
    assert "files" in compared(way(batches_by_bytes, leak=True), ONE, other, tmp_path)[1]


def test_equal_inputs_are_told_apart_by_nothing(tmp_path):
    """But memory that was not written: it differs between any two runs, so that it is found at once."""
    for broken in BROKEN:
        found = compared(way(broken, leak=True), ONE, ONE, tmp_path)[1]
        assert set(found) == ({"value"} if broken.__name__ == "unwritten_memory" else set())


def test_memory_that_was_not_written_is_marked():
    with stillness(0x5A):
        assert np.empty((2, 3), dtype=np.uint8, order="F").tolist() == [[0x5A] * 3] * 2
        assert np.empty_like(np.zeros(3, dtype=np.int32)).tolist() == [0x5A5A5A5A] * 3


@pytest.mark.parametrize("leak", [True, False])
@pytest.mark.parametrize("broken", OVERSPENT)
def test_what_spends_more_than_it_charges_is_found_and_passes_when_it_does_not(broken, leak, tmp_path):
    assert overspending(way(broken, leak=leak), ONE, OTHER, tmp_path) is leak
