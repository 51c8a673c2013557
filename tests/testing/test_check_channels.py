"""`check_mechanism` with a channel of the user's own: what leaks in its sampler is found too."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import labeldp as ldp
from coin_cases import Coin, coin
from labeldp.channels import TableChannel
from labeldp.errors import ConformanceError
from labeldp.testing import CHECKS, check_mechanism

SAMPLES = 20_000


@dataclass(frozen=True, slots=True)
class LeakyChannel(TableChannel):
    """A table whose sampler leaves the label in the last bit of what it releases."""

    def sample(self, labels, source, out):
        TableChannel.sample(self, labels, source, out)
        out[...] = np.where(labels > 0.5, np.nextafter(out, np.inf), out)


@dataclass(frozen=True, slots=True)
class TellingChannel(TableChannel):
    """A table whose sampler gives a fixed output to labels above the range, and says so in `cumulative`."""

    def sample(self, labels, source, out):
        TableChannel.sample(self, labels, source, out)
        out[labels > 1] = 1.5

    def cumulative(self, label, points):
        return (points >= 1.5).astype(float) if label > 1 else TableChannel.cumulative(self, label, points)


@dataclass(frozen=True, slots=True)
class BareChannel:
    """The protocol of a channel and nothing more: no range of labels to read off."""

    _inner: TableChannel

    def __getattr__(self, name):
        if name in ("low", "high"):
            raise AttributeError(name)
        return getattr(object.__getattribute__(self, "_inner"), name)


class NoDataclass:
    """The same, and no dataclass."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self.__dict__["_inner"], name)


def built(make):
    def _build(self):
        table = Coin._build(self)
        return make(table)

    return {"_build": _build}


def as_a(cls):
    return built(lambda table: cls(table.low, table.high, table.values, table.table, table.promise))


def test_a_channel_of_the_users_that_leaks_is_convicted_by_the_audit_of_bits():
    with pytest.raises(ConformanceError, match=r"audit: .* exact value.* cell's index alone"):
        check_mechanism(coin("leaky-channel", **as_a(LeakyChannel))(epsilon=1.1), samples=SAMPLES)


def test_labels_outside_are_audited_where_a_channel_treats_them_otherwise():
    with pytest.raises(ConformanceError, match=r"audit: .* tell labels apart"):
        check_mechanism(coin("telling-channel", **as_a(TellingChannel))(epsilon=1.1), samples=SAMPLES)


def test_a_channel_without_a_range_is_checked_with_the_bounds_that_are_given():
    own = coin("bare-channel", **built(BareChannel))(epsilon=1.1)
    with pytest.raises(ConformanceError, match=r"BareChannel .* bounds=\(lo, hi\)"):
        check_mechanism(own, samples=SAMPLES)
    assert check_mechanism(own, samples=SAMPLES, bounds=(0, 1)) == tuple(CHECKS)


def test_a_channel_that_is_no_dataclass_is_told_so():
    with pytest.raises(ConformanceError, match="card: NoDataclass is no dataclass"):
        check_mechanism(coin("no-dataclass", **built(NoDataclass))(epsilon=1.1), samples=SAMPLES)


def test_a_channel_without_a_promise_is_refused_in_words():
    with pytest.raises(ldp.ParameterError, match=r"Promise\.of"):
        TableChannel.from_counts(0.0, 1.0, [0.25, 0.75], [[1 << 63, 1 << 63]] * 2, None)
    shift = ldp.Laplace(bounds=(0, 1), epsilon=1.0).channel
    with pytest.raises(ldp.ParameterError, match=r"Promise\.of"):
        replace(shift, promise=None)
    with pytest.raises(ldp.ParameterError, match=r"Promise\.of"):
        replace(ldp.RPWithPrior(interval=(0, 1), zeta=0.5, epsilon=1.0).channel, promise=None)
