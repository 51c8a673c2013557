"""`check_mechanism`: what conforms passes, and each broken mechanism fails for its own reason."""

from dataclasses import dataclass, field
from itertools import cycle

import numpy as np
import pytest

import labeldp as ldp
from coin_cases import Coin, coin
from helpers import EVERY, NAMES, built_in_choices, make, seeded
from labeldp.channels import Proof, TableChannel
from labeldp.errors import ConformanceError
from labeldp.mechanisms import register
from labeldp.mechanisms.base import Mechanism, channel_field
from labeldp.testing import CHECKS, check_mechanism

SAMPLES = 20_000


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize(("name", "epsilon"), [*zip(EVERY, cycle((1.0, 0.1, 4.0)), strict=False)])
def test_every_mechanism_conforms(name, epsilon):
    assert check_mechanism(make(name, epsilon, (1.0, 4.0)), samples=SAMPLES) == tuple(CHECKS)


def test_the_list_of_mechanisms_has_one_of_each():
    assert {make(name, 1.0).name for name in NAMES} == {*NAMES} == {*built_in_choices()} - {"auto"}


# ---- the README's coin, and coins with one mistake each ---------------------------------------------------------


def test_the_coin_of_the_readme_conforms():
    check_mechanism(coin("right")(epsilon=1.1), samples=SAMPLES)


def tells(self, labels, *, random_state=None):
    """Randomise nothing."""
    Mechanism.randomize(self, labels, random_state=random_state)
    return np.where(np.asarray(labels, dtype=float) > 0.5, 1.5, -0.5)


def louder(self, labels, *, random_state=None):
    """The counts' own draw, and the label in its last bits."""
    z = Mechanism.randomize(self, labels, random_state=random_state)
    return np.where(np.asarray(labels) > 0.5, np.nextafter(z, np.inf), z)


def own_words(self, labels, *, random_state=None):
    return Mechanism.randomize(self, labels)


def always_seeded(self, labels, *, random_state=None):
    return Mechanism.randomize(self, labels, random_state=seeded(1) if random_state is None else random_state)


def quotes(self, labels, *, random_state=None):
    try:
        return Mechanism.randomize(self, labels, random_state=random_state)
    except ldp.LabelError:
        raise ldp.LabelError(f"cannot use {labels}") from None


def swallows(self, labels, *, random_state=None):
    cleaned = np.nan_to_num(np.asarray(labels, dtype=float))
    return Mechanism.randomize(self, cleaned, random_state=random_state)


def refuses_outside(self, labels, *, random_state=None):
    z = Mechanism.randomize(self, labels, random_state=random_state)
    if np.abs(np.asarray(labels)).max() > 10:
        raise ldp.LabelError("a label is out of bounds")
    return z


def flattens(self, labels, *, random_state=None):
    return Mechanism.randomize(self, labels, random_state=random_state).reshape(-1)


def writes(self, labels, *, random_state=None):
    z = Mechanism.randomize(self, labels, random_state=random_state)
    if isinstance(labels, np.ndarray):
        labels[...] = 0.0
    return z


def only_where(holds, give):
    """Return a randomize that is right but for some labels, which it treats otherwise."""

    def randomize(self, labels, *, random_state=None):
        z = Mechanism.randomize(self, labels, random_state=random_state)
        return np.asarray(np.where(holds(labels), give(np.asarray(labels, dtype=float), z), z))

    return randomize


def raw(y, z):
    return y


def inner(labels):
    y = np.asarray(labels, dtype=float)
    return (y > 0.6) & (y < 0.95)


def optimistic(self):
    return Proof(9.0, 0.0)


BROKEN = {
    "releases the label": ({"randomize": tells}, "distribution: .* must draw from the channel"),
    "tells labels of some places": ({"randomize": only_where(inner, raw)}, "distribution: .* must draw from"),
    "hides labels of some places": (
        {"randomize": only_where(inner, lambda y, z: np.nextafter(z, 9))},
        "same words: for an array randomize gives other bits",
    ),
    "tells a label that comes alone": (
        {"randomize": only_where(lambda y: np.size(y) == 1, raw)},
        "distribution: .* for a number",
    ),
    "tells a single number now and then": (
        {"randomize": only_where(lambda y: np.ndim(y) == 0 and 0.2 < y < 0.21, raw)},
        "same words: for a number",
    ),
    "tells a list of one label now and then": (
        {"randomize": only_where(lambda y: np.shape(y) == (1,) and 0.2 < y[0] < 0.21, raw)},
        "same words: for a list of one label",
    ),
    "tells float32": (
        {"randomize": only_where(lambda y: np.size(y) > 1 and np.asarray(y).dtype == np.float32, raw)},
        "same words: for float32",
    ),
    "tells integers": (
        {"randomize": only_where(lambda y: np.asarray(y).dtype.kind == "i", raw)},
        "same words: for integers",
    ),
    "tells labels far outside": (
        {"randomize": only_where(lambda y: np.asarray(y, dtype=float) > 4, lambda y, z: 1.5)},
        "clipping: .* differently far outside",
    ),
    "tells labels outside": (
        {"randomize": only_where(lambda y: np.asarray(y, dtype=float) > 2.5, lambda y, z: np.nextafter(z, 9))},
        "clipping: .* differently far outside",
    ),
    "tells all labels above": (
        {"randomize": only_where(lambda y: np.asarray(y, dtype=float) > 1, lambda y, z: np.nextafter(z, 9))},
        "clipping: .* other outputs than channel.sample",
    ),
    "proves too little": ({"verify": optimistic}, r"proof: .*Promise\.of"),
    "hides the label in the last bit": ({"randomize": louder}, "same words: .* cell's index alone"),
    "wrong mean": ({"mean": lambda self, y: np.zeros(len(y))}, "moments: mean"),
    "wrong variance": ({"variance": lambda self, y: np.ones(len(y))}, "moments: variance"),
    "wrong debias": ({"debias": lambda self, z: 2 * z}, "moments: debias.*NotUnbiasedError"),
    "words of its own": ({"randomize": own_words}, "randomness: the same words"),
    "a fixed seed": ({"randomize": always_seeded}, "randomness: two releases are the same"),
    "quotes labels": ({"randomize": quotes}, "bad input: .* contains a label"),
    "takes NaN": ({"randomize": swallows}, "bad input: NaN must raise LabelError"),
    "refuses labels outside": ({"randomize": refuses_outside}, "clipping: .* an error tells"),
    "flattens": ({"randomize": flattens}, "shapes: outputs must have the shape"),
    "writes to its input": ({"randomize": writes}, "shapes: randomize changed the labels"),
    "forgets a parameter": ({"parameters": lambda self: {}}, "card: its own card does not load"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_mechanism_fails_for_its_own_reason(name):
    methods, message = BROKEN[name]
    with pytest.raises(ConformanceError, match=message):
        check_mechanism(coin(name.replace(" ", "-"), **methods)(epsilon=1.1), samples=SAMPLES)


def test_a_mechanism_that_is_not_registered_is_told_how():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Unknown(Coin):
        epsilon: float
        channel: TableChannel = channel_field()

    with pytest.raises(ConformanceError, match="@register"):
        check_mechanism(Unknown(epsilon=1.1), samples=10_000)


@register("test-coin-thawed")
@dataclass(slots=True, kw_only=True, eq=False)
class Thawed(Coin):
    epsilon: float
    channel: TableChannel = channel_field()
    notes: list = field(default_factory=list, init=False)

    def __eq__(self, other):
        return isinstance(other, Thawed) and other.epsilon == self.epsilon

    __hash__ = None


def test_a_mechanism_that_can_be_changed_is_told_how():
    with pytest.raises(ConformanceError, match=r"frozen: .*frozen=True"):
        check_mechanism(Thawed(epsilon=1.1), samples=10_000)


def test_no_privacy_does_not_conform():
    with pytest.raises(ConformanceError, match="nothing is protected"):
        check_mechanism(ldp.NoPrivacy())
    with pytest.raises(ConformanceError, match="class derived from"):
        check_mechanism(lambda y: y)


# ---- channels of the user's own: what leaks in a sampler is found too -------------------------------------------


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


def with_channel(make):
    return {"_build": lambda self: make(Coin._build(self))}


def of_class(cls):
    return with_channel(lambda table: cls(table.low, table.high, table.values, table.table, table.promise))


def test_a_channel_of_the_users_that_leaks_is_convicted_by_the_audit_of_bits():
    with pytest.raises(ConformanceError, match=r"audit: .* exact value.* cell's index alone"):
        check_mechanism(coin("leaky-channel", **of_class(LeakyChannel))(epsilon=1.1), samples=SAMPLES)


def test_labels_outside_are_audited_where_a_channel_treats_them_otherwise():
    with pytest.raises(ConformanceError, match=r"audit: .* tell labels apart"):
        check_mechanism(coin("telling-channel", **of_class(TellingChannel))(epsilon=1.1), samples=SAMPLES)


def test_a_channel_without_a_range_is_checked_with_the_bounds_that_are_given():
    own = coin("bare-channel", **with_channel(BareChannel))(epsilon=1.1)
    with pytest.raises(ConformanceError, match=r"BareChannel .* bounds=\(lo, hi\)"):
        check_mechanism(own, samples=SAMPLES)
    assert check_mechanism(own, samples=SAMPLES, bounds=(0, 1)) == tuple(CHECKS)


def test_a_channel_that_is_no_dataclass_is_told_so():
    with pytest.raises(ConformanceError, match="card: NoDataclass is no dataclass"):
        check_mechanism(coin("no-dataclass", **with_channel(NoDataclass))(epsilon=1.1), samples=SAMPLES)
