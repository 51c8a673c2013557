"""A mechanism promises all that its channel spends, and several cards are loaded as they were written."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import labeldp as ldp
from labeldp.errors import PrivacyProofError
from labeldp.mechanisms import Mechanism, channel_field
from mechanism_cases import BOUNDS, make


def own(channel, **amounts):
    """Return a mechanism with any channel, that says to spend these amounts."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Own(Mechanism):
        epsilon: float
        channel: Any = channel_field()

        def _build(self):
            return channel

    @dataclass(frozen=True, slots=True, kw_only=True)
    class OwnWithDelta(Own):
        delta: float

    return (OwnWithDelta if "delta" in amounts else Own)(**amounts)


# ---- what a ledger is charged with --------------------------------------------------------------------


def test_a_channel_that_spends_more_epsilon_than_its_mechanism_says_is_refused():
    channel = make("two-point", 1.0).channel
    for epsilon in (1.0, 1.001):
        assert own(channel, epsilon=epsilon).channel is channel
    with pytest.raises(PrivacyProofError, match="less privacy"):
        own(channel, epsilon=0.999)


def test_an_epsilon_that_building_lowers_below_what_the_channel_spends_is_refused():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Lowering(Mechanism):
        epsilon: float
        channel: Any = channel_field()

        def _build(self):
            channel = make("two-point", self.epsilon).channel
            object.__setattr__(self, "epsilon", 0.1)
            return channel

    with pytest.raises(PrivacyProofError, match="less privacy"):
        Lowering(epsilon=1.0)


def test_a_channel_that_spends_more_delta_than_its_mechanism_says_is_refused():
    channel = ldp.Gaussian(bounds=BOUNDS, epsilon=4.0, delta=1e-3).channel
    for delta in (1e-3, 2e-3):
        assert own(channel, epsilon=4.0, delta=delta).channel is channel
    for delta in (0.0, 0.999e-3):
        with pytest.raises(PrivacyProofError, match="less privacy"):
            own(channel, epsilon=4.0, delta=delta)
    with pytest.raises(PrivacyProofError, match="less privacy"):
        own(channel, epsilon=4.0)  # no δ is charged for it


def test_a_channel_without_any_promise_is_refused():
    with pytest.raises(PrivacyProofError, match="less privacy"):
        own(Overflowing(promise=None), epsilon=20.0)


# ---- labels as they come ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Overflowing:
    """A channel whose arithmetic overflows for labels far outside."""

    promise: Any = ldp.mechanisms.Promise.of(1.0)
    proof: Any = None

    def sample(self, labels, source, out):
        out[:] = self.mean(labels)

    def mean(self, labels):
        assert labels.ndim == 1, "channels are written for lists of labels"
        return labels * 1e10

    variance = mean


@pytest.mark.parametrize("method", ["randomize", "mean", "variance"])
def test_whatever_a_channel_computes_no_warning_reveals_a_label(method):
    with np.errstate(all="raise"):
        getattr(own(Overflowing(), epsilon=1.0), method)([[1.7e308], [5e-324]])
        with pytest.raises(FloatingPointError):
            Overflowing().mean(np.array([1.7e308]))


# ---- parameters ---------------------------------------------------------------------------------------
