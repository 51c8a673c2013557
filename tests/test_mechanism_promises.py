"""A mechanism promises all that its channel spends, and several cards are loaded as they were written."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import labeldp as ldp
from labeldp.channels.identity import IdentityChannel
from labeldp.mechanisms import base
from labeldp.mechanisms.base import Mechanism, channel_field, fingerprint, load_all
from mechanism_cases import BOUNDS, make


@dataclass(frozen=True, slots=True, kw_only=True)
class Own(Mechanism):
    """A mechanism that takes any channel."""

    epsilon: float
    given: Any
    channel: Any = channel_field()

    def _build(self):
        return self.given


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWithDelta(Own):
    """One that also has a δ."""

    delta: float


# ---- what a ledger is charged with --------------------------------------------------------------------


def test_a_channel_that_spends_more_epsilon_than_its_mechanism_says_is_refused():
    channel = make("two-point", 1.0).channel
    for epsilon in (1.0, 1.001):
        assert Own(epsilon=epsilon, given=channel).channel is channel
    with pytest.raises(ldp.PrivacyProofError, match="less privacy"):
        Own(epsilon=0.999, given=channel)


def test_a_channel_that_spends_more_delta_than_its_mechanism_says_is_refused():
    channel = ldp.Gaussian(bounds=BOUNDS, epsilon=4.0, delta=1e-3).channel
    for delta in (1e-3, 2e-3):
        assert OwnWithDelta(epsilon=4.0, delta=delta, given=channel).channel is channel
    for delta in (0.0, 0.999e-3):
        with pytest.raises(ldp.PrivacyProofError, match="less privacy"):
            OwnWithDelta(epsilon=4.0, delta=delta, given=channel)
    with pytest.raises(ldp.PrivacyProofError, match="less privacy"):
        Own(epsilon=4.0, given=channel)  # no δ is charged for it


def test_a_channel_without_any_promise_is_only_for_an_infinite_epsilon():
    assert Own(epsilon=math.inf, given=IdentityChannel()).verify().epsilon == math.inf
    with pytest.raises(ldp.PrivacyProofError, match="less privacy"):
        Own(epsilon=20.0, given=IdentityChannel())


# ---- several cards ------------------------------------------------------------------------------------


def card(epsilon):
    return ldp.TwoPoint(bounds=BOUNDS, epsilon=epsilon).to_json()


def test_several_cards_give_their_mechanisms_in_order_and_each_distinct_one_once(monkeypatch):
    built = []
    load = base.load_mechanism
    monkeypatch.setattr(base, "load_mechanism", lambda text: built.append(text) or load(text))
    texts = [card(2.0), card(1.0), card(2.0)]
    assert [mechanism.epsilon for mechanism in load_all(texts)] == [2.0, 1.0, 2.0]
    assert built == texts[:2]
    assert load_all([]) == []


def test_as_many_distinct_cards_as_allowed_are_loaded_and_no_more():
    texts = [card(1 + k / 100) for k in range(17)]
    assert len(load_all(texts[:16] * 2)) == 32
    assert len(load_all(texts[:3], most=3)) == 3
    for many, most in ((texts, {}), (texts[:4], {"most": 3})):
        with pytest.raises(ldp.CardError, match="distinct mechanisms"):
            load_all(many, **most)


@pytest.mark.parametrize("texts", [None, "", "{}", (), {}, [None], ["{}", 5], [b"{}"]])
def test_what_is_no_list_of_cards_is_refused(texts):
    with pytest.raises(ldp.CardError, match="list of cards"):
        load_all(texts)


def test_a_fingerprint_tells_every_field_and_the_kind_and_shape_of_arrays():
    channel = make("rr-on-bins", 1.0).channel
    others = [dataclasses.replace(channel, **{name: getattr(channel, name) + 1}) for name in ("low", "high")]
    others += [dataclasses.replace(channel, values=channel.values + 1)]
    others += [dataclasses.replace(channel, values=channel.values.reshape(1, -1))]
    others += [dataclasses.replace(channel, values=channel.values.view(np.int64))]
    assert len({fingerprint(one) for one in [channel, *others]}) == 6
    swapped = dataclasses.replace(channel, values=channel.values.astype(">f8"))
    assert fingerprint(swapped) == fingerprint(channel)


# ---- one label at a time ------------------------------------------------------------------------------


def test_a_density_is_of_one_label():
    mechanism = make("laplace", 1.0)
    assert (mechanism.density([2.0], [0, 1]) == mechanism.density(2.0, [0, 1])).all()
    with pytest.raises(ldp.ParameterError, match="one label"):
        mechanism.density([1.0, 2.0], [0, 1])


def test_the_price_of_privacy_is_the_variance_of_the_unbiased_label():
    mechanism = make("rp", 1.0)
    slope = np.ptp(mechanism.debias([0, 1]))
    assert mechanism.unbiased_variance([[1.0], [3.0]]) == pytest.approx(
        mechanism.variance([[1.0], [3.0]]) * slope**2
    )
