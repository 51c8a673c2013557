"""A mechanism of one small file works by name wherever built-in ones do, or is refused for a property."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import labeldp as ldp
from labeldp.errors import ParameterError
from labeldp.evidence.comparison import label_error
from labeldp.mechanisms import WORDS, Mechanism, TableChannel, channel_field, register

X = np.random.default_rng(0).normal(size=(600, 2))
LABELS = np.clip(2.5 + X[:, 0], 0, 5)


@pytest.fixture(autouse=True)
def own():
    @register("coin")
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Coin(Mechanism):
        bounds: tuple[float, float]
        epsilon: float
        weights: tuple[int, ...] = (1, 1)
        channel: TableChannel = channel_field()

        def _build(self):
            promise = ldp.mechanisms.Promise.of(self.epsilon)
            lie = -(-WORDS // (1 + ldp.mechanisms.exp_lower(promise.epsilon)))
            low, high = self.bounds
            reach = lie / (WORDS - 2 * lie) * (high - low)
            counts = [[WORDS - lie, lie], [lie, WORDS - lie]]
            return TableChannel.from_counts(low, high, [low - reach, high + reach], counts, promise)

    return Coin


def test_it_is_released_by_name_with_a_prior_and_read_from_its_card():
    release = ldp.privatize(LABELS, epsilon=1.0, bounds=(0, 5), mechanism="coin")
    assert release.mechanism.name == "coin"
    assert ldp.accounts.Card.parse(release.to_card()).terms.mechanisms == release.terms.mechanisms
    assert abs(release.labels.mean() - LABELS.mean()) < 6 * 5 / np.sqrt(600)
    prior = ldp.Histogram([0, 2, 3, 5], [1, 8, 1])
    clipped = ldp.privatize(LABELS, epsilon=1.0, bounds=(0, 5), mechanism="coin", prior=prior).mechanism
    assert 0 < clipped.domain[0] < clipped.domain[1] < 5  # the design that all mechanisms share clips


def test_a_regressor_a_comparison_and_an_audit_take_its_name(own):
    model = ldp.LabelReleaseRegressor(epsilon=4.0, bounds=(0, 5), mechanism="coin").fit(X, LABELS)
    assert {made.name for made in model.release_.terms.mechanisms} == {"coin"}
    assert label_error("coin", LABELS, (0, 5), 1.0)[1]
    assert ldp.audit(own(bounds=(0.0, 1.0), epsilon=1.0), samples=4000).epsilon <= 1.0


@pytest.mark.parametrize("attribute", ["for_bounds", "_design"])
def test_one_that_costs_more_than_was_asked_for_is_refused_before_the_charge(own, monkeypatch, attribute):
    monkeypatch.setattr(own, attribute, classmethod(lambda cls, *_, **__: cls(bounds=(0, 5), epsilon=5.0)))
    ledger, labels = ldp.Ledger(), np.linspace(0, 5, 500)
    prior = ldp.Histogram((0, 5), [1.0]) if attribute == "_design" else None
    with pytest.raises(ldp.errors.PrivacyProofError):
        ldp.privatize(labels, epsilon=1.0, bounds=(0, 5), mechanism="coin", prior=prior, ledger=ledger)
    assert not ledger.charges


@pytest.mark.parametrize(("attribute", "why"), [("unbiased", "no unbiased label"), ("needs_delta", "pure ε")])
def test_it_is_refused_for_a_property_and_not_for_its_name(own, attribute, why):
    @register("other")
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Other(Mechanism):
        unbiased: ClassVar[bool] = attribute != "unbiased"
        needs_delta: ClassVar[bool] = attribute == "needs_delta"
        bounds: tuple[float, float]
        epsilon: float
        channel: TableChannel = channel_field()

        def _build(self):
            return own(bounds=self.bounds, epsilon=self.epsilon).channel

    with pytest.raises(ParameterError, match=why):
        ldp.LabelReleaseRegressor(epsilon=1.0, bounds=(0, 5), mechanism="other").fit(X, LABELS)
    with pytest.raises(ParameterError, match=r"must be one of auto, .*laplace"):
        ldp.privatize(LABELS, epsilon=1.0, bounds=(0, 5), mechanism="no-such")


def test_one_without_unbiased_labels_is_for_values_without_a_prior_and_refused_before_the_charge(own, monkeypatch):
    build = own._build
    monkeypatch.setattr(own, "_build", lambda self: replace(build(self), values=build(self).values + 0.1))
    ledger, prior = ldp.Ledger(), ldp.Histogram([0, 2, 3, 5], [1, 8, 1])
    how = {"epsilon": 1.0, "bounds": (0, 5), "mechanism": "coin", "ledger": ledger}
    for more in (
        {},
        {"prior": prior},
        {"prior": prior, "purpose": "values"},
        {"epsilon_prior": 0.2, "purpose": "values"},
    ):
        with pytest.raises(ParameterError, match="Coin has no unbiased labels"):
            ldp.privatize(LABELS, **how, **more)
    assert not ledger.charges
    drawn = ldp.privatize(LABELS, **how, purpose="values")
    assert (drawn.labels == drawn.values).all()


def test_a_parameter_that_no_card_can_hold_is_refused_when_it_is_given(own):
    for value in ([1, float("nan")], [1, object()], {1, 2}, [1 + 2j]):
        with pytest.raises(ParameterError, match="weights"):
            own(bounds=(0, 5), epsilon=1.0, weights=value)


def test_a_channel_is_built_once_for_equal_parameters_and_anew_for_others(own, monkeypatch):
    built, build = [], own._build
    monkeypatch.setattr(own, "_build", lambda self: built.append(self.epsilon) or build(self))
    first = own(bounds=(0, 5), epsilon=1.0)
    assert own(bounds=[0, 5], epsilon=1).channel is first.channel
    assert own(bounds=(0, 5), epsilon=2.0).channel is not first.channel
    assert own(bounds=(-0.0, 5), epsilon=1.0).channel is not first.channel  # equal, and another number on a card
    assert built == [1.0, 2.0, 1.0]
    assert first.verify() == own(bounds=(0, 5), epsilon=1.0).verify()
