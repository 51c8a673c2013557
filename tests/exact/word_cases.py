"""Words drawn from a source, and whether two sources share any."""

import numpy as np

from labeldp.exact.row_ids import Ids


def draw(source, count=64):
    words = np.zeros(count, dtype=np.uint64)
    source.fill(words)
    return words


def assert_no_common_word(*parts):
    words = np.concatenate(parts)
    assert np.unique(words).size == words.size


def as_ids(ids):
    """Return ids of rows from an array or a list of integers, or a list of text or of bytes."""
    if isinstance(ids[0], str):
        return Ids("text", [one.encode() for one in ids])
    return Ids("binary", ids) if isinstance(ids[0], bytes) else Ids("integer", np.array(ids, dtype=np.int64))
