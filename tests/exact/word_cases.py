"""Words drawn from a source, and whether two sources share any."""

import numpy as np


def draw(source, count=64):
    words = np.zeros(count, dtype=np.uint64)
    source.fill(words)
    return words


def assert_no_common_word(*parts):
    words = np.concatenate(parts)
    assert np.unique(words).size == words.size
