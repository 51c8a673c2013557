"""What fuzzers share: how often they try, values of every kind, and places to put them."""

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from forged_cards import leaves

LONG = bool(os.environ.get("LABELDP_LONG"))


def tries(count):
    return settings(
        max_examples=100 * count if LONG else count,
        deadline=None,
        derandomize=not LONG,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


numbers = st.one_of(
    st.sampled_from([0, -1, 1, 2**31, 2**63, 2**64, 10**30, 10**400, 1e-320, 1e-9, 1e9, 1e308, -1e308, 0.1]),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=5), st.sampled_from(["secure", "1e999", "NaN"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(["epsilon", "delta", "a"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def places(content):
    """Return the paths of all branches and leaves."""
    found = list(leaves(content))
    return sorted({path[:k] for path in found for k in range(1, len(path) + 1)}, key=repr)
